/** All vectors of conformance/v1: valid ones byte for byte, invalid ones by their error class. */

import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { importDeviceKey, MemoisingClient } from "../src/device.js";
import { namedGroups } from "../src/groups.js";
import { Client, Plan, type Value } from "../src/index.js";
import { readBatches, readReport } from "../src/reading.js";
import { records } from "../src/records.js";
import { subsets } from "../src/subsets.js";
import { readTally } from "../src/tally.js";
import { texts } from "../src/texts.js";
import { framed } from "../src/uploading.js";
import { type MemoisedVector, makeVector } from "./memoised.js";
import { bytesOf, expectError, hexOf, load, NAMES, ScriptedSource } from "./support.js";

const extras = { designs: [subsets], records, texts };
const REFUSALS = ["plan", "client", "value", "groups", "labels", "report", "batch", "tally"].map((kind) => `bad_${kind}_`);
const PROTOCOLS = ["grr", "mss", "number", "ordered", "oue", "pgr", "prefixes", "rappor", "ss", "tables"];
const named = (prefix: string): string[] => NAMES.filter((name) => name.startsWith(prefix));
const GOOD = NAMES.filter((name) => PROTOCOLS.some((protocol) => name.startsWith(`${protocol}_`)));

function planOf(record: any): Plan {
  return new Plan(record.plan, { ...extras, ...("label_file" in record ? { labelFile: record.label_file } : {}) });
}

test("every vector is tested", () => {
  const tested = new Set([...GOOD, "device_ids", ...[...REFUSALS, "memoised_", "tally_", "upload_bodies"].flatMap(named)]);
  expect([...tested].sort()).toEqual([...NAMES].sort());
  expect(GOOD.length).toBeGreaterThan(50);
  expect(named("bad_plan_").length).toBeGreaterThan(120);
});

describe.each(GOOD)("%s", (name) => {
  const record = load(name);
  const plan = planOf(record);

  test("the plan is accepted as parsed JSON, text and bytes", () => {
    const options = { ...extras, ...("label_file" in record ? { labelFile: Buffer.from(record.label_file) } : {}) };
    const text = JSON.stringify(record.plan, null, 2);
    for (const source of [record.plan, text, Buffer.from(text)]) {
      const read = new Plan(source, options);
      expect(read.fingerprint).toBe(record.fingerprint);
      expect(read.epsilon).toBe(record.plan.epsilon);
    }
    expect(new Client(plan, { maxEpsilon: plan.epsilon, fingerprint: record.fingerprint }).isPrivate).toBe(true);
  });

  test("single reports", () => {
    for (const { value, words, report, words_used } of record.cases) {
      const source = new ScriptedSource(words);
      const made = new Client(plan, { maxEpsilon: 32, source }).report(value);
      expect(hexOf(made)).toBe(report);
      expect(source.used).toBe(words_used);
      readReport(plan, made);
    }
  });

  test("batches", () => {
    for (const { values, words, batch } of record.batches) {
      const source = new ScriptedSource(words);
      const made = new Client(plan, { maxEpsilon: 32, source }).reportBatch(values);
      expect(hexOf(made)).toBe(batch);
      expect(source.remaining).toBe(0);
      expect(readBatches(plan, made)).toHaveLength(values.length);
    }
  });
});

test.each(named("bad_plan_"))("%s", (name) => {
  const record = load(name);
  if ("hex" in record) expectError(record.error, () => new Plan(bytesOf(record.hex), extras));
  else {
    expectError(record.error, () => new Plan(record.text, extras));
    expectError(record.error, () => new Client(Buffer.from(record.text), { maxEpsilon: 32, ...extras }));
  }
});

test.each(named("bad_client_"))("%s", (name) => {
  const { error, accepted = {}, ...refused } = load(name);
  const client = ({ max_epsilon, max_bits, max_work, pinned }: any): Client =>
    new Client(refused.plan, {
      ...extras,
      maxEpsilon: max_epsilon ?? 32,
      ...(pinned && { fingerprint: pinned }),
      maxBits: max_bits,
      maxWork: max_work,
    });
  expect(client(accepted).isPrivate).toBe(true);
  expectError(error, () => client(refused));
});

test.each(named("bad_value_"))("%s", (name) => {
  const record = load(name);
  const client = new Client(record.plan, { maxEpsilon: 32, ...extras });
  expectError(record.error, () => client.report(record.value));
  expectError(record.error, () => client.reportBatch([record.value]));
});

test.each(named("bad_groups_"))("%s", async (name) => {
  const { plan, groups, error } = load(name);
  const client = new Client(plan, { maxEpsilon: 32 });
  const sent = client.send("http://127.0.0.1:1/v1/collections/default/epochs/1", client.report(0), { groups });
  await expect(sent).rejects.toMatchObject({ name: error });
});

test.each(named("upload_bodies"))("%s", (name) => {
  const { plan, cases } = load(name);
  for (const { groups, report, body, ...rest } of cases) {
    const named = namedGroups(new Plan(plan).groups, groups);
    expect(hexOf(framed({ ...rest, groups: named, body: bytesOf(report) }))).toBe(body);
  }
});

test.each(named("bad_labels_"))("%s", (name) => {
  const record = load(name);
  expect(new Plan(record.plan, extras)).toBeTruthy();
  expectError(record.error, () => planOf(record));
  expectError(record.error, () => new Plan(record.plan, { ...extras, labelFile: Buffer.from(record.label_file) }));
});

test.each(named("bad_report_"))("%s", (name) => {
  const record = load(name);
  expectError(record.error, () => readReport(planOf(record), bytesOf(record.report)));
});

test.each(named("bad_batch_"))("%s", (name) => {
  const record = load(name);
  expectError(record.error, () => readBatches(planOf(record), bytesOf(record.batch)));
});

test.each(named("tally_"))("%s", (name) => {
  const record = load(name);
  const tally = readTally(bytesOf(record.tally));
  expect(tally.fingerprint).toBe(planOf(record).fingerprint);
  expect(tally.reports).toBe(readBatches(planOf(record), bytesOf(record.batch)).length);
});

test("device_ids", async () => {
  const { plan, key, cases } = load("device_ids");
  const deviceKey = await importDeviceKey(bytesOf(key));
  for (const { attribute, epoch, id } of cases) {
    const client = new MemoisingClient(plan, deviceKey, attribute, { maxEpsilon: 32 });
    expect(await client.reportId(epoch)).toBe(id);
  }
});

describe("memoised reports", () => {
  async function check({ plan: source, fingerprint, label_file, key, attribute, cases }: MemoisedVector): Promise<void> {
    const plan = planOf({ plan: source, ...(label_file !== undefined && { label_file }) });
    expect(plan.fingerprint).toBe(fingerprint);
    const client = new MemoisingClient(plan, await importDeviceKey(bytesOf(key)), attribute, { maxEpsilon: 32 });
    expect(cases.length).toBeGreaterThan(0);
    for (const { value, outside, seed, report, question, cell } of cases) {
      const index = outside ? undefined : plan.domain.index(value);
      expect(hexOf(await client.derive(index))).toBe(seed);
      expect(hexOf(await client.reportIndex(index))).toBe(report);
      if (!outside) expect(hexOf(await client.report(value as Value))).toBe(report);
      if (question === undefined) continue;
      const kept = await client.kept();
      if (index !== undefined) expect(kept?.(index)).toEqual([question, cell]);
    }
  }

  test.each(named("memoised_"))("%s", (name) => check(load(name)));

  // Also before and besides those of Python.
  test.each([
    ["grr_labels_other", 8],
    ["mss_compact_k40", 40],
    ["mss_k10", 10],
    ["oue_k57", 57],
    ["ss_compact_k151", 20],
    ["pgr_order3_k13", 13],
    ["ss_k10", 10],
    ["tables_survey", 0],
    ["ordered_8_bins", 8],
    ["number_5_points", 8],
    ["prefixes_letters", 0],
  ])("%s, by the formulas of the format", async (name, count) => {
    const { plan, cases } = load(name);
    const given: unknown[] = cases.map(({ value }: { value: unknown }) => value);
    const indices = plan.domain.labels || plan.domain.range ? [] : [...Array(count).keys()];
    // Records and texts draw several choices for a value outside, which the next test covers.
    const outside = count ? [undefined] : [];
    for (const attribute of ["browser", "年齢", "a\0b"])
      await check(makeVector(plan, extras, Buffer.alloc(32, name.length), attribute, [...given, ...indices, ...outside]));
  });

  test("a value outside records and texts has the report of some value", async () => {
    for (const name of ["tables_survey", "prefixes_letters"]) {
      const plan = new Plan(load(name).plan, extras);
      const reports = new Set<string>();
      const client = new MemoisingClient(plan, await importDeviceKey(new Uint8Array(32).fill(7)), "a", { maxEpsilon: 32 });
      for (let index = 0; index < 42; index++)
        reports.add(hexOf(await client.reportIndex(name === "tables_survey" ? index : [1 + (index % 27), 28])));
      const outside = hexOf(await client.reportIndex(undefined));
      expect(hexOf(await client.reportIndex(undefined))).toBe(outside);
      if (name === "tables_survey") expect(reports).toContain(outside);
    }
  });
});

test.each(named("bad_tally_"))("%s", (name) => {
  const record = load(name);
  expectError(record.error, () => readTally(bytesOf(record.tally)));
});

test("the built client, whose properties are renamed, refuses the same plans", async () => {
  const dist = join(import.meta.dirname, "..", "dist");
  const names = ["index", "subsets", "records", "texts"];
  const [built, { subsets }, { records }, { texts }] = await Promise.all(names.map((name) => import(join(dist, `${name}.js`))));
  for (const name of named("bad_plan_")) {
    const { hex, text, error } = load(name);
    let thrown: unknown;
    try {
      new built.Plan(hex === undefined ? text : bytesOf(hex), { designs: [subsets], records, texts });
    } catch (reason) {
      thrown = reason;
    }
    expect([name, (thrown as Error | undefined)?.name]).toEqual([name, error]);
  }
});
