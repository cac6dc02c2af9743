/** Errors keep their names and messages in the build, whose properties are renamed, and after a user's bundler. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { build } from "esbuild";
import { beforeAll, describe, expect, test } from "vitest";

import { bytesOf, load, NAMES } from "./support.js";

const ENTRIES = ["index", "subsets", "records", "texts", "device", "node", "reading"];
const PACKAGE = join(import.meta.dirname, "..");
const EPOCH = "https://collector.example/v1/collections/default/epochs/1";

/** Everything that the client exports. */
async function everything(directory: string, extension: string): Promise<any> {
  const modules = await Promise.all(ENTRIES.map((name) => import(join(PACKAGE, directory, `${name}.${extension}`))));
  return Object.assign({}, ...modules);
}

/** The build after the bundler of a user, for this target. */
async function bundled(target: string): Promise<any> {
  const contents = ENTRIES.map((name) => `export * from "./dist/${name}.js";`).join("\n");
  const stdin = { contents, resolveDir: PACKAGE };
  const options = { bundle: true, minify: true, format: "esm", platform: "node", write: false, logLevel: "error" } as const;
  const { outputFiles } = await build({ ...options, stdin, target });
  const path = join(mkdtempSync(join(tmpdir(), "sunzi-")), "bundle.mjs");
  writeFileSync(path, outputFiles[0].text);
  return import(path);
}

/** Things that go wrong, with the client's exports. */
function actions(client: any): [string, () => unknown][] {
  const extras = { designs: [client.subsets], records: client.records, texts: client.texts };
  const options = { maxEpsilon: 32, ...extras };
  const found: [string, () => unknown][] = [];
  for (const name of NAMES) {
    const { plan, text, hex, value, label_file: labelFile } = load(name);
    if (name.startsWith("bad_plan_")) {
      found.push([name, () => new client.Plan(hex === undefined ? text : bytesOf(hex), extras)]);
      if (text) found.push([`${name}, parsed`, () => new client.Plan(JSON.parse(text), extras)]);
    }
    if (name.startsWith("bad_value_")) found.push([name, () => new client.Client(plan, options).report(value)]);
    if (name.startsWith("bad_labels_")) found.push([name, () => new client.Plan(plan, { ...extras, labelFile })]);
    if (name.startsWith("bad_report_")) {
      const { report, label_file: file } = load(name);
      const of = () => new client.Plan(plan, { ...extras, ...(file && { labelFile: file }) });
      found.push([name, () => client.readReport(of(), bytesOf(report))]);
    }
    if (name.startsWith("bad_tally_")) found.push([name, () => client.readTally(bytesOf(load(name).tally))]);
  }
  const { plan } = load("tables_survey");
  const device = (settings: object) =>
    client.Device.open({ lifetimeEpsilon: 1, maxEpsilon: 32, store: new client.MemoryStore(), ...settings });
  const queue = async (settings: object) => {
    const opened = await device(settings);
    await opened.enable();
    return opened.queue(load("grr_k5").plan, "browser", 3, EPOCH, settings);
  };
  found.push(
    ["no extra", () => new client.Plan(plan)],
    ["no design", () => new client.Plan(load("ss_k10").plan)],
    ["bits", () => new client.Client(plan, { ...options, maxBits: 1 })],
    ["work", () => new client.Client(plan, { ...options, maxWork: 1 })],
    ["ε", () => new client.Client(plan, { ...options, maxEpsilon: "1/100" })],
    ["fingerprint", () => new client.Client(plan, { ...options, fingerprint: "12" })],
    ["no ε", () => new client.Client(plan, extras)],
    ["budget", () => queue({ lifetimeEpsilon: "1/2" })],
    ["groups", () => queue({ groups: { country: "DE" } })],
    ["token", () => queue({ token: "12" })],
    ["whenSpent", () => device({ whenSpent: "never" })],
    ["off", async () => (await device({})).client(plan, "browser", extras)],
    ["epoch", async () => (await device({})).preview(plan, "browser", 3, "http://x", extras)],
    ["no IndexedDB", async () => (await device({ store: undefined })).enable()],
    ["directory", () => new client.FileStore("/dev/null/nowhere").identity()],
    ["key", () => client.importDeviceKey(new Uint8Array(3))],
  );
  return found;
}

/** What an application sees of an error. */
async function seen(action: () => unknown): Promise<unknown[]> {
  try {
    await action();
  } catch (error) {
    const { name, message, stack, constructor: kind } = error as Error;
    return [name, message, String(error), stack?.split("\n")[0], kind.name];
  }
  return []; // such as a repeated key, which parsed JSON no longer shows
}

let source: any;

beforeAll(async () => {
  source = await everything("src", "ts");
});

describe.each(["dist", "es2022", "es2020"])("in %s", (where) => {
  test("names and messages are those of the source", async () => {
    const client = where === "dist" ? await everything("dist", "js") : await bundled(where);
    const expected = actions(source);
    expect(expected.length).toBeGreaterThan(300);
    for (const [index, [name, action]] of actions(client).entries()) {
      const wanted = await seen(expected[index][1]);
      expect([name, ...(await seen(action))]).toEqual([name, ...wanted]);
      if (wanted.length) expect(wanted[3]).toMatch(new RegExp(`^${wanted[0]}: `));
      else expect(name).toContain("parsed");
    }
    const error = new client.PlanError("no");
    expect(inspect(error).split("\n")[0]).toBe("PlanError: no");
    expect(client.PlanError.name).toBe("PlanError");
    expect([error.name, error instanceof client.SunziError]).toEqual(["PlanError", true]);
  });

  test("words about reports are those of the source", async () => {
    const client = where === "dist" ? await everything("dist", "js") : await bundled(where);
    const bytes = new Uint8Array(32).fill(7);
    const names = ["grr_labels", "oue_k57", "ss_k10", "ss_compact_k151", "pgr_order5_k150", "mss_k10", "ordered_clamp", "tables_survey", "prefixes_letters"];
    const words = async ({ Device, MemoryStore, importDeviceKey, ...rest }: any): Promise<unknown[]> => {
      const store = new MemoryStore(await importDeviceKey(bytes));
      const device = await Device.open({ lifetimeEpsilon: 32, maxEpsilon: 32, store });
      const extras = { designs: [rest.subsets], records: rest.records, texts: rest.texts };
      const previews = names.map(async (name) => {
        const { plan, cases } = load(name);
        const { address, meaning } = await device.preview(plan, "a", cases[0].value, EPOCH, extras);
        return [address, meaning, device.notice(plan, "a", extras)];
      });
      return Promise.all(previews);
    };
    const found = await words(client);
    expect(found).toEqual(await words(source));
    expect(JSON.stringify(found)).not.toMatch(/undefined|NaN/);
  });
});
