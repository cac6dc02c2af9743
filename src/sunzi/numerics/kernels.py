"""Compiled loops, used when numba (the extra `fast`) is installed. They change speed, never a result.

The loops below are plain functions, so this module imports without numba; `load` compiles them once per process.
Setting the environment variable SUNZI_NO_NUMBA=1 keeps every caller on its numpy path.

They draw subsets as `sunzi.numerics.subset_sampling` defines it, and encode and decode them as
`sunzi.numerics.subset_code` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers

_LOW_32 = np.uint64(0xFFFFFFFF)
_SHIFT_32 = np.uint64(32)

_LANES = 32
"""Rows that are coded in lockstep, so that the processor works on several at once."""
_WHOLE, _TOP, _DIGIT = 2.0**48, 2.0**40, 256.0

_SECONDS_TO_LOAD = 0.5
"""Importing numba takes about as long."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The compiled loops. They check only the shapes of their arguments: see each loop for what it assumes."""

    sample_subsets: Callable[..., bool]
    encode_subsets: Callable[..., bool]
    decode_subsets: Callable[..., bool]


@cache
def load() -> Kernels | None:
    """Return the compiled kernels, or None without numba or with SUNZI_NO_NUMBA=1 in the environment."""
    if os.environ.get("SUNZI_NO_NUMBA", "0") not in ("", "0"):
        return None
    try:
        import numba
    except ImportError:
        return None
    types = numba.types

    def read_only(kind: Any, dimensions: int, layout: Any = "A") -> Any:
        """A read-only array, such as the operating system's words."""
        return types.Array(kind, dimensions, layout, readonly=True)

    counts, bytes_2d, scales = types.int64[::1], types.uint8[:, ::1], read_only(types.float64, 1, "C")
    words, integers = read_only(types.uint64, 2, "C"), read_only(types.int64, 1)
    shares = (read_only(types.uint64, 1, "C"), read_only(types.int64, 1, "C"), read_only(types.uint64, 1, "C"))
    sampled = (words, integers, types.uint64, *shares, types.int64, types.int64[:, ::1], counts)
    encoded = (read_only(types.int64, 2), scales, types.int64, bytes_2d)
    decoded = (bytes_2d, scales, types.int64, types.int64, counts, types.boolean[:, ::1])
    return Kernels(
        sample_subsets=_compiled(numba, types.boolean(*sampled), sample_subsets),
        encode_subsets=_compiled(numba, types.boolean(*encoded), encode_subsets),
        decode_subsets=_compiled(numba, types.boolean(*decoded), decode_subsets),
    )


def load_if_worthwhile(seconds: float) -> Kernels | None:
    """Return the kernels if they are loaded already, or if the callers of this function together have had more work
    than loading takes.

    Parameters
    ----------
    seconds: how long the work at hand takes without the kernels, roughly.
    """
    global _seconds_so_far  # noqa: PLW0603 - a race of two threads loses an estimate, no more
    _seconds_so_far += seconds
    return load() if _seconds_so_far >= _SECONDS_TO_LOAD or load.cache_info().currsize else None


_seconds_so_far = 0.0


def _compiled(numba: Any, signature: Any, loop: Callable[..., Any]) -> Callable[..., Any]:
    try:
        compiled: Callable[..., Any] = numba.njit(signature, cache=True, nogil=True)(loop)
    except RuntimeError:  # nowhere to cache compiled code: a read-only installation without a home directory
        compiled = numba.njit(signature, nogil=True)(loop)
    return compiled


def sample_subsets(
    words: NDArray[np.uint64],
    values: Integers,
    threshold: np.uint64,
    bounds: NDArray[np.uint64],
    ends: Integers,
    surplus: NDArray[np.uint64],
    points: int,
    chosen: Integers,
    counts: Integers,
) -> bool:
    """Draw a subset per row of random words: write them into `chosen`, (rows, block_size), or, if that has one row
    only, add to `counts` how often each point is chosen.

    A row of words is: the word compared with `threshold` (truth if below), then the words that give `replaced` and the
    picks, whose `bounds`, `ends` and `surplus` are those of `variate_bounds`, `word_ends` and `word_surplus`. Return
    False, with `counts` unchanged, if Lemire's test rejects any word or a value is not in [0, points): the caller then
    takes the checked path. Bounds, ends and surplus are not checked.

    `order` is the identity before and after each row, so that a row costs O(block_size), not O(points). Neither the
    work nor the order of the steps depends on the truth.
    """
    block_size = bounds.size - 1
    made = 1 if counts.size else values.size
    if words.shape != (values.size, ends.size + 1) or counts.size not in (0, points):
        raise ValueError("words must be (values, ends + 1), and counts have one entry per point, or none")
    if chosen.shape != (made, block_size):
        raise ValueError("chosen must have one row per value, or a single one with counts")
    if not 1 <= block_size < points < 2**31:
        raise ValueError("block_size and points must satisfy 1 <= block_size < points < 2^31")
    order = np.arange(points - 1)
    targets = np.empty(block_size + 1, np.int64)
    added = np.zeros(counts.size, np.int64)
    for row in range(values.size):
        value = values[row]
        rejected = value < 0 or value >= points
        i = 0
        for g in range(ends.size):
            rest = words[row, g + 1]
            while i < ends[g]:
                low_product = (rest & _LOW_32) * bounds[i]
                middle = (rest >> _SHIFT_32) * bounds[i] + (low_product >> _SHIFT_32)
                rest = (middle << _SHIFT_32) | (low_product & _LOW_32)
                targets[i] = np.int64(middle >> _SHIFT_32)
                i += 1
            rejected |= rest < surplus[g]
        if rejected:
            return False
        subset = chosen[0 if counts.size else row]
        for i in range(block_size):
            target = i + targets[i + 1]
            position = order[target]
            order[target] = order[i]
            subset[i] = position + (position >= value)
        for i in range(block_size):
            target = i + targets[i + 1]
            order[target] = target
        kept = subset[targets[0]]
        subset[targets[0]] = kept + (value - kept) * np.int64(words[row, 0] < threshold)
        for i in range(block_size if counts.size else 0):
            added[subset[i]] += 1
    for point in range(counts.size):
        counts[point] += added[point]
    return True


def encode_subsets(subsets: Integers, scales: NDArray[np.float64], bits: int, words: NDArray[np.uint8]) -> bool:
    """Write the word of every subset. Return False if a subset names a point twice; other points are not checked."""
    rows, block_size = subsets.shape
    points, length = scales.size, words.shape[1]
    most = min(_LANES, rows)
    table, digits = np.zeros((points, most), np.uint8), np.zeros((most, length), np.int64)
    low, width, left, positions = np.empty(most), np.empty(most), np.empty(most), np.empty(most, np.int64)
    for first in range(0, rows, _LANES):
        lanes = min(_LANES, rows - first)
        low[:], width[:], left[:], positions[:] = 0.0, _WHOLE, block_size, 0
        for lane in range(lanes):
            for i in range(block_size):
                point = subsets[first + lane, i]
                if table[point, lane]:
                    return False
                table[point, lane] = 1
        for point in range(points):
            scale, rest = scales[point], points - point
            for lane in range(lanes):
                share = np.floor((width[lane] + 0.5) * scale) * left[lane]
                share = width[lane] if left[lane] == rest else share
                chosen = table[point, lane] != 0
                low[lane] += 0.0 if chosen else share
                width[lane] = share if chosen else width[lane] - share
                left[lane] -= 1.0 if chosen else 0.0
            for lane in range(lanes):
                while width[lane] < _TOP:
                    digit = np.floor(low[lane] / _TOP)
                    digits[lane, positions[lane]] = np.int64(digit)
                    low[lane] = (low[lane] - digit * _TOP) * _DIGIT
                    width[lane] *= _DIGIT
                    positions[lane] += 1
        table[:] = 0
        for lane in range(lanes):
            position, carry = positions[lane], 0
            tail_bits = bits - 8 * position
            tail = -(-np.int64(low[lane]) >> (48 - tail_bits))
            while tail_bits > 8:
                tail_bits -= 8
                digits[lane, position] = tail >> tail_bits
                tail &= (1 << tail_bits) - 1
                position += 1
            words[first + lane, position] = tail & ((1 << tail_bits) - 1)
            carry = tail >> tail_bits
            for place in range(position - 1, -1, -1):
                digit_sum = digits[lane, place] + carry
                words[first + lane, place] = digit_sum & 255
                carry = digit_sum >> 8
    return True


def decode_subsets(
    streams: NDArray[np.uint8],
    scales: NDArray[np.float64],
    block_size: int,
    bits: int,
    counts: Integers,
    table: NDArray[np.bool_],
) -> bool:
    """Add to `counts` how many of the streams' subsets contain each point, and write which ones do into `table`,
    (points, rows) or (points, 0). Return whether every stream is the word of a subset.
    """
    rows = streams.shape[0]
    points, filled = scales.size, table.shape[1] > 0
    most = min(_LANES, rows)
    code, width, left, positions = np.empty(most), np.empty(most), np.empty(most), np.empty(most, np.int64)
    chosen = np.empty(most, np.bool_)
    valid = True
    for first in range(0, rows, _LANES):
        lanes = min(_LANES, rows - first)
        code[:], width[:], left[:], positions[:] = 0.0, _WHOLE, block_size, 6
        for lane in range(lanes):
            for i in range(6):
                code[lane] = code[lane] * _DIGIT + streams[first + lane, i]
        for point in range(points):
            scale, rest = scales[point], points - point
            total = 0
            for lane in range(lanes):
                share = np.floor((width[lane] + 0.5) * scale) * left[lane]
                share = width[lane] if left[lane] == rest else share
                taken = code[lane] < share
                code[lane] -= 0.0 if taken else share
                width[lane] = share if taken else width[lane] - share
                left[lane] -= 1.0 if taken else 0.0
                chosen[lane] = taken
                total += int(taken)
            counts[point] += total
            if filled:
                table[point, first : first + lanes] = chosen[:lanes]
            for lane in range(lanes):
                while width[lane] < _TOP:
                    code[lane] = code[lane] * _DIGIT + streams[first + lane, positions[lane]]
                    width[lane] *= _DIGIT
                    positions[lane] += 1
        for lane in range(lanes):
            valid &= code[lane] < 2.0 ** (8 * positions[lane] - bits)
    return valid
