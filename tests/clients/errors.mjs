/** The errors of all entries with the names of their base classes: `{name: [name, base class, …]}`. */

import * as client from "../../clients/javascript/dist/index.js";
import * as longitudinal from "../../clients/javascript/dist/device.js";
import * as node from "../../clients/javascript/dist/node.js";
import * as reading from "../../clients/javascript/dist/reading.js";
import * as records from "../../clients/javascript/dist/records.js";
import * as subsets from "../../clients/javascript/dist/subsets.js";
import * as texts from "../../clients/javascript/dist/texts.js";

function lineage(kind) {
  return kind === Error ? [] : [new kind("").name, ...lineage(Object.getPrototypeOf(kind))];
}

const found = {};
for (const entry of [client, longitudinal, node, reading, records, subsets, texts]) {
  for (const [name, value] of Object.entries(entry)) {
    if (value.prototype instanceof Error) found[name] = lineage(value);
  }
}
process.stdout.write(JSON.stringify(found));
