"""What changed between two estimates: two weeks, the two arms of a test, two groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, whole_number
from sunzi.display.changes_page import ChangesPage
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError, needing_matplotlib
from sunzi.numerics import intervals
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import data_frame, labels_column
from sunzi.results.uncertainty import Target, check_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VerdictRule = Literal["any", "discoveries"]
CHANGE_COLUMNS = ("label", "before", "after", "change", "low", "high", "standard_error", "changed")
"""The names in each of :meth:`Difference.records`."""
_BISECTIONS = 50
# Confidence levels nearer to 1, divided among all values, would round to 1.
_LEAST_RATE = 1e-15


@dataclass(frozen=True)
class Change:
    """The change of one value."""

    label: str
    index: int
    before: float
    after: float
    change: float
    standard_error: float
    low: float
    high: float
    changed: bool
    """Whether the value changed, tested for all values at once."""


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """The changes of all values from one estimate to another, with intervals and verdicts.

    Errors refer to the populations that the users are random samples of, unless ``target`` says otherwise. If the same
    devices report on both sides, once each, the errors of changes are smaller than stated, so verdicts are
    conservative. A side that adds up several epochs must have different users or fresh noise in each: devices that
    repeat their noise make its error larger than stated.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> before = plan.estimate(plan.simulate(["no"] * 5000 + ["yes"] * 5000, seed=1))
    >>> after = plan.estimate(plan.simulate(["no"] * 4000 + ["yes"] * 6000, seed=2))
    >>> Difference(before, after).changed(error_rate=0.01).tolist()
    [True, True]
    """

    before: Estimate
    after: Estimate
    target: Target = "population"

    @property
    def domain(self) -> Domain:
        """The values of both estimates."""
        return self.after.domain

    @property
    def changes(self) -> Floats:
        """Frequencies after minus frequencies before."""
        return self.after.frequencies - self.before.frequencies

    @property
    def standard_errors(self) -> Floats:
        """The standard error of every change: the errors of both estimates are independent."""
        return np.hypot(self.before.standard_errors(self.target), self.after.standard_errors(self.target))

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends of a confidence interval for every change.

        The distances of both estimates from the ends of their own intervals are added in quadrature, so that skewed
        intervals stay skewed (Zou and Donner 2008).

        Parameters
        ----------
        confidence: the coverage probability of each interval.
        simultaneous: whether all intervals together cover with this probability.
        """
        size = self.domain.size
        each = intervals.simultaneous_confidence(confidence, size) if simultaneous else confidence
        (low_before, high_before), (low_after, high_after) = (
            estimate.interval(each, target=self.target) for estimate in (self.before, self.after)
        )
        before, after = self.before.frequencies, self.after.frequencies
        down = np.hypot(np.maximum(after - low_after, 0.0), np.maximum(high_before - before, 0.0))
        up = np.hypot(np.maximum(high_after - after, 0.0), np.maximum(before - low_before, 0.0))
        return self.changes - down, self.changes + up

    def _excludes_zero(self, confidence: float) -> NDArray[np.bool_]:
        low, high = self.interval(confidence)
        return (low > 0) | (high < 0)

    def changed(self, error_rate: float = 0.05, verdict: VerdictRule = "any") -> NDArray[np.bool_]:
        """Which values changed.

        Parameters
        ----------
        error_rate: the stated rate of errors.
        verdict: ``"any"`` limits the probability of any false verdict (Šidák); ``"discoveries"`` limits the false
            discovery rate, and finds more (Benjamini and Hochberg).
        """
        rate = 1 - intervals.check_confidence(1 - error_rate)
        if verdict not in get_args(VerdictRule):
            raise ParameterError(f"verdict must be any or discoveries, got {verdict!r}")
        size = self.domain.size
        if verdict == "any":
            return self._excludes_zero(intervals.simultaneous_confidence(1 - rate, size))
        named = size
        while named:
            # Benjamini and Hochberg's step-up procedure.
            found = self._excludes_zero(1 - rate * named / size)
            if np.count_nonzero(found) >= named:
                return found
            named = int(np.count_nonzero(found))
        return np.zeros(size, dtype=np.bool_)

    def p_value(self) -> float:
        """The p-value of "nothing changed": the smallest error rate at which some value changed.

        It has no precision below 1e-15 times the number of values.
        """

        def some(error_rate: float) -> bool:
            return bool(self.changed(error_rate).any())

        return _smallest(some, _LEAST_RATE * self.domain.size)

    def top(
        self,
        number: int = 10,
        confidence: float = 0.95,
        verdict: VerdictRule = "any",
        *,
        among: Integers | None = None,
    ) -> list[Change]:
        """The ``number`` clearest changes, by their size in standard errors.

        Parameters
        ----------
        number: how many rows.
        confidence: of the intervals; 1 − confidence is the error rate of the verdicts.
        verdict: as in :meth:`changed`.
        among: only values with these indices; verdicts still account for all values.
        """
        errors = self.standard_errors
        scores = np.abs(self.changes) / np.where(errors > 0, errors, np.inf)
        considered = np.arange(self.domain.size) if among is None else among
        order = considered[np.argsort(-scores[considered], kind="stable")]
        chosen = order[: whole_number("number", number, 0)]
        return list(self._rows(chosen, confidence, verdict))

    def _rows(self, chosen: Integers, confidence: float, verdict: VerdictRule) -> Iterator[Change]:
        low, high = self.interval(confidence)
        columns = (self.before.frequencies, self.after.frequencies, self.changes, self.standard_errors, low, high)
        changed = self.changed(1 - confidence, verdict)
        for index in chosen.tolist():
            before, after, change, error, least, most = (float(column[index]) for column in columns)
            label, is_changed = self.domain.shown(index), bool(changed[index])
            yield Change(label, index, before, after, change, error, least, most, is_changed)

    def records(self, changes: Iterable[Change]) -> list[dict[str, Any]]:
        """Changes as dictionaries, for CSV and JSON; where values are indices, these are the labels."""
        rows = (vars(row) | ({"label": row.index} if self.domain.is_indices else {}) for row in changes)
        return [{name: row[name] for name in CHANGE_COLUMNS} for row in rows]

    def to_frame(self, library: str | None = None, confidence: float = 0.95, verdict: VerdictRule = "any") -> Any:
        """A data frame of all values with label, before, after, change, standard error, interval and verdict.

        Parameters
        ----------
        library: "pandas" or "polars"; by default pandas if it is installed, else polars.
        confidence, verdict: as in :meth:`top`.
        """
        low, high = self.interval(confidence)
        columns = {
            "label": labels_column(self.domain),
            "before": self.before.frequencies,
            "after": self.after.frequencies,
            "change": self.changes,
            "standard_error": self.standard_errors,
            "low": low,
            "high": high,
            "changed": self.changed(1 - confidence, verdict),
        }
        return data_frame(columns, library)

    def __repr__(self) -> str:
        """The sizes."""
        reports = f"{self.before.reports} and {self.after.reports} reports"
        return f"Difference({self.domain.size} values, {reports})"

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 20,
        confidence: float = 0.95,
        verdict: VerdictRule = "any",
    ) -> Figure:
        """The clearest changes with their intervals, those of changed values coloured; needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        top: the number of changes.
        confidence, verdict: as in :meth:`top`.
        """
        with needing_matplotlib():
            from sunzi.display.plotting import plot_difference
        return plot_difference(self, path, top=top, confidence=confidence, verdict=verdict)

    def to_html(
        self,
        title: str | None = None,
        *,
        names: tuple[str, str] = ("before", "after"),
        top: int = 50,
        confidence: float = 0.95,
        verdict: VerdictRule = "any",
    ) -> str:
        """The clearest changes with bars and intervals as one self-contained web page.

        Parameters
        ----------
        title: the heading; by default how many values changed.
        names: what to call the two estimates.
        top: the number of values.
        confidence, verdict: as in :meth:`top`.

        >>> import sunzi
        >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
        >>> sides = [plan.estimate(plan.simulate(["yes"] * 900 + ["no"] * 900, seed=seed)) for seed in (1, 2)]
        >>> page = sunzi.difference(*sides).to_html("A test", names=("control", "treatment"))
        >>> page.startswith("<!DOCTYPE html>"), "<h1>A test</h1>" in page
        (True, True)
        """
        return ChangesPage(self, top, confidence, verdict).page(title, names)

    def _repr_html_(self) -> str:
        """The clearest changes with bars and intervals, for notebooks."""
        return ChangesPage(self, top=10).fragment()


def difference(before: Estimate, after: Estimate, target: Target = "population") -> Difference:
    """Compare two estimates of one domain; their plans, ε and protocols may differ.

    Parameters
    ----------
    before, after: estimates from different reports.
    target: "population" compares the populations that the users are random samples of, "reporters" these users
        themselves.

    >>> import sunzi
    >>> plan = sunzi.make_plan("ss-compact", ["Chrome", "Firefox", "Safari"], epsilon=2)
    >>> monday = plan.estimate(plan.simulate(["Chrome"] * 900 + ["Safari"] * 600, seed=1))
    >>> friday = plan.estimate(plan.simulate(["Chrome"] * 600 + ["Safari"] * 900, seed=2))
    >>> [(row.label, row.changed) for row in sunzi.difference(monday, friday).top()]
    [('Chrome', True), ('Safari', True), ('Firefox', False)]
    """
    for estimate in (before, after):
        if not isinstance(estimate, Estimate):
            raise EstimateError(
                f"a difference needs two estimates, which have errors; got {type(estimate).__name__}. "
                "Compare estimates, and post-process what you show"
            )
    if before.domain != after.domain:
        raise EstimateError(
            f"the estimates have different domains, {before.domain.size} and {after.domain.size} values; "
            "regroup both to the same groups first"
        )
    check_target(target)
    return Difference(before, after, target)


def _smallest(holds: Callable[[float], bool], low: float) -> float:
    """The smallest error rate from ``low`` on, to within 1 %, with a monotone property; 1 if none exists."""
    high = 1.0
    if holds(low):
        return low
    for _ in range(_BISECTIONS):
        if high < 1.01 * low:
            break
        middle = (low * high) ** 0.5
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
