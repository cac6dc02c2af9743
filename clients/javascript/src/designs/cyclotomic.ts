/**
 * Cyclotomic designs: blocks g^a·D + b of residues, D a union of classes of powers (`docs/format.md`, 6.4).
 *
 * A client must check that g is a primitive root: with g = 1 a report would nearly reveal the value.
 */

import { indexBits, isPrime, isPrimitiveRoot, multiplyModulo, powerModulo } from "../arithmetic.js";
import { check, shown } from "../errors.js";
import { fields, integer, integers } from "../plan_fields.js";
import type { DesignReader } from "./design.js";

const MAX_POINTS = 2 ** 26;
const MAX_TABLED = 2 ** 22;
const MAX_LISTED = 2 ** 8;
const POINTS_PER_REPORT = 16; // use a table if it has at most this many entries per report

/** Reads the design "cyclotomic". */
export const cyclotomic: DesignReader = {
  kind: "cyclotomic",
  read(record) {
    fields(record, "block_size classes design generator points threshold union with_zero");
    const points = integer(record, "points", 2, MAX_POINTS);
    const classes = integer(record, "classes", 1, points);
    const generator = integer(record, "generator", 1, points - 1);
    check(isPrime(points), `points must be prime, got ${points}`);
    check((points - 1) % classes === 0, `classes must divide points - 1 = ${points - 1}, got ${classes}`);
    check(isPrimitiveRoot(generator, points), `generator must be a primitive root, got ${generator}`);
    const union = integers(record, "union", 0, classes - 1);
    check(union.length && new Set(union).size === union.length, `union must list distinct classes, got ${shown(union)}`);
    const withZero = record.with_zero;
    check(typeof withZero === "boolean", `with_zero must be true or false, got ${shown(withZero)}`);
    const classSize = (points - 1) / classes;
    const blockSize = union.length * classSize + Number(withZero);
    integer(record, "block_size", blockSize, Math.min(blockSize, points - 1));

    const ascending = [...union].sort((left, right) => left - right);
    const zeroPosition = withZero ? blockSize - 1 : points - 1;
    const zero = points - 1 + classes; // this exponent and all above stand for the point 0
    let tables: { exponents: ArrayLike<number>; powers: ArrayLike<number> } | undefined;

    /** The exponent e of the point g^e at a position: first the block, then the other points. */
    function exponentAt(position: number): number {
      if (position === zeroPosition) return zero;
      const place = position - Number(position > zeroPosition);
      const which = Math.floor(place / classSize);
      let other = which - union.length;
      for (const known of ascending) other += Number(known <= other);
      return (union[which] ?? other) + classes * (place - which * classSize);
    }

    return {
      points,
      blockSize,
      bounds: [classes, blockSize, points - blockSize],
      bits: indexBits(classes * points),
      limit: classes * points,
      prepare(reports) {
        if (tables || union.length > MAX_LISTED || points > Math.min(MAX_TABLED, reports * POINTS_PER_REPORT)) return;
        // Use small entries if possible, so that the tables stay in the fastest cache.
        const Table = zero + classes > 2 ** 16 ? Uint32Array : Uint16Array;
        const [exponents, powers] = [new Table(points), new Table(zero + classes)];
        for (let position = 0; position < points; position++) exponents[position] = exponentAt(position);
        for (let exponent = 0, power = 1; exponent < zero; exponent++) {
          powers[exponent] = power;
          power = multiplyModulo(power, generator, points);
        }
        tables = { exponents, powers };
      },
      respond(values, truths, variates, payloads) {
        const known = tables;
        for (let row = 0, at = 0; row < values.length; row++, at += 3) {
          const scale = variates[at];
          const inside = variates[at + 1];
          const outside = blockSize + variates[at + 2];
          const position = outside ^ ((inside ^ outside) & -truths[row]);
          let power: number;
          if (known) power = known.powers[scale + known.exponents[position]];
          else {
            const exponent = scale + exponentAt(position);
            power = powerModulo(generator, exponent, points) * Number(exponent < zero);
          }
          const shift = values[row] - power;
          payloads[row] = scale * points + shift + (points & (shift >> 31));
        }
      },
    };
  },
};
