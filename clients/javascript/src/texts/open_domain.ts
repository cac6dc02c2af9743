/** Domains of texts without a list, read as tokens of an alphabet (`docs/format.md`, 2.3). */

import type { ReadDomain } from "../domain.js";
import { check, DomainError, shown } from "../errors.js";
import { encodeText, type JsonObject } from "../json.js";
import { checkText, fields, integer, list } from "../plan_fields.js";

const MAX_SYMBOLS = 2 ** 15;
const MAX_LONGEST = 2 ** 10;
const MAX_NOTE = 200;

/** Check a list of tokens. Returns their number and what turns a text into tokens, at most as many as the limit. */
function readSymbols(record: JsonObject, limit: number): [count: number, tokenise: (text: string) => number[]] {
  const symbols = list(record, "symbols") as string[];
  const numbers = new Map<unknown, number>(symbols.map((symbol, place) => [symbol, place + 1]));
  const { size } = numbers;
  const unknown = numbers.get(record.unknown);
  const areTexts = symbols.every((symbol) => typeof symbol === "string" && symbol);
  check(
    areTexts && unknown && size === symbols.length && size >= 2 && size <= MAX_SYMBOLS,
    `symbols must be 2 to ${MAX_SYMBOLS} distinct texts, one of them unknown`,
  );
  const longest = symbols.reduce((most, { length }) => Math.max(most, length), 0);
  const tokenise = (text: string): number[] => {
    // As in UTF-8, a lone surrogate counts as U+FFFD.
    const characters = [...text.replace(/\p{Cs}/gu, "\uFFFD")];
    const found: number[] = [];
    for (let at = 0, length: number; at < characters.length && found.length < limit; at += length) {
      let number: number | undefined;
      length = longest + 1;
      while (!number && --length) number = numbers.get(characters.slice(at, at + length).join(""));
      length ||= 1;
      found.push(number ?? unknown);
    }
    return found;
  };
  return [size, tokenise];
}

/** Check a domain of texts. The index of a text is its tokens, then the end digit unless there are more tokens. */
export function readOpenDomain(record: JsonObject): ReadDomain {
  const isBytes = record.symbols === "bytes";
  fields(record, isBytes ? "longest symbols" : "longest symbols unknown", ["note"]);
  if (record.note !== undefined) checkText(record.note, "note", MAX_NOTE);
  const longest = integer(record, "longest", 1, MAX_LONGEST);
  const [count, tokenise] = isBytes
    ? [256, (text: string) => Array.from(encodeText(text), (byte) => byte + 1)]
    : readSymbols(record, longest + 1);
  return {
    properties: record,
    indexOf(value) {
      check(typeof value === "string", `value ${shown(value)} is not text`, DomainError);
      const digits = tokenise(value);
      return digits.length > longest ? digits.slice(0, longest) : [...digits, count + 1];
    },
    sizes: new Array<number>(longest).fill(count),
    joined: (choices) => [...choices.map((choice) => choice + 1), count + 1],
  };
}
