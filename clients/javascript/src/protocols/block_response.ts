/** The block response: with probability p a uniform block that contains the value, else one that does not. */

import type { Design, DesignReader, Payloads } from "../designs/design.js";
import { drawRows, ROWS_AT_ONCE } from "../drawing.js";
import type { Fraction } from "../epsilon.js";
import { check, MissingExtraError, shown } from "../errors.js";
import type { Json, JsonObject } from "../json.js";
import type { WordSource } from "../randomness.js";
import { decimal } from "../plan_fields.js";
import { checkTruth, type Threshold } from "../thresholds.js";
import { payloadArray, type Protocol, TOO_FEW_POINTS } from "./protocol.js";

/** A design, and the threshold below which a word means a truthful response. */
export interface BlockResponse {
  readonly design: Design;
  readonly threshold: Threshold;
}

/** Read and check a block response. Its design must be singletons or one that the protocol allows. */
export function readResponse(
  record: Json | undefined,
  allowed: string,
  designs: readonly DesignReader[],
  epsilon: Fraction,
): BlockResponse {
  const name = (record as JsonObject | undefined)?.design;
  check(["singletons", ...allowed.split(" or ")].includes(name as string), `design must be ${allowed}, got ${shown(name)}`);
  const reader = designs.find((each) => each.kind === name);
  check(reader, `import "sunzi/${name}" and pass it in designs`, MissingExtraError);
  const design = reader.read(record as JsonObject);
  const threshold = decimal(record as JsonObject, "threshold");
  return { design, threshold: checkTruth(threshold, design.blockSize, design.points, epsilon) };
}

/**
 * Draw and respond for many points. The payload of the i-th is stored in `payloads[rows[i]]`, or `payloads[i]` without
 * `rows`; `offset` is added if it is a number.
 */
export function respondToAll(
  { design, threshold }: BlockResponse,
  points: Uint32Array,
  source: WordSource,
  payloads: Payloads,
  rows?: Uint32Array,
  offset = 0,
): void {
  const made = payloadArray(Math.min(points.length, ROWS_AT_ONCE), [design]);
  design.prepare?.(points.length);
  drawRows(source, points.length, design.bounds, threshold, (start, truths, variates) => {
    const count = truths.length;
    design.respond(points.subarray(start, start + count), truths, variates, made);
    for (let i = 0; i < count; i++) {
      const payload = made[i];
      payloads[rows ? rows[start + i] : start + i] = typeof payload === "number" ? payload + offset : payload;
    }
  });
}

/** `grr`, `ss`, `ss-compact` and `pgr`: one block response, whose points are the values. */
export function blockProtocol(response: BlockResponse, domainSize: number): Protocol {
  const { design } = response;
  check(design.points >= domainSize, TOO_FEW_POINTS);
  return {
    layout: [design.bits],
    ownWords: 0,
    designs: [design],
    randomize(indices, source) {
      const payloads = payloadArray(indices.length, [design]);
      respondToAll(response, indices as Uint32Array, source, payloads);
      return { payloads };
    },
  };
}
