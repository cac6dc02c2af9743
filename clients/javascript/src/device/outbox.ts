/** Sends the reports in a store until they are acknowledged. While the device is off, nothing is sent. */

import { ReportError, StoreError, SunziError } from "../errors.js";
import type { Signal } from "../platform.js";
import { framed, jittered, requestInit, uploadOnce } from "../uploading.js";
import { epochOf, type QueuedReport, settled } from "./account.js";
import { isForbidden } from "./consent.js";
import type { Store } from "./store.js";

/** How an outbox sends. */
export interface OutboxOptions {
  /** An upload key, sent as a bearer token. */
  secret?: string;
  /**
   * Called with the error of every report that a collector rejected for good, which is then deleted; and, while
   * {@link Device.keepSending} runs, with the error of a store that cannot be used.
   */
  onError?: (error: Error, report?: QueuedReport) => void;
}

/** The result of {@link Device.flush}, in numbers of reports. */
export interface FlushResult {
  readonly acknowledged: number;
  /** Rejected for good, and deleted. */
  readonly rejected: number;
  /** Still in the outbox. */
  readonly waiting: number;
}

const PARALLEL_UPLOADS = 6;
/** Browsers refuse more than 64 KiB in all requests that may outlive a page. */
const KEEPALIVE_BYTES = 60_000;
/** The name of the lock; and of the item by which a tab tells the others that the device was turned off. */
const NAME = "sunzi outbox";
const MAX_PAUSE_SECONDS = 900;

/** The outbox of one device. {@link Device} documents its methods. */
export class Outbox {
  /** The unsent reports that this page knows, for when there is no time to read the store. */
  readonly #unsent = new Map<string, QueuedReport>();
  readonly #handedOver = new Set<string>();
  readonly #store: Store;
  readonly #options: OutboxOptions;

  constructor(store: Store, options: OutboxOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Remember a report that was queued. */
  add(report: QueuedReport): void {
    this.#unsent.set(report.id, report);
  }

  /** Send nothing more of what this page knows. */
  clear(): void {
    this.#unsent.clear();
  }

  /** Let the other tabs {@link clear} too. */
  clearEverywhere(): void {
    this.clear();
    try {
      globalThis.document?.defaultView?.localStorage.setItem(NAME, "");
      globalThis.document?.defaultView?.localStorage.removeItem(NAME);
    } catch {
      // Where storage is not allowed, there are no other tabs with a device.
    }
  }

  async waiting(): Promise<QueuedReport[]> {
    const device = (await this.#store.identity())?.id;
    const accounts = (await this.#store.accounts()).filter((account) => account.device === device);
    return accounts.flatMap(({ outbox }) => outbox).sort((left, right) => left.queuedAt - right.queuedAt);
  }

  async flush({ signal }: { signal?: Signal } = {}): Promise<FlushResult> {
    const locks = globalThis.navigator?.locks;
    if (!locks) return this.#flush(signal);
    try {
      return await locks.request(NAME, signal ? { signal } : {}, () => this.#flush(signal));
    } catch (cause) {
      if (signal?.aborted || cause instanceof SunziError) throw cause;
      throw new StoreError(`the outbox cannot be used: ${cause}`, { cause });
    }
  }

  async #flush(signal?: Signal): Promise<FlushResult> {
    const known = [...this.#unsent.keys()];
    const reports = await this.waiting();
    for (const id of known) this.#unsent.delete(id); // another tab may have sent them
    this.#handedOver.clear();
    if (isForbidden()) return { acknowledged: 0, rejected: 0, waiting: reports.length };
    const later = new Set<string>();
    let [acknowledged, rejected, waiting] = [0, 0, 0];
    const options = { ...this.#options, ...(signal && { signal }) };
    for (const report of reports) this.add(report);
    reports.reverse();
    const worker = async (): Promise<void> => {
      for (let report = reports.pop(); report; report = reports.pop()) {
        const epoch = epochOf(report.address);
        if (later.has(epoch)) {
          waiting++;
          continue;
        }
        // The device may have been turned off, by this page or another.
        if (!(await this.#store.identity()) || !this.#unsent.has(report.id)) continue;
        let isRejected = false;
        try {
          await uploadOnce(report.address, framed(report), options);
          acknowledged++;
        } catch (error) {
          if (error instanceof StoreError) {
            if (!isTokenFailure(report, error)) later.add(epoch);
            waiting++;
            continue;
          }
          if (!(error instanceof ReportError)) throw error;
          isRejected = true;
          rejected++;
          this.#options.onError?.(error, report);
        }
        this.#unsent.delete(report.id);
        const settling = report;
        await this.#store.update(report.attribute, (account) => settled(account, settling, isRejected));
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_UPLOADS }, worker));
    return { acknowledged, rejected, waiting };
  }

  handOver(): number {
    if (isForbidden()) return 0;
    let [sent, room] = [0, KEEPALIVE_BYTES];
    for (const report of this.#unsent.values()) {
      const { id, address } = report;
      if (this.#handedOver.has(id)) continue;
      const body = framed(report);
      room -= body.length;
      if (room < 0) break;
      // Without a content type there is no preflight, for which there would be no time.
      const init = { ...requestInit(this.#options), method: "POST", body };
      void fetch(address, { ...init, keepalive: true }).catch(() => undefined); // it is still in the outbox
      this.#handedOver.add(id);
      sent++;
    }
    return sent;
  }

  keepSending(seconds = 30, { signal }: { signal?: Signal } = {}): () => void {
    let [pause, isStopped] = [seconds, false];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const attempt = async (): Promise<void> => {
      const isStuck = await this.flush(signal && { signal }).then(
        ({ acknowledged, waiting }) => waiting > 0 && acknowledged === 0,
        (error: Error) => {
          if (!signal?.aborted) this.#options.onError?.(error);
          return true;
        },
      );
      clearTimeout(timer); // another attempt may have ended in the meantime
      if (isStopped) return;
      if (!isStuck) pause = seconds;
      timer = setTimeout(attempt, jittered(pause));
      if (isStuck) pause = Math.min(MAX_PAUSE_SECONDS, 2 * pause);
    };
    const onOnline = (): void => {
      pause = seconds;
      void attempt();
    };
    const onHide = (): void => void (globalThis.document?.visibilityState !== "visible" && this.handOver());
    const onStorage = ({ key }: Event & { key?: unknown }): void => void (key === NAME && this.clear());
    // visibilitychange is an event of the document, which bubbles to the window.
    const events: [string, (event: Event) => void][] = [
      ["online", onOnline],
      ["pagehide", () => this.handOver()],
      ["visibilitychange", onHide],
      ["storage", onStorage],
    ];
    for (const [name, listener] of events) globalThis.addEventListener?.(name, listener);
    const stop = (): void => {
      isStopped = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      for (const [name, listener] of events) globalThis.removeEventListener?.(name, listener);
    };
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
    else void attempt();
    return stop;
  }
}

/** Whether a failure concerns only this report: a token belongs to one report, an upload key to all. */
function isTokenFailure({ token }: QueuedReport, { cause }: StoreError): boolean {
  return token !== undefined && (cause as Response | undefined)?.status === 401;
}
