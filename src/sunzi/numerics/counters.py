"""A vector of exact counts that stays sparse while most of it is zero.

Memory follows min(reports, counters): the cells of a compact design can outnumber its reports a thousandfold.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ParameterError

Counts = NDArray[np.int64]

# A sparse cell costs an index, a value and a search; below this many cells density never matters.
_SPARSE_COST = 4
_ALWAYS_DENSE = 4096
# Up to this many cells counting into all of them beats sorting, however few are hit; sorting would also let another
# thread in, which a server that counts small batches pays for dearly.
_DENSE_COUNTING = 1 << 15


class Counters:
    """``length`` non-negative int64 counts, immutable. Built dense or sparse, kept sparse while that saves much."""

    __slots__ = ("_indices", "_values", "length")

    def __init__(self, length: int, indices: Counts | None, values: Counts) -> None:
        """``indices`` ascending and distinct, or None if ``values`` holds all cells."""
        self.length = length
        if indices is None and length > _ALWAYS_DENSE and _SPARSE_COST * np.count_nonzero(values) < length:
            indices = np.flatnonzero(values).astype(np.int64)
            values = values[indices]
        elif indices is not None and (length <= _ALWAYS_DENSE or _SPARSE_COST * indices.size >= length):
            values = _scatter(length, indices, values)
            indices = None
        self._indices = indices
        self._values = values
        for held in (indices, values):
            if held is not None:
                held.setflags(write=False)

    @classmethod
    def zeros(cls, length: int) -> Self:
        """No observation yet."""
        empty = np.empty(0, dtype=np.int64)
        return cls(length, empty, empty.copy())

    @classmethod
    def of_cells(cls, length: int, cells: NDArray[np.int64]) -> Self:
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
        """How many cells are held in memory."""
        return int(self._values.size)

    @property
    def filled(self) -> int:
        """How many cells are not zero."""
        return int(np.count_nonzero(self._values))

    def total(self) -> int:
        """The sum of all counts, exact even where it needs more than 63 bits."""
        if max(map(abs, self.extremes())) < 1 << 31:
            return int(self._values.sum())
        return (int((self._values >> 32).sum()) << 32) + int((self._values & 0xFFFFFFFF).sum())

    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest count held; zeros where there is none."""
        if not self._values.size:
            return 0, 0
        return int(self._values.min()), int(self._values.max())

    def dense(self) -> Counts:
        """All counts as one vector."""
        if self._indices is None:
            return self._values
        return _scatter(self.length, self._indices, self._values)

    def nonzero(self) -> tuple[Counts, Counts]:
        """Indices and values of the cells that are not zero, ascending."""
        if self._indices is None:
            indices = np.flatnonzero(self._values).astype(np.int64)
            return indices, self._values[indices]
        return self._indices, self._values

    def part(self, start: int, stop: int) -> Counters:
        """The cells start … stop−1 as counters of their own."""
        if self._indices is None:
            view = Counters.__new__(Counters)  # shares memory, whatever its density
            view.length, view._indices, view._values = stop - start, None, self._values[start:stop]
            return view
        low, high = np.searchsorted(self._indices, [start, stop])
        return Counters(stop - start, self._indices[low:high] - start, self._values[low:high])

    def __add__(self, other: Counters) -> Counters:
        """Cell by cell; exact."""
        if self.length != other.length:
            raise ParameterError(f"cannot add {other.length} counters to {self.length}")
        if not (self.stored and other.stored):
            return self if self.stored else other
        if self._indices is None or other._indices is None:
            return Counters(self.length, None, self.dense() + other.dense())
        indices, inverse = np.unique(np.concatenate([self._indices, other._indices]), return_inverse=True)
        values = np.zeros(indices.size, dtype=np.int64)
        np.add.at(values, inverse, np.concatenate([self._values, other._values]))
        return Counters(self.length, indices, values)

    def __eq__(self, other: object) -> bool:
        """Equal counts, whatever the form."""
        if not isinstance(other, Counters):
            return NotImplemented
        mine, theirs = self.nonzero(), other.nonzero()
        return self.length == other.length and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compared by content, never used as a key


def _scatter(length: int, indices: Counts, values: Counts) -> Counts:
    full = np.zeros(length, dtype=np.int64)
    full[indices] = values
    return full
