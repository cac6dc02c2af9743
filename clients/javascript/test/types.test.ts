/** The published types: a strict program that uses every entry compiles, and misuse does not. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const PACKAGE = join(import.meta.dirname, "..");

const PROGRAM = `
import { Client, type Epoch, fetchEpoch, type Outcome, Plan, SunziError } from "sunzi";
import { Device, type QueueResult } from "sunzi/device";
import { FileStore } from "sunzi/node";
import { readReport } from "sunzi/reading";
import { subsets } from "sunzi/subsets";

const epoch: Epoch = await fetchEpoch("https://collector.example");
const client = new Client(epoch.plan, { maxEpsilon: "1/2", designs: [subsets] });
const report: Uint8Array = client.report("Firefox");
const outcomes: Outcome[] = [await client.send(epoch.url), await client.send(epoch.url, report, { patience: 5 })];
const device = await Device.open({ lifetimeEpsilon: 1, maxEpsilon: 32, store: new FileStore("device") });
const queued: QueueResult = await device.queue(epoch.plan, "browser", 3, epoch.url, { token: "ab", several: true });
export { outcomes, queued };
export const payload: number | Uint8Array = readReport(new Plan("{}"), report).payload;
export const error: Error = new SunziError("no");
`;

/** The compiler's output for a program in a project that depends on this package. */
function compile(program: string): string {
  const directory = mkdtempSync(join(tmpdir(), "sunzi-types-"));
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(PACKAGE, join(directory, "node_modules", "sunzi"));
  writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  writeFileSync(join(directory, "program.ts"), program);
  const options = { module: "NodeNext", lib: ["ES2022", "DOM"], types: [], strict: true, noEmit: true };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["program.ts"] }));
  return spawnSync(join(PACKAGE, "node_modules", ".bin", "tsc"), { cwd: directory, encoding: "utf8" }).stdout;
}

test("a strict program compiles", () => expect(compile(PROGRAM)).toBe(""));

test("misuse does not", () => {
  const misuses = {
    "client.report(undefined)": "Argument of type 'undefined'",
    "client.send()": "Expected 1-3 arguments",
    "client.plan.protocol": "Property 'protocol' does not exist",
    'client.plan.domain.attach("labels")': "Property 'attach' does not exist",
    "new Client(epoch.plan, { maxEpsilon: true })": "Type 'boolean' is not assignable to type 'Epsilon",
  };
  const errors = compile(`${PROGRAM}${Object.keys(misuses).join(";\n")};`).trim().split("\n");
  expect(errors).toEqual(Object.values(misuses).map((complaint) => expect.stringContaining(complaint)));
});
