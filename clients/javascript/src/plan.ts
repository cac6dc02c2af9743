/**
 * Plans. A client trusts no plan: a `Plan` object exists only after every check of `docs/format.md` (11) has passed,
 * and its reports are ε-locally differentially private by thresholds derived here.
 */

import { cyclotomic } from "./designs/cyclotomic.js";
import type { DesignReader } from "./designs/design.js";
import { projective } from "./designs/projective.js";
import { singletons } from "./designs/singletons.js";
import { Domain } from "./domain.js";
import { type Fraction, fractionText, planEpsilon } from "./epsilon.js";
import { check } from "./errors.js";
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
export interface PlanOptions {
  /** Designs that are imported separately, such as `subsets`. */
  designs?: readonly DesignReader[];
  /** The label file, for plans that contain only its hash. */
  labelFile?: Uint8Array | string;
}

/** What a device must afford: the points of all subsets of a plan (`docs/format.md`, 2.4). */
const MAX_LISTED_POINTS = 2 ** 24;

/** The design that each protocol may use besides singletons. */
const DESIGN_OF = new Map<Json, string>([
  ["grr", "singletons"],
  ["ss", "subsets"],
  ["ss-compact", "cyclotomic"],
  ["pgr", "projective"],
  ["mss", "subsets"],
  ["mss-compact", "cyclotomic"],
]);

/** A plan that has passed all checks. */
export class Plan {
  /** The protocol's name, such as "mss-compact". */
  readonly protocolName: string;
  /** @internal */
  readonly epsilonFraction: Fraction;
  readonly domain: Domain;
  /** @internal */
  readonly fingerprintBytes: Uint8Array;
  /** @internal */
  readonly protocol: Protocol;

  constructor(source: PlanSource, options: PlanOptions = {}) {
    const canonical = canonicalForm(readSource(source));
    const value = parseJson(canonical) as JsonObject;
    check(value.format === "sunzi-plan", "not a plan");
    check(value.version === 1, "unknown version");
    fields(value, "domain epsilon format parameters protocol version");
    this.protocolName = value.protocol as string;
    this.epsilonFraction = planEpsilon(value.epsilon);
    this.domain = new Domain(value.domain);
    this.protocol = this.#readProtocol(value.parameters, [
      singletons,
      cyclotomic,
      projective,
      ...(options.designs ?? []),
    ]);
    this.fingerprintBytes = sha256(encodeText(canonical));
    if (options.labelFile !== undefined) this.domain.attach(options.labelFile);
  }

  /** SHA-256 of the canonical form, as 64 hexadecimal digits. */
  get fingerprint(): string {
    return hexadecimal(this.fingerprintBytes);
  }

  /** ε per report, such as "1/2". */
  get epsilon(): string {
    return fractionText(this.epsilonFraction);
  }

  #readProtocol(parameters: Json | undefined, designs: readonly DesignReader[]): Protocol {
    const name = this.protocolName;
    const { size } = this.domain;
    const epsilon = this.epsilonFraction;
    if (name === "oue" || name === "rappor") {
      const record = fields(parameters, "false_threshold true_threshold");
      check(size <= 2 ** 24, "size must be at most 2^24");
      const [truth, lie] = [decimal(record, "true_threshold"), decimal(record, "false_threshold")];
      return unaryProtocol(checkUnary(name === "oue", truth, lie, epsilon), size);
    }
    const allowed = DESIGN_OF.get(name);
    check(allowed, "unknown protocol");
    const read = (record: Json | undefined) => readResponse(record, allowed, designs, epsilon);
    if (!name.startsWith("mss")) return blockProtocol(read(fields(parameters, "response").response), size);
    const records = list(fields(parameters, "responses"), "responses");
    check(records.length >= 1 && records.length <= 256, "expected 1 to 256 responses");
    // What this device can afford, before any work is done for it.
    let listed = 0;
    for (const record of records as JsonObject[])
      if (record.design === "subsets") listed += integer(record, "points", 2, MAX_LISTED_POINTS);
    check(listed <= MAX_LISTED_POINTS, "subsets must have at most 2^24 points in total");
    return modularProtocol(records.map(read), size, name === "mss-compact");
  }
}

function readSource(source: PlanSource): unknown {
  const text = source instanceof Uint8Array ? decodeText(source) : source;
  return typeof text === "string" ? parseJson(text) : text;
}
