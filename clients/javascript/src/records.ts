/** Numbers, dates and records: `new Client(plan, { maxEpsilon, records })`, for plans of `ordered`, `tables`, `number`. */

import type { Domain, ReadDomain } from "./domain.js";
import { check } from "./errors.js";
import type { Json, JsonObject } from "./json.js";
import { fields } from "./plan_fields.js";
import type { BlockResponse } from "./protocols/block_response.js";
import type { Protocol } from "./protocols/protocol.js";
import { readRecordDomain } from "./records/record_domain.js";
import { numberProtocol } from "./records/rounding.js";
import { orderedProtocol, tablesProtocol } from "./records/views.js";

/** Reads the domains and protocols of plans about numbers and records. */
export interface RecordsReader {
  /** @internal */
  readDomain(record: JsonObject): ReadDomain;
  /** @internal */
  readProtocol(
    name: string,
    parameters: JsonObject,
    domain: Domain,
    readResponse: (record: Json | undefined) => BlockResponse,
  ): Protocol;
}

/** Reads plans about numbers, dates and records. */
export const records: RecordsReader = {
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
