/** Damaged directories of a FileStore are read correctly or refused with a StoreError; no debit is ever credited. */

import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Device, type QueuedReport } from "../src/device.js";
import { settled } from "../src/device/account.js";
import { Plan, StoreError } from "../src/index.js";
import { FileStore } from "../src/node.js";
import { expectRejection, load } from "./support.js";

const PLAN = new Plan({ ...load("grr_k5").plan, groups: { country: ["DE"] } });
const EPOCH = "https://collector.example/v1/collections/browsers/epochs/";
const ROUNDS = Number(process.env.SUNZI_DAMAGE_ROUNDS ?? 40);
const VALUES = [null, -5, 0, 1e300, true, "", "x", "-5", "1/0", "9".repeat(5000), [], {}, ["1"], { epsilon: "1" }];

// In memory, where the system has such a directory: these files need no disk.
const MEMORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const made: string[] = [];

function temporary(name: string): string {
  made.push(mkdtempSync(join(MEMORY, name)));
  return made.at(-1) as string;
}

let filled: string;

const opened = (directory: string): Promise<Device> =>
  Device.open({ lifetimeEpsilon: 5, maxEpsilon: 2, store: new FileStore(directory) });

async function settle(store: FileStore, report: QueuedReport, isRejected = false): Promise<void> {
  await store.update(report.attribute, (account) => settled(account, report, isRejected));
}

afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true });
});

beforeAll(async () => {
  filled = temporary("sunzi-filled-");
  const device = await opened(filled);
  await device.enable();
  const token = "ab".repeat(32);
  const groups = { country: "DE" };
  for (const [epoch, value] of [0, 1, 0, 0].entries()) {
    for (const attribute of ["a", "b"]) await device.queue(PLAN, attribute, value, `${EPOCH}${epoch + 1}`, { token, groups });
  }
  const store = new FileStore(filled);
  const [first, second] = await device.waiting();
  await settle(store, first);
  await settle(store, second, true);
});

/** Numbers from 0 to 1, the same for the same seed. */
function generator(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const below = (next: () => number, limit: number): number => Math.floor(next() * limit);
const pick = <T>(next: () => number, items: readonly T[]): T => items[below(next, items.length)];

function files(directory: string): string[] {
  const names = readdirSync(directory, { recursive: true }) as string[];
  const paths = names.map((name) => join(directory, name)).sort();
  return paths.filter((path) => statSync(path).isFile() && statSync(path).size); // earlier versions are empty
}

/** Replace one value of a JSON text, at any depth. */
function edit(next: () => number, text: string): string {
  const whole = JSON.parse(text);
  let place = whole;
  for (;;) {
    const key = pick(next, Object.keys(place));
    if (typeof place[key] === "object" && place[key] && next() < 0.8) place = place[key];
    else {
      if (next() < 0.2) delete place[key];
      else place[key] = pick(next, VALUES);
      return JSON.stringify(whole);
    }
  }
}

function damage(next: () => number, directory: string): string {
  const path = pick(next, files(directory));
  const bytes = readFileSync(path);
  const way = pick(next, ["flip", "cut", "delete", "edit", "edit", "zero", "append"]);
  if (way === "flip") bytes[below(next, bytes.length)] ^= 1 << below(next, 8);
  if (way === "zero") bytes.fill(0, below(next, bytes.length));
  if (way === "delete") rmSync(path);
  else if (way === "cut") writeFileSync(path, bytes.subarray(0, below(next, bytes.length)));
  else if (way === "append") writeFileSync(path, Buffer.concat([bytes, Buffer.from("}")]));
  else if (way === "edit" && !path.endsWith("key")) writeFileSync(path, edit(next, bytes.toString()));
  else writeFileSync(path, bytes);
  return `${way} ${path}`;
}

async function use(directory: string): Promise<void> {
  const device = await opened(directory);
  await device.enable(); // a damaged key may be one that is missing
  for (const attribute of ["a", "b"]) {
    const before = Number(await device.spent(attribute));
    expect(before).toBeGreaterThanOrEqual(0);
    await device.queue(PLAN, attribute, 4, `${EPOCH}9`);
    expect(Number(await device.spent(attribute))).toBe(before + 1);
  }
  const store = new FileStore(directory);
  for (const report of await device.waiting()) await settle(store, report);
  expect(await device.waiting()).toEqual([]);
}

test("damaged directories are refused with a StoreError", async () => {
  const outcomes: Record<string, number> = {};
  const base = temporary("sunzi-damaged-");
  for (let seed = 0; seed < ROUNDS; seed++) {
    const directory = join(base, `${seed}`);
    cpSync(filled, directory, { recursive: true });
    const done = damage(generator(seed), directory);
    const outcome = await use(directory).then(
      () => "fine",
      (error: Error) => (error instanceof StoreError ? "StoreError" : `seed ${seed}: ${done}: ${error}`),
    );
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    rmSync(directory, { recursive: true });
  }
  if (process.env.SUNZI_DAMAGE_ROUNDS) console.log(outcomes);
  expect(Object.keys(outcomes).sort()).toEqual(["StoreError", "fine"]);
});

test.each(["-5", "0", "33", "1/0", "2/2", "1.0", "", -5, 1, null])(
  "a debit edited to %s is refused, not credited",
  async (epsilon) => {
    const directory = temporary("sunzi-edited-");
    cpSync(filled, directory, { recursive: true });
    const device = await opened(directory);
    expect(await device.spent("a")).toBe("2");
    const path = files(directory).find((each) => readFileSync(each, "utf8").startsWith('{"account":{"attribute":"a"')) as string;
    const entry = JSON.parse(readFileSync(path, "utf8"));
    entry.account.debits[1].epsilon = epsilon;
    writeFileSync(path, JSON.stringify(entry));
    await expectRejection("StoreError", device.spent("a"));
    await expectRejection("StoreError", device.queue(PLAN, "a", 4, `${EPOCH}9`));
    expect(await device.spent("b")).toBe("2");
  },
);

test("a missing account is noticed, not credited", async () => {
  const directory = temporary("sunzi-missing-");
  cpSync(filled, directory, { recursive: true });
  const device = await opened(directory);
  const path = files(directory).find((each) => readFileSync(each, "utf8").startsWith('{"account":{"attribute":"a"')) as string;
  rmSync(path);
  await expectRejection("StoreError", device.spent("a"));
});
