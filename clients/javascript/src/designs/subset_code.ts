/** The arithmetic code of subsets: one word per subset, all of the same length (`docs/format.md`, 6.3). */

import { byteLength } from "../arithmetic.js";

const WHOLE = 2 ** 48;
const TOP = 2 ** 40;
/** Far more than the rounding errors of a sum of logarithms. */
const DOUBTFUL = 1e-3;

/** Up to 2^14 truncations, one for every so many factors, change leading bits only beyond the trusted ones. */
const [PRECISION, TRUSTED, FACTORS] = [320, 280, 64];

function bitLength(number: bigint): number {
  return number.toString(2).length;
}

/** The leading bits of from · (from+1) · … · to, and how many bits follow them; all bits, without a precision. */
function product(from: number, to: number, precision = Infinity): [bigint, number] {
  let [leading, dropped] = [1n, 0];
  for (let factor = from; factor <= to; factor++) {
    leading *= BigInt(factor);
    if ((factor - from) % FACTORS) continue;
    const excess = Math.max(0, bitLength(leading) - precision);
    leading >>= BigInt(excess);
    dropped += excess;
  }
  return [leading, dropped];
}

/** The bits of a word: the least B with 2^B·(2^40 − m(m+1)/2) ≥ 2^40·C(m,w). */
export function wordBits(points: number, blockSize: number): number {
  const room = TOP - (points * (points + 1)) / 2;
  const first = points - blockSize;
  let bits = Math.log2(TOP / room);
  for (let i = 1; i <= blockSize; i++) bits += Math.log2((first + i) / i);
  if (Math.abs(bits - Math.round(bits)) > DOUBTFUL) return Math.ceil(bits);
  // Logarithms cannot tell. Leading bits of the binomial nearly always do; all of it would take a second.
  const size = Math.min(blockSize, first);
  const [above, more] = product(points - size + 1, points, PRECISION);
  const [below, less] = product(1, size, PRECISION);
  const ratio = (above << BigInt(2 * PRECISION)) / (below * BigInt(room));
  const length = bitLength(ratio);
  const leading = ratio.toString(2).slice(0, TRUSTED);
  if (/0/.test(leading) && /1.*1/.test(leading)) return length + more - less + 40 - 2 * PRECISION;
  const words = (product(points - size + 1, points)[0] / product(1, size)[0]) * BigInt(TOP);
  return bitLength((words - 1n) / BigInt(room));
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
