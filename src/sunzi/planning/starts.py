"""Where a search begins: sets in the shape that good ones have, whatever the domain's size.

Of a good set most moduli are near its smallest and a few reach up to the domain's size: the place t in [0, 1) of the
set holds a modulus in proportion to (1−t)^−a. The exponent a is about 0.45 for sets of large moduli and grows as the
moduli shrink, because only large moduli tell slow variation over the domain apart.
"""

from __future__ import annotations

import numpy as np

from sunzi._typing import Floats
from sunzi.planning.space import Rows, SearchSpace

_SMALLEST_MEAN = 0.03
# Moduli above the domain's size are for starts whose mean comes near it.
_LARGEST_MODULUS, _LARGE_MEAN = 0.97, 0.92
_EXPONENT, _SHARE_OF_EXPONENT, _GROWTH = 0.45, 0.35, 0.7
# Sets that barely tell all values apart have huge errors, and take long to invert.
_LEAST_EXCESS = 1.2
_HALVINGS = 20


def start_with_mean(space: SearchSpace, places: Floats, mean: float) -> Rows:
    """One block a place (ascending in [0, 1)), with moduli that average about ``mean`` of the domain's size."""
    exponent = _EXPONENT * max(1.0, _SHARE_OF_EXPONENT / mean) ** _GROWTH
    tail = (1.0 - places) ** -exponent
    largest = _LARGEST_MODULUS if mean <= _LARGE_MEAN else _largest_mean(space)
    low, high = 0.0, largest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * tail, largest).mean() < mean else (low, middle)
    return _nearest_rows(space, np.minimum(high * tail, largest) * space.size)


def _largest_mean(space: SearchSpace) -> float:
    return float(space.stand_ins[-1]) / space.size


def start_with_cost(space: SearchSpace, places: Floats, cost: float) -> Rows | None:
    """The largest start that costs at most ``cost``; None if even the cheapest costs more."""
    low, high = _SMALLEST_MEAN, _largest_mean(space)
    found = None
    for _ in range(_HALVINGS // 2):
        middle = (low + high) / 2
        rows = start_with_mean(space, places, middle)
        if space.costs[rows].sum() <= cost:
            low, found = middle, rows
        else:
            high = middle
    return found


def giving_away_less(space: SearchSpace, rows: Rows, guesses: float) -> Rows:
    """The rows with as many of those that give away most replaced by those that give away least as a mean of
    ``guesses`` needs.
    """
    repaired = rows[np.argsort(-space.guesses[rows], kind="stable")]
    spare = [row for row in np.argsort(space.guesses, kind="stable").tolist() if row not in set(rows.tolist())]
    for position, row in enumerate(spare[: len(rows)]):
        if space.guesses[repaired].mean() <= guesses or space.guesses[row] >= space.guesses[repaired[position]]:
            break
        repaired[position] = row
    return repaired


def places(count: int, generator: np.random.Generator) -> Floats:
    """One random place in each of ``count`` equal parts of [0, 1): evenly spaced moduli would share their
    differences.
    """
    return (np.arange(count) + generator.random(count)) / count


def is_promising(space: SearchSpace, rows: Rows) -> bool:
    """Whether the moduli tell all values apart with something to spare, or there are hardly others to choose."""
    excess = int((space.stand_ins[rows] - 1).sum()) / max(1, space.size - 1)
    return excess >= _LEAST_EXCESS or (excess >= 1 and len(space.blocks) < 2 * len(rows) + 8)


def _nearest_rows(space: SearchSpace, targets: Floats) -> Rows:
    """Distinct rows near the targets, which ascend."""
    steps = np.arange(len(targets))
    nearest = np.searchsorted(space.stand_ins, targets)
    rising = np.maximum.accumulate(nearest - steps) + steps
    return np.minimum(rising, len(space.stand_ins) - len(targets) + steps)
