/** Texts that nobody has listed: `new Client(plan, { maxEpsilon, texts })`, for plans of `prefixes`. */

import type { PlanReader } from "./domain.js";
import { readOpenDomain } from "./texts/open_domain.js";
import { prefixesProtocol } from "./texts/prefixes.js";

/** Reads plans of texts without a list. */
export const texts: PlanReader = {
  readDomain: readOpenDomain,
  readProtocol: (_name, parameters, domain, readResponse) => prefixesProtocol(parameters, domain, readResponse),
};
