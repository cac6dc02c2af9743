"""Many words of the arithmetic code of subsets at once, as :mod:`sunzi.client.designs.subset_code` makes one
(docs/mathematics.md §9).

The state stays below 2^49 and products are exact in a double. Three engines do the same steps: a compiled loop
(`sunzi.numerics.kernels`), numpy for many rows in lockstep, and the client's own for a few rows. The time depends on
the number of points only, whoever chose the subset or the word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs.subset_code import (
    MOST_POINTS,
    START_BYTES,
    TOP,
    WHOLE,
    decode_subset,
    encode_subset,
    word_bits,
)
from sunzi.client.errors import ParameterError, ReportError
from sunzi.client.reports import byte_length
from sunzi.numerics import kernels
from sunzi.numerics.bits import Rows

_DIGIT = 1 << 8
_CELLS_AT_ONCE = 1 << 26
"""The largest matrix of points and rows, in bytes."""
_ROWS_AT_ONCE = 4096

_FEW_ROWS = 64
"""Below this many rows, Python's loop is faster than numpy's calls."""

_SECONDS_PER_POINT, _SECONDS_PER_POINT_OF_MANY = 2e-7, 1e-8


@dataclass(frozen=True)
class SubsetCode:
    """The code of the `block_size`-subsets of {0..points-1}, 1 <= block_size < points < 2^20."""

    points: int
    block_size: int

    def __post_init__(self) -> None:
        if not 2 <= self.points <= MOST_POINTS:
            raise ParameterError(f"a code of subsets needs between 2 and {MOST_POINTS} points, got {self.points}")
        if not 1 <= self.block_size < self.points:
            raise ParameterError(f"block_size must be between 1 and {self.points - 1}, got {self.block_size}")

    @cached_property
    def bits(self) -> int:
        """The bits of a word."""
        return word_bits(self.points, self.block_size)

    @property
    def length(self) -> int:
        """The bytes of a word."""
        return byte_length(self.bits)

    @property
    def _last_bits(self) -> int:
        """The bits in the last byte."""
        return self.bits - 8 * (self.length - 1)

    @cached_property
    def _scales(self) -> Floats:
        """1/rest for every point: ⌊(R + 1/2)/rest⌋ = ⌊R/rest⌋ is exact in doubles for integers R < 2^50."""
        return 1.0 / np.arange(self.points, 0, -1)

    def encode(self, subsets: ArrayLike) -> Rows:
        """Return the word of each row of an (n, block_size) array of distinct points in any order."""
        members = self._checked(np.asarray(subsets))
        words = np.empty((len(members), self.length), dtype=np.uint8)
        compiled = kernels.load_if_worthwhile(self._seconds(len(members)))
        if compiled is not None:
            if not compiled.encode_subsets(members, self._scales, self.bits, words):
                raise ParameterError("a subset's points must be distinct")
            return words
        for rows in self._chunks(len(members)):
            table = np.zeros((self.points, len(members[rows])), dtype=np.bool_)
            table[members[rows].T, np.arange(table.shape[1])] = True
            if (np.count_nonzero(table, axis=0) != self.block_size).any():
                raise ParameterError("a subset's points must be distinct")
            words[rows] = self._encode_table(table)
        return words

    def decode(self, words: Rows) -> Integers:
        """Return the subset of each word, one ascending row each; raise ReportError for any other word."""
        table = np.empty((self.points, len(words)), dtype=np.bool_)
        self._read(words, np.zeros(self.points, dtype=np.int64), table)
        return np.nonzero(table.T)[1].reshape(len(words), self.block_size)

    def count(self, words: Rows) -> Integers:
        """Return how many of these words' subsets contain each point; raise ReportError as `decode` does."""
        counts = np.zeros(self.points, dtype=np.int64)
        self._read(words, counts, None)
        return counts

    def _seconds(self, rows: int) -> float:
        """How long the engines that are not compiled take, roughly."""
        each = _SECONDS_PER_POINT if rows < _FEW_ROWS else _SECONDS_PER_POINT_OF_MANY
        return rows * self.points * each

    def _chunks(self, rows: int) -> Iterator[slice]:
        """Runs of rows of nearly equal length."""
        number = -(-rows // max(1, min(_CELLS_AT_ONCE // self.points, _ROWS_AT_ONCE)))
        return (slice(rows * part // number, rows * (part + 1) // number) for part in range(number))

    def _checked(self, members: NDArray[np.generic]) -> Integers:
        if members.ndim != 2 or members.shape[1] != self.block_size:
            raise ParameterError(f"subsets must have shape (n, {self.block_size}), got {members.shape}")
        if members.size and members.dtype.kind not in "iu":
            raise ParameterError(f"a subset's points must be integers, got {members.dtype}")
        points = members.astype(np.int64, copy=False)
        # Read as unsigned, a negative number is above every bound.
        if points.size and int(points.view(np.uint64).max()) >= self.points:
            raise ParameterError(f"a subset's points must be from 0 to {self.points - 1}")
        return points

    def _encode_table(self, table: NDArray[np.bool_]) -> Rows:
        """The words of the subsets given as a table of points and rows."""
        if table.shape[1] >= _FEW_ROWS:
            return _encode_together(table, self._scales, self.block_size, self.bits)
        words = b"".join(encode_subset(column.tobytes(), self.block_size, self.bits) for column in table.T)
        return np.frombuffer(words, dtype=np.uint8).reshape(-1, self.length)

    def _read(self, words: Rows, counts: Integers, table: NDArray[np.bool_] | None) -> None:
        """Add to `counts`, and fill the table of points and rows if there is one."""
        streams = self._streams(words)
        compiled = kernels.load_if_worthwhile(self._seconds(len(words)))
        if compiled is not None:
            unused = np.empty((self.points, 0), dtype=np.bool_)
            cells = unused if table is None else table
            valid = compiled.decode_subsets(streams, self._scales, self.block_size, self.bits, counts, cells)
        elif len(words) < _FEW_ROWS:
            valid = self._read_one_by_one(words, counts, table)
        else:
            sizes = self._scales, self.block_size, self.bits
            parts = (
                _decode_together(streams[rows], *sizes, counts, None if table is None else table[:, rows])
                for rows in self._chunks(len(words))
            )
            valid = all(parts)
        if not valid:
            raise ReportError(f"a report's word names no subset of {self.block_size} out of {self.points} points")

    def _streams(self, words: Rows) -> Rows:
        """The bits of the words as the decoder reads them: from the highest on, followed by zeros."""
        if words.ndim != 2 or words.shape[1] != self.length:
            raise ReportError(f"a word of this code takes {self.length} bytes, got {words.shape[1:]}")
        if (words[:, -1] >> self._last_bits).any():
            raise ReportError(f"a word of this code takes {self.bits} bits; the bits after them must be 0")
        streams = np.zeros((len(words), self.length + START_BYTES), dtype=np.uint8)
        streams[:, : self.length] = words
        streams[:, self.length - 1] <<= 8 - self._last_bits
        return streams

    def _read_one_by_one(self, words: Rows, counts: Integers, table: NDArray[np.bool_] | None) -> bool:
        for row, word in enumerate(words):
            members = decode_subset(word.tobytes(), self.points, self.block_size, self.bits)
            if members is None:
                return False
            counts[members] += 1
            if table is not None:
                table[:, row] = False
                table[members, row] = True
        return True


def _encode_together(table: NDArray[np.bool_], scales: Floats, block_size: int, bits: int) -> Rows:
    """`encode_subset` for all columns of the table, one point at a time."""
    points, rows = table.shape
    low, width, left = np.zeros(rows), np.full(rows, float(WHOLE)), np.full(rows, float(block_size))
    share = np.empty(rows)
    digits = np.zeros((byte_length(bits), rows), dtype=np.int64)
    positions = np.zeros(rows, dtype=np.int64)
    for point, chosen in enumerate(table):
        _write_shares(share, width, left, scales[point], points - point, block_size)
        width -= share
        np.copyto(width, share, where=chosen)
        np.copyto(share, 0.0, where=chosen)
        low += share
        left -= chosen
        narrow = np.flatnonzero(width < TOP)
        while narrow.size:
            lows, places = low[narrow], positions[narrow]
            digit = np.floor(lows * (1 / TOP))
            digits[places, narrow] = digit
            low[narrow] = (lows - digit * TOP) * _DIGIT
            positions[narrow] = places + 1
            narrow = _widen(width, narrow)
    return _finish_words(digits, positions, low, bits)


def _widen(width: Floats, narrow: NDArray[np.intp]) -> NDArray[np.intp]:
    """Multiply the narrow intervals by 256 and return those that are still narrow."""
    wider = width[narrow] * _DIGIT
    width[narrow] = wider
    return narrow[wider < TOP]


def _finish_words(digits: Integers, positions: Integers, low: Floats, bits: int) -> Rows:
    """The first word at or above the digits put out and what is left of them, carries included."""
    tail_bits = bits - 8 * positions
    tail = -(-low.astype(np.int64) >> (48 - tail_bits))
    columns = np.arange(low.size)
    while (long := tail_bits > 8).any():
        tail_bits = np.where(long, tail_bits - 8, tail_bits)
        digits[positions[long], columns[long]] = (tail >> tail_bits)[long]
        tail = np.where(long, tail & ((1 << tail_bits) - 1), tail)
        positions = positions + long
    length = byte_length(bits)
    last_bits = bits - 8 * (length - 1)
    digits[length - 1] = tail & ((1 << last_bits) - 1)
    carry = tail >> last_bits
    for place in range(length - 2, -1, -1):
        digits[place] += carry
        carry = digits[place] >> 8
    return digits[:length].T.astype(np.uint8)


def _decode_together(
    streams: Rows, scales: Floats, block_size: int, bits: int, counts: Integers, table: NDArray[np.bool_] | None
) -> bool:
    """`decode_subset` for all rows, point by point: add to the counts and fill the table. Whether all are valid."""
    points, rows = scales.size, len(streams)
    stream, starts = streams.ravel(), np.arange(rows) * streams.shape[1]
    code = streams[:, :START_BYTES] @ 256.0 ** np.arange(START_BYTES - 1, -1, -1)
    positions = starts + START_BYTES
    width, left, share = np.full(rows, float(WHOLE)), np.full(rows, float(block_size)), np.empty(rows)
    for point in range(points):
        _write_shares(share, width, left, scales[point], points - point, block_size)
        chosen = code < share
        width -= share
        np.copyto(width, share, where=chosen)
        np.copyto(share, 0.0, where=chosen)
        code -= share
        left -= chosen
        counts[point] += np.count_nonzero(chosen)
        if table is not None:
            table[point] = chosen
        narrow = np.flatnonzero(width < TOP)
        while narrow.size:
            places = positions[narrow]
            code[narrow] = code[narrow] * _DIGIT + stream[places]
            positions[narrow] = places + 1
            narrow = _widen(width, narrow)
    return bool((code < 2.0 ** (8 * (positions - starts) - bits)).all())


def _write_shares(share: Floats, width: Floats, left: Floats, scale: float, rest: int, block_size: int) -> None:
    """Write the part of every interval in which the next point is chosen."""
    np.add(width, 0.5, out=share)
    share *= scale
    np.floor(share, out=share)
    share *= left
    if rest <= block_size:  # where all the rest are chosen, it is the whole interval, without rounding
        np.copyto(share, width, where=left == rest)
