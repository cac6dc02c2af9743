/** The interface of protocols: the length of reports, and how values become reports. */

import type { Design, Payload, Payloads } from "../designs/design.js";
import type { WordSource } from "../randomness.js";

/** Reports in the order of their values: a payload each, and a selector each if the protocol has several. */
export interface Reports {
  readonly selectors?: Uint8Array;
  readonly payloads: Payloads;
}

/** The index of a value; of a text of an open domain, its digits. */
export type Index = number | readonly number[];

/** Indices of values: of doubles if the domain has more than 2^32 values, which only `tables` allow. */
export type Indices = Uint32Array | Float64Array | readonly Index[];

/** Turns values, as indices, into reports. */
export interface Protocol {
  /** The bits of a payload, for every selector. */
  readonly layout: readonly number[];
  /** The random words of a report besides those of its response. */
  readonly ownWords: number;
  /** The designs of its block responses, in order. */
  readonly designs: readonly Design[];
  /** Make one report per value. Words are drawn in the order of `docs/format.md` (7). */
  randomize(indices: Indices, source: WordSource): Reports;
  /**
   * The question of one report, drawn independently of the value, and the cell of the value that answers it. A
   * memoising device keeps its question, and its noise for every cell. Missing if reports are about the value itself.
   */
  drawCell?(index: Index, source: WordSource): [question: number, cell: number];
  /** One report of the cell that `drawCell` found. */
  respond?(question: number, cell: number, source: WordSource): Reports;
}

export const TOO_FEW_POINTS = "too few points for the domain";

/** An array for payloads of these designs: a typed array if all of them are numbers. */
export function payloadArray(count: number, designs: readonly Design[]): Payloads {
  const areNumbers = designs.every(({ limit }) => limit !== undefined);
  return areNumbers ? new Float64Array(count) : new Array<Payload>(count);
}
