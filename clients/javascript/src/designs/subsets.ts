/** Subsets: the blocks are all sets of w points, sent as a word or as one bit per point (`docs/format.md`, 6.2). */

import { byteLength } from "../arithmetic.js";
import { check, shown } from "../errors.js";
import { fields, integer } from "../plan_fields.js";
import { type DesignReader, eachRow } from "./design.js";
import { decodeSubset, encodeSubset, wordBits } from "./subset_code.js";

const MAX_POINTS = 2 ** 24;
const MAX_CODED = 2 ** 20 - 1;

/**
 * The variates that share words: the product of their bounds stays below 2^32. `ends` are the numbers of variates up to
 * the end of each word, and `bounds` their products.
 */
function shareWords(points: number, blockSize: number): { ends: number[]; bounds: number[] } {
  const ends: number[] = [];
  const bounds: number[] = [];
  let product = blockSize;
  for (let i = 1; i <= blockSize; i++) {
    if (product * (points - i) >= 2 ** 32) {
      ends.push(i);
      bounds.push(product);
      product = 1;
    }
    product *= points - i;
  }
  return { ends: [...ends, blockSize + 1], bounds: [...bounds, product] };
}

/** Reads the design "subsets". Pass it to a client as `designs: [subsets]`. */
export const subsets: DesignReader = {
  kind: "subsets",
  read(record) {
    fields(record, "block_size code design points threshold");
    const points = integer(record, "points", 2, MAX_POINTS);
    const blockSize = integer(record, "block_size", 1, points - 1);
    const isBitmap = record.code === "bitmap";
    check(isBitmap || record.code === "arithmetic", `code must be bitmap or arithmetic, got ${shown(record.code)}`);
    check(isBitmap || points <= MAX_CODED, `the arithmetic code supports at most ${MAX_CODED} points, got ${points}`);
    const bits = isBitmap ? points : wordBits(points, blockSize);
    // Of many moduli, a report uses one: the others cost no memory.
    let shared: ReturnType<typeof shareWords> | undefined;
    const words = () => (shared ??= shareWords(points, blockSize));

    /** Decode the replaced position and the jumps from mixed radix. */
    function unshare(variates: ArrayLike<number>): Uint32Array {
      const jumps = new Uint32Array(blockSize + 1);
      let start = 0;
      words().ends.forEach((end, column) => {
        let rest = variates[column];
        for (let i = end - 1; i >= start; i--) {
          const bound = i ? points - i : blockSize;
          jumps[i] = rest % bound;
          rest = Math.floor(rest / bound);
        }
        start = end;
      });
      return jumps;
    }

    return {
      points,
      blockSize,
      get bounds() {
        return words().bounds;
      },
      bits,
      work: 2 + blockSize + points, // the truth word, the variates and the shuffle
      respond: eachRow((point, truth, variates) => {
        const jumps = unshare(variates);
        const others = new Uint32Array(points - 1);
        for (let i = 0; i < points - 1; i++) others[i] = i + Number(i >= point);
        for (let i = 0; i < blockSize; i++) {
          const here = others[i];
          others[i] = others[i + jumps[i + 1]];
          others[i + jumps[i + 1]] = here;
        }
        const kept = others[jumps[0]];
        others[jumps[0]] = kept + (point - kept) * truth;
        const members = new Uint8Array(points);
        for (let i = 0; i < blockSize; i++) members[others[i]] = 1;
        if (!isBitmap) return encodeSubset(members, blockSize, bits);
        const bitmap = new Uint8Array(byteLength(bits));
        members.forEach((member, i) => (bitmap[i >> 3] |= member << (i & 7)));
        return bitmap;
      }),
      members(payload) {
        if (!isBitmap) return decodeSubset(payload, points, blockSize, bits);
        const members = Uint8Array.from({ length: points }, (_, i) => (payload[i >> 3] >> (i & 7)) & 1);
        return members.reduce((sum, member) => sum + member, 0) === blockSize ? members : undefined;
      },
    };
  },
};
