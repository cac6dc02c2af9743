/** `rappor` and `oue`: one noisy bit per value of the domain. */

import { byteLength } from "../arithmetic.js";
import { isBelow } from "../drawing.js";
import type { Threshold } from "../thresholds.js";
import type { Protocol } from "./protocol.js";

const WORDS_AT_ONCE = 8192;

/** A bit is 1 if its word is below the true threshold (at the user's index) or the false threshold (elsewhere). */
export function unaryProtocol([truth, lie]: readonly [Threshold, Threshold], domainSize: number): Protocol {
  return {
    layout: [domainSize],
    ownWords: domainSize,
    designs: [],
    randomize(indices, source) {
      const words = new Uint32Array(2 * Math.min(domainSize, WORDS_AT_ONCE));
      const payloads = Array.from(indices, (index) => {
        const bits = new Uint8Array(byteLength(domainSize));
        for (let start = 0; start < domainSize; start += WORDS_AT_ONCE) {
          const count = Math.min(WORDS_AT_ONCE, domainSize - start);
          source.fill(words.subarray(0, 2 * count));
          for (let i = 0; i < count; i++) {
            const value = start + i;
            const asTrue = isBelow(words[2 * i + 1], words[2 * i], truth);
            const asFalse = isBelow(words[2 * i + 1], words[2 * i], lie);
            bits[value >> 3] |= (asFalse + (asTrue - asFalse) * Number(value === index)) << (value & 7);
          }
        }
        return bits;
      });
      words.fill(0);
      return { payloads };
    },
  };
}
