/** JSON as plans are written in it: strictly what `docs/format.md` (2) allows, and its canonical form. */

import { check, PlanError, type SunziError } from "./errors.js";

/** What a plan may hold. */
export type Json = string | number | boolean | Json[] | JsonObject;

/** An object; its keys are its own, so they are to be listed, never to be looked up before that. */
export interface JsonObject {
  [key: string]: Json;
}

const DEEPEST = 16;

/** Bytes as text, without mercy for what is not UTF-8; a byte order mark stays. */
export function decodeText(bytes: Uint8Array, kind: new (message: string) => SunziError = PlanError): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new kind("not UTF-8");
  }
}

/** Text as bytes. */
export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * Read JSON in which no key occurs twice and no number has a fraction, an exponent or too many digits.
 *
 * `JSON.parse` lets all of that pass, but loses it: written again, such a value differs from the text it was read from,
 * spaces and escapes aside.
 */
export function parseJson(text: string): Json {
  let value: Json | undefined;
  try {
    value = JSON.parse(text) as Json;
    text = text.replace(/"(?:[^"\\]|\\.)*"|-0\b|\s/g, (part) => (part.trim() ? JSON.stringify(JSON.parse(part)) : ""));
  } catch {
    value = undefined;
  }
  check(value !== undefined && JSON.stringify(value) === text, "not strict JSON");
  return value;
}

/**
 * The canonical form of RFC 8785. Refuses what no plan may hold, so that values which did not come from
 * {@link parseJson} are safe too.
 */
export function canonicalForm(value: unknown, depth = DEEPEST): string {
  check(depth, "too deep");
  if (Array.isArray(value)) return `[${value.map((item) => canonicalForm(item, depth - 1)).join()}]`;
  if (typeof value === "object" && value) {
    const object = value as JsonObject;
    const keys = Object.keys(object).sort();
    return `{${keys.map((key) => canonicalForm(key) + ":" + canonicalForm(object[key], depth - 1)).join()}}`;
  }
  // The class Cs holds surrogates that stand alone.
  const isPlain =
    typeof value === "string" ? !/\p{Cs}/u.test(value) : typeof value === "boolean" || Number.isSafeInteger(value);
  check(isPlain, `a plan holds no ${String(value)}`);
  return JSON.stringify(value);
}
