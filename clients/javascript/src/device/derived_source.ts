/** Words derived from a secret: always the same, and pseudorandom to anyone without it. */

import type { WordSource } from "../randomness.js";
import { hmac } from "../sha256.js";

/** Block c of the stream is HMAC-SHA256(key, c as 8 little-endian bytes) and yields four little-endian words. */
export class DerivedSource implements WordSource {
  readonly reproducible = false;
  readonly #key: Uint8Array;
  #block = 0;
  #view = new DataView(new ArrayBuffer(0));
  #position = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  fill(halves: Uint32Array): void {
    for (let i = 0; i < halves.length; i++, this.#position += 4) {
      if (this.#position === this.#view.byteLength) {
        const counter = new Uint8Array(8);
        new DataView(counter.buffer).setUint32(0, this.#block++, true);
        this.#view = new DataView(hmac(this.#key, counter).buffer as ArrayBuffer);
        this.#position = 0;
      }
      halves[i] = this.#view.getUint32(this.#position, true);
    }
  }
}
