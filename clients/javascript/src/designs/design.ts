/** What a design owes: points, blocks, the draws of one report, and the payload that names the reported block. */

import type { JsonObject } from "../json.js";

/** A message: a number below 2^53, or as many little-endian bytes as its bits need. */
export type Payload = number | Uint8Array;

/** Room for payloads: an array of doubles where all of them are numbers. */
export interface Payloads {
  readonly length: number;
  [row: number]: Payload;
}

/** A design's `respond`, made of a function for one row. */
export function eachRow(
  columns: number,
  respondOne: (point: number, truth: number, variates: Uint32Array) => Payload,
): Design["respond"] {
  return (points, truths, variates, payloads) => {
    points.forEach((point, row) => {
      payloads[row] = respondOne(point, truths[row]!, variates.subarray(columns * row, columns * (row + 1)));
    });
  };
}

/** A family of blocks of `blockSize` among `points` points. */
export interface Design {
  readonly points: number;
  readonly blockSize: number;
  /** The limits of the uniform integers that a report draws, all below 2^32. */
  readonly bounds: readonly number[];
  /** The bits of a payload. */
  readonly bits: number;
  /** How many payloads there are; left out where a payload is bytes. */
  readonly limit?: number;
  /** Get ready for so many reports. */
  prepare?(reports: number): void;
  /**
   * Set the payload for each point, a function of its truth (1 or 0) and its row of variates alone. Many at once, because
   * numbers then stay in arrays of numbers.
   */
  respond(points: Uint32Array, truths: Uint8Array, variates: Uint32Array, payloads: Payloads): void;
  /** Whether bytes of the right length are a payload. */
  accepts?(payload: Uint8Array): boolean;
}

/** Reads one kind of design from a plan, and refuses what it must. */
export interface DesignReader {
  /** @internal */
  readonly kind: string;
  /** @internal */
  read(record: JsonObject): Design;
}
