"""The uncertainty of an estimate: the errors of every frequency, and of every linear combination of frequencies.

A linear query is a row a of weights, one per value; its answer is aᵀf. All protocols answer it alike: the estimate is a
sum over reports, so its covariance follows from what one report adds (docs/mathematics.md §11).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, get_args

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics import intervals, simplex
from sunzi.numerics.support_probabilities import SupportProbabilities

Target = Literal["reporters", "population"]
Method = Literal["auto", "normal", "score", "exact"]


def check_target(target: str) -> None:
    """Validate the target: the reporters or the population."""
    if target not in get_args(Target):
        raise ParameterError(f"target must be {' or '.join(get_args(Target))}, got {target!r}")


class Uncertainty(Protocol):
    """The errors of one estimate, as its protocol knows them."""

    def variances(self, target: Target) -> Floats:
        """The variance of every frequency."""

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Lower and upper ends, one pair per item, each covering with probability ``confidence``."""

    def query(self, rows: Floats) -> QueryErrors:
        """The errors of linear queries, one per row."""


@dataclass(frozen=True)
class QueryErrors:
    """The errors of linear queries on one estimate that sums to 1."""

    rows: Floats
    """One query per row, with a weight for every value."""
    population: Floats
    """The covariance matrix of the queries about a population."""
    excess: Floats
    """The slope of each query's variance in a value's frequency, relative to the frequencies of others."""
    plausible: Floats
    """The histogram at which these are computed."""
    reports: int

    def covariance(self, target: Target) -> Floats:
        """The covariance about the population; for the reporters minus the sampling error (Σ f·a·b − aᵀf·bᵀf)/n."""
        if target == "population":
            return self.population
        means = self.rows @ self.plausible
        sampling = (self.rows * self.plausible) @ self.rows.T - np.outer(means, means)
        return self.population - sampling / self.reports

    def unseen_spread(self) -> Floats:
        """What to add to each query's variance about a population, since few reports may all have the same weight, as
        if there were no spread: it is averaged with that of four more reports of the most spread.
        """
        spread = (self.population - self.covariance("reporters")).diagonal()
        most = np.ptp(self.rows, axis=1) ** 2 / 4 / self.reports
        return 4 * (most - spread) / (self.reports + 4)

    def slopes(self) -> Floats:
        """For a sum of some values, how fast its variance about a population grows with the sum; 0 for other queries.

        The values inside, and those outside, keep their frequencies relative to one another. −(hᵀf)²/n, with h = a − ā,
        adds 2ā/n.
        """
        weights = np.maximum(self.plausible, 0.0) + 1e-12
        found = np.zeros(len(self.rows))
        for place, (row, excess) in enumerate(zip(self.rows, self.excess, strict=True)):
            inside = row == 1
            if inside.any() and not inside.all() and not row[~inside].any():
                means = [np.average(excess[part], weights=weights[part]) for part in (inside, ~inside)]
                found[place] = means[0] - means[1] + 2 * row.mean() / self.reports
        return found


class JointErrors(Protocol):
    """Covariances between items."""

    def query(self, rows: Floats, frequencies: Floats, reports: int) -> tuple[Floats, Floats]:
        """The covariance of queries whose rows sum to 0, and their excess, as in :class:`QueryErrors`."""


@dataclass(frozen=True)
class SupportUncertainty:
    """Errors of protocols that count the support of every item: designs on the whole domain, and unary encodings."""

    support: Integers
    reports: int
    probabilities: SupportProbabilities
    frequencies: Floats
    joint: JointErrors | None = None
    """Covariances between items; None if not needed."""

    def query(self, rows: Floats) -> QueryErrors:
        """Frequencies are moved to sum to 1 first, which makes sums over many values more accurate."""
        assert self.joint is not None, "protocols supply the covariances"
        plausible = self.frequencies + (1 - self.frequencies.sum()) / self.frequencies.size
        centred = rows - rows.mean(axis=1, keepdims=True)
        covariance, excess = self.joint.query(centred, plausible, self.reports)
        return QueryErrors(rows, covariance, excess, plausible, self.reports)

    def variances(self, target: Target) -> Floats:
        """[f·p(1−p) + (1−f)·q(1−q)]/(nΔ²) at the projected estimate; for a population plus the sampling variance
        f(1−f)/n.
        """
        projected = simplex.project(self.frequencies)
        true, false = (rate * (1 - rate) for rate in (self.probabilities.true, self.probabilities.false))
        reporters = (projected * true + (1 - projected) * false) / self.probabilities.gap**2
        sampling = projected * (1 - projected) if target == "population" else 0.0
        return (reporters + sampling) / self.reports

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Score intervals; exact ones for few supports; normal ones on request."""
        at_hand = target == "reporters"
        if method == "auto":
            method = "exact" if intervals.has_few_counts(self.reports, self.probabilities, confidence) else "score"
        if method == "exact":
            return intervals.exact(self.support, self.reports, self.probabilities, confidence, at_hand)
        if method == "score":
            quantile = intervals.normal_quantile(confidence)
            return intervals.score(self.support, self.reports, self.probabilities, quantile, at_hand)
        return intervals.normal(self.frequencies, intervals.standard_error(self.variances(target)), confidence)


@dataclass(frozen=True)
class CombinedUncertainty(ABC):
    """Errors of estimates that combine the counts of several points: of residues, or of whole blocks.

    ``plausible`` is the histogram at which variances are computed, non-negative and of sum 1.
    """

    frequencies: Floats
    plausible: Floats
    reports: int
    _jumps: dict[Target, intervals.Jumps] = field(default_factory=dict, init=False)

    @cached_property
    @abstractmethod
    def population(self) -> Floats:
        """The variances about a population."""

    @cached_property
    @abstractmethod
    def slopes(self) -> Floats:
        """The slope of an item's variance about a population in its own frequency."""

    @abstractmethod
    def jumps(self, at_hand: bool) -> intervals.Jumps:
        """How coarse the errors are: whether they come in a few large steps."""

    @abstractmethod
    def query(self, rows: Floats) -> QueryErrors:
        """The errors of linear queries, one per row."""

    def variances(self, target: Target) -> Floats:
        """The variances at the plausible histogram; for "reporters" without f(1−f)/n."""
        sampling = self.plausible * (1 - self.plausible) / self.reports
        return self.population if target == "population" else self.population - sampling

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Intervals for errors that come in jumps; normal or score intervals on request."""
        if method == "exact":
            raise EstimateError(
                "method 'exact' needs an estimate from support counts alone: a protocol that has one per item, and "
                "weights='planned'"
            )
        variances = self.variances(target)
        if method == "normal":
            return intervals.normal(self.frequencies, intervals.standard_error(variances), confidence)
        quantile = intervals.normal_quantile(confidence)
        # The variance as a function of the item's own frequency, with all others fixed.
        sampling = 1 / self.reports
        square = sampling if target == "population" else 0.0
        slopes = self.slopes if target == "population" else self.slopes - sampling
        base = variances - slopes * self.plausible + square * self.plausible**2
        if method == "score":
            return intervals.score_of(self.frequencies, base, slopes, square, quantile)
        if target not in self._jumps:
            self._jumps[target] = self.jumps(target == "reporters")
        return intervals.skewed(self.frequencies, self.plausible, base, slopes, square, self._jumps[target], quantile)


@dataclass(frozen=True)
class QueryUncertainty:
    """The errors of linear queries on an estimate, treated as items."""

    base: Uncertainty
    rows: Floats
    values: Floats

    @cached_property
    def _errors(self) -> QueryErrors:
        return self.base.query(self.rows)

    def covariance(self, target: Target) -> Floats:
        """The covariance matrix of the queries."""
        return self._errors.covariance(target)

    def variances(self, target: Target) -> Floats:
        """The variance of every query."""
        return self.covariance(target).diagonal()

    def query(self, rows: Floats) -> QueryErrors:
        """Queries on these queries are queries on the estimate below."""
        return self.base.query(rows @ self.rows)

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Intervals for sums of values (:func:`sum_intervals`), normal ones for other queries."""
        errors, slopes = self._errors, self._errors.slopes()
        variances = self.variances(target)
        if target == "population":
            variances = variances + np.where(slopes == 0, errors.unseen_spread(), 0.0)
        return sum_intervals(self.values, self.values, variances, slopes, errors.reports, confidence, target, method)


def sum_intervals(
    values: Floats,
    plausible: Floats,
    variances: Floats,
    slopes: Floats,
    reports: int,
    confidence: float,
    target: Target,
    method: Method,
) -> tuple[Floats, Floats]:
    """Intervals for sums of values, whose variance grows with the sum: the farther end of a normal and a score
    interval. The normal one misses sums that no report happens to support, the score one those that several lies
    support. For queries of slope 0 both are the same.

    Parameters
    ----------
    values: of every sum.
    plausible, variances: the values that each variance is computed at, and these variances.
    slopes: how fast the variance about a population grows with the sum.
    reports: the number of reports.
    confidence, target, method: as in :meth:`Uncertainty.interval`.
    """
    if method == "exact":
        raise EstimateError("method 'exact' is for single values; a sum has score and normal intervals")
    normal = intervals.normal(values, intervals.standard_error(variances), confidence)
    if method == "normal":
        return normal
    quantile = intervals.normal_quantile(confidence)
    is_sum, sampling = slopes != 0, 1 / reports
    square = is_sum * (sampling if target == "population" else 0.0)
    slopes = slopes - is_sum * (0.0 if target == "population" else sampling)
    base = variances - slopes * plausible + square * plausible**2
    score = intervals.score_of(values, base, slopes, square, quantile)
    return score if method == "score" else (np.minimum(normal[0], score[0]), np.maximum(normal[1], score[1]))
