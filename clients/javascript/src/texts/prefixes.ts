/** `prefixes`: views of the beginning of a text, or of all of it, as a number modulo m. */

import type { Domain } from "../domain.js";
import { check, DomainError, shown } from "../errors.js";
import type { Json, JsonObject } from "../json.js";
import { fields, integer } from "../plan_fields.js";
import type { Protocol } from "../protocols/protocol.js";
import { type ReadResponse, type View, viewsProtocol } from "../protocols/views.js";

const MAX_MODULUS = 2 ** 26;

/** Privacy rests on the responses alone. The maps are checked so that all clients accept the same plans. */
export function prefixesProtocol(parameters: JsonObject, domain: Domain, readResponse: ReadResponse): Protocol {
  const width = (domain.longest ?? 0) + 1;
  check(width > 1, "prefixes need texts");
  const roles = new Set<Json>();
  const readPrefix = (value: Json): View<readonly number[]> => {
    const record = fields(value, "base digits modulus role");
    const { role } = record;
    const isCount = role === "count";
    check(isCount || role === "search", `role must be search or count, got ${shown(role)}`);
    const modulus = integer(record, "modulus", 2, MAX_MODULUS);
    const base = integer(record, "base", domain.sizes[0] + 1, modulus);
    const length = integer(record, "digits", isCount ? width : 1, width);
    if (length === width) roles.add(role);
    return {
      cells: modulus,
      cellOf(digits) {
        // Every step is below 2^53.
        const step = (sum: number, digit: number): number => (sum * base + digit) % modulus;
        const cell = Array.isArray(digits) ? digits.slice(0, length).reduce(step, 0) : NaN;
        check(cell >= 0, `value ${shown(digits)} is not text`, DomainError);
        return cell;
      },
    };
  };
  const protocol = viewsProtocol(fields(parameters, "views"), "prefix", readPrefix, readResponse);
  check(roles.size === 2, "both roles must see whole texts");
  return protocol;
}
