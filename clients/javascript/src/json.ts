/** The strict JSON of plans (`docs/format.md`, 2) and its canonical form. */

import { check, type ErrorKind, PlanError, shown } from "./errors.js";

/** The JSON values that a plan may contain. */
export type Json = string | number | boolean | Json[] | JsonObject;

/** A JSON object. List its keys before looking one up: a missing key could find an inherited property. */
export interface JsonObject {
  [key: string]: Json;
}

const MAX_DEPTH = 16;

/** Decode UTF-8 strictly, keeping a byte order mark. */
export function decodeText(bytes: Uint8Array, kind: ErrorKind = PlanError): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new kind("not UTF-8", { cause });
  }
}

/** Encode as UTF-8. */
export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * Parse JSON without duplicate keys and whose numbers have no fraction, exponent or excess digits.
 *
 * `JSON.parse` accepts these but drops them, so the value, serialised again, differs from the text (ignoring whitespace
 * and escapes).
 */
export function parseJson(text: string): Json {
  let [value, again]: [Json, string] = ["", ""];
  try {
    value = JSON.parse(text) as Json;
    text = text.replace(/"(?:[^"\\]|\\.)*"|-0\b|\s/g, (part) => (part.trim() ? JSON.stringify(JSON.parse(part)) : ""));
    again = JSON.stringify(value);
  } catch (cause) {
    // Also if it is nested too deeply for this stack. The cause may quote the text, a message must not.
    throw new PlanError("not JSON", { cause });
  }
  check(again === text, "not strict JSON: a key is repeated, or a number has a fraction, an exponent or excess digits");
  return value;
}

/**
 * The canonical form of RFC 8785. Throws if a plan must not contain the value, so that it is safe for values that did
 * not come from {@link parseJson} too.
 */
export function canonicalForm(value: unknown, depth = MAX_DEPTH): string {
  check(depth, "nested too deeply");
  if (Array.isArray(value)) return `[${value.map((item) => canonicalForm(item, depth - 1)).join()}]`;
  if (typeof value === "object" && value) {
    const object = value as JsonObject;
    const keys = Object.keys(object).sort();
    return `{${keys.map((key) => canonicalForm(key) + ":" + canonicalForm(object[key], depth - 1)).join()}}`;
  }
  // Cs matches lone surrogates.
  const isPlain =
    typeof value === "string" ? !/\p{Cs}/u.test(value) : typeof value === "boolean" || Number.isSafeInteger(value);
  check(isPlain, `plans must not contain ${typeof value === "string" ? shown(value) : String(value)}`);
  return JSON.stringify(value);
}
