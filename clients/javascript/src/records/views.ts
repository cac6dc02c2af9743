/** `ordered` and `tables`: every report draws a view of the record by public shares and responds on its cell. */

import { check, shown } from "../errors.js";
import type { Json, JsonObject } from "../json.js";
import { checkInteger, fields, integer, integers, list } from "../plan_fields.js";
import type { BlockResponse } from "../protocols/block_response.js";
import { type Protocol, TOO_FEW_POINTS } from "../protocols/protocol.js";
import { selectingProtocol } from "../protocols/selection.js";

const SHARES = 2 ** 32;
const MAX_VIEWS = 4096;

/** A map of records to the cells of a small table. */
interface View {
  readonly cells: number;
  cellOf(index: number): number;
}

type ReadResponse = (record: Json | undefined) => BlockResponse;

/** Read the views of a plan: under the key `name` the map, its share of all reports out of 2^32, and its response. */
function viewsProtocol(
  parameters: JsonObject,
  name: string,
  readView: (value: Json) => View,
  readResponse: ReadResponse,
): Protocol {
  const records = list(parameters, "views");
  check(records.length >= 1 && records.length <= MAX_VIEWS, `expected 1 to ${MAX_VIEWS} views, got ${records.length}`);
  const bounds: number[] = [];
  let sum = 0;
  const views = records.map((each) => {
    const record = fields(each, [name, "response", "share"].sort().join(" "));
    sum += integer(record, "share", 1, SHARES);
    bounds.push(sum);
    const [view, response] = [readView(record[name]), readResponse(record.response)];
    check(response.design.points >= view.cells, TOO_FEW_POINTS);
    return { view, response };
  });
  check(sum === SHARES, `the shares must add up to 2^32, got ${sum}`);
  return selectingProtocol(
    views.map(({ response }) => response),
    true,
    (count, source) => {
      const words = new Uint32Array(2 * count);
      const selectors = new Uint16Array(count);
      source.fill(words);
      for (let row = 0; row < count; row++) while (bounds[selectors[row]] <= words[2 * row + 1]) selectors[row]++;
      words.fill(0);
      return selectors;
    },
    (selector, indices, rows) => {
      const { view } = views[selector];
      const cells = new Uint32Array(rows.length);
      for (let i = 0; i < rows.length; i++) cells[i] = view.cellOf(indices[rows[i]]);
      return cells;
    },
  );
}

/** Halving levels of 2^h values: at level l a value is in the node x div 2^(h − l). */
export function orderedProtocol(parameters: JsonObject, domainSize: number, readResponse: ReadResponse): Protocol {
  const height = Math.round(Math.log2(domainSize));
  check(2 ** height === domainSize, `an ordered domain needs a power of two of values, got ${domainSize}`);
  let level = 0;
  const readLevel = (value: Json): View => {
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
  const readTable = (value: Json): View => {
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
