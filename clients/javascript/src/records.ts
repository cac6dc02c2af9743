/** Reading the parts of a plan: exactly the known keys, of the right types, within their limits. */

import { check } from "./errors.js";
import type { Json, JsonObject } from "./json.js";

/** An object with exactly these keys, named in ascending order; the optional ones may be left out. */
export function fields(value: Json | undefined, required: string, optional: readonly string[] = []): JsonObject {
  const keys = typeof value === "object" ? Object.keys(value) : [];
  const needed = keys.filter((key) => !optional.includes(key));
  check(needed.sort().join(" ") === required, `expected the keys ${required}`);
  return value as JsonObject;
}

/** Refuse what is not an integer within limits, ends included. */
export function checkInteger(value: unknown, low: number, high: number, name: string): number {
  check(
    Number.isInteger(value) && (value as number) >= low && (value as number) <= high,
    `${name} must be an integer from ${low} to ${high}`,
  );
  return value as number;
}

/** The integer under a key. */
export function integer(record: JsonObject, name: string, low: number, high: number): number {
  return checkInteger(record[name], low, high, name);
}

/** The list under a key. */
export function list(record: JsonObject, name: string): Json[] {
  const value = record[name];
  check(Array.isArray(value), `${name} must be a list`);
  return value;
}

/** The list of integers under a key, each within limits. */
export function integers(record: JsonObject, name: string, low: number, high: number): number[] {
  return list(record, name).map((item) => checkInteger(item, low, high, name));
}

/** The decimal digits under a key, without sign or leading zeros. */
export function decimal(record: JsonObject, name: string): bigint {
  const value = record[name];
  check(typeof value === "string" && /^(0|[1-9]\d{0,39})$/.test(value), `${name} must be decimal digits`);
  return BigInt(value);
}
