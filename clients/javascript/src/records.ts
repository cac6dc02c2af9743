/** Numbers, dates and records: `new Client(plan, { maxEpsilon, records })`, for plans of `ordered`, `tables`, `number`. */

import type { PlanReader } from "./domain.js";
import { check } from "./errors.js";
import { fields } from "./plan_fields.js";
import { readRecordDomain } from "./records/record_domain.js";
import { numberProtocol } from "./records/rounding.js";
import { orderedProtocol, tablesProtocol } from "./records/views.js";

/** Reads plans about numbers, dates and records. */
export const records: PlanReader = {
  readDomain: readRecordDomain,
  readProtocol(name, parameters, domain, readResponse) {
    if (name === "tables") {
      check(domain.attributes, "tables need records");
      return tablesProtocol(parameters, domain.sizes, readResponse);
    }
    if (name === "ordered") return orderedProtocol(parameters, domain.size, readResponse);
    check(domain.range, "number needs a range");
    return numberProtocol(readResponse(fields(parameters, "response").response), domain.size);
  },
};
