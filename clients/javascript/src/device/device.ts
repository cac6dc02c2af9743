/**
 * A device that reports repeatedly: memoised noise, a lifetime budget, and uploads that survive crashes.
 *
 * One durable step debits the ε of a report and puts its bytes into the outbox, before anything is sent. So a crash
 * never loses a debit and never sends a report without one.
 */

import type { ClientOptions } from "../client.js";
import type { Value } from "../domain.js";
import { type Epsilon, parseEpsilon } from "../epsilon.js";
import { check, DomainError, ParameterError, ReportError, StoreError } from "../errors.js";
import { encodeText } from "../json.js";
import type { Plan, PlanSource } from "../plan.js";
import { hexadecimal, hmac } from "../sha256.js";
import { addressOf, framed, freshId, jittered, type RequestOptions, uploadOnce } from "../uploading.js";
import { BrowserStore } from "./browser_store.js";
import { MemoisingClient } from "./memoising.js";
import { type QueuedReport, type Store, spentBy } from "./store.js";

/** Options of a device. */
export interface DeviceOptions extends RequestOptions {
  /** The ε that each attribute may spend in total, over all plans and collections. */
  lifetimeEpsilon: Epsilon;
  /** Different caps for single attributes. */
  caps?: Record<string, Epsilon>;
  /** Where to keep the key, the ledger and the outbox; by default the browser's IndexedDB. */
  store?: Store;
}

/** Options of one report. */
export interface QueueOptions extends ClientOptions {
  /** A single-use token, if the collector requires one. */
  token?: string;
}

/** The result of {@link Device.queue}. */
export interface QueueResult {
  readonly id: string;
  /** Whether the value is outside the domain and the background report was queued instead. */
  readonly outside: boolean;
  /** The ε spent, such as "1/2"; "0" if the same value was reported before under the same plan. */
  readonly cost: string;
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
const LOCK = "sunzi outbox";
const MAX_PAUSE_SECONDS = 900;

/** The key, ledger and outbox of one device, shared by all tabs or processes that open the same store. */
export class Device {
  /** The unsent reports that this page knows, for when there is no time to read the store. */
  readonly #unsent = new Map<string, QueuedReport>();

  readonly #beaconed = new Set<string>();

  readonly #options: DeviceOptions;
  readonly #store: Store;
  readonly #key: CryptoKey;

  private constructor(options: DeviceOptions, store: Store, key: CryptoKey) {
    this.#options = options;
    this.#store = store;
    this.#key = key;
  }

  /** Open the device in this store, or create it. */
  static async open(options: DeviceOptions): Promise<Device> {
    parseEpsilon(options.lifetimeEpsilon);
    for (const cap of Object.values(options.caps ?? {})) parseEpsilon(cap);
    const store = options.store ?? (await BrowserStore.open());
    return new Device(options, store, await store.key());
  }

  /** A memoising client with this device's key. Its reports are not debited; prefer {@link queue}. */
  client(plan: Plan | PlanSource, attribute: string, options: ClientOptions = {}): MemoisingClient {
    return new MemoisingClient(plan, this.#key, attribute, options);
  }

  /**
   * Make the report of a value, debit its ε, and put it into the outbox. Throws a BudgetError if too little ε is left,
   * and a ParameterError if the plan's label file is missing; then nothing is spent and no report is made.
   *
   * A value that this attribute reported before under the same plan costs nothing, because its bytes are the same. A
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
    check(/\/epochs\/\d+$/.test(epoch), `epoch must end with /epochs/N, got ${epoch}`, ParameterError);
    const client = this.client(plan, attribute, options);
    const index = indexOf(client.plan, value);
    const secret = await client.derive(index);
    const entry = hexadecimal(hmac(secret, encodeText("ledger entry")));
    const body = client.reportDerived(index, secret);
    const id = freshId();
    const report = { id, address: addressOf(epoch, client.plan, body), body, token: options.token };
    const caps = this.#options.caps ?? {};
    const cap = Object.hasOwn(caps, attribute) ? caps[attribute] : this.#options.lifetimeEpsilon;
    const cost = await this.#store.commit({ attribute, entry, epsilon: client.plan.epsilon }, String(cap), report);
    this.#unsent.set(id, report);
    return { id, outside: index === undefined, cost };
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
   * time; more would do no harm.
   */
  async flush(): Promise<FlushResult> {
    const locks = globalThis.navigator?.locks;
    return locks ? locks.request(LOCK, () => this.#flush()) : this.#flush();
  }

  async #flush(): Promise<FlushResult> {
    const known = [...this.#unsent.keys()];
    const reports = await this.#store.waiting();
    for (const id of known) this.#unsent.delete(id); // another tab may have sent them
    this.#beaconed.clear();
    const total = reports.length;
    const later = new Set<string>();
    let [acknowledged, rejected] = [0, 0];
    for (const report of reports) this.#unsent.set(report.id, report);
    reports.reverse();
    const worker = async (): Promise<void> => {
      for (let report = reports.pop(); report; report = reports.pop()) {
        const epoch = report.address.replace(/\/[^/]*$/, "");
        if (later.has(epoch)) continue;
        try {
          await uploadOnce(report.address, framed(report.body, report), this.#options);
          acknowledged++;
        } catch (error) {
          if (error instanceof StoreError) {
            if (!isTokenFailure(report, error)) later.add(epoch);
            continue;
          }
          if (!(error instanceof ReportError)) throw error;
          rejected++;
        }
        this.#unsent.delete(report.id);
        await this.#store.settle(report.id);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_UPLOADS }, worker));
    return { acknowledged, rejected, waiting: total - acknowledged - rejected };
  }

  /**
   * Pass the unsent reports to the browser, which sends them even after the page is closed (`sendBeacon`). Beacons are
   * not acknowledged, so the reports stay in the outbox and are sent again later under the same ids, to be counted
   * once.
   */
  beacon(): number {
    let sent = 0;
    for (const report of this.#unsent.values()) {
      const { id, address } = report;
      if (this.#beaconed.has(id)) continue;
      const body = framed(report.body, report);
      // Without a content type there is no preflight, for which there would be no time.
      if (!globalThis.navigator?.sendBeacon?.(address, body as Uint8Array<ArrayBuffer>)) break;
      this.#beaconed.add(id);
      sent++;
    }
    return sent;
  }

  /**
   * Flush now, periodically, and when the network comes back; use {@link beacon} when the page is hidden or closed.
   * While nothing gets through, the pauses double up to 15 minutes. They are jittered so that pages do not synchronise.
   *
   * @param seconds the pause between flushes
   * @returns a function that stops it
   */
  keepSending(seconds = 30): () => void {
    let [pause, isStopped] = [seconds, false];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const attempt = async (): Promise<void> => {
      const isStuck = await this.flush().then(
        ({ acknowledged, waiting }) => waiting > 0 && acknowledged === 0,
        () => true,
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
    const onHide = (): void => void (globalThis.document?.visibilityState !== "visible" && this.beacon());
    // visibilitychange is an event of the document, which bubbles to the window.
    const events: [string, () => void][] = [
      ["online", onOnline],
      ["pagehide", () => this.beacon()],
      ["visibilitychange", onHide],
    ];
    for (const [name, listener] of events) globalThis.addEventListener?.(name, listener);
    void attempt();
    return () => {
      isStopped = true;
      clearTimeout(timer);
      for (const [name, listener] of events) globalThis.removeEventListener?.(name, listener);
    };
  }
}

/** Whether a failure concerns only this report: a token belongs to one report, an upload key to all. */
function isTokenFailure({ token }: QueuedReport, { cause }: StoreError): boolean {
  return token !== undefined && (cause as Response | undefined)?.status === 401;
}

function indexOf(plan: Plan, value: Value): number | undefined {
  try {
    return plan.domain.index(value);
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}
