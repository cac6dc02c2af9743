/**
 * One device that reports over months: noise that is drawn once, a budget for a lifetime, and uploads that survive
 * crashes.
 *
 * A report is made, its ε debited and its bytes put into the outbox by one durable step, before anything is sent. A
 * crash at any moment neither loses a debit nor sends a report that was not paid for.
 */

import type { ClientOptions } from "../client.js";
import type { Value } from "../domain.js";
import { type Epsilon, parseEpsilon } from "../epsilon.js";
import { check, DomainError, ParameterError, ReportError, StoreError } from "../errors.js";
import { encodeText } from "../json.js";
import type { Plan, PlanSource } from "../plan.js";
import { hexadecimal, hmac } from "../sha256.js";
import { addressOf, freshId, partlyRandom, type RequestOptions, uploadOnce } from "../uploading.js";
import { BrowserStore } from "./browser_store.js";
import { MemoisingClient } from "./memoising.js";
import { type Store, spentBy, type Waiting } from "./store.js";

/** The terms of a device. */
export interface DeviceOptions extends RequestOptions {
  /** What each attribute may ever spend, over all plans and collections. */
  lifetimeEpsilon: Epsilon;
  /** Other caps for some attributes. */
  caps?: Record<string, Epsilon>;
  /** Where to keep key, ledger and outbox; the browser's IndexedDB unless told. */
  store?: Store;
}

/** The terms that one report accepts, and what its plan and its collector may need. */
export interface QueueOptions extends ClientOptions {
  /** A single-use token, where the collector asks for one. */
  token?: string;
}

/** What became of one value. */
export interface Queued {
  readonly id: string;
  /** Whether the value lay outside the domain, so that the background report was queued. */
  readonly outside: boolean;
  /** What this report cost, such as "1/2"; "0" if the same value was reported before under the same plan. */
  readonly cost: string;
}

/** What a flush did. */
export interface Flushed {
  readonly acknowledged: number;
  /** Refused for good, and deleted. */
  readonly refused: number;
  /** Still in the outbox. */
  readonly waiting: number;
}

const LANES = 6;
const LOCK = "sunzi outbox";
const LONGEST_PAUSE = 900;

/** Key, ledger and outbox of one device, shared by all tabs or processes that open the same store. */
export class Device {
  /** What this page knows to be waiting, at hand when there is no time to ask the store. */
  readonly #unsent = new Map<string, Waiting>();

  readonly #beaconed = new Set<string>();

  readonly #options: DeviceOptions;
  readonly #store: Store;
  readonly #key: CryptoKey;

  private constructor(options: DeviceOptions, store: Store, key: CryptoKey) {
    this.#options = options;
    this.#store = store;
    this.#key = key;
  }

  /** Open the device that this browser has, or make it. */
  static async open(options: DeviceOptions): Promise<Device> {
    parseEpsilon(options.lifetimeEpsilon);
    for (const cap of Object.values(options.caps ?? {})) parseEpsilon(cap);
    const store = options.store ?? (await BrowserStore.open());
    return new Device(options, store, await store.key());
  }

  /** A memoising client with this device's key. Its reports are not debited: prefer {@link queue}. */
  client(plan: Plan | PlanSource, attribute: string, options: ClientOptions = {}): MemoisingClient {
    return new MemoisingClient(plan, this.#key, attribute, options);
  }

  /**
   * Make the report of a value, debit it, and keep it for sending. A BudgetError if too little is left, a
   * ParameterError if the plan's labels are in a file that was not given: then nothing was spent and nothing made.
   *
   * A value that this attribute reported before under the same plan costs nothing: its bytes are the same. A value
   * outside the domain is sent as "other" where the plan has that; else as the background report, since silence would
   * speak.
   *
   * @param epoch where the report goes: the `url` of a fetched epoch, `…/v1/collections/NAME/epochs/N`
   */
  async queue(
    plan: Plan | PlanSource,
    attribute: string,
    value: Value,
    epoch: string,
    options: QueueOptions = {},
  ): Promise<Queued> {
    check(/\/epochs\/\d+$/.test(epoch), `an epoch's address ends with /epochs/N, got ${epoch}`, ParameterError);
    const client = this.client(plan, attribute, options);
    const index = placeOf(client.plan, value);
    const secret = await client.derive(index);
    const entry = hexadecimal(hmac(secret, encodeText("ledger entry")));
    const body = client.reportDerived(index, secret);
    const id = freshId();
    const report = { id, address: addressOf(epoch, client.plan, body, { ...options, id }), body };
    const caps = this.#options.caps ?? {};
    const cap = Object.hasOwn(caps, attribute) ? caps[attribute] : this.#options.lifetimeEpsilon;
    const cost = await this.#store.commit({ attribute, entry, epsilon: client.plan.epsilon }, String(cap), report);
    this.#unsent.set(id, report);
    return { id, outside: index === undefined, cost };
  }

  /** What an attribute has spent so far, such as "3/2". */
  async spent(attribute: string): Promise<string> {
    return spentBy(await this.#store.debits(attribute));
  }

  /** The reports that no collector has acknowledged yet, oldest first. */
  waiting(): Promise<Waiting[]> {
    return this.#store.waiting();
  }

  /**
   * Send all that waits, and delete at once what is acknowledged or refused for good. At the first sign that an epoch's
   * collector cannot take more now, what else waits for that epoch has to wait for the next time. Where the platform has
   * locks, one tab sends at a time; two would do no harm.
   */
  async flush(): Promise<Flushed> {
    const locks = globalThis.navigator?.locks;
    return locks ? locks.request(LOCK, () => this.#flush()) : this.#flush();
  }

  async #flush(): Promise<Flushed> {
    const known = [...this.#unsent.keys()];
    const reports = await this.#store.waiting();
    for (const id of known) this.#unsent.delete(id); // another tab may have sent them
    this.#beaconed.clear();
    const total = reports.length;
    const later = new Set<string>();
    let [acknowledged, refused] = [0, 0];
    for (const report of reports) this.#unsent.set(report.id, report);
    reports.reverse();
    const lane = async (): Promise<void> => {
      for (let report = reports.pop(); report; report = reports.pop()) {
        const epoch = report.address.replace(/\/[^/]*$/, "");
        if (later.has(epoch)) continue;
        try {
          await uploadOnce(report.address, report.body, this.#options);
          acknowledged++;
        } catch (error) {
          if (error instanceof StoreError) {
            if (!isOwnTrouble(report, error)) later.add(epoch);
            continue;
          }
          if (!(error instanceof ReportError)) throw error;
          refused++;
        }
        this.#unsent.delete(report.id);
        await this.#store.settle(report.id);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    return { acknowledged, refused, waiting: total - acknowledged - refused };
  }

  /**
   * Hand what waits to the browser, which sends it even after the page is gone (`sendBeacon`). Nobody hears of its
   * arrival, so it stays in the outbox and is sent again later, under the same id, to be counted once.
   */
  beacon(): number {
    let sent = 0;
    for (const { id, address, body } of this.#unsent.values()) {
      if (this.#beaconed.has(id)) continue;
      // Without a content type the browser asks no permission first, for which there would be no time.
      if (!globalThis.navigator?.sendBeacon?.(address, body as Uint8Array<ArrayBuffer>)) break;
      this.#beaconed.add(id);
      sent++;
    }
    return sent;
  }

  /**
   * Keep sending: now, when the network comes back, and about every so many seconds; by {@link beacon} when the page is
   * hidden or left. While nothing gets through, the pauses double, up to a quarter of an hour; half of each is random,
   * so that thousands of pages do not come in step. Returns a function that ends it.
   */
  keepSending(seconds = 30): () => void {
    let [pause, isOver] = [seconds, false];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const attempt = async (): Promise<void> => {
      const isStuck = await this.flush().then(
        ({ acknowledged, waiting }) => waiting > 0 && acknowledged === 0,
        () => true,
      );
      clearTimeout(timer); // another attempt may have ended meanwhile
      if (isOver) return;
      if (!isStuck) pause = seconds;
      timer = setTimeout(attempt, partlyRandom(pause));
      if (isStuck) pause = Math.min(LONGEST_PAUSE, 2 * pause);
    };
    const onOnline = (): void => {
      pause = seconds;
      void attempt();
    };
    const onHide = (): void => void (globalThis.document?.visibilityState !== "visible" && this.beacon());
    // The last is the document's event and bubbles to the window.
    const events: [string, () => void][] = [
      ["online", onOnline],
      ["pagehide", () => this.beacon()],
      ["visibilitychange", onHide],
    ];
    for (const [name, listener] of events) globalThis.addEventListener?.(name, listener);
    void attempt();
    return () => {
      isOver = true;
      clearTimeout(timer);
      for (const [name, listener] of events) globalThis.removeEventListener?.(name, listener);
    };
  }
}

/** Whether a failure says nothing of other reports: a token is one report's own, a key is everybody's. */
function isOwnTrouble({ address }: Waiting, { cause }: StoreError): boolean {
  return address.includes("&token=") && (cause as Response | undefined)?.status === 401;
}

function placeOf(plan: Plan, value: Value): number | undefined {
  try {
    return plan.domain.index(value);
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}
