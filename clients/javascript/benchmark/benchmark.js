/**
 * Compares making batches of compact reports with only drawing their random words, in one run on one core.
 *
 * The two alternate, and each figure is the fastest round, because other load on the machine only adds time.
 */

import { readFileSync } from "node:fs";

import { Client } from "sunzi";

const REPORTS = 100_000;
const ROUNDS = 150;
const WORDS_AT_ONCE = 8192; // Web Crypto returns at most 64 KiB per call

const plans = JSON.parse(readFileSync(new URL("plans.json", import.meta.url), "utf8"));

function wordsPerReport({ protocol, parameters }) {
  const design = parameters.response ?? parameters.responses[0];
  return (protocol.startsWith("mss") ? 1 : 0) + 1 + (design.design === "cyclotomic" ? 3 : 1);
}

function seconds(action) {
  const start = process.hrtime.bigint();
  action();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

function drawWords(count) {
  const words = new Uint32Array(2 * WORDS_AT_ONCE);
  for (let drawn = 0; drawn < count; drawn += WORDS_AT_ONCE) {
    crypto.getRandomValues(words.subarray(0, 2 * Math.min(WORDS_AT_ONCE, count - drawn)));
  }
}

console.log(`${REPORTS.toLocaleString("en")} reports per batch, fastest of ${ROUNDS} rounds, Node ${process.version}`);
console.log("plan | million reports per second | time / time of drawing the words | ns per report");
for (const [name, plan] of Object.entries(plans)) {
  const client = new Client(plan, { maxEpsilon: 2 });
  const indices = Uint32Array.from({ length: REPORTS }, (_, i) => (i * 7919) % plan.domain.size);
  const words = REPORTS * wordsPerReport(plan);
  let [time, base] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    base = Math.min(
      base,
      seconds(() => drawWords(words)),
    );
    time = Math.min(
      time,
      seconds(() => client.reportIndices(indices)),
    );
  }
  const ns = ((1e9 * time) / REPORTS).toFixed(0);
  console.log(`${name} | ${(REPORTS / time / 1e6).toFixed(1)} | ${(time / base).toFixed(1)} | ${ns}`);
}
