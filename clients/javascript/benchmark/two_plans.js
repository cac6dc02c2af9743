/**
 * Processor time of single reports under two plans, given on standard input as `[[plan, value], [plan, value]]`, as
 * pairs of seconds in JSON: node benchmark/two_plans.js REPORTS ROUNDS.
 */

import { readFileSync } from "node:fs";

import { Client } from "sunzi";
import { records } from "sunzi/records";

const [reports, rounds] = process.argv.slice(2).map(Number);
const actions = JSON.parse(readFileSync(0, "utf8")).map(([plan, value]) => {
  const client = new Client(plan, { maxEpsilon: plan.epsilon, records });
  return () => client.report(value);
});

function seconds(action) {
  const start = process.cpuUsage();
  for (let turn = 0; turn < reports; turn++) {
    action();
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6 / reports;
}

const times = Array.from({ length: rounds + 1 }, () => actions.map(seconds));
console.log(JSON.stringify(times.slice(1))); // the first round warms up
