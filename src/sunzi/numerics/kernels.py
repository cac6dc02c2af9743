"""Compiled loops, used when numba (the extra `fast`) is installed. They change speed, never a result.

The loops below are plain functions, so this module imports without numba; `load` compiles them once per process.
Setting the environment variable SUNZI_NO_NUMBA=1 keeps every caller on its numpy path.

They draw subsets as `sunzi.numerics.subset_sampling` defines it. Their `order` is the identity before and after each
row, so that a row costs O(block_size), not O(points). Neither the work nor the order of the steps depends on `truth`.
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
_ONE = np.uint64(1)

_PICKS_WORTH_LOADING = 1 << 22
"""Importing numba takes about as long as drawing this many points in numpy."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The compiled loops. They check only the shapes of their arguments: see each loop for what it assumes."""

    select_subsets: Callable[..., None]
    sample_and_count: Callable[..., bool]


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

    counts, words = types.int64[::1], read_only(types.uint64, 2, "C")
    rows = (
        read_only(types.int64, 1),
        read_only(types.boolean, 1),
        read_only(types.int64, 1),
        read_only(types.int64, 2),
        types.int64,
    )
    shares = (read_only(types.uint64, 1, "C"), read_only(types.int64, 1, "C"))
    sampled = (words, read_only(types.int64, 1), types.uint64, *shares, types.int64, counts)
    return Kernels(
        select_subsets=_compiled(numba, types.void(*rows, types.int64[:, ::1]), select_subsets),
        sample_and_count=_compiled(numba, types.boolean(*sampled), sample_and_count),
    )


def load_if_worthwhile(picks: int) -> Kernels | None:
    """Return the kernels if they are loaded already, or if drawing `picks` points takes longer than loading them."""
    return load() if picks >= _PICKS_WORTH_LOADING or load.cache_info().currsize else None


def _compiled(numba: Any, signature: Any, loop: Callable[..., Any]) -> Callable[..., Any]:
    try:
        compiled: Callable[..., Any] = numba.njit(signature, cache=True, nogil=True)(loop)
    except RuntimeError:  # nowhere to cache compiled code: a read-only installation without a home directory
        compiled = numba.njit(signature, nogil=True)(loop)
    return compiled


def select_subsets(
    values: Integers,
    truth: NDArray[np.bool_],
    replaced: Integers,
    picks: Integers,
    points: int,
    chosen: Integers,
) -> None:
    """Write the chosen points into `chosen`. Nothing is checked: every variate must be in its range."""
    rows, block_size = picks.shape
    order = np.arange(points - 1)
    for row in range(rows):
        value = values[row]
        for i in range(block_size):
            target = i + picks[row, i]
            position = order[target]
            order[target] = order[i]
            chosen[row, i] = position + (position >= value)
        for i in range(block_size):
            target = i + picks[row, i]
            order[target] = target
        kept = chosen[row, replaced[row]]
        chosen[row, replaced[row]] = kept + (value - kept) * np.int64(truth[row])


def sample_and_count(
    words: NDArray[np.uint64],
    values: Integers,
    threshold: np.uint64,
    bounds: NDArray[np.uint64],
    ends: Integers,
    points: int,
    counts: Integers,
) -> bool:
    """Add to `counts` how often each point is chosen, directly from random words.

    A row of words is: the word compared with `threshold` (truth if below), then the words that give `replaced` and the
    picks, whose `bounds` and `ends` are those of `variate_bounds` and `word_ends`. Return True, with
    `counts` unchanged, if Lemire's test rejects any word or a value is not in [0, points): the caller then takes the
    checked path. Bounds and ends are not checked.
    """
    block_size = bounds.size - 1
    if words.shape[1] != ends.size + 1 or words.shape[0] != values.size or counts.size != points:
        raise ValueError("words must be (values, ends + 1), and counts have one entry per point")
    if not 1 <= block_size < points < 2**31:
        raise ValueError("block_size and points must satisfy 1 <= block_size < points < 2^31")
    limits = np.empty(ends.size, np.uint64)
    for g in range(ends.size):
        product = np.prod(bounds[(ends[g - 1] if g else 0) : ends[g]])
        limits[g] = (~product + _ONE) % product
    order = np.arange(points - 1)
    targets = np.empty(block_size + 1, np.int64)
    chosen = np.empty(block_size, np.int64)
    added = np.zeros(points, np.int64)
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
            rejected |= rest < limits[g]
        if rejected:
            return True
        for i in range(block_size):
            target = i + targets[i + 1]
            position = order[target]
            order[target] = order[i]
            point = position + (position >= value)
            chosen[i] = point
            added[point] += 1
        for i in range(block_size):
            target = i + targets[i + 1]
            order[target] = target
        true = np.int64(words[row, 0] < threshold)
        added[chosen[targets[0]]] -= true
        added[value] += true
    for point in range(points):
        counts[point] += added[point]
    return False
