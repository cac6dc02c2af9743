/** Reads `[{plan, cases: [[values, words, isBatch]]}]` and prints the reports and batches. */

import { readFileSync } from "node:fs";

import { Client, Plan } from "../../clients/javascript/dist/index.js";
import { records } from "../../clients/javascript/dist/records.js";
import { subsets } from "../../clients/javascript/dist/subsets.js";
import { texts } from "../../clients/javascript/dist/texts.js";

/** Replays words of 16 hexadecimal digits each. */
class ScriptedSource {
  reproducible = true;
  used = 0;

  constructor(words) {
    this.words = words;
  }

  fill(halves) {
    for (let i = 0; i < halves.length; i += 2, this.used++) {
      const word = this.words.slice(16 * this.used, 16 * this.used + 16);
      if (word.length < 16) throw new Error("no words left");
      halves[i + 1] = parseInt(word.slice(0, 8), 16);
      halves[i] = parseInt(word.slice(8), 16);
    }
  }
}

const answers = JSON.parse(readFileSync(0, "utf8")).map(({ plan, cases }) => {
  const checked = new Plan(plan, { designs: [subsets], records, texts });
  return cases.map(([values, words, isBatch]) => {
    const source = new ScriptedSource(words);
    const client = new Client(checked, { maxEpsilon: 32, source });
    const made = isBatch ? client.reportBatch(values) : client.report(values);
    return [Buffer.from(made).toString("hex"), source.used];
  });
});
process.stdout.write(JSON.stringify(answers));
