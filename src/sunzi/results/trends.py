"""How values develop over epochs: series with intervals, slopes, change points, and alarms with a stated rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError, shown
from sunzi.display.trends_page import TrendPage, shown_moment
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError, needing_matplotlib
from sunzi.formatting import counted, lifetime_note
from sunzi.numerics import intervals, series
from sunzi.numerics.checks import real_number
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import data_frame, largest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Moment = date | int | float
"""When an epoch was: a date, a date with time, or a number."""

_SECONDS_PER_DAY = 86_400
EPOCHS_PER_FALSE_ALARM = 100
"""By default, one value raises a false alarm in this number of epochs."""
_SMOOTHING = 0.3


@dataclass(frozen=True)
class Point:
    """One value in one epoch. ``smoothed`` is the exponentially weighted mean up to this epoch."""

    moment: Moment
    reports: int
    frequency: float
    standard_error: float
    low: float
    high: float
    smoothed: float
    smoothed_error: float


@dataclass(frozen=True)
class Alarm:
    """A value that changed. ``before`` is its mean since the previous alarm, or since the first epoch."""

    label: str
    index: int
    moment: Moment
    """The epoch that raised the alarm."""
    since: Moment
    """The estimated start of the change."""
    direction: str
    """"up" or "down"."""
    before: float
    after: float


@dataclass(frozen=True)
class TrendRow:
    """The development of one value."""

    label: str
    index: int
    level: float
    """The newest exponentially weighted mean."""
    slope: float
    """Change of the frequency per day, or per unit of the epochs' numbers."""
    slope_error: float
    lack_of_fit: float
    """The p-value of "the series is a straight line"; NaN for two epochs."""
    change_at: Moment
    """The first epoch after the clearest change."""
    change: float
    """The mean from that epoch on minus the mean before it."""
    change_error: float
    p_value: float
    """The p-value of "the value never changed", corrected for the choice of the epoch."""
    changed: bool
    """Whether it changed; the false discovery rate is at most 5 %."""


@dataclass(frozen=True, eq=False, repr=False)
class Trend:
    """The frequencies of all values over epochs; see :func:`trend`.

    Errors refer to the populations that the users of each epoch are random samples of, and are independent between
    epochs. If the same devices report in every epoch, with fresh or memoised noise, the errors of changes are smaller
    than stated, so alarms are conservative. Devices with memoised noise that report in only some epochs correlate the
    errors of those epochs, so alarms can be more frequent than stated.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> counts = [5000, 5000, 8000]
    >>> epochs = [plan.estimate(plan.simulate(["yes"] * n + ["no"] * (10000 - n), seed=n)) for n in counts]
    >>> followed = sunzi.trend(epochs)
    >>> followed.moments, followed.reports
    ((1, 2, 3), (10000, 10000, 10000))
    """

    domain: Domain
    moments: tuple[Moment, ...]
    """The number or date of each epoch."""
    reports: tuple[int, ...]
    frequencies: series.Rows
    """One row per epoch, one column per value."""
    variances: series.Rows
    """Of the frequencies, in the same form."""
    plans: tuple[str, ...]
    """The fingerprint of each epoch's plan. Tests pool the variances of epochs of the same plan."""
    unfinished: frozenset[Moment] = frozenset()
    """Epochs that are still open. They raise no alarms, since repeated looks would inflate the false alarm rate."""
    note: str = ""
    """What devices do once their lifetime budget has ended, if the newest plan states that budget."""
    times: Floats = field(init=False)
    """Days, or numbers, since the first epoch."""

    def __post_init__(self) -> None:
        shape = (len(self.moments), self.domain.size)
        if len(self.moments) < 2 or not len(self.reports) == len(self.plans) == len(self.moments):
            raise EstimateError(f"a trend needs at least two epochs, got {counted(len(self.moments), 'epoch')}")
        if self.frequencies.shape != shape or self.variances.shape != shape:
            raise ParameterError(f"frequencies and variances must have {shape[0]} rows of {shape[1]} values")
        object.__setattr__(self, "times", _times(self.moments))
        for name in ("frequencies", "variances"):
            object.__setattr__(self, name, getattr(self, name).view())
            getattr(self, name).setflags(write=False)

    @property
    def unit(self) -> str:
        """The unit of time of slopes: "day" if epochs have dates, else "epoch"."""
        return "day" if isinstance(self.moments[0], date) else "epoch"

    @property
    def default_one_in(self) -> int:
        """Values times epochs between false alarms by default: one false alarm of any value in 100 epochs."""
        return EPOCHS_PER_FALSE_ALARM * self.domain.size

    @property
    def _sources(self) -> series.Sources:
        return series.Sources(self.reports, self.plans)

    @cached_property
    def _slopes(self) -> series.Slopes:
        return series.slopes(self.times, self.frequencies, self._sources.pooled(self.variances))

    @cached_property
    def _changes(self) -> series.ChangePoints:
        return series.change_points(self.frequencies, self._sources.pooled(self.variances))

    def slopes(self) -> series.Slopes:
        """The straight line through each series: slopes, their standard errors, and a lack-of-fit test."""
        return self._slopes

    def changed(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Which values changed at some epoch.

        Parameters
        ----------
        rate: the false discovery rate (Benjamini and Hochberg).
        """
        return series.discoveries(self._changes.p_values, 1 - intervals.check_confidence(1 - rate))

    def alarms(self, one_in: float | None = None) -> list[Alarm]:
        """All alarms, oldest first. An alarm uses only its own and earlier epochs.

        Parameters
        ----------
        one_in: the mean number of values times epochs between two false alarms; by default 100 times the number of
            values, which is one false alarm in 100 epochs.
        """
        found = series.find_alarms(self.frequencies, self.variances, self.threshold(one_in), self._sources)
        columns = (found.items, found.rows, found.since, found.is_rise, found.before)
        return [
            Alarm(
                self.domain.shown(index),
                index,
                self.moments[row],
                self.moments[since],
                "up" if is_rise else "down",
                before,
                float(self.frequencies[row, index]),
            )
            for index, row, since, is_rise, before in zip(*(column.tolist() for column in columns), strict=True)
            if self.moments[row] not in self.unfinished
        ]

    def threshold(self, one_in: float | None = None) -> float:
        """The threshold of the cumulative sum, in standard errors, that raises an alarm.

        Parameters
        ----------
        one_in: as in :meth:`alarms`.
        """
        return series.alarm_threshold(self.default_one_in if one_in is None else real_number("one_in", one_in))

    def points(self, value: object, confidence: float = 0.95, smoothing: float = _SMOOTHING) -> list[Point]:
        """The series of one value, with normal confidence intervals.

        Parameters
        ----------
        value: a label, or an index where there are no labels.
        confidence: the coverage probability of each interval.
        smoothing: the weight of the newest epoch in the smoothed series, above 0 and at most 1.
        """
        return self.points_at(self.domain.exact_index(value), confidence, smoothing)

    def points_at(self, index: int, confidence: float = 0.95, smoothing: float = _SMOOTHING) -> list[Point]:
        """:meth:`points` by the value's index."""
        if not 0 < real_number("smoothing", smoothing) <= 1:
            raise ParameterError(f"smoothing must be above 0 and at most 1, got {smoothing}")
        values = np.asarray(self.frequencies[:, index], dtype=np.float64)
        variances = np.asarray(self.variances[:, index], dtype=np.float64)
        smoothed, smoothed_variances = series.smooth(values[:, None], variances[:, None], smoothing)
        errors = np.sqrt(variances)
        ends = intervals.normal(values, errors, confidence)
        columns = (values, errors, *ends, smoothed[:, 0], np.sqrt(smoothed_variances[:, 0]))
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Point(moment, reports, *row)
            for moment, reports, row in zip(self.moments, self.reports, numbers, strict=True)
        ]

    def top(self, number: int = 10) -> list[TrendRow]:
        """The ``number`` values with the clearest changes, by the size of the change in standard errors."""
        scores = np.abs(self._changes.changes) / self._changes.standard_errors
        return self.rows(largest(scores, number).tolist())

    def most_frequent(self, number: int = 10) -> list[int]:
        """The indices of the values that are most frequent in the newest epochs, by their smoothed series."""
        return largest(self._levels, number).tolist()

    @cached_property
    def _levels(self) -> Floats:
        level = np.asarray(self.frequencies[0], dtype=np.float64)
        for row in self.frequencies[1:]:
            level = _SMOOTHING * row + (1 - _SMOOTHING) * level
        return level

    def rows(self, indices: Iterable[int]) -> list[TrendRow]:
        """The development of these values, by their indices."""
        changed, slopes, changes = self.changed(), self._slopes, self._changes
        return [
            TrendRow(
                self.domain.shown(index),
                index,
                float(self._levels[index]),
                float(slopes.slopes[index]),
                float(slopes.standard_errors[index]),
                float(slopes.lack_of_fit[index]),
                self.moments[int(changes.rows[index])],
                float(changes.changes[index]),
                float(changes.standard_errors[index]),
                float(changes.p_values[index]),
                bool(changed[index]),
            )
            for index in indices
        ]

    def to_frame(self, library: str | None = None, confidence: float = 0.95, values: Iterable[object] = ()) -> Any:
        """A data frame with one row per value and epoch: label, moment, reports, frequency, error and interval.

        Parameters
        ----------
        library: "pandas" or "polars"; by default pandas if it is installed, else polars.
        confidence: the coverage probability of each interval.
        values: labels, or indices where there are no labels; by default all.
        """
        chosen = [self.domain.exact_index(value) for value in values] or range(self.domain.size)
        return data_frame(self.columns(chosen, confidence), library)

    def columns(self, indices: Iterable[int], confidence: float = 0.95) -> dict[str, list[Any]]:
        """The columns of :meth:`to_frame` for these values, by their indices."""
        rows = [(self.domain.shown(index), point) for index in indices for point in self.points_at(index, confidence)]
        names = ("moment", "reports", "frequency", "standard_error", "low", "high")
        columns: dict[str, list[Any]] = {"label": [label for label, _ in rows]}
        return columns | {name: [getattr(point, name) for _, point in rows] for name in names}

    def to_dict(self, indices: Iterable[int], confidence: float = 0.95, one_in: float | None = None) -> dict[str, Any]:
        """Series and development of some values, and all alarms, as JSON. Epochs are given by their place in the list.

        Parameters
        ----------
        indices: the values.
        confidence: the coverage probability of each interval.
        one_in: as in :meth:`alarms`.
        """
        places = {moment: place for place, moment in enumerate(self.moments)}
        return {
            "unit": self.unit,
            "domain_size": self.domain.size,
            "confidence": confidence,
            "one_in": self.default_one_in if one_in is None else one_in,
            "threshold": self.threshold(one_in),
            "epochs": [
                {"moment": moment.isoformat() if isinstance(moment, date) else moment, "reports": reports}
                for moment, reports in zip(self.moments, self.reports, strict=True)
            ],
            "values": [self._value_document(row, places, confidence) for row in self.rows(indices)],
            "alarms": [
                vars(alarm) | {"moment": places[alarm.moment], "since": places[alarm.since]}
                for alarm in self.alarms(one_in)
            ],
        }

    def _value_document(self, row: TrendRow, places: dict[Moment, int], confidence: float) -> dict[str, Any]:
        points = self.points_at(row.index, confidence)
        names = ("frequency", "standard_error", "low", "high", "smoothed", "smoothed_error")
        lists = {name: [getattr(point, name) for point in points] for name in names}
        fit = None if np.isnan(row.lack_of_fit) else row.lack_of_fit
        return vars(row) | {"change_at": places[row.change_at], "lack_of_fit": fit} | lists

    def plot(
        self,
        path: str | Path | None = None,
        *,
        values: Sequence[object] = (),
        indices: Sequence[int] = (),
        confidence: float = 0.95,
        one_in: float | None = None,
    ) -> Figure:
        """A line per value with its intervals, and a mark at every alarm; needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        values: labels, or indices where there are no labels; by default the six most frequent values. More than seven
            get a small chart each.
        indices: more values, by their indices.
        confidence: the coverage probability of each interval.
        one_in: as in :meth:`alarms`.
        """
        with needing_matplotlib():
            from sunzi.display.plotting import plot_trend
        chosen = [*map(self.domain.exact_index, values), *indices]
        return plot_trend(self, path, indices=chosen, confidence=confidence, one_in=one_in)

    def to_html(
        self,
        title: str | None = None,
        *,
        collection: str | None = None,
        values: Sequence[object] = (),
        indices: Sequence[int] = (),
        top: int = 50,
        confidence: float = 0.95,
        one_in: float | None = None,
    ) -> str:
        """A self-contained web page: values with small charts, intervals, slopes, changes and alarms.

        Parameters
        ----------
        title: the heading; by default the number of values that changed.
        collection: the name of the collection, to be shown below the heading.
        values: labels, or indices where there are no labels; by default the ``top`` clearest changes.
        indices: more values, by their indices.
        top: the number of values.
        confidence: the coverage probability of each interval.
        one_in: as in :meth:`alarms`.
        """
        chosen = [*map(self.domain.exact_index, values), *indices] or [row.index for row in self.top(top)]
        return TrendPage(self, tuple(chosen), confidence, one_in).page(title, collection)

    def __repr__(self) -> str:
        """The sizes."""
        return f"Trend({self.domain.size} values, {len(self.moments)} epochs)"

    def _repr_html_(self) -> str:
        """The clearest changes with small charts, for notebooks."""
        return TrendPage(self, tuple(row.index for row in self.top())).fragment()


def trend(estimates: Sequence[Estimate], dates: Sequence[Moment] | None = None) -> Trend:
    """Follow values over epochs: series, slopes, change points and alarms. Plans, ε and protocols may differ.

    Parameters
    ----------
    estimates: at least two estimates of one domain, from different reports, oldest first.
    dates: when each of them was, in increasing order: dates, dates with times, or numbers; by default 1, 2, 3, ….

    >>> import sunzi
    >>> plan = sunzi.make_plan("ss-compact", ["Chrome", "Firefox", "Safari"], epsilon=2)
    >>> weeks = [["Chrome"] * 3000 + ["Safari"] * 3000] * 8 + [["Chrome"] * 2000 + ["Safari"] * 4000] * 4
    >>> found = sunzi.trend([plan.estimate(plan.simulate(week, seed=n)) for n, week in enumerate(weeks)])
    >>> [(alarm.label, alarm.since, alarm.direction) for alarm in found.alarms()]
    [('Chrome', 9, 'down'), ('Safari', 9, 'up')]
    """
    for name, given in (("estimates", estimates), ("dates", () if dates is None else dates)):
        if not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
            raise ParameterError(f"{name} must be a list, with one entry per epoch, got {shown(given)}")
    for estimate in estimates:
        if not isinstance(estimate, Estimate):
            raise EstimateError(
                f"a trend needs estimates, which have errors; got {type(estimate).__name__}. Follow estimates, and "
                "post-process what you show"
            )
        if estimate.domain != estimates[0].domain:
            raise EstimateError(
                f"the estimates have different domains, {estimates[0].domain.size} and {estimate.domain.size} values; "
                "regroup all of them to the same groups first"
            )
    moments = tuple(range(1, len(estimates) + 1) if dates is None else dates)
    if len(moments) != len(estimates):
        raise ParameterError(f"dates must be one per estimate, {len(estimates)}, got {len(moments)}")
    if len(estimates) < 2:
        raise EstimateError(f"a trend needs at least two epochs, got {counted(len(estimates), 'epoch')}")
    return Trend(
        estimates[0].domain,
        moments,
        tuple(estimate.reports for estimate in estimates),
        np.array([estimate.frequencies for estimate in estimates]),
        np.array([population_variances(estimate) for estimate in estimates]),
        tuple(each.plan.fingerprint if each.plan else str(place) for place, each in enumerate(estimates)),
        note="" if estimates[-1].plan is None else lifetime_note(estimates[-1].plan),
    )


def population_variances(estimate: Estimate) -> Floats:
    """The variance of every frequency about a population, and at least that of a single report."""
    return np.maximum(estimate.standard_errors("population") ** 2, 1 / estimate.reports**2)


def opening_moments(opened_at: Sequence[float], numbers: Sequence[int]) -> tuple[Moment, ...]:
    """When epochs were opened, in UTC; their numbers if a clock was set back between them.

    Parameters
    ----------
    opened_at: the times, in seconds since 1970.
    numbers: the epochs' numbers.
    """
    if all(before < after for before, after in pairwise(opened_at)):
        return tuple(datetime.fromtimestamp(seconds, UTC) for seconds in opened_at)
    return tuple(numbers)


def _times(moments: Sequence[Moment]) -> Floats:
    """Moments as days or numbers since the first; raises ParameterError unless they increase."""
    kinds = {datetime if isinstance(each, datetime) else date if isinstance(each, date) else float for each in moments}
    if len(kinds) > 1:
        raise ParameterError("dates must be all dates, all dates with times, or all numbers")
    if len({each.utcoffset() is None for each in moments if isinstance(each, datetime)}) > 1:
        raise ParameterError("dates with times must all have a time zone, or none; give each of them a tzinfo")
    times = np.array([_number(moment) for moment in moments])
    if (np.diff(times) <= 0).any():
        at = int(np.argmax(np.diff(times) <= 0))
        raise ParameterError(
            f"dates must increase, but {shown_moment(moments[at + 1])} comes after {shown_moment(moments[at])}; sort "
            "the estimates by date"
        )
    return times - times[0]


def _number(moment: Moment) -> float:
    if isinstance(moment, datetime):
        return moment.timestamp() / _SECONDS_PER_DAY
    if isinstance(moment, date):
        return float(moment.toordinal())
    return real_number("an entry of dates that is not a datetime.date", moment)
