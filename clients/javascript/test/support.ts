/** Shared by the tests: conformance vectors, scripted words, expected errors. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

import { Device, type DeviceOptions } from "../src/device.js";
import { RandomnessError, SunziError, type WordSource } from "../src/index.js";

const VECTORS = join(import.meta.dirname, "..", "..", "..", "conformance", "v1");

/** The names of all vectors. */
export const NAMES = readdirSync(VECTORS).map((name) => name.replace(/\.json$/, ""));

/** One vector. */
export function load(name: string): any {
  return JSON.parse(readFileSync(join(VECTORS, `${name}.json`), "utf8"));
}

/** Replays the given words and throws after the last one. */
export class ScriptedSource implements WordSource {
  readonly reproducible = true;
  used = 0;
  readonly #words: bigint[];

  constructor(words: Iterable<string | bigint>) {
    this.#words = Array.from(words, BigInt);
  }

  get remaining(): number {
    return this.#words.length - this.used;
  }

  fill(halves: Uint32Array): void {
    for (let i = 0; i < halves.length; i += 2) {
      if (!this.remaining) throw new RandomnessError("the script is over");
      const word = this.#words[this.used++];
      halves[i] = Number(word & 0xffffffffn);
      halves[i + 1] = Number(word >> 32n);
    }
  }
}

/** A device whose user has agreed. */
export async function openDevice(options: DeviceOptions): Promise<Device> {
  const device = await Device.open(options);
  expect(await device.enable()).toBe(true);
  return device;
}

/** Hexadecimal digits as bytes. */
export function bytesOf(hexadecimal: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hexadecimal, "hex"));
}

/** Bytes as hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** The SunziError that the action throws. */
export function thrownBy(action: () => unknown): SunziError {
  let thrown: unknown;
  try {
    action();
  } catch (error) {
    thrown = error;
  }
  expect(thrown, "nothing was thrown").toBeInstanceOf(SunziError);
  return thrown as SunziError;
}

/** Expect the action to throw an error of exactly this name. */
export function expectError(name: string, action: () => unknown): void {
  const thrown = thrownBy(action);
  expect(thrown.name, String(thrown)).toBe(name);
}

/** {@link expectError} for a promise. */
export async function expectRejection(name: string, action: Promise<unknown>): Promise<void> {
  const thrown = await action.then(
    () => undefined,
    (error: unknown) => error,
  );
  expectError(name, () => {
    if (thrown) throw thrown;
  });
}

/** The first line of an upload, with its id and token, and the report or batch that follows. */
export function split(body: unknown): [line: string, content: Uint8Array] {
  const bytes = body as Uint8Array;
  const end = bytes.indexOf(10);
  return [new TextDecoder().decode(bytes.subarray(0, end)), bytes.slice(end + 1)];
}
