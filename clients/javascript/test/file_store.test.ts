/** How FileStore uses the file system: it reads few files, makes names durable and removes leftovers of crashes. */

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";

import { Plan } from "../src/index.js";
import { Device, type QueuedReport } from "../src/device.js";
import { settled } from "../src/device/account.js";
import { FileStore } from "../src/node.js";
import { expectRejection, load, openDevice } from "./support.js";

const PLAN = new Plan(load("grr_k5").plan);
const EPOCH = "https://collector.example/v1/collections/browsers/epochs/1";
const HOUR = 3600;

const seen = vi.hoisted(() => ({
  read: [] as string[],
  synced: [] as string[],
  /** Called before the next link to an account. */
  onLink: undefined as (() => Promise<void>) | undefined,
}));

// The real file system, with a record of calls.
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  return {
    ...real,
    readFile: (path: string, ...rest: []) => {
      seen.read.push(path);
      return real.readFile(path, ...rest);
    },
    link: async (from: string, to: string) => {
      if (to.includes("accounts")) await seen.onLink?.();
      return real.link(from, to);
    },
    open: async (path: string, ...rest: []) => {
      const handle = await real.open(path, ...rest);
      const sync = handle.sync.bind(handle);
      handle.sync = () => {
        seen.synced.push(path);
        return sync();
      };
      return handle;
    },
  };
});

beforeEach(() => {
  seen.read = [];
  seen.synced = [];
});

const temporary = (): string => join(mkdtempSync(join(tmpdir(), "sunzi-")), "new", "device");

test("settling a report does not read all others", async () => {
  const store = new FileStore(temporary());
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
  const count = 60;
  // Half of the reports have a debit in the same file.
  for (let i = 0; i < count; i++) await device.queue(PLAN, `attribute ${i >> 1}`, 0, EPOCH.replace(/1$/, `${i + 1}`));
  const reports = await device.waiting();
  expect(reports).toHaveLength(count);
  seen.read = [];
  const settle = (by: FileStore, report: QueuedReport) =>
    by.update(report.attribute, (account) => settled(account, report, false));
  for (const report of reports.slice(1)) await settle(store, report);
  expect(seen.read.length).toBeLessThan(4 * count);
  expect((await device.waiting()).map(({ id }) => id)).toEqual([reports[0].id]);
  // Another process finds it too, and settling it twice is harmless.
  const other = new FileStore(store.directory);
  for (const each of [other, store]) await settle(each, reports[0]);
  expect([await device.waiting(), await device.spent("attribute 3")]).toEqual([[], "1"]);
});

test("old leftovers of crashes are removed, but not what another process is writing", async () => {
  const directory = temporary();
  const unfinished = join(directory, "unfinished");
  mkdirSync(unfinished, { recursive: true });
  const now = Date.now() / 1000;
  for (const [name, age] of [["old", 2 * HOUR], ["recent", HOUR / 2], ["new", 0]] as const) {
    writeFileSync(join(unfinished, name), "a secret");
    utimesSync(join(unfinished, name), now - age, now - age);
  }
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new FileStore(directory) });
  expect(readdirSync(unfinished).sort()).toEqual(["new", "recent"]);
  // They contain reports and keys, which go when the device is turned off.
  await device.disable();
  expect(readdirSync(unfinished)).toEqual([]);
});

test("the names of new directories are durable, even if another process created them", async () => {
  const directory = temporary();
  for (const value of [0, 1]) {
    seen.synced = [];
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new FileStore(directory) });
    expect((await device.queue(PLAN, "browser", value, EPOCH, { several: true })).cost).toBe("1");
    for (const name of [dirname(dirname(directory)), dirname(directory), directory, join(directory, "accounts")]) {
      expect(seen.synced).toContain(name);
    }
  }
});

test("what the file system throws is the cause of a StoreError", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sunzi-"));
  mkdirSync(join(directory, "key"));
  await expect(new FileStore(directory).identity()).rejects.toMatchObject({ name: "StoreError", cause: { code: "EISDIR" } });
  const file = join(directory, "file");
  writeFileSync(file, "");
  await expect(new FileStore(file).identity()).rejects.toMatchObject({ name: "StoreError", cause: { code: "ENOTDIR" } });
});

test("what exists loses the permissions of everybody else before anything is written", async () => {
  const directory = temporary();
  const options = { lifetimeEpsilon: 5, maxEpsilon: 32 };
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  chmodSync(directory, 0o755);
  const device = await Device.open({ ...options, store: new FileStore(directory) });
  const modeOf = (...names: string[]): number => statSync(join(directory, ...names)).mode & 0o777;
  await device.queue(PLAN, "browser", 1, EPOCH);
  expect([modeOf(), readdirSync(directory)]).toEqual([0o755, []]); // nobody has agreed
  await device.enable();
  await device.queue(PLAN, "browser", 1, EPOCH);
  const names = ["key", "accounts", "unfinished"];
  expect([modeOf(), ...names.map((name) => modeOf(name))]).toEqual([0o755, 0o600, 0o700, 0o700]);
  for (const name of names) chmodSync(join(directory, name), 0o777);
  const again = await openDevice({ ...options, store: new FileStore(directory) });
  await again.queue(PLAN, "browser", 2, EPOCH.replace(/1$/, "2"));
  expect([modeOf(), ...names.map((name) => modeOf(name))]).toEqual([0o755, 0o700, 0o700, 0o700]); // it may be /tmp
  for (const name of readdirSync(join(directory, "accounts")))
    for (const version of readdirSync(join(directory, "accounts", name)))
      expect(modeOf("accounts", name, version)).toBe(0o600);
});

describe("versions of an account", () => {
  const ACCOUNTS = ["one", "two", "three"].map((name) => `a ${name}`);

  function versions(directory: string): string[] {
    const [account] = readdirSync(join(directory, "accounts"));
    return readdirSync(join(directory, "accounts", account)).sort((left, right) => Number(left) - Number(right));
  }

  test("earlier ones are gone, but for the name of the last one", async () => {
    const directory = temporary();
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new FileStore(directory) });
    const sizes = (): boolean[] => {
      const [account] = readdirSync(join(directory, "accounts"));
      return versions(directory).map((name) => statSync(join(directory, "accounts", account, name)).size > 0);
    };
    for (let epoch = 1; epoch <= 100; epoch++) await device.queue(PLAN, "browser", 1, EPOCH.replace(/1$/, `${epoch}`));
    expect([versions(directory), sizes()]).toEqual([["99", "100"], [false, true]]);
    expect(await device.waiting()).toHaveLength(100);
    await device.disable();
    expect([versions(directory), sizes()]).toEqual([["100", "101"], [false, true]]);
    expect([await device.waiting(), await device.spent("browser")]).toEqual([[], "1"]);
  });

  test("what a crash left between two steps is removed by the next one", async () => {
    const directory = temporary();
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new FileStore(directory) });
    const queue = (epoch: number) => device.queue(PLAN, "browser", 1, EPOCH.replace(/1$/, `${epoch}`));
    await queue(1);
    const [account] = readdirSync(join(directory, "accounts"));
    const path = (version: number): string => join(directory, "accounts", account, `${version}`);
    const first = readFileSync(path(1));
    await queue(2);
    writeFileSync(path(1), first);
    await queue(3);
    expect([versions(directory), statSync(path(2)).size]).toEqual([["2", "3"], 0]);
  });

  test("a process that was too slow starts over, under a number that was used and removed before", async () => {
    const directory = temporary();
    const [store, slow] = [new FileStore(directory), new FileStore(directory)];
    const device = await openDevice({ lifetimeEpsilon: 32, maxEpsilon: 32, store });
    for (const start of [0, 2]) {
      const seenDebits: number[] = [];
      const before = (await store.accounts())[0]?.debits.length;
      seen.onLink = async () => {
        seen.onLink = undefined;
        for (let value = 0; value < 100; value++)
          await device.queue(PLAN, "browser", (start + value) % 5, EPOCH.replace(/1$/, `${1000 * start + value + 1}`));
      };
      await slow.update("browser", (account) => {
        seenDebits.push(account.debits.length);
        return { ...account, ended: ["ab".repeat(32)] };
      });
      expect(seenDebits).toEqual([before ?? 0, 5]);
      const [account] = await store.accounts();
      expect([account.debits.length, account.ended.length, account.outbox.length]).toEqual([5, 1, start ? 200 : 100]);
      expect(versions(directory)).toHaveLength(2);
    }
  });

  test("concurrent updates are all made, each once", async () => {
    const directory = temporary();
    const devices = await Promise.all(
      [1, 2, 3, 4].map(() => openDevice({ lifetimeEpsilon: 32, maxEpsilon: 32, store: new FileStore(directory) })),
    );
    const queued = devices.flatMap((device, place) =>
      ACCOUNTS.flatMap((attribute) =>
        [1, 2, 3, 4, 5].map((epoch) => device.queue(PLAN, attribute, place, EPOCH.replace(/1$/, `${5 * place + epoch}`))),
      ),
    );
    await Promise.all(queued);
    const waiting = await devices[0].waiting();
    expect([waiting.length, new Set(waiting.map(({ id }) => id)).size]).toEqual([60, 60]);
    for (const attribute of ACCOUNTS) expect(await devices[1].spent(attribute)).toBe("4");
  });
});

test("a file that is removed before it has its name is written again, if the device is still on", async () => {
  for (const isOff of [false, true]) {
    const store = new FileStore(temporary());
    const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store });
    seen.onLink = async () => {
      seen.onLink = undefined;
      const unfinished = join(store.directory, "unfinished");
      if (isOff) await device.disable();
      else for (const name of readdirSync(unfinished)) rmSync(join(unfinished, name));
    };
    const { outcome } = await device.queue(PLAN, "browser", 1, EPOCH);
    expect([outcome, (await device.waiting()).length]).toEqual(isOff ? ["off", 0] : ["queued", 1]);
  }
});

test("a key of another store, and a damaged one, are refused", async () => {
  const [one, two] = [new FileStore(temporary()), new FileStore(temporary())];
  await expectRejection("StoreError", two.enable(await one.draw()));
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: one });
  const path = join(one.directory, "key");
  const bytes = readFileSync(path);
  bytes[3] ^= 1;
  writeFileSync(path, bytes);
  await expectRejection("StoreError", device.enabled());
  await device.disable();
  expect([await device.enabled(), await device.enable()]).toEqual([false, true]);
});

test("an account file that is damaged is not repeated in the error", async () => {
  const directory = temporary();
  const device = await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new FileStore(directory) });
  await device.queue(PLAN, "browser", 1, EPOCH);
  const [account] = readdirSync(join(directory, "accounts"));
  writeFileSync(join(directory, "accounts", account, "1"), "a secret");
  await expect(device.spent("browser")).rejects.toThrow("the file is damaged: it is not JSON");
  await expect(device.spent("browser")).rejects.not.toThrow("secret");
});
