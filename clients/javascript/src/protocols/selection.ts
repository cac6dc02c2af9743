/** Protocols whose reports draw one of several block responses: a residue of the value, or one view of a record. */

import { indexBits } from "../arithmetic.js";
import { check } from "../errors.js";
import type { WordSource } from "../randomness.js";
import { type BlockResponse, respondToAll } from "./block_response.js";
import { type Indices, payloadArray, type Protocol } from "./protocol.js";

/** Draws selectors, independently of the values. */
export type DrawSelectors = (count: number, source: WordSource) => Uint8Array | Uint16Array;

/** The points that answer a response, of the values in these rows. */
export type PointsOf = (selector: number, indices: Indices, rows: Uint32Array) => Uint32Array;

/**
 * All selectors are drawn first, then response by response the words of the reports that drew it. A joint protocol
 * numbers the messages of all responses consecutively; otherwise reports have a selector.
 */
export function selectingProtocol(
  responses: readonly BlockResponse[],
  isJoint: boolean,
  draw: DrawSelectors,
  pointsOf: PointsOf,
): Required<Protocol> {
  const designs = responses.map(({ design }) => design);
  const large = designs.filter(({ limit }) => limit === undefined); // they decide what an array of payloads is
  const offsets = [0];
  for (const { limit = 0 } of designs) offsets.push(offsets[offsets.length - 1] + limit);
  const total = offsets[designs.length];
  check(total <= Number.MAX_SAFE_INTEGER, "messages must be below 2^53");

  return {
    layout: isJoint ? [indexBits(total)] : designs.map(({ bits }) => bits),
    ownWords: 1, // the selector
    designs,
    randomize(indices, source) {
      const count = indices.length;
      const selectors = draw(count, source);
      const ends = new Uint32Array(responses.length);
      // Sort the rows by selector (stable counting sort).
      const order = new Uint32Array(count);
      for (let row = 0; row < count; row++) ends[selectors[row]]++;
      for (let j = 1; j < ends.length; j++) ends[j] += ends[j - 1];
      for (let row = count - 1; row >= 0; row--) order[--ends[selectors[row]]] = row;

      const payloads = payloadArray(count, large);
      responses.forEach((response, j) => {
        if (ends[j] === (ends[j + 1] ?? count)) return; // no report drew it
        const rows = order.subarray(ends[j], ends[j + 1]);
        respondToAll(response, pointsOf(j, indices, rows), source, payloads, rows, isJoint ? offsets[j] : 0);
      });
      return isJoint ? { payloads } : { selectors: selectors as Uint8Array, payloads };
    },
    drawCell(index, source) {
      const [question] = draw(1, source);
      return [question, pointsOf(question, [index], Uint32Array.of(0))[0]];
    },
    respond(question, cell, source) {
      const payloads = payloadArray(1, large);
      respondToAll(responses[question], Uint32Array.of(cell), source, payloads, undefined, offsets[question]);
      return { payloads };
    },
  };
}
