"""The setting shared by most benchmarks: 22,000 values, ε = 2, a million users; and values and sizes made from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DOMAIN_SIZE = 22_000
EPSILON = 2
USERS = 1_000_000
EPSILONS = (1, 2, 3, 4, 5)
SEED = 20_240_229

_SMALLEST_DOMAIN = 100
_FEWEST_USERS = 200


def users(count: int, scale: float) -> int:
    """So many users at full scale, never fewer than 200."""
    return max(_FEWEST_USERS, round(count * scale))


def domain_size(size: int, scale: float) -> int:
    """A domain of this size at full scale, never of fewer than 100 values."""
    return max(_SMALLEST_DOMAIN, round(size * scale))


def rounds(count: int, scale: float) -> int:
    """So many repetitions, fewer where the scale says that nobody looks at the numbers."""
    return count if scale >= 1 else max(1, round(count * scale))


def values(count: int, size: int) -> NDArray[np.int64]:
    """Values of so many users, Zipf-like: a few are frequent, most are rare."""
    return np.floor(size ** np.random.default_rng(SEED).random(count)).astype(np.int64) - 1
