"""Sums of multiples of vectors by BLAS: one pass over memory, where numpy takes two."""

from typing import Any

import numpy as np
import scipy.linalg.blas
from numpy.typing import NDArray

PIECE = 1 << 13
"""So many entries stay in the cache, and BLAS adds them without threads, which on a busy machine wait for one another.
"""


class ScaledSums:
    """receiver += weight * giver for pairs of pieces of vectors of one precision, fixed once: in a loop over short
    vectors, cutting the pieces anew would cost as much as the sums.
    """

    def __init__(self, precision: type[np.floating[Any]]) -> None:
        self._add = scipy.linalg.blas.saxpy if precision == np.float32 else scipy.linalg.blas.daxpy
        self._pairs: list[tuple[NDArray[Any], NDArray[Any], int, float]] = []

    @classmethod
    def between(cls, giver: NDArray[Any], receiver: NDArray[Any]) -> "ScaledSums":
        """For two whole vectors, cut to pieces, with weight 1."""
        sums = cls(receiver.dtype.type)
        for start in range(0, len(receiver), PIECE):
            sums.append(giver[start : start + PIECE], receiver[start : start + PIECE], 1.0)
        return sums

    def append(self, giver: NDArray[Any], receiver: NDArray[Any], weight: float) -> None:
        """One more pair, of at most PIECE entries each."""
        self._pairs.append((giver, receiver, len(receiver), weight))

    def __call__(self, factor: float) -> None:
        """Add all pairs in turn, all weights times a factor."""
        for giver, receiver, length, weight in self._pairs:
            total = self._add(giver, receiver, length, factor * weight)
            if total is not receiver:  # it is, but scipy promises only to return the sum
                receiver[:] = total
