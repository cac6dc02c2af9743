"""A trend as one self-contained web page: the clearest changes, each with a small chart of its series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from sunzi.display.chart_tables import cell, chart_fragment, chart_page, chart_row, chart_table
from sunzi.formatting import counted, decimals_for, percent, signed_percent

if TYPE_CHECKING:
    from sunzi.results.trends import Alarm, Moment, Trend, TrendRow

_HEIGHT = 56
_WIDTH = 82.0  # percent of the drawing for the curve; the rest is for the labels of its scale
_PAD = 6.0


def shown_moment(moment: Moment) -> str:
    """A date, a date with time to the minute, or a number."""
    if isinstance(moment, date):
        return moment.isoformat()[:16].replace("T", " ")
    return f"{moment:g}"


def slope_text(row: TrendRow) -> str:
    """The slope and its standard error, in percentage points."""
    decimals = decimals_for([row.slope_error])
    return f"{100 * row.slope:+.{decimals}f} ± {100 * row.slope_error:.{decimals}f}"


@dataclass(frozen=True)
class TrendPage:
    """A trend as a web page, or as the table alone."""

    trend: Trend
    indices: tuple[int, ...]
    confidence: float = 0.95
    one_in: float | None = None

    def page(self, title: str | None = None, collection: str | None = None) -> str:
        """The whole page; the default title is the number of values that changed."""
        trend = self.trend
        epochs = f"{counted(len(trend.moments), 'epoch')}, {self._first} to {self._last}"
        about = [f"Collection {collection}"] if collection else []
        about += [epochs, counted(sum(trend.reports), "report"), date.today().isoformat()]
        changed = f"{int(trend.changed().sum()):,} of {counted(trend.domain.size, 'value')} changed"
        return chart_page(title or changed, about, f"<p>{self._legend()}</p>", self._table(), self._notes())

    def fragment(self) -> str:
        """The table with its legend, for a notebook."""
        return chart_fragment(self._legend(), self._table())

    @property
    def _first(self) -> str:
        return shown_moment(self.trend.moments[0])

    @property
    def _last(self) -> str:
        return shown_moment(self.trend.moments[-1])

    def header(self) -> str:
        """The labels of the axis of time."""
        return (
            f'<svg height="20" aria-hidden="true"><text class="tick" style="text-anchor: start" x="0" y="16">'
            f'{self._first}</text><text class="tick" style="text-anchor: end" x="{_WIDTH:g}%" y="16">{self._last}'
            "</text></svg>"
        )

    def _legend(self) -> str:
        level = f"{100 * self.confidence:g}&nbsp;%"
        return f"""Each chart has its own scale. The line is the estimated frequency, the band its {level} confidence
interval, and a ring an alarm: this value changed, judging by the data up to then. “Changed” looks back over all epochs,
at a false discovery rate of 5&nbsp;%. The slope is that of a straight line through all epochs, in percentage points per
{self.trend.unit}, with its standard error."""

    def _notes(self) -> list[str]:
        one_in = self.trend.default_one_in if self.one_in is None else self.one_in
        return [
            f"One false alarm is expected in {one_in:,.0f} values times epochs. Intervals are about the populations "
            "that the users of each epoch are random samples of. Frequencies are unbiased, so rare values can come out "
            "below 0.",
            *([self.trend.note] if self.trend.note else []),
        ]

    @cached_property
    def _alarms(self) -> list[Alarm]:
        return self.trend.alarms(self.one_in)

    def _table(self) -> str:
        rows = self.trend.rows(self.indices)
        decimals = decimals_for(row.change_error for row in rows)
        heads = ["value", "now", "slope", "verdict", "change at", "change"]
        return chart_table(heads, None, self, (self._row(row, decimals) for row in rows))

    def _row(self, row: TrendRow, decimals: int) -> str:
        score = abs(row.change) / row.change_error
        at = float(self.trend.moments.index(row.change_at))
        cells = [
            cell("estimate", row.level, percent(row.level, decimals)),
            cell("interval", row.slope, slope_text(row)),
            cell("verdict", score, "changed" if row.changed else ""),
            cell("before", at, shown_moment(row.change_at), "change at"),
            cell("after", row.change, signed_percent(row.change, decimals), "change"),
        ]
        return chart_row(row.label, self._drawing(row.index, decimals), cells)

    def _drawing(self, index: int, decimals: int) -> str:
        """The series with its band and alarms; hidden from screen readers, who get the numbers."""
        trend = self.trend
        points = trend.points_at(index, self.confidence)
        low, high = min(point.low for point in points), max(point.high for point in points)
        times = trend.times / trend.times[-1] * (_WIDTH - 2) + 1

        def y(value: float) -> float:
            return _PAD + (_HEIGHT - 2 * _PAD) * (high - value) / (high - low)

        def path(values: list[float]) -> list[str]:
            return [f"{time:.2f},{y(value):.1f}" for time, value in zip(times.tolist(), values, strict=True)]

        band = " ".join(path([point.high for point in points]) + path([point.low for point in points])[::-1])
        line = " ".join(path([point.frequency for point in points]))
        rings = "".join(
            f'<circle class="ring" cx="{times[place]:.2f}%" cy="{y(points[place].frequency):.1f}" r="5"/>'
            for place in (trend.moments.index(alarm.moment) for alarm in self._alarms if alarm.index == index)
        )
        scale = "".join(
            f'<text class="tick" style="text-anchor: start" x="{_WIDTH + 1:g}%" y="{y(end) + 4:.1f}">'
            f"{percent(end, decimals)}</text>"
            for end in (low, high)
        )
        curve = (
            f'<svg viewBox="0 0 100 {_HEIGHT}" preserveAspectRatio="none" style="width: 100%" height="{_HEIGHT}">'
            f'<polygon class="band" points="{band}"/><polyline class="line" points="{line}"/></svg>'
        )
        return f'<svg height="{_HEIGHT}" aria-hidden="true">{curve}{rings}{scale}</svg>'
