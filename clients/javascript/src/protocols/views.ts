/** Protocols whose reports draw a view of the value by public shares and respond on its cell. */

import { check } from "../errors.js";
import type { Json, JsonObject } from "../json.js";
import { fields, integer, list } from "../plan_fields.js";
import type { BlockResponse } from "./block_response.js";
import { type Index, type Protocol, TOO_FEW_POINTS } from "./protocol.js";
import { selectingProtocol } from "./selection.js";

const SHARES = 2 ** 32;
const MAX_VIEWS = 4096;

/** A map of values to the cells of a small table. */
export interface View<Of extends Index> {
  readonly cells: number;
  cellOf(index: Of): number;
}

/** Reads and checks a block response of the plan. */
export type ReadResponse = (record: Json | undefined) => BlockResponse;

/** Read the views of a plan: under the key `name` the map, its share of all reports out of 2^32, and its response. */
export function viewsProtocol<Of extends Index>(
  parameters: JsonObject,
  name: string,
  readView: (value: Json) => View<Of>,
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
      for (let row = 0; row < count; row++) {
        let selector = 0;
        while (bounds[selector] <= words[2 * row + 1]) selector++;
        selectors[row] = selector;
      }
      words.fill(0);
      return selectors;
    },
    (selector, indices, rows) => {
      const { view } = views[selector];
      const cells = new Uint32Array(rows.length);
      for (let i = 0; i < rows.length; i++) cells[i] = view.cellOf(indices[rows[i]] as Of);
      return cells;
    },
  );
}
