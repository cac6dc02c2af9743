/**
 * Random words. A word has 64 bits, stored as two unsigned 32-bit halves, the low one first.
 *
 * Web Crypto is the only source. Without it, nothing is reported.
 */

import { check, RandomnessError } from "./errors.js";
import type { Bytes } from "./platform.js";

/** Delivers uniform, independent words. */
export interface WordSource {
  /** Whether others could reproduce the words: true only in simulations and tests, whose reports are not private. */
  readonly reproducible: boolean;
  /** Fill with the next words, low and high halves alternating. */
  fill(halves: Uint32Array): void;
}

const POOL_HALVES = 1024;
const MAX_HALVES = 16384; // Web Crypto returns at most 65,536 bytes per call
const CHECKED_HALVES = 8;

/** Fill from Web Crypto. A generator that returns 256 zero bits is considered broken. */
function draw(halves: Uint32Array): void {
  const system = globalThis.crypto;
  check(system?.getRandomValues, "Web Crypto is missing", RandomnessError);
  const checked = halves.subarray(0, CHECKED_HALVES).fill(0);
  try {
    system.getRandomValues(halves as Uint32Array<ArrayBuffer>);
  } catch (error) {
    throw new RandomnessError(`Web Crypto failed: ${error}`, { cause: error });
  }
  check(checked.length < CHECKED_HALVES || checked.some((half) => half), "Web Crypto returns zeros", RandomnessError);
}

/**
 * Web Crypto. Small requests are served from a 4 KiB pool in which every word is wiped once it is used; large requests
 * go directly to the system.
 */
export class SystemSource implements WordSource {
  readonly reproducible = false;
  readonly #pool = new Uint32Array(POOL_HALVES);
  #position = POOL_HALVES;

  fill(halves: Uint32Array): void {
    if (halves.length > POOL_HALVES) {
      for (let start = 0; start < halves.length; start += MAX_HALVES)
        draw(halves.subarray(start, start + MAX_HALVES));
      return;
    }
    if (this.#position + halves.length > POOL_HALVES) {
      draw(this.#pool);
      this.#position = 0;
    }
    const taken = this.#pool.subarray(this.#position, this.#position + halves.length);
    this.#position += halves.length;
    halves.set(taken);
    taken.fill(0);
  }
}

/** Random bytes, for ids. */
export function randomBytes(count: number): Bytes {
  const halves = new Uint32Array(CHECKED_HALVES + Math.ceil(count / 4));
  draw(halves);
  return new Uint8Array(halves.buffer, 0, count);
}
