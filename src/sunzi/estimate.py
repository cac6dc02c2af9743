"""Estimates: unbiased frequencies with honest errors, and post-processed copies beside them, never instead of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.domain import Domain
from sunzi.errors import EstimateError, MissingExtraError, ParameterError
from sunzi.numerics import intervals, simplex
from sunzi.numerics.checks import whole_number
from sunzi.numerics.thresholds import SupportProbabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Target = Literal["reporters", "population"]
Method = Literal["auto", "normal", "score", "exact"]

# Below this many expected false supports, times the squared quantile, the score interval's coverage begins to wobble
# (100 at 95 %, 500 where thousands of intervals are to hold at once); the exact one takes over.
_FEW_COUNTS = 25


class Uncertainty(Protocol):
    """How an estimator tells its errors."""

    def variances(self, target: Target) -> Floats:
        """The variance of every frequency."""

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Lower and upper ends, one pair an item, each covering with probability ``confidence``."""


@dataclass(frozen=True)
class SupportUncertainty:
    """Errors of protocols whose every item has its own support count: designs on the whole domain, and unary
    encodings.
    """

    support: NDArray[np.int64]
    reports: int
    probabilities: SupportProbabilities
    frequencies: Floats

    def variances(self, target: Target) -> Floats:
        """[f·p(1−p) + (1−f)·q(1−q)]/(nΔ²) at the projected estimate; a population adds the sampling of the users,
        f(1−f)/n.
        """
        projected = simplex.project(self.frequencies)
        true, false = (rate * (1 - rate) for rate in (self.probabilities.true, self.probabilities.false))
        at_hand = (projected * true + (1 - projected) * false) / self.probabilities.gap**2
        extra = projected * (1 - projected) if target == "population" else 0.0
        return (at_hand + extra) / self.reports

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Score intervals; exact ones where supports are few; normal ones on request."""
        quantile = intervals.normal_quantile(confidence)
        if method == "auto":
            few = self.reports * self.probabilities.false < _FEW_COUNTS * quantile**2
            method = "exact" if few else "score"
        if method == "exact":
            return intervals.exact(self.support, self.reports, self.probabilities, confidence)
        if method == "score":
            return intervals.score(self.support, self.reports, self.probabilities, quantile, target == "reporters")
        half = quantile * intervals.standard_error(self.variances(target))
        return self.frequencies - half, self.frequencies + half


@dataclass(frozen=True)
class Row:
    """One line of a histogram. Where the labels are in a file that was not read, ``label`` says so: "index 3"."""

    label: str
    index: int
    frequency: float
    count: float
    standard_error: float
    low: float
    high: float


class Histogram:
    """Post-processed frequencies: nicer to look at, no longer unbiased, and therefore without intervals.

    ``method`` names what was done and ``effect`` says what it does to bias.
    """

    def __init__(self, domain: Domain, reports: int, frequencies: Floats, method: str, effect: str) -> None:
        self.domain, self.reports, self.method, self.effect = domain, reports, method, effect
        self.frequencies = _frozen(frequencies)

    @property
    def counts(self) -> Floats:
        """Frequencies times the number of reports."""
        return self.frequencies * self.reports

    def top(self, number: int = 10) -> list[tuple[str, float]]:
        """The labels of the largest frequencies, with these."""
        return [
            (self.domain.shown(index), float(self.frequencies[index])) for index in _largest(self.frequencies, number)
        ]

    def to_frame(self, library: str | None = None) -> Any:
        """A pandas or polars data frame with label, frequency and count."""
        columns = {"label": _labels(self.domain), self.method: self.frequencies, "count": self.counts}
        return _frame(columns, library)

    def __repr__(self) -> str:
        """What was done to it."""
        return f"Histogram({self.domain.size} values, post-processed by {self.method!r}: {self.effect})"


class Estimate:
    """An unbiased histogram: ``frequencies`` may be negative, because noise goes both ways and hiding half of it would
    bias the rest.

    Errors are, unless said otherwise, about the users who reported ("reporters"); ``target="population"`` treats these
    users as a random sample and adds what the sampling costs.
    """

    def __init__(
        self,
        domain: Domain,
        reports: int,
        frequencies: Floats,
        uncertainty: Uncertainty | None,
        refit: Callable[[], Floats] | None = None,
        refit_effect: str = "",
    ) -> None:
        self.domain, self.reports = domain, reports
        self.frequencies = _frozen(frequencies)
        self._uncertainty, self._refit, self._refit_effect = uncertainty, refit, refit_effect
        self._errors: dict[str, Floats] = {}

    @property
    def is_unbiased(self) -> bool:
        """False for a ridge estimate, which therefore has no intervals."""
        return self._uncertainty is not None

    @property
    def counts(self) -> Floats:
        """Estimated numbers of users: frequencies times reports."""
        return self.frequencies * self.reports

    @property
    def standard_errors(self) -> Floats:
        """The standard error of every frequency, about the users who reported."""
        return self.standard_errors_for("reporters")

    def standard_errors_for(self, target: Target) -> Floats:
        """The standard error of every frequency, about the ``reporters`` or the ``population`` they are a sample of."""
        _check_target(target)
        if target not in self._errors:
            self._errors[target] = _frozen(intervals.standard_error(self._errors_of_this().variances(target)))
        return self._errors[target]

    def _errors_of_this(self) -> Uncertainty:
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
        """Lower and upper ends of an interval for every frequency.

        Each covers its own true frequency with probability ``confidence``; with ``simultaneous`` all do at once.
        Ends are not clipped to [0, 1]: an interval that lies below 0 says that the truth is near 0. ``method`` "auto"
        takes score intervals, and exact ones where counts are small.
        """
        confidence = intervals.check_confidence(confidence)
        _check_target(target)
        if method not in ("auto", "normal", "score", "exact"):
            raise ParameterError(f"method must be auto, normal, score or exact, got {method!r}")
        each = intervals.simultaneous_confidence(confidence, self.domain.size) if simultaneous else confidence
        return self._errors_of_this().interval(each, target, method)

    def top(self, number: int = 10, confidence: float = 0.95, *, target: Target = "reporters") -> list[Row]:
        """The rows of the largest frequencies, with intervals."""
        low, high = self.interval(confidence, target=target)
        errors = self.standard_errors_for(target)
        return [
            Row(
                self.domain.shown(index),
                int(index),
                float(self.frequencies[index]),
                float(self.frequencies[index] * self.reports),
                float(errors[index]),
                float(low[index]),
                float(high[index]),
            )
            for index in _largest(self.frequencies, number)
        ]

    def clip(self) -> Histogram:
        """Negative frequencies set to 0: rare items are biased upwards, and the sum exceeds 1, by far when most items
        are rare.
        """
        effect = "rare items biased upwards; the sum exceeds 1"
        return self._processed(np.maximum(self.frequencies, 0.0), "clip", effect)

    def simplex(self) -> Histogram:
        """The nearest histogram that is non-negative and sums to 1: rare items go to 0 or upwards, frequent ones lose a
        little.
        """
        effect = "non-negative and sums to 1; rare items pulled to 0, frequent ones biased slightly downwards"
        return self._processed(simplex.project(self.frequencies), "simplex", effect)

    def significant(self, confidence: float = 0.95) -> Histogram:
        """Only items whose simultaneous interval lies above 0; kept ones are biased upwards, since they were chosen for
        being large.
        """
        low, _ = self.interval(confidence, simultaneous=True)
        kept = np.where(low > 0, self.frequencies, 0.0)
        effect = (
            f"items not distinguishable from 0 at {confidence:.0%}, all at once, set to 0; kept ones biased upwards"
        )
        return self._processed(kept, "significant", effect)

    def constrained(self) -> Histogram:
        """The best fit to the tally among all histograms: maximum likelihood where the tally counts blocks, weighted
        least squares elsewhere. Whatever ridge the estimate has plays no part in it.

        Maximum likelihood takes as long as hundreds of decodings: tens of seconds where there are tens of thousands of
        values.
        """
        if self._refit is None:
            raise EstimateError("this estimate does not carry its tally, so it cannot be refitted")
        return self._processed(self._refit(), "constrained", self._refit_effect)

    def _processed(self, frequencies: Floats, method: str, effect: str) -> Histogram:
        return Histogram(self.domain, self.reports, frequencies, method, effect)

    def to_frame(self, library: str | None = None, confidence: float = 0.95) -> Any:
        """A pandas or polars data frame with label, frequency, count, standard error and interval."""
        low, high = self.interval(confidence)
        columns = {
            "label": _labels(self.domain),
            "frequency": self.frequencies,
            "count": self.counts,
            "standard_error": self.standard_errors,
            "low": low,
            "high": high,
        }
        return _frame(columns, library)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 20,
        confidence: float = 0.95,
        target: Target = "reporters",
        truth: Sequence[float] | Floats | None = None,
    ) -> Figure:
        """The largest frequencies with their intervals; needs the ``plot`` extra."""
        try:
            from sunzi.plotting import plot_estimate
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            raise MissingExtraError("plotting", "plot") from None
        return plot_estimate(self, path, top=top, confidence=confidence, target=target, truth=truth)

    def __repr__(self) -> str:
        """Size only; use :meth:`top`."""
        return f"Estimate({self.domain.size} values from {self.reports} reports)"


def _frozen(values: Floats) -> Floats:
    values = np.array(values, dtype=np.float64)
    values.setflags(write=False)
    return values


def _check_target(target: str) -> None:
    if target not in ("reporters", "population"):
        raise ParameterError(f"target must be reporters or population, got {target!r}")


def _largest(frequencies: Floats, number: int) -> NDArray[np.intp]:
    return np.argsort(-frequencies, kind="stable")[: whole_number("number", number, 0)]


def _labels(domain: Domain) -> list[str] | NDArray[np.int64]:
    if not domain.has_labels:
        return np.arange(domain.size)
    return list(domain.labels or map(domain.shown, range(domain.size)))


def _frame(columns: dict[str, Any], library: str | None) -> Any:
    """pandas if it is there, else polars, unless one is asked for."""
    if library not in (None, "pandas", "polars"):
        raise ParameterError(f"library must be pandas or polars, got {library!r}")
    for name in (library,) if library else ("pandas", "polars"):
        try:
            module = __import__(name)
        except ModuleNotFoundError:
            continue
        return module.DataFrame(columns)
    raise MissingExtraError("to_frame", "frames")
