/** Checks the parts of a plan: exactly the known keys, with the right types and ranges. */

import { check, shown } from "./errors.js";
import type { Json, JsonObject } from "./json.js";

/** An object with exactly these keys, listed in ascending order, and any of the optional ones. */
export function fields(value: Json | undefined, required: string, optional: readonly string[] = []): JsonObject {
  const keys = typeof value === "object" ? Object.keys(value) : [];
  const needed = keys.filter((key) => !optional.includes(key));
  check(needed.sort().join(" ") === required, `expected the keys ${required}, got ${shown(keys)}`);
  return value as JsonObject;
}

/** An integer between these limits, inclusive. */
export function checkInteger(value: unknown, low: number, high: number, name: string): number {
  check(
    Number.isInteger(value) && (value as number) >= low && (value as number) <= high,
    `${name} must be an integer from ${low} to ${high}, got ${shown(value)}`,
  );
  return value as number;
}

/** The integer under a key. */
export function integer(record: JsonObject, name: string, low: number, high: number): number {
  return checkInteger(record[name], low, high, name);
}

/** Text that is not empty, has at most this many code points and no control characters. */
export function checkText(value: unknown, name: string, longest = Infinity): string {
  const isText = typeof value === "string" && value && !/\p{Cc}/u.test(value) && [...value].length <= longest;
  check(isText, `${name} must be printable text, got ${shown(value)}`);
  return value as string;
}

/** The list under a key. */
export function list(record: JsonObject, name: string): Json[] {
  const value = record[name];
  check(Array.isArray(value), `${name} must be a list, got ${shown(value)}`);
  return value;
}

/** The list under a key, of integers between these limits. */
export function integers(record: JsonObject, name: string, low: number, high: number): number[] {
  return list(record, name).map((item) => checkInteger(item, low, high, name));
}

/** The nonnegative integer that a string of decimal digits under a key stands for. */
export function decimal(record: JsonObject, name: string): bigint {
  const value = record[name];
  const isDecimal = typeof value === "string" && /^(0|[1-9]\d{0,39})$/.test(value);
  check(isDecimal, `${name} must be a string of digits, got ${shown(value)}`);
  return BigInt(value);
}
