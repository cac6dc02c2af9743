/** `number`: the number is rounded up or down to one of K points, right on average, and the point is reported. */

import { drawRows } from "../drawing.js";
import { check } from "../errors.js";
import type { WordSource } from "../randomness.js";
import { type BlockResponse, respondToAll } from "../protocols/block_response.js";
import { type Indices, payloadArray, type Protocol } from "../protocols/protocol.js";

const MAX_POINTS = 256;

/** Value x is at x·(K−1)/(D−1) between the points, and is rounded up with a probability equal to its fraction. */
export function numberProtocol(response: BlockResponse, domainSize: number): Protocol {
  const { design } = response;
  const most = Math.min(MAX_POINTS, domainSize);
  check(design.points <= most, `a number is rounded to 2 to ${most} points, got ${design.points}`);
  const steps = domainSize - 1;

  function round(indices: Indices, source: WordSource): Uint32Array {
    const points = new Uint32Array(indices.length);
    drawRows(source, indices.length, [steps], undefined, (start, _, variates) => {
      for (let row = 0; row < variates.length; row++) {
        const scaled = (indices[start + row] as number) * (design.points - 1); // below 2^38
        const below = Math.floor(scaled / steps);
        points[start + row] = below + Number(variates[row] < scaled - below * steps);
      }
    });
    return points;
  }

  function respond(points: Uint32Array, source: WordSource) {
    const payloads = payloadArray(points.length, [design]);
    respondToAll(response, points, source, payloads);
    return { payloads };
  }

  return {
    layout: [design.bits],
    ownWords: 1, // the rounding
    designs: [design],
    randomize: (indices, source) => respond(round(indices, source), source),
    drawCell: (index, source) => [0, round([index], source)[0]],
    respond: (_question, cell, source) => respond(Uint32Array.of(cell), source),
  };
}
