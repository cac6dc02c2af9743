/** Projective designs: points and hyperplanes over GF(q), a block is a hyperplane (`docs/format.md`, 6.5). */

import { indexBits, power, primeFactors } from "../arithmetic.js";
import { check, shown } from "../errors.js";
import { fields, integer, integers } from "../plan_fields.js";
import { type DesignReader, eachRow } from "./design.js";
import { digits, makeField } from "./finite_field.js";

/** (q^length − 1)/(q − 1), the number of points with this many coordinates, for every length up to the dimension. */
export function pointCounts(order: number, dimension: number): number[] {
  const counts = [0];
  for (let length = 0; length < dimension; length++) counts.push(counts[length] * order + 1);
  return counts;
}

/** The coordinates of a point: zeros, a one, and the digits of its place among those with as many free coordinates. */
export function canonicalVector(number: number, length: number, order: number, counts: readonly number[]): number[] {
  let free = length - 1;
  while (counts[free] > number) free--;
  const zeros = new Array<number>(length - 1 - free).fill(0);
  return [...zeros, 1, ...digits(number - counts[free], order, free).reverse()];
}

/** Reads the design "projective". */
export const projective: DesignReader = {
  kind: "projective",
  read(record) {
    fields(record, "design dimension order polynomial threshold");
    const order = integer(record, "order", 2, 2 ** 20);
    const dimension = integer(record, "dimension", 2, 64);
    const [prime, another] = primeFactors(order) as [number, number?];
    check(!another, `order must be a prime power, got ${order}`);
    const degree = Math.round(Math.log(order) / Math.log(prime));
    const polynomial = integers(record, "polynomial", 0, prime - 1);
    const field = makeField(prime, polynomial);
    check(
      polynomial.length === degree + 1 &&
        polynomial[degree] === 1 &&
        (degree > 1 ? field.isField() : polynomial[0] === 0),
      `polynomial must be monic and irreducible, got ${shown(polynomial)}`,
    );

    const starts = pointCounts(order, dimension);
    const points = starts[dimension];
    const blockSize = starts[dimension - 1];
    check(points < 2 ** 31, `points must be below 2^31, got ${points}`);
    const { add, multiply } = field;

    /** The index of the hyperplane with these coordinates, apart from the pivot's, and this inner product with x. */
    function hyperplane(x: number[], others: number[], product: number): number {
      const pivot = x.indexOf(1);
      const y = [...others.slice(0, pivot), 0, ...others.slice(pivot)];
      const inner = x.reduce((sum, coordinate, place) => add(sum, multiply(coordinate, y[place])), 0);
      y[pivot] = add(product, multiply(prime - 1, inner)); // p − 1 is minus one
      const first = y.findIndex((coordinate) => coordinate);
      const scale = power(y[first], order - 2, multiply);
      const value = y.slice(first + 1).reduce((sum, coordinate) => sum * order + multiply(scale, coordinate), 0);
      return starts[dimension - 1 - first] + value;
    }

    return {
      points,
      blockSize,
      bounds: [blockSize, points - blockSize],
      bits: indexBits(points),
      limit: points,
      respond: eachRow((point, truth, variates) => {
        const x = canonicalVector(point, dimension, order, starts);
        const through = hyperplane(x, canonicalVector(variates[0], dimension - 1, order, starts), 0);
        const avoiding = hyperplane(x, digits(variates[1], order, dimension - 1).reverse(), 1);
        return avoiding + (through - avoiding) * truth;
      }),
    };
  },
};
