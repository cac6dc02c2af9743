/** `mss` and `mss-compact`: every report draws a modulus and responds on the value's residue. */

import { isPrime } from "../arithmetic.js";
import { drawRows } from "../drawing.js";
import { check, shown } from "../errors.js";
import type { BlockResponse } from "./block_response.js";
import { type Protocol, TOO_FEW_POINTS } from "./protocol.js";
import { type DrawSelectors, type PointsOf, selectingProtocol } from "./selection.js";

/** A compact protocol numbers the messages of all moduli consecutively; otherwise a selector gives the modulus. */
export function modularProtocol(responses: readonly BlockResponse[], domainSize: number, isCompact: boolean): Protocol {
  const moduli = responses.map(({ design }) => design.points);
  const sum = moduli.reduce((total, modulus) => total + modulus - 1, 0);
  check(moduli.every(isPrime) && new Set(moduli).size === moduli.length, `points must be distinct and prime, got ${shown(moduli)}`);
  check(sum >= domainSize - 1, TOO_FEW_POINTS);
  const draw: DrawSelectors = (count, source) => {
    const selectors = new Uint8Array(count);
    drawRows(source, count, [moduli.length], undefined, (start, _, variates) => selectors.set(variates, start));
    return selectors;
  };
  const residues: PointsOf = (selector, indices, rows) => {
    const modulus = moduli[selector];
    const points = new Uint32Array(rows.length);
    for (let i = 0; i < rows.length; i++) points[i] = (indices[rows[i]] as number) % modulus;
    return points;
  };
  // A memoising device derives a modulus from the value, too.
  const { layout, ownWords, designs, randomize } = selectingProtocol(responses, isCompact, draw, residues);
  return { layout, ownWords, designs, randomize };
}
