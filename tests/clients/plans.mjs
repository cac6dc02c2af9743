/** Reads texts of plans and prints their fingerprints, null for those that are refused. */

import { readFileSync } from "node:fs";

import { Plan, PlanError } from "../../clients/javascript/dist/index.js";
import { records } from "../../clients/javascript/dist/records.js";
import { subsets } from "../../clients/javascript/dist/subsets.js";
import { texts } from "../../clients/javascript/dist/texts.js";

const answers = JSON.parse(readFileSync(0, "utf8")).map((text) => {
  try {
    return new Plan(text, { designs: [subsets], records, texts }).fingerprint;
  } catch (error) {
    if (error instanceof PlanError) return null;
    throw error;
  }
});
process.stdout.write(JSON.stringify(answers));
