/** Subsets: the blocks are all sets of w points, sent as a rank or as one bit per point (`docs/format.md`, 6.2). */

import { byteLength } from "../arithmetic.js";
import { check } from "../errors.js";
import { fields, integer } from "../plan_fields.js";
import { type DesignReader, eachRow } from "./design.js";
import { binomial, rank } from "./rank.js";

const MAX_POINTS = 2 ** 24;
const MAX_ENUMERATED = 2 ** 15;

/** The bounds of variates, grouped so that each group shares a word: their product stays below 2^32. */
function shareWords(points: number, blockSize: number): number[][] {
  const shares: number[][] = [[]];
  let product = 1;
  for (let i = 0; i <= blockSize; i++) {
    const limit = i ? points - i : blockSize;
    product *= limit;
    if (product >= 2 ** 32) {
      shares.push([]);
      product = limit;
    }
    shares[shares.length - 1].push(limit);
  }
  return shares;
}

/** A nonnegative integer as this many little-endian bytes. */
function littleEndian(number: bigint, length: number): Uint8Array {
  const text = number.toString(16).padStart(2 * length, "0");
  return Uint8Array.from({ length }, (_, i) => parseInt(text.substr(2 * (length - 1 - i), 2), 16));
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(
    `0x0${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"))
      .reverse()
      .join("")}`,
  );
}

/** Reads the design "subsets". Pass it to a client as `designs: [subsets]`. */
export const subsets: DesignReader = {
  kind: "subsets",
  read(record) {
    fields(record, "block_size code design points threshold");
    const points = integer(record, "points", 2, MAX_POINTS);
    const blockSize = integer(record, "block_size", 1, points - 1);
    const isBitmap = record.code === "bitmap";
    check(isBitmap || record.code === "enumerative", "code must be bitmap or enumerative");
    check(isBitmap || points <= MAX_ENUMERATED, `the enumerative code supports at most ${MAX_ENUMERATED} points`);
    const shares = shareWords(points, blockSize);
    const limit = isBitmap ? 0n : binomial(points, blockSize);
    const bits = isBitmap ? points : limit === 1n ? 0 : (limit - 1n).toString(2).length;
    const length = byteLength(bits);

    /** Decode the replaced position and the jumps from mixed radix. */
    function unshare(variates: ArrayLike<number>): number[] {
      return shares.flatMap((share, column) => {
        const parts = new Array<number>(share.length);
        let rest = variates[column];
        for (let i = share.length - 1; i >= 0; i--) {
          parts[i] = rest % share[i];
          rest = Math.floor(rest / share[i]);
        }
        return parts;
      });
    }

    return {
      points,
      blockSize,
      bounds: shares.map((share) => share.reduce((product, bound) => product * bound, 1)),
      bits,
      respond: eachRow(shares.length, (point, truth, variates) => {
        const [replaced, ...jumps] = unshare(variates) as [number, ...number[]];
        const others = new Uint32Array(points - 1);
        for (let i = 0; i < points - 1; i++) others[i] = i + Number(i >= point);
        jumps.forEach((jump, i) => {
          const here = others[i];
          others[i] = others[i + jump];
          others[i + jump] = here;
        });
        const kept = others[replaced];
        others[replaced] = kept + (point - kept) * truth;
        const chosen = others.subarray(0, blockSize).sort();
        if (!isBitmap) return littleEndian(rank(chosen, points), length);
        const bitmap = new Uint8Array(length);
        for (const one of chosen) bitmap[one >> 3] |= 1 << (one & 7);
        return bitmap;
      }),
      accepts(payload) {
        if (!isBitmap) return fromLittleEndian(payload) < limit;
        let ones = 0;
        for (let byte of payload) for (; byte; byte &= byte - 1) ones++;
        return ones === blockSize;
      },
    };
  },
};
