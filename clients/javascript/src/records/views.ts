/** `ordered` and `tables`: views of a record. */

import { check, shown } from "../errors.js";
import type { Json, JsonObject } from "../json.js";
import { checkInteger, fields, integers, list } from "../plan_fields.js";
import type { Protocol } from "../protocols/protocol.js";
import { type ReadResponse, type View, viewsProtocol } from "../protocols/views.js";

/** Halving levels of 2^h values: at level l a value is in the node x div 2^(h − l). */
export function orderedProtocol(parameters: JsonObject, domainSize: number, readResponse: ReadResponse): Protocol {
  const height = Math.round(Math.log2(domainSize));
  check(2 ** height === domainSize, `an ordered domain needs a power of two of values, got ${domainSize}`);
  let level = 0;
  const readLevel = (value: Json): View<number> => {
    level = checkInteger(value, level + 1, height, "level");
    const width = 2 ** (height - level);
    return { cells: 2 ** level, cellOf: (index) => Math.floor(index / width) };
  };
  const protocol = viewsProtocol(fields(parameters, "views"), "level", readLevel, readResponse);
  check(level === height, `the last level must be ${height}, got ${level}`);
  return protocol;
}

/** Tables of some attributes of a record. */
export function tablesProtocol(parameters: JsonObject, sizes: readonly number[], readResponse: ReadResponse): Protocol {
  const record = fields(parameters, "sizes views");
  check(list(record, "sizes").join() === sizes.join(), `sizes must be ${shown(sizes)}, got ${shown(record.sizes)}`);
  integers(record, "sizes", 2, Number.MAX_SAFE_INTEGER);
  const weights = sizes.map((_, attribute) => sizes.slice(attribute + 1).reduce((product, size) => product * size, 1));
  const known = new Set<string>();
  const readTable = (value: Json): View<number> => {
    const table = integers({ attributes: value }, "attributes", 0, sizes.length - 1);
    const isRising = table.length > 0 && table.every((attribute, place) => !place || table[place - 1] < attribute);
    check(isRising && !known.has(table.join()), `attributes must rise and differ by view, got ${shown(value)}`);
    known.add(table.join());
    return {
      cells: table.reduce((product, attribute) => product * sizes[attribute], 1),
      cellOf: (index) =>
        table.reduce((cell, i) => cell * sizes[i] + (Math.floor(index / weights[i]) % sizes[i]), 0),
    };
  };
  return viewsProtocol(record, "attributes", readTable, readResponse);
}
