/** Parses reports as a collector does: to show what a report contains, and to test that invalid ones are rejected. */

import { byteLength, indexBits } from "./arithmetic.js";
import { crc32 } from "./crc32.js";
import type { Payload } from "./designs/design.js";
import { check, ReportError } from "./errors.js";
import type { Plan } from "./plan.js";
import { CHECKSUM_BYTES, HEADER_BYTES, isBatch, MAGIC } from "./wire.js";

export { readTally, type Tally, TallyError } from "./tally.js";

/** A parsed report: its payload, and its modulus if the plan has several. */
export interface Report {
  readonly selector: number;
  readonly payload: Payload;
}

/** Reads bits from bytes, lowest first. */
class BitReader {
  #bit = 0;

  constructor(private readonly bytes: Uint8Array) {}

  bytesOf(bits: number): Uint8Array {
    const taken = new Uint8Array(byteLength(bits));
    for (let i = 0; i < bits; i++, this.#bit++) {
      taken[i >> 3] |= ((this.bytes[this.#bit >> 3] >> (this.#bit & 7)) & 1) << (i & 7);
    }
    return taken;
  }

  number(bits: number): number {
    return this.bytesOf(bits).reduceRight((sum, byte) => sum * 256 + byte, 0);
  }

  /** Check that fewer than 8 bits are left, all of them 0. */
  finish(): void {
    const left = 8 * this.bytes.length - this.#bit;
    check(left < 8 && this.number(left) === 0, "unused bits must be 0", ReportError);
  }
}

function readPayload(plan: Plan, selector: number, reader: BitReader): Payload {
  const { layout, designs } = plan.mechanism;
  const bits = layout[selector];
  const isCompact = designs.length > layout.length;
  const limit = isCompact ? designs.reduce((sum, design) => sum + (design.limit ?? 0), 0) : designs[selector]?.limit;
  const payload = limit === undefined ? reader.bytesOf(bits) : reader.number(bits);
  const isBlock = () => !designs[selector]?.members || designs[selector].members(payload as Uint8Array) !== undefined;
  const isGood = typeof payload === "number" ? payload < (limit ?? 0) : isBlock();
  check(isGood, "the payload is invalid for this plan", ReportError);
  return payload;
}

function checkSelector(plan: Plan, selector: number): number {
  check(selector < plan.mechanism.layout.length, "the selector is out of range", ReportError);
  return selector;
}

/** Parse one report. Throws a ReportError if it is invalid. */
export function readReport(plan: Plan, bytes: Uint8Array): Report {
  const { layout } = plan.mechanism;
  const shift = indexBits(layout.length);
  const reader = new BitReader(bytes);
  const selector = checkSelector(plan, reader.number(shift));
  check(bytes.length === byteLength(shift + layout[selector]), "the report has the wrong length", ReportError);
  const payload = readPayload(plan, selector, reader);
  reader.finish();
  return { selector, payload };
}

/** Parse concatenated batches. Throws a ReportError if any is invalid. */
export function readBatches(plan: Plan, bytes: Uint8Array): Report[] {
  const reports: Report[] = [];
  while (bytes.length) {
    const length = readBatch(plan, bytes, reports);
    bytes = bytes.subarray(length);
  }
  return reports;
}

/** Parse the first batch and return its length. */
function readBatch(plan: Plan, bytes: Uint8Array, reports: Report[]): number {
  const { layout } = plan.mechanism;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let position = HEADER_BYTES;
  const next = (count: number): Uint8Array => {
    check(bytes.length >= position + count, "the batch is truncated", ReportError);
    position += count;
    return bytes.subarray(position - count, position);
  };
  next(0);
  check(isBatch(bytes), "not a batch of version 1", ReportError);
  const isOfThisPlan = plan.fingerprintBytes.every((byte, i) => byte === bytes[MAGIC.length + i]);
  check(isOfThisPlan, "the batch belongs to another plan", ReportError);
  const count = view.getUint32(HEADER_BYTES - 8, true) + view.getUint32(HEADER_BYTES - 4, true) * 2 ** 32;
  check(count <= 8 * bytes.length, "the batch is truncated", ReportError);

  const shift = indexBits(layout.length);
  const selectorReader = new BitReader(next(byteLength(count * shift)));
  const selectors = Array.from({ length: count }, () => checkSelector(plan, selectorReader.number(shift)));
  selectorReader.finish();
  const bits = selectors.reduce((sum, selector) => sum + layout[selector], 0);
  const reader = new BitReader(next(byteLength(bits)));
  for (const selector of selectors) reports.push({ selector, payload: readPayload(plan, selector, reader) });
  reader.finish();
  const checksum = crc32(bytes.subarray(0, position));
  next(CHECKSUM_BYTES);
  check(view.getUint32(position - CHECKSUM_BYTES, true) === checksum, "the checksum does not match", ReportError);
  return position;
}
