/**
 * Random words. A word has 64 bits and is held as two unsigned halves of 32, the low one first.
 *
 * The only source that ships is Web Crypto. Where there is none, nothing is reported.
 */

import { check, RandomnessError } from "./errors.js";

/** Delivers uniform, independent words. */
export interface WordSource {
  /** Whether the words could be had again by others: true only for simulations and proofs, which protect nobody. */
  readonly reproducible: boolean;
  /** Fill with the next words, low half and high half in turn. */
  fill(halves: Uint32Array): void;
}

const POOL_HALVES = 1024;
const MOST_HALVES = 16384; // Web Crypto hands out at most 65,536 bytes at once
const CHECKED_HALVES = 8;

/** Fill from Web Crypto, or throw. A generator that leaves 256 bits at zero is taken for broken. */
function draw(halves: Uint32Array): void {
  const system = globalThis.crypto;
  check(system?.getRandomValues, "Web Crypto is missing", RandomnessError);
  const checked = halves.subarray(0, CHECKED_HALVES).fill(0);
  try {
    system.getRandomValues(halves as Uint32Array<ArrayBuffer>);
  } catch (error) {
    throw new RandomnessError(`Web Crypto failed: ${error}`);
  }
  check(checked.length < CHECKED_HALVES || checked.some((half) => half), "Web Crypto gives zeros", RandomnessError);
}

/**
 * Web Crypto. No word is handed out twice: small requests come from a pool of 4 KiB in which every word is wiped when
 * it leaves, large ones go straight to the system.
 */
export class SystemSource implements WordSource {
  readonly reproducible = false;
  readonly #pool = new Uint32Array(POOL_HALVES);
  #position = POOL_HALVES;

  fill(halves: Uint32Array): void {
    if (halves.length > POOL_HALVES) {
      for (let start = 0; start < halves.length; start += MOST_HALVES)
        draw(halves.subarray(start, start + MOST_HALVES));
      return;
    }
    if (this.#position + halves.length > POOL_HALVES) {
      draw(this.#pool);
      this.#position = 0;
    }
    const taken = this.#pool.subarray(this.#position, (this.#position += halves.length));
    halves.set(taken);
    taken.fill(0);
  }
}

/** Random bytes, for ids. */
export function randomBytes(count: number): Uint8Array {
  const halves = new Uint32Array(CHECKED_HALVES + Math.ceil(count / 4));
  draw(halves);
  return new Uint8Array(halves.buffer, 0, count);
}
