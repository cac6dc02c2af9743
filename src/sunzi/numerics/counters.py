"""A vector of exact counts that stays sparse while most of it is zero.

Memory is proportional to min(reports, counters): a compact design can have a thousand times as many cells as reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, expm1, log1p
from typing import Self

import numpy as np

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError
from sunzi.errors import TallyError

# A sparse cell costs an index, a value and a search, about four times as much as a dense one.
_SPARSE_COST = 4
# Vectors of up to this many cells are always dense.
_ALWAYS_DENSE = 4096
# Up to this many cells, counting into a dense vector is faster than sorting, however few cells are hit. Sorting also
# releases the interpreter lock, which slows down a server that counts small batches.
_DENSE_COUNTING = 1 << 15

LARGEST_EXACT_TOTAL = 1 << 45
"""The largest total of counts for which the rounding errors of a Fourier transform stay far below one half."""


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """``length`` non-negative int64 counts: sparse if that saves much memory, otherwise dense.

    Built from ``length``, the cells' ascending and distinct indices, and their values; with None for the indices,
    ``values`` are those of all cells. The arrays become read-only.

    >>> counters = Counters(1000, np.array([2, 7]), np.array([5, 1]))
    >>> counters.total(), counters.dense()[:4].tolist()
    (6, [0, 0, 5, 0])
    """

    length: int
    _indices: Integers | None
    _values: Integers

    def __post_init__(self) -> None:
        indices, values = self._indices, self._values
        if indices is None and self.length > _ALWAYS_DENSE and _SPARSE_COST * np.count_nonzero(values) < self.length:
            indices = np.flatnonzero(values).astype(np.int64)
            values = values[indices]
        elif indices is not None and (self.length <= _ALWAYS_DENSE or _SPARSE_COST * indices.size >= self.length):
            values = _scatter(self.length, indices, values)
            indices = None
        for held in (indices, values):
            if held is not None:
                held.setflags(write=False)
        object.__setattr__(self, "_indices", indices)
        object.__setattr__(self, "_values", values)

    @classmethod
    def zeros(cls, length: int) -> Self:
        """All counts zero."""
        empty = np.empty(0, dtype=np.int64)
        return cls(length, empty, empty.copy())

    @classmethod
    def of_cells(cls, length: int, cells: Integers) -> Self:
        """Count how often each cell occurs; cells must lie in [0, length)."""
        if length > _DENSE_COUNTING and _SPARSE_COST * cells.size < length:
            indices, values = np.unique(cells, return_counts=True)
            return cls(length, indices, values.astype(np.int64))
        return cls(length, None, np.bincount(cells, minlength=length))

    @property
    def is_sparse(self) -> bool:
        """Whether only non-zero cells are held."""
        return self._indices is not None

    @property
    def stored(self) -> int:
        """The number of cells in memory."""
        return int(self._values.size)

    @property
    def filled(self) -> int:
        """The number of cells that are not zero."""
        return int(np.count_nonzero(self._values))

    def total(self) -> int:
        """The sum of all counts, exact even if it exceeds 63 bits."""
        if max(map(abs, self.extremes())) < 1 << 31:
            return int(self._values.sum())
        return (int((self._values >> 32).sum()) << 32) + int((self._values & 0xFFFFFFFF).sum())

    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest count in memory; zeros if there is none."""
        if not self._values.size:
            return 0, 0
        return int(self._values.min()), int(self._values.max())

    def dense(self) -> Integers:
        """All counts as one vector."""
        if self._indices is None:
            return self._values
        return _scatter(self.length, self._indices, self._values)

    def nonzero(self) -> tuple[Integers, Integers]:
        """Indices and values of the cells that are not zero, ascending."""
        if self._indices is None:
            indices = np.flatnonzero(self._values).astype(np.int64)
            return indices, self._values[indices]
        return self._indices, self._values

    def part(self, start: int, stop: int) -> Counters:
        """The cells start … stop−1 as separate counters."""
        if self._indices is None:
            return Counters(stop - start, None, self._values[start:stop])
        low, high = np.searchsorted(self._indices, [start, stop])
        return Counters(stop - start, self._indices[low:high] - start, self._values[low:high])

    def check_total(self) -> None:
        """Raise :class:`TallyError` if the counts add up to more than :data:`LARGEST_EXACT_TOTAL`."""
        total, most = self.total(), LARGEST_EXACT_TOTAL
        if total > most:
            raise TallyError(f"the counts add up to {total}, and only totals up to {most} can be decoded exactly")

    def __add__(self, other: Counters) -> Counters:
        """The exact sum, cell by cell. Raises :class:`TallyError` if a count would exceed 2^63 − 1."""
        if self.length != other.length:
            raise ParameterError(f"cannot add {other.length} counters to {self.length}")
        if not (self.stored and other.stored):
            return self if self.stored else other
        if self._indices is None or other._indices is None:
            return Counters(self.length, None, _checked_sums(self.dense() + other.dense()))
        indices, inverse = np.unique(np.concatenate([self._indices, other._indices]), return_inverse=True)
        values = np.zeros(indices.size, dtype=np.int64)
        np.add.at(values, inverse, np.concatenate([self._values, other._values]))
        return Counters(self.length, indices, _checked_sums(values))

    def __eq__(self, other: object) -> bool:
        """Equal lengths and counts, dense or sparse."""
        if not isinstance(other, Counters):
            return NotImplemented
        mine, theirs = self.nonzero(), other.nonzero()
        return self.length == other.length and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compared by content, never used as a key


def expected_filled(length: int, additions: float) -> float:
    """The expected number of cells that n counts fill, all M cells being equally likely: M·(1 − (1−1/M)^n)."""
    return -length * expm1(additions * log1p(-1 / length)) if length > 1 else min(additions, 1.0)


def expected_bytes(length: int, filled: float) -> int:
    """Memory of counters with about ``filled`` cells that are not zero: 8 bytes per cell, 16 where held sparsely."""
    is_sparse = length > _ALWAYS_DENSE and _SPARSE_COST * filled < length
    return 16 * ceil(filled) if is_sparse else 8 * length


def _checked_sums(sums: Integers) -> Integers:
    """Sums of two counts each; where one exceeds 63 bits, it has wrapped around to a negative number."""
    if sums.size and sums.min() < 0:
        raise TallyError("a sum of two counts exceeds 2^63 - 1, the largest count")
    return sums


def _scatter(length: int, indices: Integers, values: Integers) -> Integers:
    full = np.zeros(length, dtype=np.int64)
    full[indices] = values
    return full
