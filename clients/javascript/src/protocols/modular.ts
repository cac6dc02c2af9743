/** `mss` and `mss-compact`: every report draws a modulus and responds on the value's residue. */

import { indexBits, isPrime } from "../arithmetic.js";
import { drawRows } from "../drawing.js";
import { check, shown } from "../errors.js";
import { type BlockResponse, respondToAll } from "./block_response.js";
import { payloadArray, type Protocol, TOO_FEW_POINTS } from "./protocol.js";

/** Check that the moduli are distinct primes and large enough to distinguish all values. */
function checkModuli(moduli: readonly number[], domainSize: number): void {
  const sum = moduli.reduce((total, modulus) => total + modulus - 1, 0);
  check(moduli.every(isPrime) && new Set(moduli).size === moduli.length, `points must be distinct and prime, got ${shown(moduli)}`);
  check(sum >= domainSize - 1, TOO_FEW_POINTS);
}

/** A compact protocol numbers the messages of all moduli consecutively; otherwise a selector gives the modulus. */
export function modularProtocol(responses: readonly BlockResponse[], domainSize: number, isCompact: boolean): Protocol {
  const designs = responses.map(({ design }) => design);
  checkModuli(
    designs.map(({ points }) => points),
    domainSize,
  );
  const offsets = [0];
  for (const { limit = 0 } of designs) offsets.push(offsets[offsets.length - 1] + limit);
  const total = offsets[designs.length];
  check(total <= Number.MAX_SAFE_INTEGER, "messages must be below 2^53");

  return {
    layout: isCompact ? [indexBits(total)] : designs.map(({ bits }) => bits),
    designs,
    randomize(indices, source) {
      const count = indices.length;
      const selectors = new Uint8Array(count);
      const ends = new Uint32Array(responses.length);
      drawRows(source, count, [responses.length], undefined, (start, _, variates) => selectors.set(variates, start));
      // Sort the rows by modulus (stable counting sort).
      const order = new Uint32Array(count);
      for (let row = 0; row < count; row++) ends[selectors[row]]++;
      for (let j = 1; j < ends.length; j++) ends[j] += ends[j - 1];
      for (let row = count - 1; row >= 0; row--) order[--ends[selectors[row]]] = row;

      const payloads = payloadArray(count, designs);
      responses.forEach((response, j) => {
        const rows = order.subarray(ends[j], ends[j + 1]);
        const { points } = response.design;
        const residues = new Uint32Array(rows.length);
        for (let i = 0; i < rows.length; i++) residues[i] = indices[rows[i]] % points;
        respondToAll(response, residues, source, payloads, rows, isCompact ? offsets[j] : 0);
      });
      return isCompact ? { payloads } : { selectors, payloads };
    },
  };
}
