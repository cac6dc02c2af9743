/** Consent: for every way to be off and every method, no byte is sent, no ε spent and nothing stored. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Device, MemoryStore, type Store } from "../src/device.js";
import { Client, Plan } from "../src/index.js";
import { FileStore } from "../src/node.js";
import { expectError, expectRejection, hexOf, load, openDevice, split } from "./support.js";

const PLAN = new Plan(load("grr_k5").plan);
const EPOCH = "https://collector.example/v1/collections/browsers/epochs/1";
const epochOf = (number: number): string => EPOCH.replace(/1$/, String(number));
const OPTIONS = { lifetimeEpsilon: 5, maxEpsilon: 32 };

const temporary = (): string => join(mkdtempSync(join(tmpdir(), "sunzi-")), "new", "device");
const STORES: [string, () => Store][] = [
  ["memory", () => new MemoryStore()],
  ["files", () => new FileStore(temporary())],
];

const sent: string[] = [];

beforeEach(() => {
  sent.length = 0;
  vi.stubGlobal("fetch", async (address: string) => {
    sent.push(address);
    return new Response('{"outcome":"counted","reports":1}');
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

/** Everything in a store, as text. */
async function contents(store: Store): Promise<string> {
  if (store instanceof FileStore) {
    if (!existsSync(store.directory)) return "nothing";
    const names = (readdirSync(store.directory, { recursive: true }) as string[]).sort();
    const files = names.map((name) => join(store.directory, name)).filter((path) => statSync(path).isFile());
    return files.map((path) => `${path} ${hexOf(readFileSync(path))}`).join("\n") || "nothing";
  }
  const [identity, accounts] = [await store.identity(), await store.accounts()];
  return identity || accounts.length ? JSON.stringify([identity?.id, accounts]) : "nothing";
}

const env = (value: string) => (): void => void vi.stubEnv("DO_NOT_TRACK", value);
const global = (name: string, value: unknown) => (): void => void vi.stubGlobal(name, value);

/** The ways in which somebody says no. */
const REFUSALS: [string, () => void][] = [
  ...["1", "true", "TRUE", "yes", "on", " 1 ", "00", "no", "2"].map((value) => [`DO_NOT_TRACK=${value}`, env(value)] as [string, () => void]),
  ["Global Privacy Control", global("navigator", { globalPrivacyControl: true })],
  ["navigator.doNotTrack 1", global("navigator", { doNotTrack: "1" })],
  ["navigator.doNotTrack yes", global("navigator", { doNotTrack: "yes" })],
  ["window.doNotTrack 1", global("doNotTrack", "1")],
];

/** Settings that say nothing. */
const SILENCE: [string, () => void][] = [
  ...["", " ", "0", " 0 ", "false", "False", "FALSE"].map((value) => [`DO_NOT_TRACK=${value}`, env(value)] as [string, () => void]),
  ["no Global Privacy Control", global("navigator", { globalPrivacyControl: false, doNotTrack: null })],
  ["doNotTrack 0", global("navigator", { doNotTrack: "0" })],
  ["doNotTrack unspecified", global("navigator", { doNotTrack: "unspecified" })],
];

/** Every method that makes, stores or sends something. */
const METHODS: [string, (device: Device) => Promise<void>][] = [
  [
    "queue",
    async (device) => {
      const off = { outcome: "off", outside: false, cost: "0" };
      expect(await device.queue(PLAN, "browser", 3, epochOf(7))).toEqual(off);
      expect(await device.queue(PLAN, "browser", 3, epochOf(7), { several: true })).toEqual(off);
      expect(await device.queue(PLAN, "another", 99, epochOf(7))).toEqual(off);
    },
  ],
  ["flush", async (device) => expect(await device.flush()).toMatchObject({ acknowledged: 0, rejected: 0 })],
  ["handOver", async (device) => expect(device.handOver()).toBe(0)],
  [
    "keepSending",
    async (device) => {
      const stop = device.keepSending(0.001);
      await new Promise((resolve) => setTimeout(resolve, 30));
      stop();
    },
  ],
  ["client", async (device) => expectRejection("ParameterError", device.client(PLAN, "browser"))],
  [
    "preview",
    async (device) => {
      expect((await device.preview(PLAN, "browser", 3, epochOf(7))).bytes).toMatch(/^[0-9a-f]+$/);
      expect(device.notice(PLAN, "browser")).toContain("browser");
    },
  ],
];

describe.each(STORES)("a device in %s", (_, makeStore) => {
  describe.each(METHODS)("%s", (_, use) => {
    test("before the consent", async () => {
      const store = makeStore();
      const device = await Device.open({ ...OPTIONS, store });
      await use(device);
      expect([await contents(store), sent, await device.enabled(), await device.spent("browser")]).toEqual(["nothing", [], false, "0"]);
      await device.disable();
      expect(await contents(store)).toBe("nothing");
    });

    test.each(REFUSALS)("with %s, whether or not the user had agreed", async (_, refuse) => {
      const [store, fresh] = [makeStore(), makeStore()];
      const device = await openDevice({ ...OPTIONS, store });
      await device.queue(PLAN, "browser", 1, EPOCH);
      const before = await contents(store);
      refuse();
      for (const each of [device, await Device.open({ ...OPTIONS, store }), await Device.open({ ...OPTIONS, store: fresh })]) {
        expect([await each.enabled(), await each.enable()]).toEqual([false, false]);
        await use(each);
      }
      expect([sent, await contents(store), await contents(fresh)]).toEqual([[], before, "nothing"]);
      expect([await device.spent("browser"), (await device.waiting()).length]).toEqual(["1", 1]);
      // It may have been set for one process.
      vi.unstubAllEnvs();
      vi.stubGlobal("navigator", undefined);
      vi.stubGlobal("doNotTrack", undefined);
      expect([await device.enabled(), (await device.flush()).acknowledged]).toEqual([true, 1]);
    });

    test("after the user changed their mind", async () => {
      const store = makeStore();
      const device = await openDevice({ ...OPTIONS, store });
      const other = await Device.open({ ...OPTIONS, store });
      await other.queue(PLAN, "browser", 1, EPOCH);
      await device.queue(PLAN, "browser", 2, epochOf(2));
      expect(device.handOver()).toBe(1);
      sent.length = 0;
      await device.disable();
      const before = await contents(store);
      const restarted = await Device.open({ ...OPTIONS, store });
      for (const each of [device, restarted]) {
        await use(each);
        expect([await each.enabled(), await each.waiting(), await each.spent("browser")]).toEqual([false, [], "2"]);
      }
      expect((await other.flush()).acknowledged).toBe(0); // which knows of it only from the store
      expect([sent, await contents(store), other.handOver()]).toEqual([[], before, 0]);
    });
  });

  test.each(SILENCE)("%s says nothing", async (_, set) => {
    set();
    const device = await openDevice({ ...OPTIONS, store: makeStore() });
    expect((await device.queue(PLAN, "browser", 3, EPOCH)).outcome).toBe("queued");
    vi.stubGlobal("navigator", undefined);
    expect((await device.flush()).acknowledged).toBe(1);
  });

  test("turned on again, it has a new key, keeps its debits, and reports from the next epoch on", async () => {
    const store = makeStore();
    const device = await openDevice({ ...OPTIONS, store });
    const plan = new Plan(load("oue_k57").plan);
    const first = await device.queue(plan, "browser", 3, EPOCH);
    const [{ body }] = await device.waiting();
    const rejected = await device.queue(plan, "rejected", 3, EPOCH);
    vi.stubGlobal("fetch", async (_: string, { body }: RequestInit) => {
      const isRejected = split(body)[0] === rejected.id;
      return isRejected ? new Response('{"error":"x","message":"no"}', { status: 410 }) : new Response('{"outcome":"counted"}');
    });
    await device.flush();
    await device.queue(plan, "browser", 3, epochOf(2));
    await device.disable();
    const kept = (await contents(store)).toLowerCase();
    expect(kept).not.toContain(hexOf(body));
    expect(kept).not.toContain(Buffer.from(hexOf(body)).toString("hex"));
    expect(kept).not.toContain(JSON.stringify(body));
    expect([await device.enabled(), await device.spent("browser")]).toEqual([false, first.cost]);
    await expectRejection("ParameterError", device.client(plan, "browser"));

    expect([await device.enable(), await device.enable()]).toEqual([true, true]);
    for (const epoch of [EPOCH, epochOf(2)]) {
      expect(await device.queue(plan, "browser", 3, epoch)).toMatchObject({ outcome: "repeated", cost: "0" });
    }
    expect((await device.queue(plan, "rejected", 3, EPOCH)).outcome).toBe("queued"); // its epoch has no report
    const again = await device.queue(plan, "browser", 3, epochOf(3));
    expect(again).toMatchObject({ outcome: "queued", cost: first.cost });
    expect(again.id).not.toBe(first.id);
    const waiting = await device.waiting();
    expect(waiting).toHaveLength(2);
    for (const report of waiting) expect(report.body).not.toEqual(body);
    expect(Number(await device.spent("browser"))).toBe(2 * Number(first.cost));
  });

  test("two devices of one store share the consent and the key", async () => {
    const store = makeStore();
    const devices = await Promise.all([1, 2, 3].map(() => Device.open({ ...OPTIONS, store })));
    expect(await Promise.all(devices.map((device) => device.enable()))).toEqual([true, true, true]);
    const derived = await Promise.all(devices.map(async (device) => hexOf(await (await device.client(PLAN, "a")).derive(1))));
    expect(new Set(derived).size).toBe(1);
  });

  test("a flush that runs while the device is turned off sends nothing more", async () => {
    const store = makeStore();
    const [device, other] = [await openDevice({ ...OPTIONS, store }), await Device.open({ ...OPTIONS, store })];
    for (const turningOff of [device, other]) {
      for (let report = 0; report < 20; report++) await device.queue(PLAN, "browser", 0, epochOf(50), { several: true });
      let asked = 0;
      vi.stubGlobal("fetch", async () => {
        if (++asked === 3) await turningOff.disable();
        await new Promise((resolve) => setTimeout(resolve, 20));
        return new Response('{"outcome":"counted","reports":1}');
      });
      expect((await device.flush()).waiting).toBe(0);
      expect(asked).toBeLessThanOrEqual(6); // those that were on their way
      expect(await device.waiting()).toEqual([]);
      await device.enable();
    }
  });

  test("a report that is made while the device is turned off is not queued", async () => {
    for (let round = 0; round < 10; round++) {
      const store = makeStore();
      const device = await openDevice({ ...OPTIONS, store });
      const making = Promise.all([1, 2, 3].map((epoch) => device.queue(PLAN, "browser", 0, epochOf(epoch))));
      for (let wait = 0; wait < round; wait++) await new Promise((resolve) => setImmediate(resolve));
      await device.disable();
      await making;
      expect([device.handOver(), await device.waiting()]).toEqual([0, []]);
      for (const { outbox, latest } of await store.accounts()) expect([outbox, latest]).toEqual([[], {}]);
    }
  });
});

test("consent governs devices only", async () => {
  vi.stubEnv("DO_NOT_TRACK", "1");
  const client = new Client(PLAN, { maxEpsilon: 32 });
  expect(await client.send(EPOCH, client.report(3))).toBe("counted");
});

describe("the notice", () => {
  test("says what happens, and what ε means", async () => {
    const device = await Device.open({ ...OPTIONS, caps: { browser: 3 }, store: new MemoryStore() });
    const text = device.notice(load("grr_k5").plan, "browser");
    for (const part of ["“browser”", "randomised on this device before it is sent", "2.72 times (ε = 1)", "20.1 times (ε = 3)"])
      expect(text).toContain(part);
    for (const part of ["off until you agree", "DO_NOT_TRACK=1", "Global Privacy Control"]) expect(text).toContain(part);
    expect(text.split(/\. /)).toHaveLength(4);
    expectError("ParameterError", () => device.notice(PLAN, ""));
    expectError("PlanError", () => device.notice("{}", "browser"));
  });
});

test("whenSpent must be known", async () => {
  await expectRejection("ParameterError", Device.open({ ...OPTIONS, whenSpent: "stop" as "keep", store: new MemoryStore() }));
});
