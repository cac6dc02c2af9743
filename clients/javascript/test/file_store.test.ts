/** How FileStore uses the file system: it reads few files, makes names durable and removes leftovers of crashes. */

import { mkdirSync, mkdtempSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";

import { Plan } from "../src/index.js";
import type { QueuedReport } from "../src/device.js";
import { settled } from "../src/device/account.js";
import { FileStore } from "../src/node.js";
import { load, openDevice } from "./support.js";

const PLAN = new Plan(load("grr_k5").plan);
const EPOCH = "https://collector.example/v1/collections/browsers/epochs/1";
const HOUR = 3600;

const seen = vi.hoisted(() => ({ read: [] as string[], synced: [] as string[] }));

// The real file system, with a record of calls.
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  return {
    ...real,
    readFile: (path: string, ...rest: []) => {
      seen.read.push(path);
      return real.readFile(path, ...rest);
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
  await openDevice({ lifetimeEpsilon: 5, maxEpsilon: 32, store: new FileStore(directory) });
  expect(readdirSync(unfinished).sort()).toEqual(["new", "recent"]);
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
