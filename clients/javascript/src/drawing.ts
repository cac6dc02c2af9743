/**
 * Uniform integers from random words, in the order of `docs/format.md` (4, 5): all words of all rows first,
 * then, round by round, one more word for each rejected cell.
 */

import type { WordSource } from "./randomness.js";
import type { Threshold } from "./thresholds.js";

const HALVES_AT_ONCE = 16384;
/** The largest number of rows that are drawn at once. */
export const ROWS_AT_ONCE = HALVES_AT_ONCE / 2;
const HALF = 2 ** 32;
const QUARTER = 2 ** 16;
const EXACT_BOUND = 2 ** 21;
const MISSING = 2 ** 32 - 1; // what −1 becomes in an array of unsigned integers; above every variate

/**
 * Receives rows from `start` on: for each, whether its truth word was below the threshold (1 or 0), and its uniform
 * integers, row by row. A row that had to be redrawn is passed again, and the last call counts.
 */
export type UseRows = (start: number, truths: Uint8Array, variates: Uint32Array) => void;

/**
 * The integer below `bound` < 2^32 that a word stands for, or −1 if the word is rejected, by Lemire's multiplication
 * method. All products are below 2^53, hence exact.
 */
export function uniformBelow(high: number, low: number, bound: number): number {
  const first = (low & 0xffff) * bound;
  const second = (low >>> 16) * bound + Math.floor(first / QUARTER);
  const third = (high & 0xffff) * bound + Math.floor(second / QUARTER);
  const fourth = (high >>> 16) * bound + Math.floor(third / QUARTER);
  const variate = Math.floor(fourth / QUARTER);
  if ((third | fourth) & 0xffff) return variate;
  const surplus = Number((1n << 64n) % BigInt(bound)); // how many words are rejected
  return (second & 0xffff) * QUARTER + (first & 0xffff) < surplus ? -1 : variate;
}

/** 1 if a word is below a threshold, else 0, without a branch. */
export function isBelow(high: number, low: number, threshold: Threshold): number {
  return Number(high < threshold.high) | (Number(high === threshold.high) & Number(low < threshold.low));
}

/** A row with rejected words, which have yet to be redrawn. */
interface Unfinished {
  readonly row: number;
  readonly truths: Uint8Array;
  readonly variates: Uint32Array;
}

/** Fill one column from every `halves`-th half on. Rejected words leave MISSING; returns whether there are any. */
function fillColumn(
  words: Uint32Array,
  from: number,
  halves: number,
  bound: number,
  variates: Uint32Array,
  to: number,
  columns: number,
): boolean {
  const scale = bound / HALF;
  const safe = bound <= EXACT_BOUND ? 1 - scale : 0;
  let isRejected = false;
  for (; to < variates.length; to += columns, from += halves) {
    // The high half nearly always decides: the low one adds less than `scale` to `rest`.
    const product = words[from + 1] * scale;
    const whole = product | 0;
    const rest = product - whole;
    if (rest > 0 && rest < safe) variates[to] = whole;
    else {
      const variate = uniformBelow(words[from + 1], words[from], bound);
      variates[to] = variate;
      isRejected ||= variate < 0;
    }
  }
  return isRejected;
}

/**
 * Draw `rows` rows: a truth word each, if there is a threshold, and one integer below each bound. Words are wiped as
 * soon as they are used.
 */
export function drawRows(
  source: WordSource,
  rows: number,
  bounds: readonly number[],
  threshold: Threshold | undefined,
  use: UseRows,
): void {
  const columns = bounds.length;
  const first = threshold ? 2 : 0;
  const halves = first + 2 * columns;
  const atOnce = Math.min(rows, Math.max(1, Math.floor(HALVES_AT_ONCE / halves)));
  const words = new Uint32Array(halves * atOnce);
  const allTruths = new Uint8Array(atOnce);
  const allVariates = new Uint32Array(columns * atOnce);
  let unfinished: Unfinished[] = [];
  for (let start = 0; start < rows; start += atOnce) {
    const count = Math.min(atOnce, rows - start);
    const truths = allTruths.subarray(0, count);
    const variates = allVariates.subarray(0, columns * count);
    source.fill(words.subarray(0, halves * count));
    if (threshold) {
      for (let row = 0, at = 0; row < count; row++, at += halves)
        truths[row] = isBelow(words[at + 1], words[at], threshold);
    }
    let isRejected = false;
    bounds.forEach((bound, column) => {
      isRejected = fillColumn(words, first + 2 * column, halves, bound, variates, column, columns) || isRejected;
    });
    if (isRejected) {
      for (let row = 0; row < count; row++) {
        const drawn = variates.subarray(columns * row, columns * (row + 1));
        if (drawn.includes(MISSING)) {
          unfinished.push({ row: start + row, truths: truths.slice(row, row + 1), variates: drawn.slice() });
          drawn.fill(0); // its result is replaced below
        }
      }
    }
    use(start, truths, variates);
    words.fill(0);
  }
  allVariates.fill(0);

  // Round by round, one more word for each rejected cell, row by row.
  while (unfinished.length) {
    unfinished = unfinished.filter(({ row, truths, variates }) => {
      variates.forEach((variate, column) => {
        if (variate !== MISSING) return;
        source.fill(words.subarray(0, 2));
        fillColumn(words, 0, 2, bounds[column], variates.subarray(column, column + 1), 0, 1);
      });
      if (variates.includes(MISSING)) return true;
      use(row, truths, variates);
      return false;
    });
  }
  words.fill(0);
}
