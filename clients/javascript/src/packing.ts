/** Bit packing: the first value fills the lowest bits of the buffer, the next one the bits above. */

import type { Payload } from "./designs/design.js";

const PIECE_BITS = 24;
const PIECE = 2 ** PIECE_BITS;
const EVERY_WIDTH = Array.from({ length: PIECE_BITS + 1 }, (_, width) => width);

/**
 * Pack values into bytes from a position on and return the position after them. The last byte is padded with zeros. The
 * i-th value has widths[choices[i]] bits, or widths[0] without choices.
 */
export function pack(
  bytes: Uint8Array,
  position: number,
  values: ArrayLike<Payload>,
  widths: readonly number[],
  choices?: ArrayLike<number>,
): number {
  const isNarrow = !Array.isArray(values) && widths.every((width) => width <= PIECE_BITS);
  if (isNarrow) return packPieces(bytes, position, values as ArrayLike<number>, widths, choices);
  const pieces: number[] = [];
  const pieceWidths: number[] = [];
  for (let i = 0; i < values.length; i++) {
    let rest = values[i];
    const isNumber = typeof rest === "number";
    for (let bits = widths[choices ? choices[i] : 0], place = 0; bits > 0; place++) {
      const taken = Math.min(bits, isNumber ? PIECE_BITS : 8);
      pieces.push(isNumber ? (rest as number) % PIECE : (rest as Uint8Array)[place]);
      pieceWidths.push(taken);
      if (isNumber) rest = Math.floor((rest as number) / PIECE);
      bits -= taken;
    }
  }
  return packPieces(bytes, position, pieces, EVERY_WIDTH, pieceWidths);
}

/** {@link pack} for numbers of at most 24 bits. */
function packPieces(
  bytes: Uint8Array,
  position: number,
  values: ArrayLike<number>,
  widths: readonly number[],
  choices?: ArrayLike<number>,
): number {
  let held = 0; // up to 7 bits of an incomplete byte
  let heldBits = 0;
  for (let i = 0; i < values.length; i++) {
    held |= values[i] << heldBits;
    for (heldBits += widths[choices ? choices[i] : 0]; heldBits >= 8; heldBits -= 8) {
      bytes[position++] = held;
      held >>>= 8;
    }
  }
  if (heldBits) bytes[position++] = held;
  return position;
}
