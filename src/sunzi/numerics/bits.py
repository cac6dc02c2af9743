"""Bit packing, least significant bit first: value i of width b fills bits i·b … i·b+b−1, and bit t of a buffer is bit t
mod 8 of byte t//8.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ReportError

Values = NDArray[np.uint64]

# A value of up to 56 bits at any bit offset lies within 8 consecutive bytes.
WIDEST_NARROW = 56
_GROUPS_AT_ONCE = 16384


def byte_length(bits: int) -> int:
    """The number of bytes that ``bits`` bits need."""
    return (bits + 7) // 8


def index_bits(count: int) -> int:
    """⌈log2 count⌉, the bits of an index below ``count``."""
    return (count - 1).bit_length()


def pack(values: Values, width: int) -> bytes:
    """Values of one width of at most 56 bits, back to back, the last byte padded with zeros."""
    count = values.size
    if width == 0 or count == 0:
        return b""
    period = 8 // gcd(width, 8)  # after this many values the bit offset within a byte repeats
    stride = width * period // 8
    groups = -(-count // period)
    buffer = np.zeros(groups * stride + 8, dtype=np.uint8)
    padded = np.zeros(groups * period, dtype=np.uint64)
    padded[:count] = values
    rows = padded.reshape(groups, period)
    for phase in range(period):
        start, shift = divmod(phase * width, 8)
        shifted = rows[:, phase] << np.uint64(shift)
        for byte in range(byte_length(width + shift)):
            target = buffer[start + byte : start + byte + groups * stride : stride][:groups]
            target |= (shifted >> np.uint64(8 * byte)).astype(np.uint8)
    return buffer[: byte_length(count * width)].tobytes()


def unpack(buffer: bytes | memoryview, count: int, width: int) -> Values:
    """The inverse of :func:`pack`; raises ReportError if the length is wrong or the padding is not zero."""
    needed = byte_length(count * width)
    if len(buffer) != needed:
        raise ReportError(f"{count} values of {width} bits take {needed} bytes, got {len(buffer)}")
    if width == 0 or count == 0:
        return np.zeros(count, dtype=np.uint64)
    used = count * width % 8
    if used and buffer[-1] >> used:
        raise ReportError("the padding bits after the last value are not zero")
    period = 8 // gcd(width, 8)
    groups = -(-count // period)
    padded = np.zeros(groups * width * period // 8 + 8, dtype=np.uint8)
    padded[:needed] = np.frombuffer(buffer, dtype=np.uint8)
    return _unpack_groups(padded, groups, period, width)[:count]


def _unpack_groups(padded: NDArray[np.uint8], groups: int, period: int, width: int) -> Values:
    """One strided load per phase: every ``period``-th value begins at the same bit of a byte. A compiled loop is not
    faster.
    """
    stride = width * period // 8
    values = np.empty((groups, period), dtype=np.uint64)
    mask = np.uint64((1 << width) - 1)
    # Groups are processed in batches that stay in the cache for all their phases.
    for first in range(0, groups, _GROUPS_AT_ONCE):
        part = values[first : first + _GROUPS_AT_ONCE]
        for phase in range(period):
            start, shift = divmod(phase * width, 8)
            offset = first * stride + start
            loaded = np.ndarray((len(part),), dtype="<u8", buffer=padded.data, offset=offset, strides=(stride,))
            np.right_shift(loaded, np.uint64(shift), out=part[:, phase])
        part &= mask
    return values.reshape(-1)


def pack_wide(values: Sequence[int], widths: Sequence[int]) -> bytes:
    """Integers of any widths, back to back, the last byte padded with zeros."""
    bits = [
        np.unpackbits(
            np.frombuffer(value.to_bytes(byte_length(width), "little"), dtype=np.uint8), count=width, bitorder="little"
        )
        for value, width in zip(values, widths, strict=True)
        if width
    ]
    return np.packbits(np.concatenate(bits), bitorder="little").tobytes() if bits else b""


def unpack_wide(buffer: bytes | memoryview, widths: Sequence[int]) -> list[int]:
    """The inverse of :func:`pack_wide`; raises ReportError if the length is wrong or the padding is not zero."""
    total = sum(widths)
    needed = byte_length(total)
    if len(buffer) != needed:
        raise ReportError(f"{len(widths)} values of {total} bits together take {needed} bytes, got {len(buffer)}")
    bits = np.unpackbits(np.frombuffer(buffer, dtype=np.uint8), bitorder="little")
    if bits[total:].any():
        raise ReportError("the padding bits after the last value are not zero")
    values, start = [], 0
    for width in widths:
        packed = np.packbits(bits[start : start + width], bitorder="little")
        values.append(int.from_bytes(packed.tobytes(), "little"))
        start += width
    return values
