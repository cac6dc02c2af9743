/** The client: what runs on the device of one user. It turns a value into bytes that are safe to send. */

import { drawRows } from "./drawing.js";
import { OUTSIDE, type Value } from "./domain.js";
import { type Epsilon, exceeds, parseEpsilon } from "./epsilon.js";
import { check, DomainError, ParameterError, PrivacyError } from "./errors.js";
import { Plan, type PlanOptions, type PlanSource } from "./plan.js";
import type { Reports } from "./protocols/protocol.js";
import { SystemSource, type WordSource } from "./randomness.js";
import { type Outcome, type SendOptions, uploadAddress, uploadPersistently } from "./uploading.js";
import { encodeBatch, encodeReport } from "./wire.js";

/** The terms that this client accepts, and what its plan may need. */
export interface ClientOptions extends PlanOptions {
  /** The largest ε that this client accepts. A plan from the network can be flawless and still ask for 32. */
  maxEpsilon?: Epsilon;
  /** The fingerprint that the plan must have, as hexadecimal digits. */
  fingerprint?: string;
  /** Other words than Web Crypto's, for simulations and proofs. */
  source?: WordSource;
}

/**
 * Randomises values under one plan, which it checks by itself, whoever wrote it.
 *
 * Every report is ε-locally differentially private and costs ε anew: for a value that is reported again and again, see
 * `sunzi/device`.
 */
export class Client {
  readonly plan: Plan;
  readonly #source: WordSource;
  #latest: Uint8Array | undefined;

  constructor(plan: Plan | PlanSource, options: ClientOptions = {}) {
    this.plan = plan instanceof Plan ? plan : new Plan(plan, options);
    const { maxEpsilon, fingerprint } = options;
    check(
      maxEpsilon === undefined || !exceeds(this.plan.epsilonFraction, parseEpsilon(maxEpsilon)),
      `epsilon is ${this.plan.epsilon}, accepted is at most ${maxEpsilon}`,
      PrivacyError,
    );
    check(
      fingerprint === undefined || fingerprint.toLowerCase() === this.plan.fingerprint,
      `fingerprint is ${this.plan.fingerprint}, pinned is ${fingerprint}`,
      PrivacyError,
    );
    this.#source = options.source ?? new SystemSource();
  }

  /** Whether the reports protect anyone: false where others could have the same random words. */
  get isPrivate(): boolean {
    return !this.#source.reproducible;
  }

  /** The bytes of one report of a value. A DomainError if it is outside: then send {@link reportBackground}. */
  report(value: Value): Uint8Array {
    return this.reportIndex(this.plan.domain.index(value));
  }

  /** {@link report} for a value's place in the domain. */
  reportIndex(index: number): Uint8Array {
    return (this.#latest = encodeReport(this.plan.protocol.layout, this.#randomize([index])));
  }

  /**
   * The bytes of a report of a value drawn uniformly from the domain, for a user whose own value is not in it: silence
   * would tell. It costs the same ε and looks like any report.
   */
  reportBackground(): Uint8Array {
    let index = 0;
    drawRows(
      this.#source,
      1,
      [this.plan.domain.size],
      undefined,
      (_start, _truths, variates) => (index = variates[0]!),
    );
    return this.reportIndex(index);
  }

  /** One batch of reports, one for each value. */
  reportBatch(values: Iterable<Value>): Uint8Array {
    return this.reportIndices(Array.from(values, (value) => this.plan.domain.index(value)));
  }

  /** {@link reportBatch} for places in the domain; fast for a Uint32Array. */
  reportIndices(indices: ArrayLike<number>): Uint8Array {
    const { protocol, fingerprintBytes } = this.plan;
    return (this.#latest = encodeBatch(protocol.layout, fingerprintBytes, this.#randomize(indices)));
  }

  /**
   * Send a report or a batch until it is acknowledged, always the same bytes under the same id, so that it is counted
   * once. A ReportError means that the collector refused it for good, a StoreError that patience ran out: then call it
   * again, which tells nothing more, whereas a new report would.
   *
   * @param url the collector, a collection of it (`…/v1/collections/NAME`) or an epoch (`…/epochs/N`)
   * @param body what {@link report} or {@link reportBatch} returned; the one that was made last unless told
   */
  async send(url: string, body = this.#latest, options: SendOptions = {}): Promise<Outcome> {
    check(body, "there is no report yet", ParameterError);
    const address = await uploadAddress(url, this.plan, body, options);
    return uploadPersistently(address, body, options);
  }

  #randomize(indices: ArrayLike<number>): Reports {
    const { size } = this.plan.domain;
    const places = indices instanceof Uint32Array ? indices : Uint32Array.from(indices);
    // What is no integer from 0 on was changed by its conversion.
    let isInside = places === indices || places.every((place, i) => place === indices[i]);
    for (let i = 0; i < places.length; i++) isInside &&= places[i]! < size;
    check(isInside, OUTSIDE, DomainError);
    return this.plan.protocol.randomize(places, this.#source);
  }
}
