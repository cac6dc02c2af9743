"""Bit packing, least significant bit first: value i of width b fills bits i·b … i·b+b−1, and bit t of a buffer is bit t
mod 8 of byte t//8. And mixing the bits of integers, for fixed orders and partitions that look random.
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.errors import ReportError
from sunzi.client.reports import byte_length

Values = NDArray[np.uint64]
Rows = NDArray[np.uint8]

_GROUPS_AT_ONCE = 16384
_MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
SPLITMIX_STEP = np.uint64(0x9E3779B97F4A7C15)
"""What SplitMix64 adds before it mixes; odd, so that multiples of it are distinct."""


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


def place_rows(buffer: Rows, starts: Integers, rows: Rows, width: int) -> None:
    """Write values of ``width`` bits, one per row of bytes, into a buffer of zeros: the i-th from bit starts[i] on.

    The lowest bits come first. The buffer has at least one byte after the last value.
    """
    count, length = rows.shape
    if not count or not width:
        return
    shifts = (starts & 7).astype(np.uint8)[:, None]
    shifted = np.zeros((count, length + 1), dtype=np.uint8)
    np.left_shift(rows, shifts, out=shifted[:, :-1])
    shifted[:, 1:] |= rows >> (8 - shifts)
    first = starts >> 3
    if length > 2:
        sliding_window_view(buffer, length - 2, writeable=True)[first + 1] = shifted[:, 1:-2]
    for column in {0, length - 1, length}:  # these bytes may hold bits of neighbours too
        np.bitwise_or.at(buffer, first + column, shifted[:, column])


def take_rows(buffer: Rows, starts: Integers, width: int) -> Rows:
    """The inverse of :func:`place_rows`: values of ``width`` bits as rows of bytes. The buffer has at least one byte
    after the last value.
    """
    length = byte_length(width)
    if not width or not starts.size:
        return np.zeros((starts.size, length), dtype=np.uint8)
    shifts = (starts & 7).astype(np.uint8)[:, None]
    windows = sliding_window_view(buffer, length + 1)[starts >> 3]
    rows = windows[:, :-1] >> shifts
    rows |= windows[:, 1:] << (8 - shifts)
    rows[:, -1] &= 0xFF >> (8 * length - width)
    return rows


def as_rows(values: Values | Rows, width: int) -> Rows:
    """Integers of at most 56 bits as rows of bytes, the lowest first; rows are left as they are."""
    if values.ndim > 1:
        return values.astype(np.uint8, copy=False)
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : byte_length(width)]


def as_integers(rows: Rows) -> Values:
    """The inverse of :func:`as_rows`."""
    padded = np.zeros((len(rows), 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view("<u8").reshape(-1).astype(np.uint64, copy=False)


def mix_bits(numbers: Values) -> Values:
    """The finaliser of SplitMix64: a bijection of 64-bit numbers in which every bit depends on all others."""
    for shift, factor in _MIXERS:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
