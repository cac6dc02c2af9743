/** Singletons: a block is one point (`docs/format.md`, 6.1). */

import { indexBits } from "../arithmetic.js";
import { fields, integer } from "../plan_fields.js";
import type { DesignReader } from "./design.js";

/** Reads the design "singletons". */
export const singletons: DesignReader = {
  kind: "singletons",
  read(record) {
    fields(record, "design points threshold");
    const points = integer(record, "points", 2, 2 ** 31);
    return {
      points,
      blockSize: 1,
      bounds: [points - 1],
      bits: indexBits(points),
      limit: points,
      respond(values, truths, variates, payloads) {
        for (let row = 0; row < values.length; row++) {
          const point = values[row];
          const other = variates[row] + Number(variates[row] >= point);
          payloads[row] = other + (point - other) * truths[row];
        }
      },
    };
  },
};
