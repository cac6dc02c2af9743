"""Estimates of ordered values: ranges, the cumulative distribution and quantiles, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, whole_number
from sunzi.display.estimate_page import EstimatePage
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain, numbered_labels
from sunzi.errors import EstimateError, needing_matplotlib
from sunzi.numerics import intervals
from sunzi.numerics.checks import real_number
from sunzi.numerics.dyadic import Dyadic
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import PostprocessedHistogram, Postprocessing
from sunzi.results.queries import QueryResult
from sunzi.results.uncertainty import Method, QueryErrors, Target, check_target, sum_intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RANGES_AT_ONCE = 4096
_MOST_CELLS = 1 << 26
_SMOOTHED = "noise is shrunk at every level and the cumulative distribution made monotone: biased, so without intervals"


@dataclass(frozen=True, eq=False)
class TreeUncertainty:
    """The errors of an estimate from halving levels (docs/mathematics.md §13), given the reports n_l of every level."""

    tree: Dyadic
    light: Floats
    """d0/n of every level, 0 for one without reports; so are the next two."""
    heavy: Floats
    """d1/n."""
    inverse: Floats
    """1/n."""
    plausible: Floats
    """The histogram at which variances are computed: the estimate, since they are linear in it up to a square."""
    reports: int

    @cached_property
    def cumulative(self) -> Floats:
        """The frequency of all bins before each end of a bin."""
        return np.concatenate([[0.0], np.cumsum(self.plausible)])

    def _moments(self, low: Integers, high: Integers) -> Floats:
        """For ranges of bins [low, high): the variance of their frequency about a population, and its slope in that
        frequency if all bins inside are equally frequent, and all outside.
        """
        parts, scales = [np.zeros((2, 0))], (self.tree.weights * self.tree.widths) ** 2
        for start in range(0, low.size, _RANGES_AT_ONCE):
            place = slice(start, start + _RANGES_AT_ONCE)
            sums = self.tree.range_sums(low[place], high[place], self.cumulative)
            # For a histogram both are positive, and the squared mean is smaller. With few reports, neither may hold.
            weighted = np.maximum(sums.weighted, 0.0)
            squared_means = np.minimum(sums.means**2, weighted)
            level = self.light * sums.squares + self.heavy * weighted - self.inverse * squared_means
            parts.append(np.stack([level @ scales, sums.contrasts @ (self.heavy * scales)]))
        variances, slopes = np.concatenate(parts, axis=1)
        width = (high - low) / self.tree.size
        return np.stack([variances, np.where(width < 1, slopes + 2 * width / self.reports, 0.0)])

    def _about(self, target: Target, variances: Floats, shares: Floats) -> Floats:
        """Variances of shares about the target, from those about a population."""
        if target == "population":
            return variances
        shares = np.clip(shares, 0.0, 1.0)
        return variances - shares * (1 - shares) / self.reports

    def _intervals(
        self, shares: Floats, moments: Floats, confidence: float, target: Target, method: Method = "auto"
    ) -> tuple[Floats, Floats, Floats]:
        """The standard errors of shares with these moments, and the ends of their intervals."""
        variances, slopes = self._about(target, moments[0], shares), moments[1]
        ends = sum_intervals(shares, shares, variances, slopes, self.reports, confidence, target, method)
        return intervals.standard_error(variances), *ends

    def ranges(
        self, low: Integers, high: Integers, confidence: float, target: Target, method: Method = "auto"
    ) -> tuple[Floats, Floats, Floats]:
        """The standard errors of the frequencies of ranges of bins [low, high), and the ends of their intervals."""
        shares = self.cumulative[high] - self.cumulative[low]
        return self._intervals(shares, self._moments(low, high), confidence, target, method)

    @cached_property
    def _prefixes(self) -> Floats:
        """The moments of the shares below all inner edges; cached, since all quantiles need them."""
        ends = np.arange(1, self.tree.size)
        return self._moments(np.zeros_like(ends), ends)

    def prefixes(self, confidence: float, target: Target) -> tuple[Floats, Floats, Floats]:
        """The standard errors of the cumulative distribution at all edges, and the ends of its intervals."""
        errors, low, high = self._intervals(self.cumulative[1:-1], self._prefixes, confidence, target)
        first, last = self.cumulative[[0, -1]]
        return np.r_[0.0, errors, 0.0], np.r_[first, low, last], np.r_[first, high, last]

    def variances(self, target: Target) -> Floats:
        """The variance of every bin."""
        bins = np.arange(self.tree.size)
        return self._about(target, self._moments(bins, bins + 1)[0], self.plausible)

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Intervals of every bin."""
        if method == "exact":
            raise EstimateError("method 'exact' is for protocols that count each value; omit it")
        bins = np.arange(self.tree.size)
        return self.ranges(bins, bins + 1, confidence, target, method)[1:]

    def query(self, rows: Floats) -> QueryErrors:
        """The errors of any linear queries, in O(D) each."""
        solved = self.tree.solve(rows)
        covariance, excess = np.zeros((len(rows), len(rows))), np.zeros(rows.shape)
        for level in np.flatnonzero(self.inverse).tolist():
            directions = self.tree.weights[level] * self.tree.node_sums(solved, level + 1)
            nodes = self.tree.node_sums(self.plausible, level + 1)
            means, weighted = directions @ nodes, (directions * nodes) @ directions.T
            squared_means = np.outer(means, means)
            np.fill_diagonal(weighted, np.maximum(weighted.diagonal(), 0.0))  # as in ranges
            np.fill_diagonal(squared_means, np.minimum(squared_means.diagonal(), weighted.diagonal()))
            covariance += self.light[level] * directions @ directions.T + self.heavy[level] * weighted
            covariance -= self.inverse[level] * squared_means
            excess += self.heavy[level] * np.repeat(directions**2, self.tree.widths[level], axis=1)
        return QueryErrors(rows, covariance, excess, self.plausible, self.reports)


@dataclass(frozen=True)
class Quantile:
    """A quantile with its interval; both ends are edges of bins."""

    probability: float
    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, eq=False)
class CumulativeDistribution:
    """The share of values below every edge of a bin, with intervals; not forced to be monotone."""

    edges: Floats
    values: Floats
    standard_errors: Floats
    low: Floats
    high: Floats
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class OrderedEstimate(Estimate):
    """The histogram of an ordered plan, which also answers ranges, quantiles and the mean."""

    @property
    def bins(self) -> OrderedDomain:
        """The range and its bins."""
        if not isinstance(self.domain, OrderedDomain):
            raise EstimateError("this plan's values are indices or labels without numbers; plan with make_ordered")
        return self.domain

    @property
    def _tree(self) -> TreeUncertainty:
        found = self._known_uncertainty()
        assert isinstance(found, TreeUncertainty), "an ordered plan makes it"
        return found

    def range(
        self, low: object, high: object, confidence: float = 0.95, *, target: Target = "reporters"
    ) -> QueryResult:
        """The share of values from ``low`` to below ``high``, with its interval.

        Parameters
        ----------
        low, high: edges of bins, as numbers or dates.
        confidence, target: as in :meth:`interval`.

        >>> import sunzi
        >>> plan = sunzi.make_ordered(0, 1000, 64, epsilon=2)
        >>> estimate = plan.estimate(plan.simulate([300] * 5000 + [700] * 5000, seed=1))
        >>> share = estimate.range(0, 500)
        >>> share.low < 0.5 < share.high
        True
        """
        ends = self.bins.position(low), self.bins.position(high)
        if not ends[0] < ends[1]:
            raise ParameterError(f"low must be below high, got {low} and {high}")
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        places = np.array(ends[:1]), np.array(ends[1:])
        error, first, last = (float(found[0]) for found in self._tree.ranges(*places, confidence, target))
        value = float(self._tree.cumulative[ends[1]] - self._tree.cumulative[ends[0]])
        return QueryResult(value, error, first, last, confidence)

    def cdf(self, confidence: float = 0.95, *, target: Target = "reporters") -> CumulativeDistribution:
        """The cumulative distribution at all edges of bins.

        Parameters
        ----------
        confidence, target: as in :meth:`interval`; each interval covers with this probability.
        """
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        errors, low, high = self._tree.prefixes(confidence, target)
        return CumulativeDistribution(self.bins.edges, self._tree.cumulative, errors, low, high, confidence)

    def quantile(self, probability: float, confidence: float = 0.95, *, target: Target = "reporters") -> Quantile:
        """A quantile, such as the median for ½, with its interval.

        Parameters
        ----------
        probability: the share of values below the quantile, between 0 and 1.
        confidence, target: as in :meth:`interval`.

        >>> import sunzi
        >>> plan = sunzi.make_ordered(0, 1000, 64, epsilon=2)
        >>> estimate = plan.estimate(plan.simulate([300] * 5000 + [700] * 4000, seed=1))
        >>> median = estimate.quantile(0.5)
        >>> median.low <= 300 <= median.high
        True
        """
        share = real_number("probability", probability)
        if not 0 < share < 1:
            raise ParameterError(f"probability must lie between 0 and 1, got {probability}")
        found = self.cdf(confidence, target=target)
        inner = slice(1, -1)
        weights = 1 / np.maximum(found.standard_errors[inner], 1e-12) ** 2
        rising = _made_to_rise(found.values[inner], weights)
        above, below = (found.high - found.values)[inner], (found.values - found.low)[inner]
        curves = [np.concatenate([[0.0], curve, [1.0]]) for curve in (rising, rising + above, rising - below)]
        middle, first, last = (int(np.argmax(curve[1:] >= share)) for curve in curves)
        step = curves[0][middle + 1] - curves[0][middle]
        within = float((share - curves[0][middle]) / step) if step > 0 else 0.5
        value = float(found.edges[middle] + within * self.bins.width)
        return Quantile(share, value, float(found.edges[first]), float(found.edges[last + 1]), found.confidence)

    def mean(self, confidence: float = 0.95, *, target: Target = "reporters") -> QueryResult:
        """The mean of the values, each counted as the middle of its bin, with its interval.

        Parameters
        ----------
        confidence, target: as in :meth:`interval`.
        """
        return self.combine(self.bins.centres, confidence, target=target)

    def histogram(self, edges: int | Sequence[object] | NDArray[Any]) -> Estimate:
        """The histogram of wider bins, with intervals.

        Parameters
        ----------
        edges: the ends of the bins, from the range's low to its high end, all of them edges of the plan's bins; or the
            maximum number of bins of equal width.
        """
        places = self._places(edges)
        if len(places) * self.domain.size > _MOST_CELLS:
            raise ParameterError(
                f"{len(places) - 1:,} bins of {self.domain.size:,} take too much memory; request fewer"
            )
        rows, labels = np.zeros((len(places) - 1, self.domain.size)), []
        for row, (start, stop) in zip(rows, pairwise(places), strict=True):
            row[start:stop] = 1.0
            labels.append(self.bins.shown_range(start, stop))
        return self._regrouped(Domain(numbered_labels(labels)), rows)

    def _places(self, edges: int | Sequence[object] | NDArray[Any]) -> list[int]:
        size = self.domain.size
        if not isinstance(edges, Sequence | np.ndarray):
            number = 1 << (whole_number("edges", edges, 2).bit_length() - 1)
            return list(range(0, size + 1, max(1, size // number)))
        places = [self.bins.position(edge) for edge in edges]
        if len(places) < 3 or places[0] != 0 or places[-1] != size or places != sorted(set(places)):
            ends = f"{self.bins.shown_edge(0)} to {self.bins.shown_edge(size)}"
            raise ParameterError(f"edges must rise from {ends} in at least two bins, got {list(edges)}")
        return places

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 32,
        confidence: float = 0.95,
        target: Target = "reporters",
        truth: Sequence[float] | Floats | None = None,
    ) -> Figure:
        """The histogram of wider bins with intervals, and the cumulative distribution with its band and two quantiles;
        needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        top: the number of bins, at most.
        confidence, target: as in :meth:`interval`.
        truth: not supported.
        """
        if truth is not None:
            raise ParameterError("truth= is not supported for plots of a distribution")
        if not isinstance(self.domain, OrderedDomain):
            return super().plot(path, top=top, confidence=confidence, target=target)
        with needing_matplotlib():
            from sunzi.display.record_plots import plot_ordered
        return plot_ordered(self, path, bins=top, confidence=confidence, target=target)

    def postprocess(
        self, method: Postprocessing | Literal["smooth"], confidence: float = 0.95
    ) -> PostprocessedHistogram:
        """As for any estimate; ``"smooth"`` is :meth:`smooth`.

        Parameters
        ----------
        method: the name of a post-processing.
        confidence: used by ``"significant"`` only.
        """
        return self.smooth() if method == "smooth" else super().postprocess(method, confidence)

    def smooth(self) -> PostprocessedHistogram:
        """The histogram without most of its noise, for plots; biased, so without intervals.

        Each level's coefficients are shrunk by the positive-part James–Stein estimator, then the cumulative
        distribution is made monotone.
        """
        tree = self._tree.tree
        coarser = np.full(tree.size, 1 / tree.size)
        smooth = coarser.copy()
        for level, value in enumerate(tree.spectrum.tolist(), start=1):
            width = int(tree.widths[level - 1])
            finer = np.repeat(tree.node_sums(self.frequencies, level) / width, width)
            detail = finer - coarser
            noise, energy = ((1 << level) // 2 - 2) / value, float(detail @ detail)
            smooth += max(0.0, 1 - max(noise, 0.0) / energy) * detail if energy > 0 else 0.0
            coarser = finer
        rising = _made_to_rise(np.cumsum(smooth)[:-1])
        frequencies = np.diff(np.concatenate([[0.0], rising, [1.0]]))
        return PostprocessedHistogram(self.domain, self.reports, frequencies, "smooth", _SMOOTHED)

    def _page(self, top: int, confidence: float = 0.95, target: Target = "reporters") -> EstimatePage:
        """Wider bins in their order, at most ``top``, with the median and the 95 % quantile."""
        if not isinstance(self.domain, OrderedDomain):
            return super()._page(top, confidence, target)
        remark = self.summary(confidence, target=target)
        return EstimatePage(self.histogram(top), top, confidence, target, in_order=True, remark=remark)

    def summary(self, confidence: float = 0.95, *, target: Target = "reporters") -> str:
        """The median and the 95 % quantile in a sentence, with their intervals.

        Parameters
        ----------
        confidence, target: as in :meth:`interval`.
        """
        parts = []
        for name, probability in (("Half", 0.5), ("95 %", 0.95)):
            found = self.quantile(probability, confidence, target=target)
            value, low, high = (self.bins.shown_number(end) for end in (found.value, found.low, found.high))
            parts.append(f"{name} of the values are below {value} (interval {low} to {high}).")
        return " ".join(parts)

    def _repr_html_(self) -> str:
        """Sixteen bins, for notebooks."""
        return self._page(16).fragment()

    def __repr__(self) -> str:
        """Size only; use :meth:`quantile`, :meth:`range` or :meth:`top`."""
        return f"OrderedEstimate({self.domain!r}, {self.reports} reports)"


def _made_to_rise(shares: Floats, weights: Floats | None = None) -> Floats:
    """Isotonic regression, clipped to [0, 1]."""
    from scipy.optimize import isotonic_regression  # takes a tenth of a second to import

    return np.asarray(np.clip(isotonic_regression(shares, weights=weights).x, 0.0, 1.0), dtype=np.float64)
