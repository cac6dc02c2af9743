"""Subsets of w points out of m, with or without a given point x, as a pure function of uniform variates.

The definition is that of :mod:`sunzi.client.designs.subsets`, here for many rows at once. With Lemire's multiplication,
splitting a word needs no division: (word * a * b) div 2^64 has the digits (word * a) div 2^64 and ((word * a) mod 2^64
* b) div 2^64, and the low half of the last step decides rejection.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError

_ENTRIES_PER_CHUNK = 1 << 21
"""The largest matrix of positions for several rows: 8 MB."""

_FEW_ROWS = 12
"""Below this many rows a list per row is faster than one matrix, which needs a numpy call per step."""


def word_bounds(bounds: NDArray[np.uint64], ends: Integers) -> NDArray[np.uint64]:
    """The product of the bounds that share each word."""
    return np.multiply.reduceat(bounds, np.concatenate([[0], ends[:-1]]))


def word_surplus(bounds: NDArray[np.uint64], ends: Integers) -> NDArray[np.uint64]:
    """2^64 modulo each of `word_bounds`: Lemire's test rejects a word if the low half of its product is below."""
    products = word_bounds(bounds, ends)
    return (~products + np.uint64(1)) % products


def split_variates(joint: NDArray[np.uint64], bounds: NDArray[np.uint64], ends: Integers) -> Integers:
    """The variates, one per bound, from the integers below `word_bounds`, one per word: their digits in mixed radix."""
    sizes = np.diff(ends, prepend=0)
    variates = np.empty((joint.shape[0], bounds.size), dtype=np.int64)
    for digit in range(int(sizes.max())):
        more = sizes > digit
        sizes, ends, joint = sizes[more], ends[more], joint[:, more]
        columns = ends - 1 - digit  # the least significant digit is the word's last variate
        joint, variates[:, columns] = np.divmod(joint, bounds[columns])
    return variates


def select_subsets(values: ArrayLike, truth: ArrayLike, replaced: ArrayLike, picks: ArrayLike, points: int) -> Integers:
    """Return the chosen points, (n, w), each row in the order of the steps. See the module for the definition.

    values: (n,) the points x; truth: (n,) bool; replaced: (n,) in [0, w); picks: (n, w), the i-th column in
    [0, points - 1 - i). Raises ParameterError for anything else, or unless 1 <= w < points.
    """
    value, true, replaced_at, pick = _checked(values, truth, replaced, picks, points)
    chosen = np.empty(pick.shape, dtype=np.int64)
    for rows in _chunks(len(pick), points):
        chosen[rows] = _select(value[rows], true[rows], replaced_at[rows], pick[rows], points)
    return chosen


def _checked(
    values: ArrayLike, truth: ArrayLike, replaced: ArrayLike, picks: ArrayLike, points: int
) -> tuple[Integers, NDArray[np.bool_], Integers, Integers]:
    """Return the arguments as arrays, or raise: a variate out of range would access memory outside the arrays."""
    pick = _integers("picks", picks)
    if pick.ndim != 2 or not 1 <= pick.shape[1] < points < 2**31:
        raise ParameterError(f"picks must be (n, w), 1 <= w < points < 2^31, got {pick.shape} and points = {points}")
    rows, block_size = pick.shape
    value = _integers("values", values)
    replaced_at = _integers("replaced", replaced)
    true = np.asarray(truth, dtype=np.bool_)
    if not value.shape == true.shape == replaced_at.shape == (rows,):
        raise ParameterError(f"values, truth and replaced must each have shape ({rows},), like the rows of picks")
    _check_below("values", value, points)
    _check_below("replaced", replaced_at, block_size)
    _check_below("picks", pick, points - 1 - np.arange(block_size))
    return value, true, replaced_at, pick


def _integers(name: str, variates: ArrayLike) -> Integers:
    array = np.asarray(variates)
    if array.size and array.dtype.kind not in "iu":
        raise ParameterError(f"{name} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _check_below(name: str, variates: Integers, bounds: int | Integers) -> None:
    # Read as unsigned, a negative number is above every bound, so one comparison checks both ends.
    if (variates.view(np.uint64) >= np.asarray(bounds).astype(np.uint64)).any():
        raise ParameterError(f"{name} must be at least 0 and below their bounds")


def _chunks(rows: int, points: int) -> Iterator[slice]:
    step = max(1, _ENTRIES_PER_CHUNK // points)
    return (slice(first, first + step) for first in range(0, rows, step))


def _select(
    value: Integers,
    true: NDArray[np.bool_],
    replaced_at: Integers,
    pick: Integers,
    points: int,
) -> Integers:
    targets = pick + np.arange(pick.shape[1])
    shuffle = _shuffle_lists if len(pick) < _FEW_ROWS else _shuffle_matrix
    chosen = shuffle(targets, points - 1)
    chosen += chosen >= value[:, np.newaxis]
    rows = np.arange(len(pick))
    chosen[rows, replaced_at] = np.where(true, value, chosen[rows, replaced_at])
    return chosen


def _shuffle_lists(targets: Integers, positions: int) -> Integers:
    """Return what the swaps of i and targets[i] bring to the front of 0, 1, ..., positions - 1, row by row.

    Position i is not read after step i, so half of each swap is left out, here and in `_shuffle_matrix`.
    """
    chosen = np.empty(targets.shape, dtype=np.int64)
    order = list(range(positions))
    for row, row_targets in enumerate(targets.tolist()):
        front = []
        for i, target in enumerate(row_targets):
            front.append(order[target])
            order[target] = order[i]
        for target in row_targets:
            order[target] = target
        chosen[row] = front
    return chosen


def _shuffle_matrix(targets: Integers, positions: int) -> Integers:
    """Return the same as `_shuffle_lists`, all rows together, one step at a time."""
    rows, block_size = targets.shape
    order = np.repeat(np.arange(positions, dtype=np.int32), rows)  # position-major: step i reads contiguous memory
    cells = np.ascontiguousarray(targets.T) * rows + np.arange(rows)
    chosen = np.empty((block_size, rows), dtype=np.int64)
    for i in range(block_size):
        chosen[i] = order.take(cells[i])
        order[cells[i]] = order[i * rows : (i + 1) * rows]
    return np.ascontiguousarray(chosen.T)
