/** Domains of numbers and dates, in bins of equal width (`docs/format.md`, 2.3). */

import { checkGiven, SEND_BACKGROUND } from "../domain.js";
import { check, DomainError, shown } from "../errors.js";
import type { Json, JsonObject } from "../json.js";
import { checkText, fields } from "../plan_fields.js";

const DAYS = "days since 1970-01-01";
const DAY = 86_400_000;

/** An end of the range, by a name in quotes, which the build must not rename. */
function parseEnd(record: JsonObject, name: "low" | "high"): number {
  const text = record[name];
  const isDecimal = typeof text === "string" && /^(?!-0$)-?(0|[1-9]\d*)(\.\d*[1-9])?$/.test(text);
  const decimals = isDecimal && text.split(".")[1];
  const digits = isDecimal && text.replace(/^[-0.]+|\./g, "");
  const isShort = digits !== false && digits.length <= 15 && (decimals || "").length <= 15;
  check(isShort, `an end of a range must be a decimal number as text, got ${shown(text)}`);
  return Number(text);
}

/** A date as the number of days since 1970-01-01, in UTC. */
function dayOf(value: unknown): number {
  if (value instanceof Date) return Math.floor(value.getTime() / DAY);
  if (typeof value !== "string" || !/^(?!0000)\d{4}-\d\d-\d\d$/.test(value)) return NaN;
  const date = new Date(value);
  // Some engines take the 31st of February for a day of March.
  return date.getTime() >= -Infinity && date.toISOString().startsWith(value) ? date.getTime() / DAY : NaN;
}

/** The date of a day; a number, if it is beyond the dates of the language. */
function dateOf(day: number): string {
  const date = new Date(day * DAY);
  return Number.isNaN(date.getTime()) ? `day ${day}` : date.toISOString().slice(0, 10);
}

/** Check a range, and make the function that returns the bin of a value. */
export function readRange(range: Json, bins: number): (value: unknown) => number {
  const record = fields(range, "high low", ["clamp", "unit"]);
  const { clamp, unit } = record;
  const [low, high] = [parseEnd(record, "low"), parseEnd(record, "high")];
  check(low < high, `low must be below high, got ${low} and ${high}`);
  check((clamp ?? true) === true, `clamp must be true, got ${shown(clamp)}`);
  if (unit !== undefined) checkText(unit, "unit", 32);
  const isDates = unit === DAYS;
  // The end of a range of dates is the day after the last.
  const last = isDates ? Math.max(low, high - 1) : high;
  return (value) => {
    let number = typeof value === "number" ? value : isDates ? dayOf(value) : NaN;
    if (Number.isNaN(number)) {
      checkGiven(value);
      throw new DomainError(`value ${shown(value)} is not a ${isDates ? "date, such as 2026-11-19" : "number"}`);
    }
    if (number < low || number > high || (isDates && number === high)) {
      if (!clamp) {
        const ends = isDates ? `${dateOf(low)} to ${dateOf(last)}` : `${low} to ${high}`;
        throw new DomainError(`value ${shown(value)} is outside ${ends}; plan with clamp or a wider range, or ${SEND_BACKGROUND}`);
      }
      number = number < low ? low : last;
    }
    // In this order, in which all clients compute it. The sum turns -0 into 0.
    return Math.min(Math.floor(((number - low) * bins) / (high - low)), bins - 1) + 0;
  };
}
