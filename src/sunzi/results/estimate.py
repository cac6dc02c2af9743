"""Estimates: unbiased frequencies with standard errors and intervals. Post-processed copies are separate objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.display.estimate_page import EstimatePage
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError, needing_matplotlib
from sunzi.numerics import intervals, simplex
from sunzi.results.histogram import (
    POSTPROCESSING,
    Histogram,
    PostprocessedHistogram,
    Postprocessing,
    Row,
    data_frame,
    labels_column,
    largest,
    read_only,
)
from sunzi.results.queries import QueryResult, group_rows, indicator, weights_row
from sunzi.results.uncertainty import Method, QueryUncertainty, Target, Uncertainty, check_target

if TYPE_CHECKING:
    from datetime import date

    from matplotlib.figure import Figure

    from sunzi.batch import BatchGuarantee
    from sunzi.plan import Plan

Weights = Literal["efficient", "planned", "paper"]
Errors = Literal["full", "quick"]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Histogram):
    """An unbiased histogram. ``frequencies`` may be negative: noise goes both ways, and clipping it would cause bias.

    Errors are about the users who reported (``target="reporters"``, the default), or about the population that these
    users are a random sample of (``target="population"``), which adds the sampling error.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> estimate = plan.estimate(plan.simulate(["yes"] * 900 + ["no"] * 100, seed=1))
    >>> low, high = estimate.interval(confidence=0.99)
    >>> bool(low[1] < 0.9 < high[1])
    True
    >>> estimate["yes"].frequency > 0.8
    True
    """

    _uncertainty: Uncertainty | None
    """None for a ridge estimate, which is biased."""
    _refit: Callable[[], Floats] | None = None
    """Computes the constrained fit from the tally."""
    _refit_effect: str = ""
    weights: Weights = "planned"
    """How reports are weighted: "planned" is a fixed linear map, exactly unbiased. "efficient" adapts to the reports
    and is more accurate: unbiased to first order, with a measured bias below 0.1 standard errors. "paper" as in the
    paper.
    """
    plan: Plan | None = None
    """The plan of the reports; None where a protocol estimated by itself."""
    _errors: dict[Target, Floats] = field(default_factory=dict, init=False)

    @property
    def is_unbiased(self) -> bool:
        """False for a ridge estimate, which therefore has no intervals."""
        return self._uncertainty is not None

    def standard_errors(self, target: Target = "reporters") -> Floats:
        """The standard error of every frequency, about the reporters or about the population."""
        check_target(target)
        if target not in self._errors:
            variances = self._known_uncertainty().variances(target)
            self._errors[target] = read_only(intervals.standard_error(variances))
        return self._errors[target]

    def _known_uncertainty(self) -> Uncertainty:
        if self._uncertainty is None:
            raise EstimateError(
                "a ridge estimate is biased, so it has no standard errors and no intervals; estimate with ridge=0"
            )
        return self._uncertainty

    def interval(
        self,
        confidence: float = 0.95,
        *,
        target: Target = "reporters",
        simultaneous: bool = False,
        method: Method = "auto",
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends of a confidence interval for every frequency.

        Ends are not clipped to [0, 1]: an interval below 0 means that the true frequency is near 0.

        Parameters
        ----------
        confidence: the coverage probability of each interval.
        target: "reporters" or "population".
        simultaneous: whether all intervals together cover with this probability.
        method: "normal", "score" or "exact"; "auto" chooses score intervals, exact ones where counts are small; for
            sums, ordered values and tables the farther end of a normal and a score interval; and for modular protocols
            intervals whose tails account for errors that come in few large steps.
        """
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        if method not in get_args(Method):
            raise ParameterError(f"method must be auto, normal, score or exact, got {method!r}")
        each = intervals.simultaneous_confidence(confidence, self.domain.size) if simultaneous else confidence
        return self._known_uncertainty().interval(each, target, method)

    def top(self, number: int = 10, confidence: float = 0.95, *, target: Target = "reporters") -> list[Row]:
        """The ``number`` most frequent values with their intervals, most frequent first."""
        return self.rows(largest(self.frequencies, number), confidence, target)

    def rows(
        self,
        indices: Sequence[int] | NDArray[np.intp],
        confidence: float = 0.95,
        target: Target = "reporters",
    ) -> list[Row]:
        """The rows of values with these indices, with their intervals."""
        low, high = self.interval(confidence, target=target)
        columns = [self.frequencies, self.counts, self.standard_errors(target), low, high]
        return [
            Row(self.domain.shown(index), int(index), *(float(column[index]) for column in columns))
            for index in indices
        ]

    def sum(self, values: Iterable[object], confidence: float = 0.95, *, target: Target = "reporters") -> QueryResult:
        """How frequent any of these values is: the sum of their frequencies, with its interval.

        Parameters
        ----------
        values: labels, or indices where there are no labels; each once.
        confidence, target: as in :meth:`interval`.

        >>> import sunzi
        >>> plan = sunzi.make_plan("ss-compact", ["Chrome", "Edge", "Opera", "Safari"], epsilon=2)
        >>> estimate = plan.estimate(plan.simulate(["Chrome"] * 500 + ["Safari"] * 500, seed=1))
        >>> share = estimate.sum(["Chrome", "Edge", "Opera"])
        >>> share.low < 0.5 < share.high
        True
        """
        return self._answer(indicator(self.domain, values), confidence, target)

    def difference(
        self, value: object, other: object, confidence: float = 0.95, *, target: Target = "reporters"
    ) -> QueryResult:
        """How much more frequent one value is than another, with its interval.

        Parameters
        ----------
        value, other: labels, or indices where there are no labels.
        confidence, target: as in :meth:`interval`.
        """
        row = indicator(self.domain, [value]) - indicator(self.domain, [other])
        return self._answer(row, confidence, target)

    def combine(
        self,
        weights: Mapping[Any, float] | Sequence[float] | Floats,
        confidence: float = 0.95,
        *,
        target: Target = "reporters",
    ) -> QueryResult:
        """A weighted sum of frequencies, such as a mean of numbers, with its interval.

        Parameters
        ----------
        weights: a weight for some values, the others having 0; or one for every value in the domain's order.
        confidence, target: as in :meth:`interval`.

        >>> import sunzi
        >>> plan = sunzi.make_plan("grr", ["0", "1", "2"], epsilon=3)
        >>> estimate = plan.estimate(plan.simulate(["0"] * 900 + ["2"] * 900, seed=2))
        >>> mean = estimate.combine({"1": 1, "2": 2})
        >>> mean.low < 1 < mean.high
        True
        """
        return self._answer(weights_row(self.domain, weights), confidence, target)

    def covariance(self, values: Iterable[object], target: Target = "reporters") -> Floats:
        """The covariance matrix of the frequencies of a handful of values.

        Parameters
        ----------
        values: labels, or indices where there are no labels. Modular protocols take one solve for each.
        target: as in :meth:`interval`.
        """
        check_target(target)
        rows = [indicator(self.domain, [value]) for value in values]
        if not rows:
            raise ParameterError("name at least one value")
        return self._query(np.array(rows)).covariance(target)

    def regroup(self, groups: Mapping[str, Any]) -> Estimate:
        """The histogram of groups of values, with its own errors and intervals.

        Parameters
        ----------
        groups: for every group its values; ``...`` for one group takes all values that no other has. Every value
            belongs to exactly one group.

        >>> import sunzi
        >>> plan = sunzi.make_plan("ss-compact", ["Chrome", "Edge", "Opera", "Safari"], epsilon=2)
        >>> estimate = plan.estimate(plan.simulate(["Chrome"] * 500 + ["Safari"] * 500, seed=1))
        >>> engines = estimate.regroup({"Chromium": ["Chrome", "Edge", "Opera"], "rest": ...})
        >>> engines["Chromium"].low < 0.5 < engines["Chromium"].high
        True
        """
        rows = group_rows(self.domain, groups)
        return self._regrouped(Domain(list(groups)), rows)

    def _regrouped(self, domain: Domain, rows: Floats) -> Estimate:
        """The estimate of queries, as values of a domain."""
        uncertainty = self._query(rows)
        return Estimate(domain, self.reports, uncertainty.values, uncertainty, weights=self.weights, plan=self.plan)

    def _query(self, rows: Floats) -> QueryUncertainty:
        uncertainty = self._known_uncertainty()
        if not hasattr(uncertainty, "query"):
            name = "this protocol" if self.plan is None else f"the protocol {self.plan.protocol.name!r}"
            raise EstimateError(
                f"{name} gives errors of single values only, so sums, differences and groups have none; give its "
                f"{type(uncertainty).__name__} the method query of sunzi.results.uncertainty.Uncertainty"
            )
        moved = self.frequencies + (1 - self.frequencies.sum()) / self.domain.size
        return QueryUncertainty(uncertainty, rows, rows @ moved)

    def _answer(self, row: Floats, confidence: float, target: Target) -> QueryResult:
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        uncertainty = self._query(row[None, :])
        low, high = uncertainty.interval(confidence, target, "auto")
        error = intervals.standard_error(uncertainty.variances(target))
        return QueryResult(float(uncertainty.values[0]), float(error[0]), float(low[0]), float(high[0]), confidence)

    def postprocess(self, method: Postprocessing, confidence: float = 0.95) -> PostprocessedHistogram:
        """A post-processed copy, which is easier to present but biased; its ``effect`` says how.

        - ``"clip"`` sets negative frequencies to 0.
        - ``"simplex"`` takes the nearest histogram that is non-negative and sums to 1.
        - ``"significant"`` keeps the items whose simultaneous interval at ``confidence`` lies above 0.
        - ``"constrained"`` takes the best fit to the tally among all histograms: maximum likelihood where the tally
          counts blocks, weighted least squares elsewhere. It ignores a ridge of the estimate. Maximum likelihood takes
          as long as hundreds of decodings: tens of seconds for tens of thousands of values.

        Parameters
        ----------
        method: one of these names.
        confidence: used by ``"significant"`` only.
        """
        frequencies = self.frequencies
        if method == "clip":
            frequencies, effect = np.maximum(frequencies, 0.0), "rare items biased upwards; the sum exceeds 1"
        elif method == "simplex":
            frequencies = simplex.project(frequencies)
            effect = "non-negative and sums to 1; rare items pulled to 0, frequent ones biased slightly downwards"
        elif method == "significant":
            low, _ = self.interval(confidence, simultaneous=True)
            frequencies = np.where(low > 0, frequencies, 0.0)
            effect = f"items whose simultaneous {confidence:.0%} interval includes 0 set to 0; others biased upwards"
        elif method == "constrained":
            if self._refit is None:
                raise EstimateError(
                    '"constrained" is for histograms of a plan of single values; use "clip", "simplex" or "significant"'
                )
            frequencies, effect = self._refit(), self._refit_effect
        else:
            raise ParameterError(
                f"method must be one of {', '.join(POSTPROCESSING)}, or for ordered plans smooth; got {method!r}"
            )
        return PostprocessedHistogram(self.domain, self.reports, frequencies, method, effect)

    def to_frame(self, library: str | None = None, confidence: float = 0.95) -> Any:
        """A data frame with label, frequency, count, standard error and interval.

        Parameters
        ----------
        library: "pandas" or "polars"; by default pandas if it is installed, else polars.
        confidence: the coverage of the intervals.
        """
        low, high = self.interval(confidence)
        columns = {
            "label": labels_column(self.domain),
            "frequency": self.frequencies,
            "count": self.counts,
            "standard_error": self.standard_errors(),
            "low": low,
            "high": high,
        }
        return data_frame(columns, library)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 20,
        confidence: float = 0.95,
        target: Target = "reporters",
        truth: Sequence[float] | Floats | None = None,
    ) -> Figure:
        """A bar chart of the largest frequencies with their intervals; needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        top: the number of bars.
        confidence, target: as in :meth:`interval`.
        truth: the true frequencies of all values, marked next to the bars.
        """
        with needing_matplotlib():
            from sunzi.display.plotting import plot_estimate
        return plot_estimate(self, path, top=top, confidence=confidence, target=target, truth=truth)

    def to_html(
        self,
        title: str | None = None,
        *,
        collection: str | None = None,
        day: date | None = None,
        top: int = 50,
        confidence: float = 0.95,
        target: Target = "reporters",
        postprocess: Postprocessing | None = None,
        batch: BatchGuarantee | None = None,
        remark: str = "",
    ) -> str:
        """The most frequent values with bars and intervals as one self-contained web page.

        Parameters
        ----------
        title: the heading; by default the number of reports and values.
        collection: the name of the collection, to be shown below the heading.
        day: the date to be shown; by default today.
        top: the number of values.
        confidence, target: as in :meth:`interval`.
        postprocess: the name of a post-processing, for a separate column.
        batch: what readers of the page can learn about one person, by :meth:`sunzi.Plan.batch_guarantee`.
        remark: a paragraph to begin with.

        >>> import sunzi
        >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
        >>> page = plan.estimate(plan.simulate(["yes"] * 900 + ["no"] * 100, seed=1)).to_html("A survey")
        >>> page.startswith("<!DOCTYPE html>"), "<h1>A survey</h1>" in page
        (True, True)
        """
        page = self._page(top, confidence, target)
        if postprocess is not None and page.estimate is not self:
            raise ParameterError(f"a page of a distribution shows wider bins, which {postprocess} does not support")
        processed = None if postprocess is None else self.postprocess(postprocess, confidence)
        remark = f"{page.remark} {remark}".strip()
        return replace(page, processed=processed, batch=batch, remark=remark).page(title, collection, day)

    def _page(self, top: int, confidence: float = 0.95, target: Target = "reporters") -> EstimatePage:
        """What a page shows."""
        return EstimatePage(self, top, confidence, target)

    def _repr_html_(self) -> str:
        """The most frequent values with bars and intervals, for notebooks."""
        if not self.is_unbiased:
            return f"<p>{escape(repr(self))}, biased by its ridge, so without intervals.</p>"
        return self._page(10).fragment()

    def __repr__(self) -> str:
        """Size only; use :meth:`top`."""
        return f"Estimate({self.domain.size} values from {self.reports} reports)"
