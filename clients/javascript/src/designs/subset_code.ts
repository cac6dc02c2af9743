/** The arithmetic code of subsets: one word per subset, all of the same length (`docs/format.md`, 6.3). */

import { byteLength } from "../arithmetic.js";

const WHOLE = 2 ** 48;
const TOP = 2 ** 40;
/** Far more than the rounding errors of a sum of logarithms. */
const DOUBTFUL = 1e-3;

/** from · (from+1) · … · (to−1). */
function product(from: number, to: number): bigint {
  const middle = (from + to) >> 1;
  return to - from < 2 ? BigInt(from) : product(from, middle) * product(middle, to);
}

/** The bits of a word: the least B with 2^B·(2^40 − m(m+1)/2) ≥ 2^40·C(m,w). */
export function wordBits(points: number, blockSize: number): number {
  const room = TOP - (points * (points + 1)) / 2;
  const first = points - blockSize;
  let bits = Math.log2(TOP / room);
  for (let i = 1; i <= blockSize; i++) bits += Math.log2((first + i) / i);
  if (Math.abs(bits - Math.round(bits)) > DOUBTFUL) return Math.ceil(bits);
  const words = (product(first + 1, points + 1) / product(1, blockSize + 1)) * BigInt(TOP);
  return ((words - 1n) / BigInt(room)).toString(2).length;
}

/** The word of a subset; `members` has a 1 for every chosen point. All numbers are below 2^49, hence exact. */
export function encodeSubset(members: Uint8Array, blockSize: number, bits: number): Uint8Array {
  const digits = new Uint16Array(byteLength(bits)); // up to 511: carries come last
  let [low, width, left, place] = [0, WHOLE, blockSize, 0];
  for (let point = 0, rest = members.length; left && left < rest; point++, rest--) {
    const share = Math.floor(width / rest) * left;
    if (members[point]) {
      width = share;
      left--;
    } else {
      low += share;
      width -= share;
    }
    for (; width < TOP; width *= 256) {
      digits[place] = low / TOP;
      low = (low - digits[place++] * TOP) * 256;
    }
  }
  let base = 2 ** (bits - 8 * place);
  let carry = Math.ceil((low * base) / WHOLE);
  for (; base > 256; carry -= digits[place++] * base) {
    base /= 256;
    digits[place] = carry / base;
  }
  for (; place >= 0; place--, base = 256) {
    carry += digits[place];
    digits[place] = carry % base;
    carry = Math.floor(carry / base);
  }
  return Uint8Array.from(digits);
}

/** The subset with this word, as {@link encodeSubset} takes it; undefined if there is none. */
export function decodeSubset(word: Uint8Array, points: number, blockSize: number, bits: number): Uint8Array | undefined {
  const members = new Uint8Array(points);
  const bytes = new Uint8Array(word.length + 6); // followed by zeros
  bytes.set(word);
  bytes[word.length - 1] *= 2 ** (8 * word.length - bits);
  let [code, width, left, place] = [0, WHOLE, blockSize, 0];
  while (place < 6) code = code * 256 + bytes[place++];
  for (let rest = points; left && left < rest; rest--) {
    const share = Math.floor(width / rest) * left;
    if (code < share) {
      members[points - rest] = 1;
      width = share;
      left--;
    } else {
      code -= share;
      width -= share;
    }
    for (; width < TOP; width *= 256) code = code * 256 + bytes[place++];
  }
  if (left) members.fill(1, points - left); // all that is left
  return code < 2 ** (8 * place - bits) ? members : undefined;
}
