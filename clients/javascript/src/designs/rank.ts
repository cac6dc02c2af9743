/** The rank of a subset among all subsets of its size (`docs/format.md`, 6.3). */

const LEAF = 64;
const rows = new Map<number, bigint[]>();

/** C(n, i), and 0 unless 0 ≤ i ≤ n. Rows are cached. */
export function binomial(n: number, i: number): bigint {
  if (i < 0 || i > n) return 0n;
  const place = Math.min(i, n - i);
  let row = rows.get(n);
  if (!row) {
    row = [1n];
    rows.set(n, row);
  }
  for (let next = row.length; next <= place; next++) {
    row.push((row[next - 1] * BigInt(n - next + 1)) / BigInt(next));
  }
  return row[place];
}

/** The rank of ascending offsets below `size`: a bijection to 0 … C(size, count) − 1. */
export function rank(chosen: ArrayLike<number>, size: number): bigint {
  return rankPart(chosen, 0, chosen.length, 0, size);
}

/** The rank of chosen[from … to−1], which lie in the `size` points from `first` on. */
function rankPart(chosen: ArrayLike<number>, from: number, to: number, first: number, size: number): bigint {
  const count = to - from;
  if (size <= LEAF) {
    let sum = 0n;
    for (let i = 0; i < count; i++) sum += binomial(chosen[from + i] - first, i + 1);
    return sum;
  }
  const left = size >> 1;
  const right = size - left;
  let middle = from;
  while (middle < to && chosen[middle] < first + left) middle++;
  let before = 0n;
  let inLeft = Math.floor((count * left) / size);
  for (let step = 1; inLeft !== middle - from; step++) {
    before += binomial(left, inLeft) * binomial(right, count - inLeft);
    inLeft += step % 2 ? step : -step;
  }
  const rankLeft = rankPart(chosen, from, middle, first, left);
  return before + rankLeft * binomial(right, to - middle) + rankPart(chosen, middle, to, first + left, right);
}
