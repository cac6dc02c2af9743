/**
 * A device that reports repeatedly: with the user's consent, memoised noise, a lifetime budget, and uploads that survive
 * crashes.
 *
 * One durable step debits the ε of a report and puts its bytes into the outbox, before anything is sent. So a crash
 * never loses a debit and never sends a report without one.
 */

import type { Limits } from "../client.js";
import type { Value } from "../domain.js";
import { type Epsilon, parseEpsilon } from "../epsilon.js";
import { check, DomainError, ParameterError, shown } from "../errors.js";
import { type Groups, namedGroups } from "../groups.js";
import { encodeText } from "../json.js";
import type { Plan, PlanOptions, PlanSource } from "../plan.js";
import type { Signal } from "../platform.js";
import type { Index } from "../protocols/protocol.js";
import { hexadecimal, hmac } from "../sha256.js";
import { addressOf, framed, freshId } from "../uploading.js";
import { type Account, newAccount, type QueuedReport, spentBy } from "./account.js";
import { BrowserStore } from "./browser_store.js";
import { isForbidden } from "./consent.js";
import { type Choice, type Decision, decide, type QueueOutcome, type Request, type WhenSpent } from "./deciding.js";
import { meaningOf } from "./meaning.js";
import { canonicalEpoch, MemoisingClient } from "./memoising.js";
import { notice } from "./notice.js";
import { type FlushResult, Outbox, type OutboxOptions } from "./outbox.js";
import type { Identity, Store } from "./store.js";

/** Options of a device. */
export interface DeviceOptions extends OutboxOptions, Limits {
  /** The ε that each attribute may spend in total, over all plans and collections. */
  lifetimeEpsilon: Epsilon;
  /** The largest ε to accept in a plan. A plan from the network can be valid and still have ε = 32. */
  maxEpsilon: Epsilon;
  /** Different caps for single attributes. */
  caps?: Record<string, Epsilon>;
  /**
   * What to send once the budget of an attribute has ended: "keep", the default, repeats its latest report for good;
   * "background" sends a report that says nothing about the value, paid for in advance; "refuse" sends nothing.
   */
  whenSpent?: WhenSpent;
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
  readonly outcome: QueueOutcome;
  /** The id of the report in this epoch; undefined if there is none. */
  readonly id?: string;
  /** Whether the value is outside the domain, so that it has the background report. */
  readonly outside: boolean;
  /** The ε that this call spent, such as "1/2"; "0" if its reports were paid before. */
  readonly cost: string;
}

/** The result of {@link Device.preview}. */
export interface Preview {
  /** Where the report would be sent. */
  readonly address: string;
  /** All bytes that would be sent, in hexadecimal: a line with the report's id, then the report. Empty if none would. */
  readonly bytes: string;
  /** What they say, in words. */
  readonly meaning: string;
}

/** A report that could be queued: the decision's request, and what made it. */
interface Prepared {
  readonly client: MemoisingClient;
  readonly index: Index | undefined;
  readonly request: Request;
}

const TOKEN = /^[\da-f]{64}$/;

/**
 * The key, ledger and outbox of one device, shared by all tabs or processes that open the same store.
 *
 * It is off until {@link enable}: then nothing is stored, made or sent. `DO_NOT_TRACK` in the environment, Global
 * Privacy Control and Do Not Track turn it off whatever is stored.
 */
export class Device {
  readonly #options: DeviceOptions;
  readonly #store: Store;
  readonly #outbox: Outbox;
  /** The key of previews before the consent, which {@link enable} stores. */
  #drawn: Promise<Identity> | undefined;

  private constructor(options: DeviceOptions) {
    this.#options = options;
    this.#store = options.store ?? new BrowserStore();
    this.#outbox = new Outbox(this.#store, options);
  }

  /** A device with this store. Nothing is stored yet. */
  static async open(options: DeviceOptions): Promise<Device> {
    const { lifetimeEpsilon, maxEpsilon, caps = {}, whenSpent = "keep" } = options;
    for (const limit of [lifetimeEpsilon, maxEpsilon, ...Object.values(caps)]) parseEpsilon(limit);
    const isKnown = ["keep", "background", "refuse"].includes(whenSpent);
    check(isKnown, `whenSpent must be keep, background or refuse, got ${shown(whenSpent)}`, ParameterError);
    return new Device(options);
  }

  /** Whether the user has agreed and nobody has said no. */
  async enabled(): Promise<boolean> {
    return !isForbidden() && Boolean(await this.#store.identity());
  }

  /** Turn the device on, once the user has agreed. Returns whether it is on now. */
  async enable(): Promise<boolean> {
    if (isForbidden()) return false;
    if (!(await this.#store.identity())) await this.#store.enable(await this.#draw());
    this.#drawn = undefined;
    return true;
  }

  /**
   * Turn the device off. It deletes its key, the outbox and every stored report, and keeps what was spent and which
   * attribute reported in which epoch: turned on again, it has a new key and reports from the next epoch on.
   */
  async disable(): Promise<void> {
    this.#outbox.clear();
    this.#drawn = undefined;
    await this.#store.disable();
    this.#outbox.clearEverywhere();
  }

  /** A text to show before {@link enable}. */
  notice(plan: Plan | PlanSource, attribute: string, options: PlanOptions = {}): string {
    return notice(plan, attribute, options, this.#capOf(attribute));
  }

  /**
   * What {@link queue} would send for this value in an epoch without a report. Nothing is stored or spent, and it works
   * before the consent too: its key is then the one that {@link enable} of this object stores.
   */
  async preview(
    plan: Plan | PlanSource,
    attribute: string,
    value: Value,
    epoch: string,
    options: QueueOptions = {},
  ): Promise<Preview> {
    const identity = (await this.#store.identity()) ?? (await this.#draw());
    const { client, index, request } = await this.#prepare(identity, plan, attribute, value, epoch, options);
    const account = { ...(await this.#account(attribute)), reported: [] };
    const { outcome, report } = decide(account, request, identity.id);
    return {
      address: request.report.address,
      bytes: report ? hexadecimal(framed(report)) : "",
      meaning: await meaningOf(client, index, outcome, report?.body),
    };
  }

  #draw(): Promise<Identity> {
    this.#drawn ??= this.#store.draw();
    return this.#drawn;
  }

  /** A memoising client with this device's key. Its reports are not debited; prefer {@link queue}. */
  async client(plan: Plan | PlanSource, attribute: string, options: QueueOptions = {}): Promise<MemoisingClient> {
    const identity = isForbidden() ? undefined : await this.#store.identity();
    check(identity, "the device is off; call enable() once the user has agreed", ParameterError);
    return this.#clientOf(identity, plan, attribute, options);
  }

  #clientOf({ key }: Identity, plan: Plan | PlanSource, attribute: string, options: QueueOptions): MemoisingClient {
    const { maxEpsilon, maxBits, maxWork } = this.#options;
    return new MemoisingClient(plan, key, attribute, { ...options, maxEpsilon, maxBits, maxWork });
  }

  /**
   * Make the report of a value, debit its ε, and put it into the outbox. While the device is off, it does nothing and
   * returns the outcome "off".
   *
   * An attribute reports once per epoch: a second call with the same epoch spends and queues nothing, for any value,
   * and returns "repeated". The report's id is derived from the device key, the attribute and the epoch, so a collector
   * would not count it again either.
   *
   * A value that this attribute reported before under the same plan costs nothing, because its bytes are the same;
   * under plans of numbers, ranges and tables, nor does one with the same answer to the question that the device keeps. A
   * value outside the domain is reported as "other" if the plan has it, else by the background report: sending nothing
   * would reveal that it is outside.
   *
   * Once a report cannot be paid for, `whenSpent` decides. Throws a BudgetError if even the first one cannot, and a
   * ParameterError if the plan's label file is missing; then nothing is spent and no report is made.
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
    const identity = isForbidden() ? undefined : await this.#store.identity();
    let decision: Decision = { outcome: "off", debits: [] };
    if (!identity) return { outcome: "off", outside: false, cost: "0" };
    const { index, request } = await this.#prepare(identity, plan, attribute, value, epoch, options);
    await this.#store.update(attribute, (account, device) => {
      decision = decide(account, request, device);
      return decision.account;
    });
    const { outcome, report, debits } = decision;
    if (report) this.#outbox.add(report);
    const id = report || outcome === "repeated" ? { id: request.report.id } : {};
    return { outcome, ...id, outside: index === undefined, cost: spentBy(debits) };
  }

  /** Everything that the decision needs. */
  async #prepare(
    identity: Identity,
    plan: Plan | PlanSource,
    attribute: string,
    value: Value,
    epoch: string,
    options: QueueOptions,
  ): Promise<Prepared> {
    epoch = canonicalEpoch(epoch);
    const { token, several } = options;
    check(TOKEN.test(token ?? "0".repeat(64)), `a token must be 64 hexadecimal digits, got ${shown(token)}`, ParameterError);
    const client = this.#clientOf(identity, plan, attribute, options);
    const index = indexOf(client.plan, value);
    const own = await choiceOf(client, index);
    const { whenSpent = "keep" } = this.#options;
    const report = {
      id: several ? freshId() : await client.reportId(epoch),
      attribute,
      address: addressOf(epoch, client.plan, own.body),
      queuedAt: performance.timeOrigin + performance.now(),
      several: several || undefined,
      token,
      groups: namedGroups(client.plan.groups, options.groups),
    };
    const { fingerprint } = client.plan;
    const background = whenSpent === "background" ? await choiceOf(client, undefined) : undefined;
    const cap = this.#capOf(attribute);
    return { client, index, request: { device: identity.id, fingerprint, cap, whenSpent, own, background, report } };
  }

  #capOf(attribute: string): string {
    const { caps = {}, lifetimeEpsilon } = this.#options;
    return String(Object.hasOwn(caps, attribute) ? caps[attribute] : lifetimeEpsilon);
  }

  async #account(attribute: string): Promise<Account> {
    let found = newAccount(attribute);
    await this.#store.update(attribute, (account) => {
      found = account;
      return undefined;
    });
    return found;
  }

  /** The ε that an attribute has spent so far, such as "3/2". */
  async spent(attribute: string): Promise<string> {
    return spentBy((await this.#account(attribute)).debits);
  }

  /** The reports in the outbox, not acknowledged yet, oldest first. */
  waiting(): Promise<QueuedReport[]> {
    return this.#outbox.waiting();
  }

  /**
   * Send all reports in the outbox, and delete those that are acknowledged or rejected for good. After a temporary
   * failure, the other reports of that epoch stay for the next flush. If the platform has locks, one tab sends at a
   * time; more would do no harm. An aborted `signal` stops it, and the promise is rejected with the signal's `reason`;
   * what was not acknowledged stays in the outbox.
   */
  flush(options: { signal?: Signal } = {}): Promise<FlushResult> {
    return this.#outbox.flush(options);
  }

  /**
   * Pass the unsent reports to the browser, which sends them even after the page is closed (`fetch` with `keepalive`,
   * at most 60,000 bytes). Nobody reads the answers, so the reports stay in the outbox and are sent again later under
   * the same ids, to be counted once.
   */
  handOver(): number {
    return this.#outbox.handOver();
  }

  /**
   * Flush now, periodically, and when the network comes back; use {@link handOver} when the page is hidden or closed.
   * While nothing gets through, the pauses double up to 15 minutes. They are jittered so that pages do not synchronise.
   * While the device is off, it waits until it is turned on.
   *
   * @param seconds the pause between flushes
   * @param options `signal` stops it when it is aborted, also in the middle of a flush
   * @returns a function that stops it after the flush that runs
   */
  keepSending(seconds = 30, options: { signal?: Signal } = {}): () => void {
    return this.#outbox.keepSending(seconds, options);
  }
}

/** The report of a value, and its entry in the ledger. */
async function choiceOf(client: MemoisingClient, index: Index | undefined): Promise<Choice> {
  const secret = await client.derive(index);
  const entry = hexadecimal(hmac(secret, encodeText("ledger entry")));
  return { body: await client.reportDerived(index, secret), debit: { entry, epsilon: client.plan.epsilon } };
}

function indexOf(plan: Plan, value: Value): Index | undefined {
  try {
    return plan.domain.index(value);
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}
