/**
 * A device that reports repeatedly: memoised noise, a lifetime budget, and uploads that survive crashes.
 *
 * One durable step debits the ε of a report and puts its bytes into the outbox, before anything is sent. So a crash
 * never loses a debit and never sends a report without one.
 */

import type { Value } from "../domain.js";
import { type Epsilon, parseEpsilon } from "../epsilon.js";
import { DomainError, ReportError, StoreError, SunziError } from "../errors.js";
import { type Groups, namedGroups } from "../groups.js";
import { encodeText } from "../json.js";
import type { Plan, PlanOptions, PlanSource } from "../plan.js";
import type { Signal } from "../platform.js";
import type { Index } from "../protocols/protocol.js";
import { hexadecimal, hmac } from "../sha256.js";
import { addressOf, framed, freshId, jittered, requestInit, uploadOnce } from "../uploading.js";
import { BrowserStore } from "./browser_store.js";
import { canonicalEpoch, MemoisingClient } from "./memoising.js";
import { type QueuedReport, type Store, spentBy } from "./store.js";

/** Options of a device. */
export interface DeviceOptions {
  /** An upload key, sent as a bearer token. */
  secret?: string;
  /** The ε that each attribute may spend in total, over all plans and collections. */
  lifetimeEpsilon: Epsilon;
  /** The largest ε to accept in a plan. A plan from the network can be valid and still have ε = 32. */
  maxEpsilon: Epsilon;
  /** Different caps for single attributes. */
  caps?: Record<string, Epsilon>;
  /**
   * Called with the error of every report that a collector rejected for good, which is then deleted; and, while
   * {@link Device.keepSending} runs, with the error of a store that cannot be used.
   */
  onError?: (error: Error, report?: QueuedReport) => void;
  /** Where to keep the key, the ledger and the outbox; by default the browser's IndexedDB. */
  store?: Store;
}

/** Options of one report. */
export interface QueueOptions extends PlanOptions {
  /** The fingerprint that the plan must have, as hexadecimal digits. */
  fingerprint?: string;
  /** A single-use token, if the collector requires one. */
  token?: string;
  /**
   * The user's public groups, such as `{country: "DE"}`: at most one value for each attribute that the plan declares.
   * Nothing protects them.
   */
  groups?: Groups;
  /**
   * Queue this report under a random id even if the attribute has already reported in this epoch. Such a device weighs
   * more than others, and the intervals of an estimate assume one report per device.
   */
  several?: boolean;
}

/** The result of {@link Device.queue}. */
export interface QueueResult {
  readonly id: string;
  /** Whether the value is outside the domain and the background report was queued instead. */
  readonly outside: boolean;
  /** The ε spent, such as "1/2"; "0" if the same value was reported before under the same plan. */
  readonly cost: string;
  /** Whether the attribute had already reported in this epoch, so that nothing was queued. */
  readonly isRepeated: boolean;
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
const LOCK = "sunzi outbox";
const MAX_PAUSE_SECONDS = 900;

/** The key, ledger and outbox of one device, shared by all tabs or processes that open the same store. */
export class Device {
  /** The unsent reports that this page knows, for when there is no time to read the store. */
  readonly #unsent = new Map<string, QueuedReport>();

  readonly #handedOver = new Set<string>();

  readonly #options: DeviceOptions;
  readonly #store: Store;

  private constructor(options: DeviceOptions, store: Store) {
    this.#options = options;
    this.#store = store;
  }

  /** Open the device in this store, or create it. */
  static async open(options: DeviceOptions): Promise<Device> {
    const { lifetimeEpsilon, maxEpsilon, caps = {} } = options;
    for (const limit of [lifetimeEpsilon, maxEpsilon, ...Object.values(caps)]) parseEpsilon(limit);
    const store = options.store ?? (await BrowserStore.open());
    await store.key();
    return new Device(options, store);
  }

  /** A memoising client with this device's key. Its reports are not debited; prefer {@link queue}. */
  async client(plan: Plan | PlanSource, attribute: string, options: QueueOptions = {}): Promise<MemoisingClient> {
    // The store's key is new if the user has cleared the site's data.
    const key = await this.#store.key();
    return new MemoisingClient(plan, key, attribute, { ...options, maxEpsilon: this.#options.maxEpsilon });
  }

  /**
   * Make the report of a value, debit its ε, and put it into the outbox. Throws a BudgetError if too little ε is left,
   * and a ParameterError if the plan's label file is missing; then nothing is spent and no report is made.
   *
   * An attribute reports once per epoch: a second call with the same epoch spends and queues nothing, for any value,
   * and returns `isRepeated`. The report's id is derived from the device key, the attribute and the epoch, so a
   * collector would not count it again either.
   *
   * A value that this attribute reported before under the same plan costs nothing, because its bytes are the same;
   * under plans of numbers, ranges and tables, nor does one with the same answer to the question that the device keeps. A
   * value outside the domain is reported as "other" if the plan has it, else by the background report: sending nothing
   * would reveal that it is outside.
   *
   * @param epoch where to send the report: the `url` of a fetched epoch, `…/v1/collections/NAME/epochs/N`
   */
  async queue(
    plan: Plan | PlanSource,
    attribute: string,
    value: Value,
    epoch: string,
    options: QueueOptions = {},
  ): Promise<QueueResult> {
    epoch = canonicalEpoch(epoch);
    const client = await this.client(plan, attribute, options);
    const index = indexOf(client.plan, value);
    const secret = await client.derive(index);
    const entry = hexadecimal(hmac(secret, encodeText("ledger entry")));
    const body = await client.reportDerived(index, secret);
    const id = options.several ? freshId() : await client.reportId(epoch);
    const groups = namedGroups(client.plan.groups, options.groups);
    const report = { id, address: addressOf(epoch, client.plan, body), body, token: options.token, groups };
    const caps = this.#options.caps ?? {};
    const cap = Object.hasOwn(caps, attribute) ? caps[attribute] : this.#options.lifetimeEpsilon;
    const cost = await this.#store.commit({ attribute, entry, epsilon: client.plan.epsilon }, String(cap), report);
    if (cost !== undefined) this.#unsent.set(id, report);
    return { id, outside: index === undefined, cost: cost ?? "0", isRepeated: cost === undefined };
  }

  /** The ε that an attribute has spent so far, such as "3/2". */
  async spent(attribute: string): Promise<string> {
    return spentBy(await this.#store.debits(attribute));
  }

  /** The reports in the outbox, not acknowledged yet, oldest first. */
  waiting(): Promise<QueuedReport[]> {
    return this.#store.waiting();
  }

  /**
   * Send all reports in the outbox, and delete those that are acknowledged or rejected for good. After a temporary
   * failure, the other reports of that epoch stay for the next flush. If the platform has locks, one tab sends at a
   * time; more would do no harm. An aborted `signal` stops it, and the promise is rejected with the signal's `reason`;
   * what was not acknowledged stays in the outbox.
   */
  async flush({ signal }: { signal?: Signal } = {}): Promise<FlushResult> {
    const locks = globalThis.navigator?.locks;
    if (!locks) return this.#flush(signal);
    try {
      return await locks.request(LOCK, signal ? { signal } : {}, () => this.#flush(signal));
    } catch (cause) {
      if (signal?.aborted || cause instanceof SunziError) throw cause;
      throw new StoreError(`the outbox cannot be used: ${cause}`, { cause });
    }
  }

  async #flush(signal?: Signal): Promise<FlushResult> {
    const known = [...this.#unsent.keys()];
    const reports = await this.#store.waiting();
    for (const id of known) this.#unsent.delete(id); // another tab may have sent them
    this.#handedOver.clear();
    const total = reports.length;
    const later = new Set<string>();
    let [acknowledged, rejected] = [0, 0];
    const options = { ...this.#options, ...(signal && { signal }) };
    for (const report of reports) this.#unsent.set(report.id, report);
    reports.reverse();
    const worker = async (): Promise<void> => {
      for (let report = reports.pop(); report; report = reports.pop()) {
        const epoch = report.address.replace(/\/[^/]*$/, "");
        if (later.has(epoch)) continue;
        let isRejected = false;
        try {
          await uploadOnce(report.address, framed(report), options);
          acknowledged++;
        } catch (error) {
          if (error instanceof StoreError) {
            if (!isTokenFailure(report, error)) later.add(epoch);
            continue;
          }
          if (!(error instanceof ReportError)) throw error;
          isRejected = true;
          rejected++;
          this.#options.onError?.(error, report);
        }
        this.#unsent.delete(report.id);
        await this.#store.settle(report.id, isRejected);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_UPLOADS }, worker));
    return { acknowledged, rejected, waiting: total - acknowledged - rejected };
  }

  /**
   * Pass the unsent reports to the browser, which sends them even after the page is closed (`fetch` with `keepalive`,
   * at most 60,000 bytes). Nobody reads the answers, so the reports stay in the outbox and are sent again later under
   * the same ids, to be counted once.
   */
  handOver(): number {
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

  /**
   * Flush now, periodically, and when the network comes back; use {@link handOver} when the page is hidden or closed.
   * While nothing gets through, the pauses double up to 15 minutes. They are jittered so that pages do not synchronise.
   *
   * @param seconds the pause between flushes
   * @param options `signal` stops it when it is aborted, also in the middle of a flush
   * @returns a function that stops it after the flush that runs
   */
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
    // visibilitychange is an event of the document, which bubbles to the window.
    const events: [string, () => void][] = [
      ["online", onOnline],
      ["pagehide", () => this.handOver()],
      ["visibilitychange", onHide],
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

function indexOf(plan: Plan, value: Value): Index | undefined {
  try {
    return plan.domain.index(value);
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}
