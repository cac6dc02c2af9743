/** The client runs on a user's device and turns a value into bytes that are safe to send. */

import { indexBits } from "./arithmetic.js";
import { drawRows } from "./drawing.js";
import type { Domain, Value } from "./domain.js";
import { type Epsilon, exceeds, parseEpsilon } from "./epsilon.js";
import { check, DomainError, ParameterError, PrivacyError } from "./errors.js";
import { Plan, type PlanOptions, type PlanSource } from "./plan.js";
import type { Bytes } from "./platform.js";
import type { Index, Protocol, Reports } from "./protocols/protocol.js";
import { SystemSource, type WordSource } from "./randomness.js";
import { type Outcome, type SendOptions, uploadPersistently } from "./uploading.js";
import { encodeBatch, encodeReport } from "./wire.js";

/** What a report may cost the device. A valid plan may ask for more than a device should pay. */
export interface Limits {
  /** The bits of the longest report; 2^20 by default. */
  maxBits?: number | undefined;
  /** The work of the costliest report, in random words and shuffled points; 2^21 by default. */
  maxWork?: number | undefined;
}

/** Limits on the plans that a client accepts, and what a plan may need. */
export interface ClientOptions extends PlanOptions, Limits {
  /** The largest ε that this client accepts. A plan from the network can be valid and still have ε = 32. */
  maxEpsilon: Epsilon;
  /** The fingerprint that the plan must have, as hexadecimal digits. */
  fingerprint?: string;
  /** Random words from elsewhere than Web Crypto, for simulations and tests. */
  source?: WordSource;
}

/**
 * Randomises values under one plan, which it checks itself.
 *
 * Every report is ε-locally differentially private and spends ε again. For values that are reported repeatedly, see
 * `sunzi/device`.
 */
export class Client {
  readonly plan: Plan;
  readonly #source: WordSource;
  #latest: Bytes | undefined;

  constructor(plan: Plan | PlanSource, options: ClientOptions) {
    const { maxEpsilon, fingerprint, source, labelFile } = options ?? {};
    this.plan = plan instanceof Plan ? plan : new Plan(plan, options ?? {});
    if (plan instanceof Plan && labelFile !== undefined) plan.domain.attach(labelFile);
    check(maxEpsilon, "maxEpsilon is required", ParameterError);
    checkCost(this.plan.mechanism, options);
    check(
      !exceeds(this.plan.epsilonFraction, parseEpsilon(maxEpsilon)),
      `epsilon ${this.plan.epsilon} exceeds maxEpsilon ${maxEpsilon}`,
      PrivacyError,
    );
    check(
      fingerprint === undefined || fingerprint.toLowerCase() === this.plan.fingerprint,
      `fingerprint ${this.plan.fingerprint} is not ${fingerprint}`,
      PrivacyError,
    );
    this.#source = source ?? new SystemSource();
  }

  /** Whether reports are private: false if others could reproduce the random words. */
  get isPrivate(): boolean {
    return !this.#source.reproducible;
  }

  /** One report of a value. Throws a DomainError if it is outside the domain: then send {@link reportBackground}. */
  report(value: Value): Bytes {
    return this.reportIndex(this.plan.domain.index(value));
  }

  /** {@link report} for the index of a value. */
  reportIndex(index: Index): Bytes {
    this.#latest = encodeReport(this.plan.mechanism.layout, this.#randomize([index]));
    return this.#latest;
  }

  /**
   * One report of a uniformly random value, for users whose own value is outside the domain: sending nothing would
   * reveal that. It costs the same ε and looks like any other report.
   */
  reportBackground(): Bytes {
    return this.reportIndex(randomIndex(this.plan.domain, this.#source));
  }

  /** One batch with a report for each value. */
  reportBatch(values: Iterable<Value>): Bytes {
    return this.reportIndices(Array.from(values, (value) => this.plan.domain.index(value)));
  }

  /** {@link reportBatch} for indices of values; fastest for a Uint32Array. */
  reportIndices(indices: ArrayLike<Index>): Bytes {
    const { mechanism, fingerprintBytes } = this.plan;
    this.#latest = encodeBatch(mechanism.layout, fingerprintBytes, this.#randomize(indices));
    return this.#latest;
  }

  /**
   * Send a report or a batch until it is acknowledged, always the same bytes under the same id, so that it is counted
   * once. Throws a ReportError if the collector rejects it for good, and a StoreError if `patience` runs out. Then call
   * `send` again: that costs no ε, whereas a new report would. It goes to the same epoch again, even if a newer one is
   * open.
   *
   * @param url the epoch (`…/epochs/N`); or the collector or a collection of it (`…/v1/collections/NAME`), which is
   *   asked for its current epoch the first time
   * @param body what {@link report} or {@link reportBatch} returned; by default the latest
   */
  async send(url: string, body: Uint8Array | undefined = this.#latest, options: SendOptions = {}): Promise<Outcome> {
    check(body, "make a report first", ParameterError);
    return uploadPersistently(url, this.plan, body, options);
  }

  #randomize(indices: ArrayLike<Index>): Reports {
    const { size } = this.plan.domain;
    if (size === Infinity) return this.plan.mechanism.randomize(Array.from(indices), this.#source);
    const Places = size > 2 ** 32 ? Float64Array : Uint32Array;
    const places = indices instanceof Uint32Array ? indices : Places.from(indices as ArrayLike<number>);
    // The conversion to Uint32Array changes everything but integers from 0 to 2^32 - 1.
    for (let i = 0; i < places.length; i++)
      if (!(places[i] >= 0 && places[i] < size) || places[i] % 1 || places[i] !== indices[i])
        throw new DomainError(`value ${indices[i]} is not in the domain 0 … ${size - 1}`);
    return this.plan.mechanism.randomize(places, this.#source);
  }
}

function checkCost({ layout, designs, ownWords }: Protocol, { maxBits = 2 ** 20, maxWork = 2 ** 21 }: Limits): void {
  const bits = indexBits(layout.length) + Math.max(...layout);
  const work = ownWords + Math.max(0, ...designs.map((design) => design.work ?? 1 + design.bounds.length));
  check(bits <= maxBits, `a report takes ${bits} bits, more than maxBits ${maxBits}`);
  check(work <= maxWork, `a report takes ${work} steps, more than maxWork ${maxWork}`);
}

/** A uniformly random value: an integer below each of the domain's sizes. @internal */
export function randomIndex(domain: Domain, source: WordSource): Index {
  let index: Index = 0;
  drawRows(source, 1, domain.sizes, undefined, (_start, _truths, variates) => {
    index = domain.joined([...variates]);
  });
  return index;
}
