/** Reads `[{plan, key, attribute, values}]` and prints the memoised reports; null is a value outside the domain. */

import { readFileSync } from "node:fs";

import { Plan } from "../../clients/javascript/dist/index.js";
import { importDeviceKey, MemoisingClient } from "../../clients/javascript/dist/device.js";
import { records } from "../../clients/javascript/dist/records.js";
import { subsets } from "../../clients/javascript/dist/subsets.js";
import { texts } from "../../clients/javascript/dist/texts.js";

const answers = [];
for (const { plan, key, attribute, values } of JSON.parse(readFileSync(0, "utf8"))) {
  const checked = new Plan(plan, { designs: [subsets], records, texts });
  const client = new MemoisingClient(checked, await importDeviceKey(Buffer.from(key, "hex")), attribute, { maxEpsilon: 32 });
  const reports = [];
  for (const value of values) {
    const report = value === null ? await client.reportIndex(undefined) : await client.report(value);
    reports.push(Buffer.from(report).toString("hex"));
  }
  answers.push(reports);
}
process.stdout.write(JSON.stringify(answers));
