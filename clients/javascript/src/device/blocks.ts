/** Which points a block contains, for words about a report: clients only make blocks. */

import { powerModulo, primeFactors } from "../arithmetic.js";
import type { Design, Payload } from "../designs/design.js";
import { makeField } from "../designs/finite_field.js";
import { canonicalVector, pointCounts } from "../designs/projective.js";
import type { JsonObject } from "../json.js";

/**
 * Whether a point is in the block that a payload encodes. `record` is the design in the plan; the build renames
 * properties such as `points`, which must be those of the checked design.
 */
export function blockOf(record: JsonObject, design: Design, payload: Payload): (point: number) => boolean {
  if (typeof payload !== "number") {
    const members = design.members?.(payload);
    return (point) => members?.[point] === 1;
  }
  if (record.design === "cyclotomic") return cyclotomicBlock(record, design, payload);
  if (record.design === "projective") return projectiveBlock(record, payload);
  return (point) => point === payload;
}

/** The block g^a·D + b: the classes of powers are told apart by their (p−1)/classes-th powers. */
function cyclotomicBlock(record: JsonObject, { points }: Design, payload: number): (point: number) => boolean {
  const { classes, generator, union, with_zero: withZero } = record as Record<string, number>;
  const size = (points - 1) / classes;
  const [scale, shift] = [Math.floor(payload / points), payload % points];
  const roots = (union as unknown as number[]).map((each) =>
    powerModulo(generator, size * ((each + scale) % classes), points),
  );
  return (point) => {
    const difference = (point - shift + points) % points;
    return difference ? roots.includes(powerModulo(difference, size, points)) : Boolean(withZero);
  };
}

/** The points whose inner product with the hyperplane is zero. */
function projectiveBlock(record: JsonObject, payload: number): (point: number) => boolean {
  const { order, dimension, polynomial } = record as Record<string, number>;
  const { add, multiply } = makeField(primeFactors(order)[0], polynomial as unknown as number[]);
  const counts = pointCounts(order, dimension);
  const vectorOf = (number: number): number[] => canonicalVector(number, dimension, order, counts);
  const plane = vectorOf(payload);
  return (point) => {
    const vector = vectorOf(point);
    return vector.reduce((sum, coordinate, place) => add(sum, multiply(coordinate, plane[place])), 0) === 0;
  };
}
