/**
 * Plans. A client trusts no plan: a `Plan` object exists only after every check of `docs/format.md` (11) has passed,
 * and its reports are ε-locally differentially private by thresholds derived here.
 */

import { cyclotomic } from "./designs/cyclotomic.js";
import type { DesignReader } from "./designs/design.js";
import { projective } from "./designs/projective.js";
import { singletons } from "./designs/singletons.js";
import { Domain, type Extras, needed } from "./domain.js";
import { exceeds, type Fraction, planEpsilon } from "./epsilon.js";
import { check, shown } from "./errors.js";
import { checkGroups, type DeclaredGroups } from "./groups.js";
import { canonicalForm, decodeText, encodeText, type Json, type JsonObject, parseJson } from "./json.js";
import { blockProtocol, readResponse } from "./protocols/block_response.js";
import { modularProtocol } from "./protocols/modular.js";
import type { Protocol } from "./protocols/protocol.js";
import { unaryProtocol } from "./protocols/unary.js";
import { decimal, fields, integer, list } from "./plan_fields.js";
import { hexadecimal, sha256 } from "./sha256.js";
import { checkUnary } from "./thresholds.js";

/** A plan file's text or bytes, or its parsed JSON. */
export type PlanSource = string | Uint8Array | object;

/** What a plan may need besides itself. */
export interface PlanOptions extends Extras {
  /** Designs that are imported separately, such as `subsets`. */
  designs?: readonly DesignReader[];
  /** The label file, for plans that contain only its hash. */
  labelFile?: Uint8Array | string;
}

/** What a device must afford: the points of all subsets of a plan (`docs/format.md`, 2.4). */
const MAX_LISTED_POINTS = 2 ** 24;

/** The designs that each protocol may use besides singletons, and the extra that reads it. */
const PROTOCOLS = new Map<Json, readonly [designs: string, extra?: keyof Extras]>([
  ["grr", ["singletons"]],
  ["ss", ["subsets"]],
  ["ss-compact", ["cyclotomic"]],
  ["pgr", ["projective"]],
  ["mss", ["subsets"]],
  ["mss-compact", ["cyclotomic"]],
  ["ordered", ["cyclotomic", "records"]],
  ["tables", ["cyclotomic", "records"]],
  ["number", ["singletons", "records"]],
  ["prefixes", ["cyclotomic or projective", "texts"]],
]);

/**
 * A plan that has passed all checks.
 *
 * Its enumerable properties are those of the plan file. So `JSON.stringify(plan)` is a plan file, `structuredClone` and
 * `postMessage` copy it, and `new Plan(copy)` checks it again. A label file is not part of it.
 */
export class Plan {
  declare readonly format: "sunzi-plan";
  declare readonly version: 1;
  /** The protocol's name, such as "mss-compact". */
  declare readonly protocol: string;
  /** ε per report, such as "1/2". */
  declare readonly epsilon: string;
  declare readonly domain: Domain;
  declare readonly parameters: object;
  /** The public groups that uploads may name; missing if there are none. */
  declare readonly groups?: DeclaredGroups;
  /** The lifetime budget that the operator reckons with: a statement, which changes nothing here. */
  declare readonly lifetime?: string;
  readonly #epsilon: Fraction;
  readonly #fingerprint: Uint8Array;
  readonly #mechanism: Protocol;

  constructor(source: PlanSource, options: PlanOptions = {}) {
    const canonical = canonicalForm(readSource(source));
    const value = parseJson(canonical) as JsonObject;
    check(value.format === "sunzi-plan", `not a plan: format is ${shown(value.format)}`);
    check(value.version === 1, `version ${shown(value.version)} is not known`);
    fields(value, "domain epsilon format parameters protocol version", ["groups", "lifetime"]);
    if (Object.hasOwn(value, "groups")) checkGroups(value.groups);
    Object.assign(this, value, { domain: new Domain(value.domain, options) });
    this.#epsilon = planEpsilon(value.epsilon);
    const lifetime = value.lifetime ?? value.epsilon;
    check(!exceeds(this.#epsilon, planEpsilon(lifetime)), `epsilon ${value.epsilon} exceeds lifetime ${lifetime}`);
    this.#mechanism = this.#readProtocol([singletons, cyclotomic, projective, ...(options.designs ?? [])], options);
    this.#fingerprint = sha256(encodeText(canonical));
    if (options.labelFile !== undefined) this.domain.attach(options.labelFile);
  }

  /** SHA-256 of the canonical form, as 64 hexadecimal digits. */
  get fingerprint(): string {
    return hexadecimal(this.#fingerprint);
  }

  /** @internal */
  get fingerprintBytes(): Uint8Array {
    return this.#fingerprint;
  }

  /** @internal */
  get epsilonFraction(): Fraction {
    return this.#epsilon;
  }

  /** @internal */
  get mechanism(): Protocol {
    return this.#mechanism;
  }

  #readProtocol(designs: readonly DesignReader[], extras: Extras): Protocol {
    const { protocol: name, domain } = this;
    const parameters = this.parameters as JsonObject;
    const { size } = domain;
    const epsilon = this.#epsilon;
    check(!domain.attributes || name === "tables", `${shown(name)} takes no records`);
    if (name === "oue" || name === "rappor") {
      const record = fields(parameters, "false_threshold true_threshold");
      check(size <= 2 ** 24, `size must be at most 2^24, got ${size}`);
      const [truth, lie] = [decimal(record, "true_threshold"), decimal(record, "false_threshold")];
      return unaryProtocol(checkUnary(name === "oue", truth, lie, epsilon), size);
    }
    const [allowed, extra] = PROTOCOLS.get(name) ?? [];
    check(allowed, `protocol ${shown(name)} is not known`);
    const read = (record: Json | undefined) => readResponse(record, allowed, designs, epsilon);
    if (extra) return needed(extras, extra).readProtocol(name, parameters, domain, read);
    if (!name.startsWith("mss")) return blockProtocol(read(fields(parameters, "response").response), size);
    const listed = list(fields(parameters, "responses"), "responses");
    check(listed.length >= 1 && listed.length <= 256, `expected 1 to 256 responses, got ${listed.length}`);
    // What this device can afford, before any work is done for it.
    let points = 0;
    for (const record of listed as JsonObject[])
      if (record.design === "subsets") points += integer(record, "points", 2, MAX_LISTED_POINTS);
    check(points <= MAX_LISTED_POINTS, `subsets must have at most 2^24 points in total, got ${points}`);
    return modularProtocol(listed.map(read), size, name === "mss-compact");
  }
}

function readSource(source: PlanSource): unknown {
  const text = source instanceof Uint8Array ? decodeText(source) : source;
  return typeof text === "string" ? parseJson(text) : text;
}
