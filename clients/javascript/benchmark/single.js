/**
 * Processor time of single reports of the plan on standard input, and of packing a plain bitmap of as many points, as
 * pairs of seconds in JSON: node benchmark/single.js POINTS REPORTS ROUNDS.
 */

import { readFileSync } from "node:fs";

import { Client } from "sunzi";
import { subsets } from "sunzi/subsets";

const [points, reports, rounds] = process.argv.slice(2).map(Number);
const plan = JSON.parse(readFileSync(0, "utf8"));
const client = new Client(plan, { maxEpsilon: plan.epsilon, designs: [subsets] });
const bits = Uint8Array.from({ length: points }, () => Number(Math.random() < 0.5));

function pack() {
  const packed = new Uint8Array(Math.ceil(points / 8));
  for (let place = 0; place < points; place++) {
    packed[place >> 3] |= bits[place] << (place & 7);
  }
  return packed;
}

function seconds(action) {
  const start = process.cpuUsage();
  for (let turn = 0; turn < reports; turn++) {
    action(turn);
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6 / reports;
}

const report = (turn) => client.reportIndex((turn * 7919) % plan.domain.size);
const times = Array.from({ length: rounds + 1 }, () => [seconds(report), seconds(pack)]);
console.log(JSON.stringify(times.slice(1))); // the first round warms up
