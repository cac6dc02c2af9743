"""A vector of exact counts that stays sparse while most of it is zero.

Memory follows min(reports, counters): the cells of a compact design can outnumber its reports a thousandfold.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ParameterError

Counts = NDArray[np.int64]

# A sparse cell costs an index and a value; below this many cells density never matters.
_SPARSE_COST = 2
_ALWAYS_DENSE = 4096


class Counters:
    """``length`` non-negative int64 counts, immutable. Built dense or sparse, kept in whichever form is smaller."""

    __slots__ = ("_indices", "_values", "length")

    def __init__(self, length: int, indices: Counts | None, values: Counts) -> None:
        """``indices`` ascending and distinct, or None if ``values`` holds all cells. Use :meth:`of_cells` for raw
        observations.
        """
        self.length = length
        if indices is None and length > _ALWAYS_DENSE:
            filled = np.flatnonzero(values)
            if _SPARSE_COST * filled.size < length:
                indices, values = filled.astype(np.int64), values[filled]
        elif indices is not None and (length <= _ALWAYS_DENSE or _SPARSE_COST * indices.size >= length):
            dense = np.zeros(length, dtype=np.int64)
            dense[indices] = values
            indices, values = None, dense
        self._indices = indices
        self._values = values
        self._values.setflags(write=False)

    @classmethod
    def zeros(cls, length: int) -> Self:
        """No observation yet."""
        empty = np.empty(0, dtype=np.int64)
        return cls(length, empty, empty.copy())

    @classmethod
    def of_cells(cls, length: int, cells: NDArray[np.integer]) -> Self:
        """Count how often each cell occurs; cells must lie in [0, length)."""
        if length > _ALWAYS_DENSE and _SPARSE_COST * cells.size < length:
            indices, values = np.unique(cells, return_counts=True)
            return cls(length, indices.astype(np.int64), values.astype(np.int64))
        return cls(
            length, None, np.bincount(cells.view(np.int64) if cells.dtype == np.uint64 else cells, minlength=length)
        )

    @property
    def is_sparse(self) -> bool:
        """Whether only non-zero cells are held."""
        return self._indices is not None

    @property
    def stored(self) -> int:
        """How many cells are held in memory."""
        return int(self._values.size)

    def total(self) -> int:
        """The sum of all counts."""
        return int(self._values.sum())

    def dense(self) -> Counts:
        """All counts as one vector."""
        if self._indices is None:
            return self._values
        full = np.zeros(self.length, dtype=np.int64)
        full[self._indices] = self._values
        return full

    def nonzero(self) -> tuple[Counts, Counts]:
        """Indices and values of the cells that are not zero, ascending."""
        if self._indices is None:
            indices = np.flatnonzero(self._values).astype(np.int64)
            return indices, self._values[indices]
        return self._indices, self._values

    def part(self, start: int, stop: int) -> Counters:
        """The cells start … stop−1 as counters of their own."""
        if self._indices is None:
            return Counters(stop - start, None, self._values[start:stop])
        low, high = np.searchsorted(self._indices, [start, stop])
        return Counters(stop - start, self._indices[low:high] - start, self._values[low:high])

    def __add__(self, other: Counters) -> Counters:
        """Cell by cell; exact."""
        if self.length != other.length:
            raise ParameterError(f"cannot add {other.length} counters to {self.length}")
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
