"""Series of estimates with known variances: slope, smoothing, change point, and an alarm with a known false alarm rate.

All functions go through the series row by row, so that single precision and memory for a few rows suffice.
docs/mathematics.md §12 derives the formulas.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError

Rows = NDArray[np.floating[Any]]
"""One row per epoch and one column per item, in single or double precision."""
LEAST_ONE_IN = 100
"""The shortest distance between false alarms whose threshold is accurate."""
_DRIFT = 0.5  # what a CUSUM forgives per epoch, in standard errors: best for shifts by one
_OVERSHOOT = 1.166  # by how much a random walk of normal steps oversteps two barriers, on average (Siegmund 1985)


@dataclass(frozen=True)
class Slopes:
    """The straight line through each item's series, by weighted least squares."""

    slopes: Floats
    """The change of the frequency per unit of time."""
    standard_errors: Floats
    lack_of_fit: Floats
    """The p-value of "the series is a straight line"; NaN for two epochs."""


def slopes(times: Floats, values: Rows, variances: Rows) -> Slopes:
    """Fit straight lines to all series at once.

    Parameters
    ----------
    times: when each row was measured; at least two different times.
    values, variances: one row per epoch.
    """
    weight, weighted_time, weighted_value = np.zeros((3, values.shape[1]))
    for time, value, variance in _rows(times, values, variances):
        weight += 1 / variance
        weighted_time += time / variance
        weighted_value += value / variance
    middle, mean = weighted_time / weight, weighted_value / weight
    squares, products = np.zeros((2, values.shape[1]))
    for time, value, variance in _rows(times, values, variances):
        squares += (time - middle) ** 2 / variance
        products += (time - middle) * (value - mean) / variance
    slope = products / squares
    misfit = np.zeros(values.shape[1])
    for time, value, variance in _rows(times, values, variances):
        misfit += (value - mean - slope * (time - middle)) ** 2 / variance
    freedom = len(times) - 2
    return Slopes(slope, squares**-0.5, chdtrc(freedom, misfit) if freedom else np.full_like(slope, np.nan))


def smooth(values: Rows, variances: Rows, weight: float) -> tuple[Floats, Floats]:
    """Exponentially weighted means, and their variances.

    Parameters
    ----------
    values, variances: one row per epoch.
    weight: of the newest epoch, above 0 and at most 1.
    """
    means, errors = np.array(values, dtype=np.float64), np.array(variances, dtype=np.float64)
    for row in range(1, len(means)):
        means[row] = weight * means[row] + (1 - weight) * means[row - 1]
        errors[row] = weight**2 * errors[row] + (1 - weight) ** 2 * errors[row - 1]
    return means, errors


@dataclass(frozen=True)
class Sources:
    """The number of reports of each epoch, and its plan.

    An epoch's variance is known only at its own estimate: used as it is, it would give low estimates large weights. So
    epochs of one plan share one variance per report, the mean over all their reports.
    """

    reports: Sequence[float]
    plans: Sequence[Hashable]

    @classmethod
    def separate(cls, epochs: int) -> Sources:
        """Epochs with exact variances, which share nothing."""
        return cls((1.0,) * epochs, range(epochs))

    def part(self, epochs: slice) -> Sources:
        """Some of the epochs."""
        return Sources(self.reports[epochs], self.plans[epochs])

    def pooled(self, variances: Rows) -> Rows:
        """Variances, one row per epoch, with one variance per report for all epochs of a plan."""
        totals = {plan: np.zeros(variances.shape[1]) for plan in self.plans}
        numbers = dict.fromkeys(self.plans, 0.0)
        for variance, reports, plan in zip(variances, self.reports, self.plans, strict=True):
            totals[plan] += reports**2 * np.asarray(variance, dtype=np.float64)
            numbers[plan] += reports
        found = np.empty_like(variances)
        for row, (reports, plan) in enumerate(zip(self.reports, self.plans, strict=True)):
            found[row] = totals[plan] / numbers[plan] / reports
        return found


class _Baseline:
    """The mean of the epochs since the last alarm, weighted by inverse variances; an alarm starts it again."""

    def __init__(self, size: int) -> None:
        # For each plan: reports, reports times frequency, and reports times the variance of a report.
        self._sums: dict[Hashable, Floats] = {}
        self._newest: Hashable = None
        self._others = np.zeros((2, size))  # weights, and weights times frequencies, of all plans but the newest
        self.means = np.full(size, np.nan)
        """The mean of each item before the newest epoch; NaN where there was none since the last alarm."""

    def add(self, value: Rows, variance: Rows, reports: float, plan: Hashable) -> Floats:
        """Add an epoch, and return its distance from the mean in standard errors; 0 where there is no mean yet."""
        sums = self._of_plan(plan)
        sums[2] += reports**2 * np.asarray(variance, dtype=np.float64)
        spread = sums[2] / (sums[0] + reports)
        weight, total = self._others + sums[:2] / spread
        known = weight > 0
        weight[~known] = 1.0
        self.means = np.where(known, total / weight, np.nan)
        sums[0] += reports
        sums[1] += reports * np.asarray(value, dtype=np.float64)
        found: Floats = np.where(known, value - self.means, 0.0) / np.sqrt(spread / reports + 1 / weight)
        return found

    def _of_plan(self, plan: Hashable) -> Floats:
        """The sums of a plan, which becomes the newest."""
        if self._sums and plan != self._newest:
            self._others += _weights(self._sums[self._newest])
            if plan in self._sums:
                parts = (_weights(sums) for other, sums in self._sums.items() if other != plan)
                self._others = sum(parts, start=np.zeros_like(self._others))
        self._newest = plan
        return self._sums.setdefault(plan, np.zeros((3, self.means.size)))

    def restart(self, items: NDArray[np.intp]) -> None:
        """Forget all epochs of these items."""
        if items.size:
            for sums in (self._others, *self._sums.values()):
                sums[:, items] = 0.0


def _weights(sums: Floats) -> Floats:
    """The weight of a plan's mean, its inverse variance, and the weight times the mean; 0 where it has no epochs."""
    reports, _, squares = sums
    return sums[:2] * np.divide(reports, squares, where=squares > 0, out=np.zeros(reports.size))


@dataclass(frozen=True)
class Alarms:
    """Where series changed, in order of their epochs."""

    items: Integers
    rows: Integers
    """The epoch that raised the alarm."""
    since: Integers
    """The estimated start of the change."""
    is_rise: NDArray[np.bool_]
    before: Floats
    """The mean before the alarm."""


def find_alarms(values: Rows, variances: Rows, threshold: float, sources: Sources | None = None) -> Alarms:
    """A two-sided CUSUM of recursive residuals for every item. After an alarm, an item's baseline starts again.

    Parameters
    ----------
    values, variances: one row per epoch.
    threshold: see :func:`alarm_threshold`.
    sources: the epochs' reports and plans; without them, variances are taken as exact.
    """
    size, sources = values.shape[1], sources or Sources.separate(len(values))
    baseline = _Baseline(size)
    sums = np.zeros((2, size))  # of rises and of falls
    starts = np.zeros(size, dtype=np.int64)
    found = []
    for row, epoch in enumerate(zip(values, variances, sources.reports, sources.plans, strict=True)):
        residuals = baseline.add(*epoch)
        sums = np.maximum(sums + np.stack([residuals, -residuals]) - _DRIFT, 0.0)
        raised = np.flatnonzero((sums > threshold).any(axis=0))
        if raised.size:
            since = _best_splits(values[: row + 1], variances, sources, raised, starts[raised])
            is_rise = sums[0, raised] > sums[1, raised]
            found.append((raised, np.full(raised.size, row), since, is_rise, baseline.means[raised]))
        baseline.restart(raised)
        sums[:, raised], starts[raised] = 0.0, row + 1
    nothing = np.zeros(0, dtype=np.int64)
    found = found or [(nothing, nothing, nothing, np.zeros(0, dtype=np.bool_), np.zeros(0))]
    items, rows, since, is_rise, before = (np.concatenate(column) for column in zip(*found, strict=True))
    return Alarms(items, rows, since, is_rise, before)


def _best_splits(
    values: Rows, variances: Rows, sources: Sources, items: NDArray[np.intp], starts: Integers
) -> Integers:
    """The clearest change of each of these items since its own start."""
    rows = np.zeros(items.size, dtype=np.int64)
    for start in np.unique(starts):
        same = starts == start
        part = (slice(start, len(values)), items[same])
        pooled = sources.part(part[0]).pooled(variances[part])
        rows[same] = start + change_points(values[part], pooled).rows
    return rows


def alarm_threshold(one_in: float) -> float:
    """The threshold at which one false alarm is expected in this number of items times epochs.

    Parameters
    ----------
    one_in: the mean number of items times epochs between two false alarms.
    """
    from scipy.optimize import brentq  # takes a tenth of a second to import

    if not LEAST_ONE_IN <= one_in <= 1e15:
        raise ParameterError(f"one_in must be a number from {LEAST_ONE_IN} to 1e15, got {one_in!r}")

    def excess(barrier: float) -> float:
        # Siegmund's mean time of one side is (e^b − b − 1)/(2·drift²); both sides together take half of it.
        return float(np.expm1(barrier) - barrier) / (4 * _DRIFT**2) - one_in

    return float(brentq(excess, 1.0, 40.0, xtol=1e-9)) - _OVERSHOOT


@dataclass(frozen=True)
class ChangePoints:
    """The split of each item's series at which the means of both parts differ most clearly."""

    rows: Integers
    """The first epoch of the later part."""
    changes: Floats
    """The mean after less the mean before."""
    standard_errors: Floats
    p_values: Floats


def change_points(values: Rows, variances: Rows) -> ChangePoints:
    """The best split of every series, with a p-value that accounts for the choice among all splits (Bonferroni).

    Parameters
    ----------
    values, variances: at least two rows, one per epoch.
    """
    size = values.shape[1]
    weight_after, total_after = np.zeros((2, size))
    for value, variance in zip(values, variances, strict=True):
        weight_after += 1 / np.asarray(variance, dtype=np.float64)
        total_after += value / np.asarray(variance, dtype=np.float64)
    weight_before, total_before, best, changes = np.zeros((4, size))
    rows, errors = np.ones(size, dtype=np.int64), np.ones(size)
    for row in range(1, len(values)):
        weight = 1 / np.asarray(variances[row - 1], dtype=np.float64)
        weight_before += weight
        total_before += values[row - 1] * weight
        left, total_left = weight_after - weight_before, total_after - total_before
        change = total_left / left - total_before / weight_before
        error = np.sqrt(1 / left + 1 / weight_before)
        better = np.abs(change) > best * error
        best[better] = (np.abs(change) / error)[better]
        rows[better], changes[better], errors[better] = row, change[better], error[better]
    return ChangePoints(rows, changes, errors, np.minimum(1.0, (len(values) - 1) * 2 * ndtr(-best)))


def discoveries(p_values: Floats, rate: float) -> NDArray[np.bool_]:
    """Which hypotheses to reject, so that at most this share of them is expected to be true (Benjamini and Hochberg).

    Parameters
    ----------
    p_values: one per hypothesis.
    rate: the false discovery rate.
    """
    ordered = np.sort(p_values)
    passing = np.flatnonzero(ordered <= rate * np.arange(1, p_values.size + 1) / p_values.size)
    found: NDArray[np.bool_] = p_values <= (ordered[passing[-1]] if passing.size else -1.0)
    return found


def _rows(times: Floats, values: Rows, variances: Rows) -> Iterator[tuple[float, Rows, Floats]]:
    """Rows in double precision."""
    for time, value, variance in zip(times.tolist(), values, variances, strict=True):
        yield time, value, np.asarray(variance, dtype=np.float64)
