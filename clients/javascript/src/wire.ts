/** Reports and batches as bytes (`docs/format.md`, 8 and 9). */

import { byteLength, indexBits } from "./arithmetic.js";
import { crc32 } from "./crc32.js";
import { pack } from "./packing.js";
import type { Bytes } from "./platform.js";
import type { Reports } from "./protocols/protocol.js";

/** `SUNZIRB` and the version of the batch format. */
export const MAGIC = Uint8Array.of(83, 85, 78, 90, 73, 82, 66, 1);
export const HEADER_BYTES = 48;
export const CHECKSUM_BYTES = 4;

/** One report: the selector in the lowest bits, the payload above. Its length depends on the selector alone. */
export function encodeReport(layout: readonly number[], { selectors, payloads }: Reports): Bytes {
  const selector = selectors?.[0] ?? 0;
  const shift = indexBits(layout.length);
  const bits = layout[selector];
  const bytes = new Uint8Array(byteLength(shift + bits));
  pack(bytes, 0, [selector, payloads[0]], [shift, bits], [0, 1]);
  return bytes;
}

/** A batch: magic, fingerprint, number, packed selectors, packed payloads, checksum. */
export function encodeBatch(layout: readonly number[], fingerprint: Uint8Array, reports: Reports): Bytes {
  const { selectors, payloads } = reports;
  const count = payloads.length;
  const shift = indexBits(layout.length);
  let bits = count * layout[0];
  if (selectors) bits = selectors.reduce((sum, selector) => sum + layout[selector], 0);
  const bytes = new Uint8Array(HEADER_BYTES + byteLength(count * shift) + byteLength(bits) + CHECKSUM_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  bytes.set(fingerprint, MAGIC.length);
  view.setUint32(HEADER_BYTES - 8, count, true);
  const position = selectors ? pack(bytes, HEADER_BYTES, selectors, [shift]) : HEADER_BYTES;
  pack(bytes, position, payloads, layout, selectors);
  view.setUint32(bytes.length - CHECKSUM_BYTES, crc32(bytes.subarray(0, -CHECKSUM_BYTES)), true);
  return bytes;
}

/** Whether the bytes are a batch, not a single report. */
export function isBatch(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}
