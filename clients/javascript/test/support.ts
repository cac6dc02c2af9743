/** What the tests share: vectors, scripted words, and what a refusal looks like. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

import { RandomnessError, SunziError, type WordSource } from "../src/index.js";

const VECTORS = join(import.meta.dirname, "..", "..", "..", "conformance", "v1");

/** The names of all vectors. */
export const NAMES = readdirSync(VECTORS).map((name) => name.replace(/\.json$/, ""));

/** One vector. */
export function load(name: string): any {
  return JSON.parse(readFileSync(join(VECTORS, `${name}.json`), "utf8"));
}

/** Replays given words, and refuses to go past the last one. */
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
      const word = this.#words[this.used++]!;
      halves[i] = Number(word & 0xffffffffn);
      halves[i + 1] = Number(word >> 32n);
    }
  }
}

/** Hexadecimal digits as bytes. */
export function bytesOf(hexadecimal: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hexadecimal, "hex"));
}

/** Bytes as hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** The action must be refused with an error of exactly this name. */
export function refused(name: string, action: () => unknown): void {
  let thrown: unknown;
  try {
    action();
  } catch (error) {
    thrown = error;
  }
  expect(thrown, "nothing was refused").toBeInstanceOf(SunziError);
  expect((thrown as Error).name, String(thrown)).toBe(name);
}

/** The same for an action that takes its time. */
export async function refusedLater(name: string, action: Promise<unknown>): Promise<void> {
  const thrown = await action.then(
    () => undefined,
    (error: unknown) => error,
  );
  refused(name, () => {
    if (thrown) throw thrown;
  });
}
