/** Previews: the literal bytes, before and after the consent, and true words about them. */

import { describe, expect, test, vi } from "vitest";

import { Device, importDeviceKey, MemoryStore } from "../src/device.js";
import { blockOf } from "../src/device/blocks.js";
import { cyclotomic } from "../src/designs/cyclotomic.js";
import type { Design, DesignReader, Payload } from "../src/designs/design.js";
import { projective } from "../src/designs/projective.js";
import { singletons } from "../src/designs/singletons.js";
import { subsets } from "../src/designs/subsets.js";
import { Plan } from "../src/index.js";
import { SystemSource } from "../src/randomness.js";
import { records } from "../src/records.js";
import { sha256 } from "../src/sha256.js";
import { texts } from "../src/texts.js";
import { drawRows } from "../src/drawing.js";
import { hexOf, load, openDevice } from "./support.js";

const PLAN = new Plan(load("grr_k5").plan);
const EPOCH = "https://collector.example/v1/collections/browsers/epochs/1";
const OPTIONS = { lifetimeEpsilon: 32, maxEpsilon: 32 };
const EXTRAS = { designs: [subsets], records, texts };

/** A store whose first key is always the same. */
async function storeWithKey(number: number): Promise<MemoryStore> {
  return new MemoryStore(await importDeviceKey(sha256(Uint8Array.of(number, number >> 8))));
}

/** The bytes that a device sends. */
async function sentBy(device: Device): Promise<string[]> {
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (address: string, { body }: RequestInit) => {
    sent.push(`${address} ${hexOf(body as Uint8Array)}`);
    return new Response('{"outcome":"counted","reports":1}');
  });
  await device.flush();
  vi.unstubAllGlobals();
  return sent;
}

test("a preview before the consent is literal once the same object is turned on", async () => {
  const device = await Device.open({ ...OPTIONS, store: new MemoryStore() });
  const plan = new Plan({ ...load("oue_k57").plan, groups: { country: ["DE"] } });
  const options = { groups: { country: "DE" }, token: "ab".repeat(32) };
  const first = await device.preview(plan, "browser", 3, EPOCH, options);
  expect(await device.preview(plan, "browser", 3, EPOCH, options)).toEqual(first);
  expect(first.address).toMatch(/^https:\/\/collector.example\/v1\/collections\/browsers\/epochs\/1\/reports\?plan=[0-9a-f]{64}$/);
  await device.enable();
  expect(await device.preview(plan, "browser", 3, EPOCH, options)).toEqual(first);
  await device.queue(plan, "browser", 3, EPOCH, options);
  expect(await sentBy(device)).toEqual([`${first.address} ${first.bytes}`]);
  // After another key was drawn, the noise is another.
  await device.disable();
  expect((await device.preview(plan, "browser", 3, EPOCH, options)).bytes).not.toBe(first.bytes);
});

test("a preview after the end of the budget shows what is sent then", async () => {
  for (const whenSpent of ["keep", "background", "refuse"] as const) {
    const lifetimeEpsilon = whenSpent === "background" ? 2 : 1;
    const device = await openDevice({ lifetimeEpsilon, maxEpsilon: 32, whenSpent, store: new MemoryStore() });
    await device.queue(PLAN, "browser", 0, EPOCH);
    await sentBy(device);
    const epoch = EPOCH.replace(/1$/, "2");
    const preview = await device.preview(PLAN, "browser", 1, epoch);
    await device.queue(PLAN, "browser", 1, epoch);
    const sent = await sentBy(device);
    expect(sent).toEqual(preview.bytes ? [`${preview.address} ${preview.bytes}`] : []);
    const said = { keep: "this is the last report again", background: "says nothing about yours", refuse: "Nothing would be sent" };
    expect(preview.meaning).toContain(said[whenSpent]);
  }
});

describe("words about a report", () => {
  /** The preview of a value in words. */
  async function meaning(name: string, value: unknown): Promise<string> {
    const device = await Device.open({ ...OPTIONS, store: await storeWithKey(1) });
    const { plan, cases } = load(name);
    value ??= cases[0].value;
    const { meaning } = await device.preview(new Plan(plan, EXTRAS), "a", value as number, EPOCH, EXTRAS);
    return meaning;
  }

  test("name its values, how often they are true, and ε", async () => {
    const { labels } = load("grr_labels").plan.domain;
    const text = await meaning("grr_labels", labels[0]);
    expect(text).toMatch(/^The report names 1 of \d+ values: \S.*\. Yours is (not )?among them\. Such a report names your value in [\d.]+ % of cases, any other in [\d.]+ %\. Your value makes it at most [\d.]+ times \(ε = [\d/]+\) as likely as any other value would\.$/);
    expect(labels).toContain(/values: (.*?)\. Yours/.exec(text)?.[1]);
  });

  test.each([
    ["mss_compact_k40", 3, ", if it can tell the two apart"],
    ["mss_k10", 3, ", if it can tell the two apart"],
    ["oue_k57", 3, "of 57 values: "],
    ["ss_k10", 3, "of 10 values: "],
    ["ss_bitmap_k20", 3, "of 20 values: "],
    ["ss_compact_k151", 3, "of 151 values: "],
    ["ss_compact_k1000003", 3, "of 1000003 values"],
    ["pgr_order5_k150", 3, "of 150 values: "],
    ["grr_largest", 3, /names [01] of 1073741824 values[:.]/],
    ["ordered_8_bins", 700, / of (2|4|8) answers: \d+ to \d+[,.]/],
    ["ordered_dates", "2024-02-29", /: 2024-0[1-3]-\d\d to 2024-0[1-3]-\d\d[,.]/],
    ["ordered_labels_other", undefined, / of \d+ answers[:.]/],
    ["number_5_points", 25, /names 1 of 5 answers: -?[\d.]+\./],
    ["number_dates", undefined, /answers: \d{4}-\d\d-\d\d\./],
    ["tables_survey", { version: "3", crashed: "yes", day: 6 }, / of (3|6|42) answers: \((version|crashed) /],
    ["prefixes_letters", "ab", "% of all texts"],
  ])("%s", async (name, value, expected) => {
    const text = await meaning(name, value);
    if (expected instanceof RegExp) expect(text).toMatch(expected);
    else expect(text).toContain(expected);
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
  });

  test("ends of ranges are the last values in them", async () => {
    const device = await Device.open({ ...OPTIONS, store: await storeWithKey(1) });
    const plan = new Plan(load("ordered_dates").plan, EXTRAS); // from 2024-01-01 to 2024-03-04
    for (let round = 0; round < 20; round++) {
      const { meaning: text } = await device.preview(plan, `a ${round}`, "2024-02-29", EPOCH, EXTRAS);
      const ends = [...text.matchAll(/(\S+) to (\d{4}-\d\d-\d\d)/g)].flatMap(([, start, end]) => [start, end]);
      expect([...ends].sort()).toEqual(ends);
      expect([ends[0] >= "2024-01-01", (ends.at(-1) as string) <= "2024-03-04"]).toEqual([true, true]);
    }
  });

  test("a value outside the domain has a report that says nothing about it", async () => {
    const text = await meaning("grr_k5", 99);
    expect(text).toContain("says nothing about yours");
    expect(text).not.toContain("Yours is");
  });

  test("are as often true as they say", async () => {
    // 1000 devices: the standard error is at most 1.6 %, and six of them are exceeded less than once in 10^8 runs.
    for (const name of ["grr_k5", "ss_k10", "mss_k10", "pgr_order3_k13", "ss_compact_k6_of_7"]) {
      const plan = new Plan(load(name).plan, EXTRAS);
      let [mine, stated] = [0, 0];
      for (let round = 0; round < 1000; round++) {
        const device = await Device.open({ ...OPTIONS, store: await storeWithKey(round) });
        const { meaning: text } = await device.preview(plan, "a", 2, EPOCH, EXTRAS);
        mine += Number(text.includes("Yours is among"));
        stated += Number(/your value in ([\d.e-]+) %/.exec(text)?.[1]) / 100;
      }
      expect(Math.abs(mine - stated) / 1000).toBeLessThan(6 * 0.016);
    }
  });
});

describe("blocks", () => {
  const DESIGNS: [string, DesignReader][] = [
    ["pgr_order4_k21", projective],
    ["pgr_order27_k700", projective],
    ["ss_compact_union", cyclotomic],
    ["ss_compact_with_zero", cyclotomic],
    ["ss_k10", subsets],
    ["ss_bitmap_k20", subsets],
    ["grr_k5", singletons],
  ];

  test.each(DESIGNS)("of %s have the right size, and contain the point as often as the truth", (name, reader) => {
    const record = load(name).plan.parameters.response;
    const design: Design = reader.read(record);
    const threshold = { high: 0x80000000, low: 0 };
    const source = new SystemSource();
    const truthful: boolean[] = [];
    for (let round = 0; round < 40; round++) {
      const point = round % design.points;
      const made: Payload[] = [];
      let truth = 0;
      drawRows(source, 1, design.bounds, threshold, (_, truths, variates) => {
        truth = truths[0];
        design.respond(Uint32Array.of(point), truths, variates, made);
      });
      const contains = blockOf(record, design, made[0]);
      const block = [...Array(design.points).keys()].filter((each) => contains(each));
      expect(block).toHaveLength(design.blockSize);
      expect(contains(point)).toBe(truth === 1);
      truthful.push(truth === 1);
    }
    expect(new Set(truthful).size).toBe(2);
  });
});
