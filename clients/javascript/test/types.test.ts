/**
 * The published types: a strict program that uses every entry compiles without skipLibCheck, with and without the DOM
 * library, and misuse does not. TYPESCRIPT names other compilers to try, as paths of `tsc` separated by colons.
 */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const PACKAGE = join(import.meta.dirname, "..");
const COMPILERS = [join(PACKAGE, "node_modules", ".bin", "tsc"), ...(process.env.TYPESCRIPT?.split(":") ?? [])];

const PROGRAM = `
import { type Bytes, Client, type Epoch, fetchEpoch, type Groups, type Outcome, Plan, StoreError, SunziError } from "sunzi";
import { Device, type DeviceKey, makeDeviceKey, MemoryStore, notice, type Preview, type QueueResult, type Store } from "sunzi/device";
import { FileStore } from "sunzi/node";
import { readReport } from "sunzi/reading";
import { records } from "sunzi/records";
import { subsets } from "sunzi/subsets";
import { texts } from "sunzi/texts";

const epoch: Epoch = await fetchEpoch("https://collector.example");
const client = new Client(epoch.plan, { maxEpsilon: "1/2", designs: [subsets], labelFile: "a\\nb\\n" });
const groups: Groups = { country: epoch.plan.groups?.country[0] ?? "DE" };
const report: Bytes = client.report("Firefox");
const outcomes: Outcome[] = [await client.send(epoch.url), await client.send(epoch.url, report, { patience: 5, groups })];
const device = await Device.open({ lifetimeEpsilon: 1, maxEpsilon: 32, store: new FileStore("device") });
const words: string[] = [notice(epoch.plan, "browser"), device.notice(epoch.plan, "browser")];
const preview: Preview = await device.preview(epoch.plan, "browser", 3, epoch.url);
const isOn: boolean = (await device.enabled()) || (await device.enable());
const other = await Device.open({ lifetimeEpsilon: 1, maxEpsilon: 1, whenSpent: "background", maxBits: 64, maxWork: 64 });
await other.disable();
export { isOn, preview, words };
const queued: QueueResult = await device.queue(epoch.plan, "browser", 3, epoch.url, { token: "ab", several: true, groups: { country: "DE" } });
const survey = new Client("{}", { maxEpsilon: 1, records });
const made: Bytes[] = [survey.report({ country: "DE", since: new Date(), time: 3.5, crashed: undefined })];
const attributes: readonly string[] = survey.plan.domain.attributes?.map(({ name }) => name) ?? [];
const range: string | undefined = survey.plan.domain.range?.low;
await device.queue(survey.plan, "survey", { country: "DE" }, epoch.url, { records });
const open = new Client("{}", { maxEpsilon: 1, texts });
made.push(open.report("hello"), open.reportIndex(open.plan.domain.index("hello")), open.reportIndices([[1, 2], [3]]));
const symbols: "bytes" | readonly string[] | undefined = open.plan.domain.symbols;
export { attributes, made, range, symbols };
const stored: string = JSON.stringify(epoch.plan);
const labels: readonly string[] = new Plan(stored).domain.labels ?? [];
const key: DeviceKey = await makeDeviceKey();
const store: Store = new MemoryStore(key);
export { labels, outcomes, queued, store };
export const payload: number | Uint8Array = readReport(new Plan("{}"), report).payload;
export const error: Error = new SunziError("no", { cause: new StoreError("busy") });
`;

/** What programs do that have the DOM library. */
const IN_BROWSERS = `
const body: BodyInit = client.reportBatch(["Firefox"]);
await fetch("/", { method: "POST", body: report });
await fetch("/", { method: "POST", body });
const { signal } = new AbortController();
await fetchEpoch("https://collector.example", { signal });
await client.send(epoch.url, report, { signal: AbortSignal.timeout(1000) });
await device.flush({ signal });
device.keepSending(30, { signal });
const cryptoKey: CryptoKey = key;
new Worker("worker.js").postMessage(structuredClone(epoch.plan));
new Client(structuredClone(epoch).plan, { maxEpsilon: 1 });
export { cryptoKey };
`;

/** The compiler's output for a program in a project that depends on this package. */
function compile(compiler: string, program: string, lib: string[], settings: object = {}): string {
  const directory = mkdtempSync(join(tmpdir(), "sunzi-types-"));
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(PACKAGE, join(directory, "node_modules", "sunzi"));
  writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  writeFileSync(join(directory, "program.ts"), program);
  const strict = { module: "NodeNext", target: "ES2022", types: [], strict: true, noEmit: true, skipLibCheck: false };
  const compilerOptions = { ...strict, lib, ...settings };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  return spawnSync(compiler, { cwd: directory, encoding: "utf8" }).stdout;
}

describe.each(COMPILERS)("%s", (compiler) => {
  test("a strict program compiles without the DOM library", () =>
    expect(compile(compiler, PROGRAM, ["ES2022"], { exactOptionalPropertyTypes: true })).toBe(""));

  test("a strict program compiles with the DOM library, where a report is a body", () =>
    expect(compile(compiler, PROGRAM + IN_BROWSERS, ["ES2022", "DOM"], { moduleResolution: "Bundler", module: "ESNext" })).toBe(
      "",
    ));
});

test("misuse does not compile", () => {
  const misuses = {
    "client.report(undefined)": "Argument of type 'undefined'",
    "client.send()": "Expected 1-3 arguments",
    "client.report({ crashed: true })": "Type 'true' is not assignable to type",
    "client.plan.mechanism": "Property 'mechanism' does not exist",
    'client.plan.domain.attach("labels")': "Property 'attach' does not exist",
    "queued.outcome === 'lost'": "no overlap",
    "new Client(epoch.plan, { maxEpsilon: true })": "Type 'boolean' is not assignable to type 'Epsilon",
    "fetchEpoch(epoch.url, { signal: 3 })": "Type 'number' is not assignable to type",
  };
  const program = `${PROGRAM}${Object.keys(misuses).join(";\n")};`;
  const errors = compile(COMPILERS[0], program, ["ES2022"]).trim().split("\n");
  expect(errors).toEqual(Object.values(misuses).map((complaint) => expect.stringContaining(complaint)));
});
