/** Public groups of users (`docs/format.md`, 2.6): what a plan declares, and what an upload names. */

import { check, ParameterError, shown } from "./errors.js";
import type { Json, JsonObject } from "./json.js";
import { list } from "./plan_fields.js";

/** The groups of a user: at most one value for each attribute that the plan declares, such as `{country: "DE"}`. */
export type Groups = Readonly<Record<string, string>>;

/** For every attribute, such as `country`, the values that an upload may name. */
export type DeclaredGroups = Readonly<Record<string, readonly string[]>>;

/** The form of the groups in an upload, such as `country=DE,release=124`. @internal */
export const GROUPS = /^[a-z][a-z0-9_]{0,31}=[A-Za-z0-9][\w.+-]{0,63}(,[a-z][a-z0-9_]{0,31}=[A-Za-z0-9][\w.+-]{0,63})*$/;

/** Check the groups of a plan. @internal */
export function checkGroups(value: Json): void {
  const names = typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
  check(names.length >= 1 && names.length <= 8, `groups must be 1 to 8 attributes, got ${shown(value)}`);
  for (const name of names) {
    check(/^[a-z][a-z0-9_]{0,31}$/.test(name), `${shown(name)} cannot be the attribute of a group`);
    const values = list(value as JsonObject, name);
    check(values.length >= 1 && values.length <= 1000, `a group must have 1 to 1000 values, got ${values.length}`);
    for (const item of values) {
      const isCode = typeof item === "string" && /^[A-Za-z0-9][\w.+-]{0,63}$/.test(item);
      check(isCode, `${shown(item)} cannot be a value of a group`);
    }
    check(new Set(values).size === values.length, `a value of the group ${name} is repeated`);
  }
}

/** The groups as an upload names them, such as `country=DE,release=124`; undefined if there are none. @internal */
export function namedGroups(declared: DeclaredGroups = {}, chosen: Groups = {}): string | undefined {
  const names = Object.keys(chosen).sort();
  for (const name of names) {
    check(Object.hasOwn(declared, name), `the plan declares no group ${shown(name)}`, ParameterError);
    const isKnown = declared[name].includes(chosen[name]);
    check(isKnown, `the group ${name} has no value ${shown(chosen[name])}`, ParameterError);
  }
  return names.map((name) => `${name}=${chosen[name]}`).join() || undefined;
}
