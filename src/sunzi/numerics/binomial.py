"""Masses and tails of binomial distributions as bounds: never below, or never above, the true value in spite of
rounding.

Each is computed to a relative error far below :func:`margin` and then moved by it. Tests compare them with a library of
arbitrary precision.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import special

from sunzi._typing import Floats

_SERIES_FROM = 100.0
# Beyond exp(−50), by Bernstein's inequality, the counts of each tail make one cell.
_TAIL_EXPONENT = 50.0
_LOG_ROOT_TAU = 0.9189385332046727418


def margin(trials: Floats) -> Floats:
    """The relative error that is allowed for; at least 20 times what is observed up to 10^11 trials."""
    return 1e-11 + 1e-15 * trials


def mass(trials: Floats, count: Floats, probability: float) -> Floats:
    """P(X = count) for X ~ Binomial(trials, probability), by Loader's expansion about the most likely count.

    0 where the count lies outside [0, trials]. The probability lies strictly between 0 and 1.
    """
    inside = (count >= 0) & (count <= trials)
    hits = np.where(inside, count, 0.0)
    misses = np.where(inside, trials - count, trials)
    exponent = _stirling(hits + misses) - _stirling(hits) - _stirling(misses)
    exponent -= _deviance(hits, trials * probability) + _deviance(misses, trials * (1 - probability))
    product = np.where((hits > 0) & (misses > 0), hits * misses, 1.0)
    spread = np.where((hits > 0) & (misses > 0), np.log(np.maximum(trials, 1.0) / product) / 2 - _LOG_ROOT_TAU, 0.0)
    return np.where(inside, np.exp(exponent + spread), 0.0)


def _stirling(count: Floats) -> Floats:
    """log count! less Stirling's approximation; 0 at 0, where :func:`mass` needs no approximation."""
    large = np.maximum(count, 1.0)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / large**2) / large**2) / large**2) / large
    small = special.gammaln(large + 1) - (large + 0.5) * np.log(large) + large - _LOG_ROOT_TAU
    return np.where(count == 0, 0.0, np.where(count < _SERIES_FROM, small, series))


def _deviance(count: Floats, mean: Floats) -> Floats:
    """count·log(count/mean) + mean − count."""
    safe = np.where(mean > 0, mean, 1.0)
    excess = (count - mean) / safe
    return np.where(mean > 0, special.xlog1py(mean * (1 + excess), excess) - mean * excess, 0.0)


def at_least(trials: Floats, count: Floats, probability: float) -> Floats:
    """P(X ≥ count)."""
    reached = np.clip(count, 1.0, np.maximum(trials, 1.0))
    tail = special.betainc(reached, np.maximum(trials, 1.0) - reached + 1, probability)
    return np.where(count <= 0, 1.0, np.where(count > trials, 0.0, tail))


def between(trials: Floats, edges: Floats, probability: float, above: bool = True) -> Floats:
    """Bounds on P(edge ≤ X < next edge), from above or from below, along the last axis: the difference of two tails, on
    the side of the mean where both are small.

    Parameters
    ----------
    trials, probability: of X.
    edges: whole numbers from 0 to trials + 1 that do not fall.
    above: whether the bounds must not be smaller than the probabilities, or not larger.
    """
    trials, edges = np.broadcast_arrays(trials, edges)
    high = edges > trials * probability
    reached = np.clip(edges, 1.0, np.maximum(trials, 1.0))
    rest = np.maximum(trials, 1.0) - reached + 1
    tail = np.empty(edges.shape)  # P(X ≥ edge) where that is the smaller one, else P(X < edge)
    tail[high] = special.betainc(reached[high], rest[high], probability)
    tail[~high] = special.betaincc(reached[~high], rest[~high], probability)
    tail[(edges <= 0) | (edges > trials)] = 0.0
    margins = margin(trials[..., 1:]) if above else -margin(trials[..., 1:])
    first, last = tail[..., :-1], tail[..., 1:]
    below = np.where(high[..., 1:], 1 - last, last) * (1 + margins) - first * (1 - margins)
    bound = np.where(high[..., :-1], first * (1 + margins) - last * (1 - margins), below)
    return np.where(edges[..., 1:] <= edges[..., :-1], 0.0, np.clip(bound, 0.0, 1.0))


class CountCells(NamedTuple):
    """Cells of a binomial count, from ``first`` to ``last``, and bounds on their probabilities."""

    first: Floats
    last: Floats
    mass: Floats


def count_cells(trials: Floats, probability: float, width: float, above: bool = True) -> CountCells:
    """Cells of ``width`` counts about the mean, between two that hold the tails. The last axis runs over the cells;
    those beyond the range of the count are empty.
    """
    trials = np.asarray(trials, dtype=np.float64)[..., None]
    if probability <= 0:
        return CountCells(np.zeros_like(trials), np.zeros_like(trials), np.ones_like(trials))
    mean = trials * probability
    variance = mean * (1 - probability)
    reach = _TAIL_EXPONENT / 3 + np.sqrt(_TAIL_EXPONENT**2 / 9 + 2 * _TAIL_EXPONENT * variance)
    width = max(float(int(width)), 1.0)
    start = np.maximum(np.floor(mean - reach), 0.0)
    number = int(np.max(np.ceil((np.minimum(mean + reach, trials) - start + 1) / width)))
    inner = np.minimum(start + width * np.arange(number + 1), trials + 1)
    edges = np.concatenate([np.zeros_like(trials), inner, trials + 1], axis=-1)
    first, last = edges[..., :-1], edges[..., 1:] - 1
    return CountCells(first, last, between(trials, edges, min(probability, 1.0), above))


def cell_width(mean: float) -> float:
    """How many counts a cell may hold that have this mean."""
    return max(min(sqrt(mean) / 4, mean / 400), mean / 5000)
