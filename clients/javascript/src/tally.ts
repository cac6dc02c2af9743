/** Parses a tally that was downloaded from a collector (`docs/format.md`, 10). */

import { check, SunziError } from "./errors.js";
import { decodeText } from "./json.js";
import { hexadecimal, sha256 } from "./sha256.js";

/** A tally is malformed or inconsistent. */
export class TallyError extends SunziError {
  static override readonly name: string = "TallyError";
}

/** The counts of reports under one plan. */
export interface Tally {
  readonly fingerprint: string;
  readonly reports: number;
  /** The number of counters and the weight of every block. */
  readonly blocks: readonly (readonly [number, number])[];
  readonly counts: readonly number[];
}

const MAGIC = "SUNZITL\x01";
const DIGEST_BYTES = 32;
const START = 12;
const MAX_HEADER_BYTES = 1 << 24;

function expect(condition: unknown, message: string): asserts condition {
  check(condition, message, TallyError);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Parse a tally and check its digest and invariants. Throws a TallyError if it is invalid. */
export function readTally(bytes: Uint8Array): Tally {
  const body = bytes.subarray(0, -DIGEST_BYTES);
  expect(body.length >= START && String.fromCharCode(...bytes.subarray(0, 8)) === MAGIC, "not a tally");
  const digest = hexadecimal(bytes.subarray(-DIGEST_BYTES));
  expect(hexadecimal(sha256(body)) === digest, "the digest does not match: the tally is truncated or damaged");
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const end = START + view.getUint32(START - 4, true);
  expect(end - START <= MAX_HEADER_BYTES, "the header is too long");
  const { fingerprint, reports, blocks, stored } = readHeader(decodeText(body.subarray(START, end), TallyError));
  const values = readValues(view, end);
  const length = blocks.reduce((sum, [size]) => sum + size, 0);
  const counts = stored === null ? values : spread(values, stored, length);
  expect(counts.length === length, "the counts do not fit the header");
  checkBlocks(blocks, counts, reports);
  return { fingerprint, reports, blocks, counts };
}

interface Header {
  fingerprint: string;
  reports: number;
  blocks: [number, number][];
  stored: number | null;
}

function readHeader(text: string): Header {
  let value: ReturnType<typeof JSON.parse>;
  try {
    value = JSON.parse(text);
    // Only the canonical spelling is accepted: other programs might parse another one differently.
    const { fingerprint, reports, blocks, stored } = value;
    expect(JSON.stringify({ fingerprint, reports, blocks, stored }) === text, "the header is not canonical");
  } catch (cause) {
    throw cause instanceof TallyError ? cause : new TallyError("the header is malformed", { cause });
  }
  const { fingerprint, reports, blocks, stored } = value;
  const areBlocks =
    Array.isArray(blocks) &&
    blocks.length > 0 &&
    blocks.every((block) => Array.isArray(block) && block.length === 2 && block.every(isCount) && block[0] > 0);
  const areStrings = typeof fingerprint === "string" && typeof reports === "string"; // test() would convert others
  expect(areStrings && /^[\da-f]{64}$/.test(fingerprint) && areBlocks, "the header is malformed");
  expect(/^(0|[1-9]\d{0,15})$/.test(reports) && (stored === null || isCount(stored)), "the header is malformed");
  return { fingerprint, reports: Number(reports), blocks, stored };
}

function readValues(view: DataView, start: number): number[] {
  const count = (view.byteLength - start) / 8;
  expect(isCount(count), "the counts are truncated");
  return Array.from({ length: count }, (_, i) => {
    const value = Number(view.getBigInt64(start + 8 * i, true));
    expect(isCount(value), `a count must not be negative, got ${value}`);
    return value;
  });
}

/** Dense counts from a sparse list of indices and counts. */
function spread(values: number[], stored: number, length: number): number[] {
  expect(values.length === 2 * stored, "the counts do not fit the header");
  const counts = new Array<number>(length).fill(0);
  let last = -1;
  for (let i = 0; i < stored; i++) {
    expect(values[i] > last && values[i] < length, "the indices must ascend and lie within the counters");
    last = values[i];
    counts[last] = values[stored + i];
    expect(counts[last], "a sparse tally must not store counts of 0");
  }
  return counts;
}

/** Check that the counts of a block add up to a multiple of its weight, and that none exceeds the block's reports. */
function checkBlocks(blocks: readonly [number, number][], counts: readonly number[], reports: number): void {
  let [start, counted, isWeighted] = [0, 0, false];
  for (const [size, weight] of blocks) {
    const block = counts.slice(start, start + size);
    const inBlock = weight ? block.reduce((sum, count) => sum + count, 0) / weight : reports;
    expect(isCount(inBlock), "the counts of a block must add up to a multiple of its weight");
    expect(
      block.every((count) => count <= inBlock),
      "a count exceeds the reports of its block",
    );
    start += size;
    counted += inBlock;
    isWeighted ||= weight > 0;
  }
  expect(!isWeighted || counted === reports, `the counts add up to ${counted} reports, the header says ${reports}`);
}
