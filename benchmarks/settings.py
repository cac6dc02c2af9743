"""The common setting of most benchmarks (22,000 values, ε = 2, one million users) and helpers that scale it."""

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
    """The number of users at this scale, at least 200."""
    return max(_FEWEST_USERS, round(count * scale))


def domain_size(size: int, scale: float) -> int:
    """The domain size at this scale, at least 100."""
    return max(_SMALLEST_DOMAIN, round(size * scale))


def rounds(count: int, scale: float) -> int:
    """The number of repetitions; fewer below full scale, where the figures are not used."""
    return count if scale >= 1 else max(1, round(count * scale))


def values(count: int, size: int) -> NDArray[np.int64]:
    """Zipf-like values of ``count`` users: a few values are frequent, most are rare."""
    return np.floor(size ** np.random.default_rng(SEED).random(count)).astype(np.int64) - 1
