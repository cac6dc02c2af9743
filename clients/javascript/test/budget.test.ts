/** What happens when the budget of an attribute ends: keep, background and refuse, over every store that runs in Node. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";

import { type Device, MemoryStore, type QueueResult, type Store, type WhenSpent } from "../src/device.js";
import { Plan } from "../src/index.js";
import { FileStore } from "../src/node.js";
import { expectRejection, hexOf, load, openDevice } from "./support.js";

const PLAN = new Plan(load("oue_k57").plan); // long reports, which differ by value
const OTHER = new Plan(load("rappor_k57").plan);
const EPSILON = Number(PLAN.epsilon);
const EPOCHS = "https://collector.example/v1/collections/browsers/epochs/";

const STORES: [string, () => Store][] = [
  ["memory", () => new MemoryStore()],
  ["files", () => new FileStore(join(mkdtempSync(join(tmpdir(), "sunzi-")), "device"))],
];

afterEach(() => vi.unstubAllGlobals());

const open = (store: Store, whenSpent: WhenSpent | undefined, values: number): Promise<Device> =>
  openDevice({ lifetimeEpsilon: values * EPSILON, maxEpsilon: 32, store, ...(whenSpent && { whenSpent }) });

const bodyOf = async (device: Device, { id }: QueueResult): Promise<string | undefined> => {
  const report = (await device.waiting()).find((each) => each.id === id);
  return report && hexOf(report.body);
};

describe.each(STORES)("in %s", (_, makeStore) => {
  /** Report these values in epochs 1, 2, 3 …; returns outcome, ε spent and bytes. */
  async function report(device: Device, values: number[], first = 1, plan = PLAN): Promise<[string, number, string | undefined][]> {
    const made: [string, number, string | undefined][] = [];
    for (const [day, value] of values.entries()) {
      const queued = await device.queue(plan, "browser", value, `${EPOCHS}${first + day}`);
      expect(queued.id === undefined).toBe(queued.outcome === "silent");
      made.push([queued.outcome, Number(queued.cost) / EPSILON, await bodyOf(device, queued)]);
    }
    return made;
  }

  test.each([undefined, "keep"] as const)("keep (%s): the last report for good, whatever the value is", async (whenSpent) => {
    const store = makeStore();
    const device = await open(store, whenSpent, 2);
    const [first, second, ...later] = await report(device, [0, 1, 2, 0, 1, 99, 2]);
    expect([first.slice(0, 2), second.slice(0, 2)]).toEqual([["queued", 1], ["queued", 1]]);
    expect(first[2]).not.toBe(second[2]);
    for (const each of later) expect(each).toEqual(["kept", 0, second[2]]);
    expect(await device.spent("browser")).toBe(String(2 * EPSILON));
    // Also in another process, after a larger budget, and for several reports per epoch.
    const richer = await open(store, whenSpent, 5);
    expect(await report(richer, [3], 20)).toEqual([["kept", 0, second[2]]]);
    const several = await richer.queue(PLAN, "browser", 4, `${EPOCHS}20`, { several: true });
    expect([several.outcome, several.cost, await bodyOf(richer, several)]).toEqual(["kept", "0", second[2]]);
    // It is per plan: another plan has a budget to spend, and its own last report.
    expect((await report(richer, [3], 30, OTHER))[0][0]).toBe("queued");
  });

  test("keep: nothing, if there is no last report for this plan", async () => {
    const device = await open(makeStore(), "keep", 1);
    await report(device, [0]);
    expect(await report(device, [0, 1], 2, OTHER)).toEqual([["silent", 0, undefined], ["silent", 0, undefined]]);
    expect((await report(device, [0], 4))[0][0]).toBe("queued"); // of the first plan, and paid for
  });

  test("keep: after the device was off, nothing that it sent before", async () => {
    const device = await open(makeStore(), "keep", 1);
    expect((await report(device, [0, 1])).map(([outcome]) => outcome)).toEqual(["queued", "kept"]);
    await device.disable();
    await device.enable();
    expect(await report(device, [0, 1, 2], 3)).toEqual(Array(3).fill(["silent", 0, undefined]));
    expect(await device.waiting()).toEqual([]);
  });

  test("keep: the last report survives its receipt", async () => {
    const device = await open(makeStore(), "keep", 1);
    const [[, , body]] = await report(device, [0]);
    vi.stubGlobal("fetch", async () => new Response('{"outcome":"counted","reports":1}'));
    expect((await device.flush()).acknowledged).toBe(1);
    expect(await report(device, [1], 2)).toEqual([["kept", 0, body]]);
  });

  test("background: what it costs is set aside in advance", async () => {
    const store = makeStore();
    const device = await open(store, "background", 3);
    const made = await report(device, [0, 1, 2, 3, 0, 99, 3]);
    expect(made.map(([outcome, cost]) => [outcome, cost])).toEqual([
      ["queued", 2],
      ["queued", 1],
      ["background", 0],
      ["background", 0],
      ["queued", 0], // paid for
      ["queued", 0], // outside the domain, which has the background report
      ["background", 0],
    ]);
    const background = made[2][2];
    expect(made.map(([, , body]) => body === background)).toEqual([false, false, true, true, false, true, true]);
    expect(await device.spent("browser")).toBe(String(3 * EPSILON));
    // It ends nothing for good.
    expect((await report(await open(store, "background", 4), [5], 20))[0].slice(0, 2)).toEqual(["queued", 1]);
  });

  test("background: a value outside the domain first, then others", async () => {
    const device = await open(makeStore(), "background", 2);
    const outcomes = await report(device, [99, 1, 2]);
    expect(outcomes.map(([outcome, cost]) => [outcome, cost])).toEqual([["queued", 1], ["queued", 1], ["background", 0]]);
  });

  test("background: a device that had another mode pays for it if it can, else is silent", async () => {
    for (const [values, expected] of [[2, ["background", 1]], [1, ["silent", 0]]] as const) {
      const store = makeStore();
      await report(await open(store, "refuse", values), [0]);
      const device = await open(store, "background", values);
      expect((await report(device, [1], 2))[0].slice(0, 2)).toEqual(expected);
      // What was ended by another mode has no say here.
      expect((await report(device, [0], 3))[0].slice(0, 2)).toEqual(values === 2 ? ["queued", 0] : ["silent", 0]);
    }
  });

  test("refuse: nothing more, not even what was paid for", async () => {
    const store = makeStore();
    const device = await open(store, "refuse", 2);
    const outcomes = await report(device, [0, 1, 0, 2, 0, 1]);
    expect(outcomes.map(([outcome]) => outcome)).toEqual(["queued", "queued", "queued", "silent", "silent", "silent"]);
    expect((await device.waiting())).toHaveLength(3);
    // An epoch without a report is no epoch with one.
    expect((await open(store, "keep", 2).then((each) => each.queue(PLAN, "browser", 2, `${EPOCHS}4`))).outcome).toBe("kept");
  });

  test("an epoch that has a report comes before everything else", async () => {
    for (const whenSpent of ["keep", "background", "refuse"] as const) {
      const device = await open(makeStore(), whenSpent, 2);
      await report(device, [0, 1, 2, 3]);
      const again = await device.queue(PLAN, "browser", 4, `${EPOCHS}1`);
      expect(again).toMatchObject({ outcome: "repeated", cost: "0", id: (await device.waiting())[0].id });
    }
  });

  test("a cap that is too small for the first report is an error, and nothing is stored", async () => {
    for (const [whenSpent, values] of [["keep", 0.5], ["refuse", 0.5], ["background", 1.5]] as const) {
      const store = makeStore();
      const device = await open(store, whenSpent, values);
      await expectRejection("BudgetError", device.queue(PLAN, "browser", 0, `${EPOCHS}1`));
      await expect(device.queue(PLAN, "browser", 0, `${EPOCHS}1`)).rejects.toThrow(
        `"browser" may spend ${values * EPSILON}, its first report costs ${(values > 1 ? 2 : 1) * EPSILON}`,
      );
      expect([await store.accounts(), await device.spent("browser"), await device.waiting()]).toEqual([[], "0", []]);
    }
  });

  test("values with the same answer to the kept question cost once", async () => {
    const { plan } = load("ordered_8_bins");
    const { records } = await import("../src/records.js");
    const device = await openDevice({ lifetimeEpsilon: 32, maxEpsilon: 32, store: makeStore(), whenSpent: "background" });
    const costs: number[] = [];
    for (let bin = 0; bin < 8; bin++)
      costs.push(Number((await device.queue(plan, "time", 625 * bin, `${EPOCHS}${bin + 1}`, { records })).cost));
    // The background report is that of some cell, so the cells are all that is ever paid for.
    expect([2, 4, 8]).toContain(costs.reduce((sum, cost) => sum + cost) / Number(plan.epsilon));
  });
});
