/** The interface of designs: points, blocks, the draws of one report, and the payload that encodes a block. */

import type { JsonObject } from "../json.js";

/** The message of a report: a number below 2^53, or little-endian bytes. */
export type Payload = number | Uint8Array;

/** An array of payloads: of doubles if all payloads are numbers. */
export interface Payloads {
  readonly length: number;
  [row: number]: Payload;
}

/** Makes a design's `respond` from a function for one row. */
export function eachRow(
  respondOne: (point: number, truth: number, variates: Uint32Array) => Payload,
): Design["respond"] {
  return (points, truths, variates, payloads) => {
    const columns = variates.length / points.length;
    points.forEach((point, row) => {
      payloads[row] = respondOne(point, truths[row], variates.subarray(columns * row, columns * (row + 1)));
    });
  };
}

/** A family of blocks of `blockSize` among `points` points. */
export interface Design {
  readonly points: number;
  readonly blockSize: number;
  /** The exclusive upper bounds of the uniform integers that a report draws, all below 2^32. */
  readonly bounds: readonly number[];
  /** The bits of a payload. */
  readonly bits: number;
  /** What a response costs (`docs/format.md`, 11); by default, the truth word and one word per bound. */
  readonly work?: number;
  /** The number of payloads; missing if payloads are bytes. */
  readonly limit?: number;
  /** Prepare for this many reports. */
  prepare?(reports: number): void;
  /**
   * Set the payload of each point, a function of its truth (1 or 0) and its row of variates only. It takes many points
   * at once so that numbers stay in typed arrays.
   */
  respond(points: Uint32Array, truths: Uint8Array, variates: Uint32Array, payloads: Payloads): void;
  /** If payloads are bytes: a 1 for every point of the block. Undefined if bytes of the right length are no payload. */
  members?(payload: Uint8Array): Uint8Array | undefined;
}

/** Reads and checks one kind of design in a plan. */
export interface DesignReader {
  /** @internal */
  readonly kind: string;
  /** @internal */
  read(record: JsonObject): Design;
}
