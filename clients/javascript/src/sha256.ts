/**
 * Synchronous SHA-256 and HMAC, because Web Crypto's are asynchronous and making a report is not.
 *
 * The device key is not used here; it stays inside Web Crypto.
 */

const START = new Int32Array(8);
const ROUNDS = new Int32Array(64);

// The constants are the first 32 fractional bits of the square and cube roots of the first primes.
for (let number = 2, count = 0; count < 64; number++) {
  let divisor = 2;
  while (number % divisor) divisor++;
  if (divisor === number) {
    if (count < 8) START[count] = Math.sqrt(number) * 2 ** 32;
    ROUNDS[count++] = Math.cbrt(number) * 2 ** 32;
  }
}

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by));
const rotations = (word: number, by: number, andBy: number, third: number): number =>
  rotate(word, by) ^ rotate(word, andBy) ^ third;

/** The digest of these parts, concatenated. */
export function sha256(...parts: Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const message = new Uint8Array(((length + 72) >> 6) << 6);
  let position = 0;
  for (const part of parts) {
    message.set(part, position);
    position += part.length;
  }
  message[length] = 0x80;
  const view = new DataView(message.buffer);
  view.setUint32(message.length - 8, length / 2 ** 29);
  view.setUint32(message.length - 4, length << 3);

  const state = START.slice();
  const schedule = new Int32Array(64);
  for (let block = 0; block < message.length; block += 64) {
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const x = schedule[i - 15];
      const y = schedule[i - 2];
      schedule[i] =
        i < 16
          ? view.getInt32(block + 4 * i)
          : schedule[i - 16] + schedule[i - 7] + rotations(x, 7, 18, x >>> 3) + rotations(y, 17, 19, y >>> 10);
      const first = h + rotations(e, 6, 11, rotate(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + schedule[i];
      const second = rotations(a, 2, 13, rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] += word));
  }
  state.forEach((word, i) => view.setInt32(4 * i, word));
  return message.slice(0, 32);
}

/** HMAC-SHA256 with a key of at most 64 bytes. */
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  const inner = new Uint8Array(64).fill(0x36);
  const outer = new Uint8Array(64).fill(0x5c);
  key.forEach((byte, i) => {
    inner[i] ^= byte;
    outer[i] ^= byte;
  });
  return sha256(outer, sha256(inner, message));
}

/** Bytes as lower-case hexadecimal digits. */
export function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
