/** Memoised reports, the ledger and the outbox, over every store that runs in Node. */

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";

import { Client, Plan, StoreError } from "../src/index.js";
import {
  Device,
  type DeviceOptions,
  importDeviceKey,
  makeDeviceKey,
  MemoisingClient,
  MemoryStore,
  type QueuedReport,
  type Store,
} from "../src/device.js";
import { FileStore } from "../src/node.js";
import { readReport } from "../src/reading.js";
import { records } from "../src/records.js";
import { hexadecimal, sha256 } from "../src/sha256.js";
import { texts } from "../src/texts.js";
import { expectError, expectRejection, hexOf, load, openDevice, split } from "./support.js";

const PLAN = new Plan(load("grr_k5").plan);
const EPOCH = "https://collector.example/v1/collections/browsers/epochs/1";
const epochOf = (number: number): string => EPOCH.replace(/1$/, String(number));
const SEVERAL = { several: true };
const DIST = join(import.meta.dirname, "..", "dist");

const temporary = (): string => join(mkdtempSync(join(tmpdir(), "sunzi-")), "device");
const STORES: [string, () => Store][] = [
  ["memory", () => new MemoryStore()],
  ["files", () => new FileStore(temporary())],
];

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** Mock a collector that responds with `answer`; returns the uploads it receives. */
function collector(
  answer: (address: string, line: string) => Response | Promise<Response>,
): { address: string; line: string; body: string }[] {
  const received: { address: string; line: string; body: string }[] = [];
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    const [line, body] = split(init.body);
    received.push({ address, line, body: hexOf(body) });
    return answer(address, line);
  });
  return received;
}

/** A request that opens this database. */
function opened(result: object): object {
  const request = { result, onsuccess: () => undefined };
  queueMicrotask(() => request.onsuccess());
  return request;
}

const REFUSAL = '{"error":"ClosedEpochError","message":"epoch 1 is closed"}';
const counted = (): Response => new Response('{"outcome":"counted","reports":1}');

describe("memoised reports", () => {
  test("are equal for equal values and differ by value, attribute, plan and device", async () => {
    const plan = new Plan(load("oue_k57").plan);
    const another = new Plan(load("rappor_k57").plan);
    const [key, foreign] = [await makeDeviceKey(), await makeDeviceKey()];
    const report = async (of: Plan, by: CryptoKey, attribute: string, value: number): Promise<string> =>
      hexOf(await new MemoisingClient(of, by, attribute, { maxEpsilon: 32 }).report(value));
    const first = await report(plan, key, "browser", 3);
    for (let round = 1; round < 1000; round++) expect(await report(plan, key, "browser", 3)).toBe(first);
    const others = [
      await report(plan, key, "browser", 4),
      await report(plan, key, "language", 3),
      await report(another, key, "browser", 3),
      await report(plan, foreign, "browser", 3),
    ];
    expect(new Set([first, ...others]).size).toBe(5);
  });

  test("answer one question for good, with the same bytes for the same cell", async () => {
    const questions = new Set<number>();
    for (let device = 0; device < 8; device++) {
      const key = await importDeviceKey(new Uint8Array(32).fill(device));
      const plan = new Plan(load("tables_survey").plan, { records });
      const client = new MemoisingClient(plan, key, "survey", { maxEpsilon: 32 });
      const made = new Map<string, number>();
      for (let index = 0; index < 42; index++) {
        const report = await client.reportIndex(index);
        made.set(hexOf(report), readReport(plan, report).payload as number);
      }
      // The messages of the three views are 0 … 2, 3 … 23 and 24 … 281.
      const [question, ...others] = new Set([...made.values()].map((payload) => (payload < 3 ? 3 : payload < 24 ? 6 : 42)));
      expect(others).toEqual([]);
      expect(made.size).toBeLessThanOrEqual(question); // its cells
      questions.add(question);
      expect(made.has(hexOf(await client.reportIndex(undefined)))).toBe(true);
    }
    expect(questions.size).toBeGreaterThan(1);
  });

  test("of texts that are alike in the kept view are the same bytes", async () => {
    const store = new MemoryStore(await importDeviceKey(new Uint8Array(32).fill(1)));
    const device = await openDevice({ lifetimeEpsilon: 32, maxEpsilon: 32, store });
    const plan = new Plan(load("prefixes_letters").plan, { texts });
    const queued = [];
    for (const [day, text] of ["longer than planned", "longest", "no", "no"].entries())
      queued.push(await device.queue(plan, "word", text, epochOf(day + 1)));
    expect(queued.map(({ cost, outside }) => [cost, outside])).toEqual([
      ["2", false],
      ["0", false],
      ["2", false],
      ["0", false],
    ]);
    const none = await device.queue(plan, "word", null as unknown as string, epochOf(9));
    expect(none.outside).toBe(true);
    expect(await device.waiting()).toHaveLength(5);
  });

  test("need a non-extractable key, an attribute and an accepted plan", async () => {
    const key = await makeDeviceKey();
    await expect(crypto.subtle.exportKey("raw", key)).rejects.toThrow();
    expectError("ParameterError", () => new MemoisingClient(PLAN, key, "", { maxEpsilon: 32 }));
    expectError("PrivacyError", () => new MemoisingClient(PLAN, key, "browser", { maxEpsilon: 0.5 }));
    await expectRejection("ParameterError", importDeviceKey(new Uint8Array(31)));
    vi.stubGlobal("crypto", { getRandomValues: () => undefined });
    await expectRejection("RandomnessError", makeDeviceKey());
    const cause = new DOMException("no entropy", "OperationError");
    vi.stubGlobal("crypto", { subtle: { generateKey: () => Promise.reject(cause) } });
    const error = await makeDeviceKey().catch((reason: unknown) => reason);
    expect([(error as Error).name, (error as Error).cause]).toEqual(["RandomnessError", cause]);
  });
});

describe.each(STORES)("a device in %s", (_, makeStore) => {
  test("debits every answer to its question once", async () => {
    const device = await openDevice({ lifetimeEpsilon: 32, maxEpsilon: 32, store: makeStore() });
    const plan = new Plan(load("ordered_8_bins").plan, { records });
    let day = 0;
    let total = 0;
    for (let round = 0; round < 2; round++)
      for (let time = 0; time <= 5000; time += 125) {
        const { cost } = await device.queue(plan, "load time", time, epochOf(++day));
        if (round) expect(cost).toBe("0");
        total += Number(cost);
      }
    expect([2, 4, 8]).toContain(total); // the nodes of its level
    expect(await device.spent("load time")).toBe(String(total));
    expect((await device.queue(plan, "load time", 6000, epochOf(++day))).outside).toBe(true);
    expect(await device.spent("load time")).toBe(String(total));
  });

  test("debits a value once and never exceeds the cap", async () => {
    const device = await openDevice({ lifetimeEpsilon: 2, maxEpsilon: 32, caps: { age: "1/2" }, store: makeStore() });
    expect(await device.spent("browser")).toBe("0");
    expect((await device.queue(PLAN, "browser", 0, EPOCH)).cost).toBe("1");
    expect((await device.queue(PLAN, "browser", 0, epochOf(2))).cost).toBe("0");
    expect((await device.queue(PLAN, "browser", 1, EPOCH.replace("browsers", "renamed"))).cost).toBe("1");
    expect(await device.queue(PLAN, "browser", 2, epochOf(3))).toMatchObject({ outcome: "kept", cost: "0" });
    await expectRejection("BudgetError", device.queue(PLAN, "age", 2, EPOCH));
    expect([await device.spent("browser"), await device.spent("age")]).toEqual(["2", "0"]);
    expect(await device.waiting()).toHaveLength(4);
  });

  test("sends a background report for a value outside the domain and says so", async () => {
    const device = await openDevice({ lifetimeEpsilon: 1, maxEpsilon: 32, store: makeStore() });
    expect(await device.queue(PLAN, "browser", 99, EPOCH)).toMatchObject({ outside: true, cost: "1" });
    expect(await device.queue(PLAN, "browser", -1, epochOf(2))).toMatchObject({ outside: true, cost: "0" });
    const [first, second] = await device.waiting();
    expect(first.body).toEqual(second.body);
  });

  test("a renamed collection gets no fresh noise", async () => {
    const device = await openDevice({ lifetimeEpsilon: 2, maxEpsilon: 32, store: makeStore() });
    const plan = new Plan(load("oue_k57").plan);
    for (const name of ["one", "two", "three"]) await device.queue(plan, "browser", 7, EPOCH.replace("browsers", name));
    const waiting = await device.waiting();
    expect(waiting.map(({ address }) => new URL(address).pathname.split("/")[3])).toEqual(["one", "two", "three"]);
    expect(new Set(waiting.map(({ body }) => hexOf(body))).size).toBe(1);
    expect(new Set(waiting.map(({ id }) => id)).size).toBe(3);
  });

  test("concurrent reports spend exactly the cap", async () => {
    const store = makeStore();
    const device = await openDevice({ lifetimeEpsilon: 3, maxEpsilon: 32, store });
    const queued = await Promise.all(
      [1, 2, 3, 4, 5].map((epoch) => device.queue(PLAN, "browser", epoch - 1, epochOf(epoch))),
    );
    expect(queued.map(({ outcome }) => outcome).sort()).toEqual(["kept", "kept", "queued", "queued", "queued"]);
    expect(await device.spent("browser")).toBe("3");
    expect(await device.waiting()).toHaveLength(5);
  });

  test("sends the same bytes under the same id until they are acknowledged, then deletes them", async () => {
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore() });
    for (let value = 0; value < 5; value++) await device.queue(PLAN, "browser", value, EPOCH, SEVERAL);
    await device.queue(PLAN, "browser", 0, EPOCH, SEVERAL);
    const queued = (await device.waiting()).map(({ id, address, body }) => ({ address, line: id, body: hexOf(body) }));

    collector(() => Promise.reject(new TypeError("offline")));
    expect(await device.flush()).toEqual({ acknowledged: 0, rejected: 0, waiting: 6 });
    collector(() => new Response("busy", { status: 503 }));
    expect((await device.flush()).waiting).toBe(6);
    collector(() => new Response("<html>Welcome to our hotel"));
    expect((await device.flush()).waiting).toBe(6);

    const received = collector(counted);
    expect(await device.flush()).toEqual({ acknowledged: 6, rejected: 0, waiting: 0 });
    const key = ({ line }: { line: string }): string => line;
    expect(received.sort((a, b) => key(a).localeCompare(key(b)))).toEqual(
      queued.sort((a, b) => key(a).localeCompare(key(b))),
    );
    expect(await device.waiting()).toEqual([]);
    expect(await device.spent("browser")).toBe("5");
    expect((await device.queue(PLAN, "browser", 3, EPOCH, SEVERAL)).cost).toBe("0");
  });

  test("deletes reports that are rejected for good, and says which", async () => {
    const told: unknown[] = [];
    const onError = (error: Error, report?: QueuedReport): unknown => told.push([error.name, report?.id]);
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore(), onError });
    const { id } = await device.queue(PLAN, "browser", 0, EPOCH);
    await device.queue(PLAN, "browser", 1, epochOf(2));
    collector((address) => (address.includes("/epochs/1/") ? new Response(REFUSAL, { status: 410 }) : counted()));
    expect(await device.flush()).toEqual({ acknowledged: 1, rejected: 1, waiting: 0 });
    expect(told).toEqual([["ReportError", id]]);
    // The rejected report was not counted, so that epoch may get another one.
    expect((await device.queue(PLAN, "browser", 0, EPOCH)).outcome).toBe("queued");
    expect((await device.queue(PLAN, "browser", 1, epochOf(2))).outcome).toBe("repeated");
  });

  test("reports an attribute once per epoch, before and after it is acknowledged", async () => {
    const store = makeStore();
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
    const first = await device.queue(PLAN, "browser", 0, EPOCH);
    expect(first.outcome).toBe("queued");
    for (let round = 0; round < 2; round++) {
      for (const value of [0, 1, 99]) {
        const again = await device.queue(PLAN, "browser", value, EPOCH);
        expect(again).toMatchObject({ id: first.id, cost: "0", outcome: "repeated" });
      }
      expect(await device.waiting()).toHaveLength(round ? 0 : 1);
      const received = collector(counted);
      await device.flush();
      expect(received).toHaveLength(round ? 0 : 1);
    }
    expect(await device.spent("browser")).toBe("1");
    // A free report is remembered too.
    await device.queue(PLAN, "browser", 0, epochOf(2));
    await device.flush();
    expect((await device.queue(PLAN, "browser", 1, epochOf(2))).outcome).toBe("repeated");
    expect((await device.queue(PLAN, "language", 0, EPOCH)).outcome).toBe("queued");
    const several = await device.queue(PLAN, "browser", 0, EPOCH, SEVERAL);
    expect(several).toMatchObject({ cost: "0", outcome: "queued" });
    expect(several.id).not.toBe(first.id);
    expect(await device.waiting()).toHaveLength(2);
  });

  test("rejects a plan above its largest epsilon, and needs one", async () => {
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: "1/2", store: makeStore() });
    await expectRejection("PrivacyError", device.queue(PLAN, "browser", 0, EPOCH));
    expect([await device.spent("browser"), await device.waiting()]).toEqual(["0", []]);
    const options = { lifetimeEpsilon: 5, store: makeStore() } as unknown as DeviceOptions;
    await expectRejection("ParameterError", openDevice(options));
  });

  test("keeps reports that a proxy or a rotated key rejects", async () => {
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore() });
    for (let value = 0; value < 5; value++) await device.queue(PLAN, "browser", value, EPOCH, SEVERAL);
    const answered = [[403, "<html>Welcome to our hotel"], [404, "{}"], [401, REFUSAL], [421, REFUSAL]] as const;
    for (const [status, text] of answered) {
      collector(() => new Response(text, { status }));
      expect(await device.flush()).toEqual({ acknowledged: 0, rejected: 0, waiting: 5 });
    }
    collector(counted);
    expect((await device.flush()).acknowledged).toBe(5);
  });

  test("an unreachable collector does not delay others", async () => {
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore() });
    const dead = EPOCH.replace("collector", "dead");
    for (let round = 0; round < 20; round++) await device.queue(PLAN, "browser", 0, dead, SEVERAL);
    for (let round = 0; round < 3; round++) await device.queue(PLAN, "browser", 0, EPOCH, SEVERAL);
    const asked = collector((address) => (address.startsWith(dead) ? Promise.reject(new TypeError("no")) : counted()));
    expect(await device.flush()).toEqual({ acknowledged: 3, rejected: 0, waiting: 20 });
    // Only the requests that were sent in parallel failed.
    expect(asked.filter(({ address }) => address.startsWith(dead)).length).toBeLessThanOrEqual(6);
  });

  test("an unknown single-use token does not delay other reports", async () => {
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore() });
    const tokens = [...Array(12).keys()].map((number) => `${number}`.padStart(64, "0"));
    for (const token of tokens) await device.queue(PLAN, "browser", 0, EPOCH, { token, several: true });
    const known = (line: string): boolean => tokens.indexOf(line.split(" ")[1]) >= 8;
    collector((_, line) => (known(line) ? counted() : new Response(REFUSAL, { status: 401 })));
    expect(await device.flush()).toEqual({ acknowledged: 4, rejected: 0, waiting: 8 });
  });

  test("groups are kept with the report and sent with it", async () => {
    const plan = { ...load("grr_k5").plan, groups: { country: ["DE", "FR"], release: ["1"] } };
    const store = makeStore();
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
    for (const groups of [{ country: "IT" }, { constructor: "DE" }] as any[])
      await expectRejection("ParameterError", device.queue(plan, "browser", 0, EPOCH, { groups }));
    expect(await device.spent("browser")).toBe("0");
    await device.queue(plan, "browser", 0, EPOCH, { groups: { release: "1", country: "DE" } });
    const again = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
    expect((await again.waiting())[0].groups).toBe("country=DE,release=1");
    const lines: string[] = [];
    collector((_, line) => {
      lines.push(line);
      return counted();
    });
    expect(await again.flush()).toEqual({ acknowledged: 1, rejected: 0, waiting: 0 });
    expect(lines).toEqual([expect.stringMatching(/^[0-9a-f]{32} country=DE,release=1$/)]);
  });

  test("a report needs an epoch's address", async () => {
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore() });
    for (const elsewhere of ["", "https://collector.example", EPOCH.replace("/epochs/1", ""), `${EPOCH}?plan=1`]) {
      await expectRejection("ParameterError", device.queue(PLAN, "browser", 0, elsewhere));
    }
    expect(await device.spent("browser")).toBe("0");
    await device.queue(PLAN, "browser", 0, EPOCH.replace("https://collector", "HTTPS://user@Collector"));
    expect((await device.queue(PLAN, "browser", 0, `${EPOCH}/`)).outcome).toBe("repeated");
    expect((await device.waiting())[0].address).toContain(`${EPOCH}/reports`);
    // A name and an IPv4 address are the same with a dot at their end.
    for (const host of ["collector.example", "collector.example:8443", "127.0.0.1", "127.0.0.1:8443"]) {
      const [name, port] = host.split(":");
      const dotted = [`${name}.`, ...(port ? [port] : [])].join(":");
      const [plain, other] = [host, dotted].map((each) => EPOCH.replace("collector.example", each).replace(/1$/, "2"));
      const { id, outcome } = await device.queue(PLAN, host, 0, other);
      expect([outcome, await device.queue(PLAN, host, 0, plain)]).toMatchObject(["queued", { outcome: "repeated", id }]);
      expect((await device.waiting()).at(-1)?.address).toContain(plain);
    }
  });

  test("a missing label file is an error, not a value outside the domain, and costs nothing", async () => {
    const labelFile = "alpha\nbeta\ngamma\ndelta\nepsilon\n";
    const digest = hexadecimal(sha256(new TextEncoder().encode(labelFile)));
    const plan = { ...load("grr_k5").plan, domain: { size: 5, labels_sha256: digest } };
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: makeStore() });
    await expectRejection("ParameterError", device.queue(plan, "letter", "alpha", EPOCH));
    await expectRejection("ParameterError", device.client(plan, "letter"));
    expectError("ParameterError", () => new Client(plan, { maxEpsilon: 32 }).report("alpha"));
    expect([await device.spent("letter"), await device.waiting()]).toEqual(["0", []]);
    const queued = await device.queue(plan, "letter", "alpha", EPOCH, { labelFile });
    expect(queued).toMatchObject({ outside: false, cost: "1" });
  });
});

test("a closing page hands its reports over without cookies or referrer, and keeps them", async () => {
  const sent: RequestInit[] = [];
  vi.stubGlobal("fetch", async (_: string, init: RequestInit) => {
    sent.push(init);
    throw new TypeError("the page is gone");
  });
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new MemoryStore() });
  for (let value = 0; value < 4; value++) await device.queue(PLAN, "browser", value, EPOCH, SEVERAL);
  expect([device.handOver(), device.handOver()]).toEqual([4, 0]);
  for (const { method, headers, keepalive, credentials, referrerPolicy } of sent) {
    expect([method, headers, keepalive]).toEqual(["POST", {}, true]);
    expect([credentials, referrerPolicy]).toEqual(["omit", "no-referrer"]);
  }
  expect(sent).toHaveLength(4);
  expect(await device.waiting()).toHaveLength(4);
  // Browsers allow 64 KiB.
  const wide = { ...load("oue_k57").plan, domain: { size: 230_000 } };
  for (let value = 0; value < 3; value++) await device.queue(wide, "word", 0, EPOCH, SEVERAL);
  expect(device.handOver()).toBe(2);
});

test("an AbortSignal stops flush and keepSending, and the outbox keeps the reports", async () => {
  const errors: Error[] = [];
  const onError = (error: Error): void => void errors.push(error);
  const device = await openDevice({ lifetimeEpsilon: 4, maxEpsilon: 32, store: new MemoryStore(), onError });
  for (const number of [1, 2, 3]) await device.queue(PLAN, "browser", 3, epochOf(number));
  vi.stubGlobal("fetch", (_address: string, { signal }: RequestInit) => {
    return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  });
  const locked: unknown[] = [];
  const request = (_name: string, options: unknown, action: () => unknown) => {
    locked.push(options);
    return action();
  };
  for (const navigator of [undefined, { locks: { request } }]) {
    vi.stubGlobal("navigator", navigator);
    const controller = new AbortController();
    const flushed = device.flush({ signal: controller.signal });
    setTimeout(() => controller.abort("enough"));
    await expect(flushed).rejects.toBe("enough");
    expect(await device.waiting()).toHaveLength(3);
    if (navigator) expect(locked).toEqual([{ signal: controller.signal }]);
  }
  vi.stubGlobal("navigator", { locks: { request: () => Promise.reject(new DOMException("no", "SecurityError")) } });
  await expectRejection("StoreError", device.flush());

  vi.stubGlobal("navigator", undefined);
  vi.useFakeTimers();
  const controller = new AbortController();
  device.keepSending(30, { signal: controller.signal });
  await vi.advanceTimersByTimeAsync(10);
  controller.abort();
  await vi.advanceTimersByTimeAsync(1000);
  expect([vi.getTimerCount(), errors]).toEqual([0, []]);
  device.keepSending(30, { signal: AbortSignal.abort() });
  expect(vi.getTimerCount()).toBe(0);
});

test("keepSending resumes when the network is back and ends when it is stopped", async () => {
  const target = new EventTarget();
  const handedOver: string[] = [];
  vi.stubGlobal("addEventListener", target.addEventListener.bind(target));
  vi.stubGlobal("removeEventListener", target.removeEventListener.bind(target));
  const store = new MemoryStore();
  const errors: Error[] = [];
  const onError = (error: Error): unknown => errors.push(error);
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store, onError });
  await device.queue(PLAN, "browser", 0, EPOCH);
  vi.stubGlobal("fetch", async (address: string, { keepalive }: RequestInit) => {
    if (keepalive) handedOver.push(address);
    throw new TypeError("offline");
  });
  const waiting = vi.spyOn(store, "accounts").mockRejectedValueOnce(new StoreError("the disk is full"));
  const stop = device.keepSending(1000);
  await vi.waitFor(() => expect(errors.map(String)).toEqual(["StoreError: the disk is full"]));
  waiting.mockRestore();
  target.dispatchEvent(new Event("pagehide"));
  expect(handedOver).toHaveLength(1);
  expect(await device.waiting()).toHaveLength(1);
  const received = collector(counted);
  target.dispatchEvent(new Event("online"));
  await vi.waitFor(async () => expect(await device.waiting()).toEqual([]), { timeout: 30_000 });
  stop();
  await device.queue(PLAN, "browser", 1, epochOf(2));
  target.dispatchEvent(new Event("online"));
  expect(received).toHaveLength(1);
});

test("while nothing gets through, jittered pauses grow; then they are short again", async () => {
  const store = new MemoryStore();
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
  await device.queue(PLAN, "browser", 0, EPOCH);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  const begun = Date.now();
  let moments: number[] = [];
  const accounts = store.accounts.bind(store);
  vi.spyOn(store, "accounts").mockImplementation(() => {
    moments.push((Date.now() - begun) / 1000); // once per flush
    return accounts();
  });
  collector(() => Promise.reject(new TypeError("offline")));
  const stop = device.keepSending(10);
  await vi.advanceTimersByTimeAsync(2 * 3_600_000);
  const pauses = moments.slice(1).map((moment, i) => moment - moments[i]);
  const longest = pauses.map((_, i) => Math.min(900, 10 * 2 ** i));
  expect(pauses.length).toBeGreaterThan(12);
  pauses.forEach((pause, i) => {
    expect(pause).toBeGreaterThanOrEqual(longest[i] / 2 - 0.002);
    expect(pause).toBeLessThanOrEqual(longest[i] + 0.002);
  });
  // Each has one of 256 lengths, so all are equal by chance less than once in 256^11 runs.
  expect(new Set(pauses.map((pause, i) => (pause / longest[i]).toFixed(2))).size).toBeGreaterThan(1);

  collector(counted);
  await vi.advanceTimersByTimeAsync(900_000);
  expect(await device.waiting()).toEqual([]);
  moments = [];
  await vi.advanceTimersByTimeAsync(100_000);
  expect(moments.length).toBeGreaterThanOrEqual(9);
  stop();
  moments = [];
  await vi.advanceTimersByTimeAsync(100_000);
  expect(moments).toEqual([]);
});

describe("FileStore", () => {
  const script = `
    const { Device } = await import("file://${DIST}/device.js");
    const { FileStore } = await import("file://${DIST}/node.js");
    const device = await Device.open({ lifetimeEpsilon: 3, maxEpsilon: 32, store: new FileStore(process.argv[2]) });
    await device.enable();
    const plan = JSON.parse(process.argv[3]);
    process.stdout.write("ready\\n");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    let paid = 0;
    for (const value of process.argv[4].split(",")) {
      paid += Number((await device.queue(plan, "browser", Number(value), "${EPOCH}", { several: true })).cost);
    }
    process.stdout.write("paid " + paid + "\\n");
    process.exit();
  `;

  function start(
    directory: string,
    values: string,
  ): { go: () => void; kill: () => void; paid: Promise<number>; ready: Promise<void> } {
    const child = spawn(process.execPath, [
      "--input-type=module",
      "-e",
      script,
      "-",
      directory,
      JSON.stringify(load("grr_k5").plan),
      values,
    ]);
    let output = "";
    child.stderr.on("data", (data) => console.error(String(data)));
    const until = (pattern: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve, reject) => {
        child.stdout.on("data", (data) => {
          output += data;
          const found = pattern.exec(output);
          if (found) resolve(found);
        });
        child.on("close", () => (pattern.exec(output) ? undefined : reject(new Error("the process ended"))));
      });
    const [ready, paid] = [until(/ready/), until(/paid (\d+)/)];
    paid.catch(() => undefined);
    return {
      ready: ready.then(() => undefined),
      paid: paid.then((found) => Number(found[1])),
      go: () => child.stdin.write("go"),
      kill: () => child.kill("SIGKILL"),
    };
  }

  test("two processes that race for the last budget do not overspend", async () => {
    expect(existsSync(join(DIST, "node.js")), "npm run build comes first").toBe(true);
    for (let round = 0; round < 3; round++) {
      const directory = temporary();
      const racers = [start(directory, "0,1,2,3,4"), start(directory, "4,3,2,1,0")];
      await Promise.all(racers.map(({ ready }) => ready));
      for (const { go } of racers) go();
      const paid = await Promise.all(racers.map((racer) => racer.paid));
      expect(paid[0] + paid[1]).toBe(3);
      const device = await openDevice({ lifetimeEpsilon: 3, maxEpsilon: 32, store: new FileStore(directory) });
      expect(await device.spent("browser")).toBe("3");
      expect((await device.waiting()).length).toBeGreaterThanOrEqual(3);
    }
  });

  test("after a process is killed, every report has its debit and every debit its report", async () => {
    const plan = new Plan(load("grr_k5").plan);
    for (const pause of [0, 2, 5, 10, 20]) {
      const directory = temporary();
      const victim = start(directory, "0,1,2");
      await victim.ready;
      victim.go();
      await new Promise((resolve) => setTimeout(resolve, pause));
      victim.kill();
      await victim.paid.catch(() => undefined);
      const device = await openDevice({ lifetimeEpsilon: 3, maxEpsilon: 32, store: new FileStore(directory) });
      const waiting = await device.waiting();
      expect(String(waiting.length)).toBe(await device.spent("browser"));
      for (const { body } of waiting) expect(body).toHaveLength(1);
      // The rest of the budget can still be spent, and no more.
      const more = await Promise.all([0, 1, 2, 3].map((value) => device.queue(plan, "browser", value, EPOCH, SEVERAL)));
      expect(await device.spent("browser")).toBe("3");
      expect(more.filter(({ outcome }) => outcome === "kept").length).toBeGreaterThan(0);
    }
  });

  test("only the owner can read the key", async () => {
    const directory = temporary();
    const options = { lifetimeEpsilon: 5, maxEpsilon: 32 };
    await openDevice({ ...options, store: new FileStore(directory) });
    expect(statSync(join(directory, "key")).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(directory, "unfinished"))).toEqual([]);
    const derived = [1, 2].map(async () => {
      const device = await Device.open({ ...options, store: new FileStore(directory) });
      return (await device.client(PLAN, "a")).derive(1);
    });
    expect(await derived[0]).toEqual(await derived[1]);
  });

  test("what IndexedDB throws is the cause of a StoreError", async () => {
    const device = await Device.open({ lifetimeEpsilon: 1, maxEpsilon: 32 });
    const cause = new DOMException("storage is not allowed", "SecurityError");
    const refuse = () => {
      throw cause;
    };
    const fail = () => {
      const request = { error: cause, onerror: () => undefined };
      queueMicrotask(() => request.onerror());
      return request;
    };
    const broken = [
      { get: refuse },
      { value: { open: refuse } },
      { value: { open: fail } },
      { value: { open: () => opened({ transaction: refuse }) } },
      { value: { open: () => opened({ transaction: () => ({ objectStore: refuse, abort: refuse }) }) } },
    ];
    try {
      for (const property of broken) {
        Object.defineProperty(globalThis, "indexedDB", { ...property, configurable: true });
        await expect(device.enable()).rejects.toMatchObject({ name: "StoreError", cause });
        await expect(device.queue(PLAN, "a", 1, EPOCH)).rejects.toThrow("storage is not allowed");
      }
    } finally {
      Reflect.deleteProperty(globalThis, "indexedDB");
    }
  });

  test("without IndexedDB a device needs a store", async () => {
    const device = await Device.open({ lifetimeEpsilon: 1, maxEpsilon: 32 });
    await expectRejection("StoreError", device.enabled());
    await expectRejection("StoreError", openDevice({ lifetimeEpsilon: 1, maxEpsilon: 32, store: new FileStore("/dev/null/nowhere") }));
  });
});

test("a client without memoisation gives different reports", () => {
  const client = new Client(load("oue_k57").plan, { maxEpsilon: 32 });
  expect(hexOf(client.report(1))).not.toBe(hexOf(client.report(1)));
});
