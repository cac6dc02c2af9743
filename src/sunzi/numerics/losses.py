"""Distributions of privacy loss on a grid, which add up when batches are published one after another.

The loss of an outcome is L = log P(outcome | x)/P(outcome | x'), and δ(ε) = E[(1 − e^{ε−L})_+] under x. A distribution
here has at least the δ of what it describes at every ε, so sums of independent losses do too, even if later batches
depend on earlier ones (Zhu, Dong and Wang 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import exp, inf, log2, sqrt
from typing import Self, TypeVar

import numpy as np

from sunzi._typing import Floats

_TAIL = 1e-22
# Smaller masses under x' count as this when evidence is limited, far above those that round to 0.
_SMALLEST_MASS = 1e-290
_NEGLIGIBLE = 1e-17
_ROUNDING = 1e-9
_PRECISION = 2e-4
_SMALLEST_SHARE = 1e-12
# Sums get a step twice as large when they have more cells than this, some hundred per standard deviation.
_MOST_CELLS = 1 << 11
_STEPS_PER_DEVIATION = 100


@dataclass(frozen=True)
class LossDistribution:
    """The mass of each loss (lowest + i)·step under x, and the mass of unbounded loss."""

    step: float
    lowest: int
    mass: Floats
    unbounded: float = 0.0

    @classmethod
    def of_profile(cls, delta: Callable[[float], float], largest: float, step: float) -> Self:
        """Of a mechanism that is (ε, δ(ε))-private for every ε ≥ 0 when x and x' change places.

        δ is convex in e^ε, so straight lines between the points of a grid bound it; each bend of that line is a loss
        of the grid.

        Parameters
        ----------
        delta: a bound on δ for every ε.
        largest: the ε from which on δ stays as it is there: losses beyond it count as unbounded.
        step: the distance of losses.
        """
        count = max(1, int(np.ceil(largest / step)))
        losses = step * np.arange(count + 1)
        found = np.array([delta(float(loss)) for loss in losses])
        odds = np.exp(np.concatenate([-losses[:0:-1], losses]))
        # Below ε = 0 the roles are exchanged: δ(s) = 1 − s + s·δ(1/s).
        mirrored = -np.expm1(-losses[:0:-1]) + odds[:count] * found[:0:-1]
        corners = _lower_hull(np.concatenate([[0.0], odds]), np.concatenate([[1.0], mirrored, found]))
        slopes = np.diff(corners) / np.diff(np.concatenate([[0.0], odds]))
        bends = np.maximum(np.diff(np.append(slopes, 0.0)), 0.0)
        return cls(step, -count, bends * odds * (1 + _ROUNDING), float(corners[-1]))

    def plus(self, other: LossDistribution) -> LossDistribution:
        """The sum of two independent losses, whose steps are equal or differ by a power of 2."""
        left, right = aligned(self, other)
        mass = np.convolve(left.mass, right.mass)
        unbounded = left.unbounded + right.unbounded
        found = LossDistribution(left.step, left.lowest + right.lowest, mass, unbounded)._trimmed()
        return found.coarser() if found.mass.size > _MOST_CELLS else found

    def times(self, number: int) -> LossDistribution:
        """The sum of ``number`` independent losses of this kind."""
        return repeated(self, number)

    def coarser(self) -> LossDistribution:
        """On a grid of twice the step. A loss between two places becomes one of them by chance, such that both
        likelihoods keep their sums: that reveals more, since someone who sees the place can forget it.
        """
        mass = np.pad(self.mass, (self.lowest % 2, (self.lowest + self.mass.size + 1) % 2))
        even, odd, up = mass[::2].copy(), mass[1::2], 1 / (1 + exp(-self.step))
        even[1:] += up * odd
        even[:-1] += (1 - up) * odd
        return LossDistribution(2 * self.step, self.lowest // 2, even, self.unbounded)

    def _trimmed(self) -> LossDistribution:
        """Without tails that do not matter: the smallest losses are rounded up, the largest become unbounded."""
        below = int(np.searchsorted(np.cumsum(self.mass), _TAIL))
        above = int(np.searchsorted(np.cumsum(self.mass[::-1]), _TAIL))
        stop = self.mass.size - above
        if below == 0 and above == 0:
            return self
        if below >= stop:
            return LossDistribution(self.step, self.lowest, np.zeros(1), self.unbounded + float(self.mass.sum()))
        mass = self.mass[below:stop].copy()
        mass[0] += self.mass[:below].sum()
        return LossDistribution(self.step, self.lowest + below, mass, self.unbounded + float(self.mass[stop:].sum()))

    def delta(self, epsilon: float) -> float:
        """E[(1 − e^{ε−L})_+]."""
        losses = self.step * (self.lowest + np.arange(self.mass.size))
        excess = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        return float((self.mass * excess).sum()) + self.unbounded

    def epsilons(self, delta: float) -> tuple[float, float]:
        """The least ε with δ(ε) ≤ ``delta``, from below and from above; infinite if the unbounded mass exceeds it."""
        if self.unbounded > delta:
            return inf, inf
        largest = max(self.step, self.step * (self.lowest + self.mass.size))
        return boundary(lambda epsilon: self.delta(epsilon) <= delta, largest)


@dataclass(frozen=True)
class BatchAttack:
    """A number that an attacker computes from a batch, by its masses under x and under x', in steps of ``step``.

    Whatever numbers an attacker adds up, the sum is an attack, so its masses bound δ from below.
    """

    step: float
    here: Floats
    there: Floats

    @classmethod
    def of_outcomes(cls, here: Floats, there: Floats) -> Self:
        """The log likelihood ratio of an outcome, rounded.

        Parameters
        ----------
        here, there: the masses of the outcomes, not above the true ones under x, and not below them under x'.
        """
        known = (here > 0) & (there > 0)
        here, there = here[known], there[known]
        losses = np.log(here / there)
        step = power_of_two(max(sqrt(float((there * losses**2).sum())), _TAIL) / _STEPS_PER_DEVIATION)
        index = np.clip(np.round(losses / step), -_MOST_CELLS, _MOST_CELLS).astype(np.int64)
        index -= index.min(initial=0)
        return cls(step, *(np.bincount(index, masses).astype(np.float64) for masses in (here, there)))

    def plus(self, other: BatchAttack) -> BatchAttack:
        """The sum of two independent numbers, whose steps are equal or differ by a power of 2."""
        left, right = aligned(self, other)
        here, there = np.convolve(left.here, right.here), np.convolve(left.there, right.there)
        telling = np.flatnonzero(np.maximum(here, there) > _TAIL)
        kept = slice(telling[0], telling[-1] + 1) if telling.size else slice(1)
        found = BatchAttack(left.step, here[kept], there[kept])
        return found.coarser() if found.here.size > _MOST_CELLS else found

    def times(self, number: int) -> BatchAttack:
        """The sum of ``number`` independent numbers of this kind."""
        return repeated(self, number)

    def coarser(self) -> BatchAttack:
        """With adjacent pairs merged, which reveals less."""
        starts = np.arange(0, self.here.size, 2)
        return BatchAttack(2 * self.step, np.add.reduceat(self.here, starts), np.add.reduceat(self.there, starts))

    def delta(self, epsilon: float) -> float:
        """P(S | x) − e^ε·P(S | x') of the event S that makes it largest."""
        return float(np.maximum(self.here - exp(epsilon) * self.there, 0.0).sum())

    def epsilon_below(self, delta: float) -> float:
        """An ε with δ(ε) > ``delta``; 0 if there is none."""
        seen = self.here > _TAIL
        largest = float(np.log(self.here[seen] / np.maximum(self.there[seen], _SMALLEST_MASS)).max(initial=self.step))
        return boundary(lambda epsilon: self.delta(epsilon) <= delta + _NEGLIGIBLE, largest)[0]


Summand = TypeVar("Summand", LossDistribution, BatchAttack)


def power_of_two(step: float) -> float:
    """The nearest one, so that grids fit each other."""
    return 2.0 ** round(log2(step))


def aligned(first: Summand, second: Summand) -> tuple[Summand, Summand]:
    """Both on the grid of the larger step."""
    while first.step < second.step:
        first = first.coarser()
    while second.step < first.step:
        second = second.coarser()
    return first, second


def repeated(one: Summand, number: int) -> Summand:
    """The sum of ``number`` independent copies."""
    doubled, parts = one, []
    while number:
        if number & 1:
            parts.append(doubled)
        number >>= 1
        if number:
            doubled = doubled.plus(doubled)
    return reduce(lambda first, second: first.plus(second), parts)


def boundary(holds: Callable[[float], bool], largest: float) -> tuple[float, float]:
    """ε just below and just above the place from which ``holds`` is true, both evaluated but for ``largest``, where it
    is known to be true.
    """
    high, low, ratio = largest, largest * 0.8, 0.8
    while low > largest * _SMALLEST_SHARE and holds(low):
        high, ratio = low, ratio**2
        low *= ratio
    if low <= largest * _SMALLEST_SHARE:
        return 0.0, high
    while high - low > _PRECISION * high:
        middle = sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _lower_hull(places: Floats, heights: Floats) -> Floats:
    """The heights of the largest convex function that lies nowhere above these points, at their places."""
    hull: list[int] = []
    for index in range(places.size):
        while len(hull) > 1:
            before, last = hull[-2], hull[-1]
            rise = (heights[last] - heights[before]) * (places[index] - places[before])
            if rise < (heights[index] - heights[before]) * (places[last] - places[before]):
                break
            hull.pop()
        hull.append(index)
    return np.interp(places, places[hull], heights[hull])
