"""Estimates of several groups as one self-contained web page: a small chart per group, all on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from sunzi.display.chart_tables import CHART_STYLE, Axis
from sunzi.display.markup import page
from sunzi.formatting import counted, decimals_for, percent, privacy_bound, shortened
from sunzi.results.certainty import MEANINGS, Certainty, certainties

if TYPE_CHECKING:
    from sunzi.results.estimate import Estimate
    from sunzi.results.histogram import Row
    from sunzi.results.uncertainty import Target
    from sunzi.tables.group_estimates import GroupEstimates

_LONGEST_LABEL = 28
_STYLE = """
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 1.5rem 2rem;
  margin: 1.5rem 0; }
.panels section { min-width: 0; }
.panels h2 { font-size: 1rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
.panels h2 span { font-weight: 400; }
.panels table { display: table; table-layout: fixed; width: 100%; }
.panels thead { display: table-header-group; }
.panels tbody { display: table-row-group; }
.panels tr, .panels thead tr { display: table-row; }
.panels th, .panels th:first-child { font-weight: 400; font-size: .8rem; padding: 0; line-height: 1.5; }
.panels td:first-child { font-weight: 400; font-size: .9rem; line-height: 26px; padding: 0 .3rem 0 0; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
.panels td:last-child { padding: 0; font-size: .9rem; }
.panels th:first-child { width: 32%; }
.panels th:last-child { width: 3.8rem; }
.panels svg { width: 100%; }
.panels .unseen { position: absolute; clip-path: inset(50%); height: 1px; width: 1px; overflow: hidden; }
"""


@dataclass(frozen=True)
class GroupPage:
    """Small multiples: the same values, in the same order and on the same scale, for every group."""

    groups: GroupEstimates
    top: int = 10
    confidence: float = 0.95
    target: Target = "reporters"

    def page(self, title: str | None = None, day: date | None = None) -> str:
        """The whole page; the default title is the number of groups and reports, and the day is today."""
        size = self._size()
        about = [*([] if title is None else [size]), (day or date.today()).isoformat()]
        panels = "\n".join(self._panel(name, estimate) for name, estimate in self.groups.estimates.items())
        content = f"""<p class="soft">{escape(" · ".join(about))}</p>
{self._introduction()}
<div class="panels">
{panels}
</div>
{self._notes()}"""
        return page(size if title is None else title, content, CHART_STYLE + _STYLE)

    def _size(self) -> str:
        estimates = self.groups.estimates.values()
        return f"{counted(len(estimates), 'group')}, {counted(sum(each.reports for each in estimates), 'report')}"

    def _introduction(self) -> str:
        first = next(iter(self.groups.estimates.values()))
        size, confidence = first.domain.size, f"{100 * self.confidence:g}&nbsp;%"
        bound = "" if first.plan is None else f", with {privacy_bound(first.plan.epsilon)}"
        shown = "All" if self.top >= size else f"The {self.top:,} values most frequent in all groups together, of"
        keys = "; ".join(f'<span class="key {each}"></span> {meaning}' for each, meaning in MEANINGS.items())
        small = self.groups.small_groups()
        held = "" if small is None else f"\n<p>{escape(small)}.</p>"
        values = counted(size, "bin" if self.groups.in_order else "value")
        return f"""<p>Each value was randomised before it was sent{bound}. The group is public: sent unchanged.</p>
<p>{shown} {values}, in the same order and on the same scale for every group. Each bar is an estimated
frequency within its group; the line across its end is its {confidence} confidence interval. {keys}.</p>{held}"""

    def _notes(self) -> str:
        return """<p class="soft">Estimates are unbiased, so a rare value can come out below 0. Smaller groups have
wider intervals. Among many bars some intervals miss the truth by chance.</p>"""

    @cached_property
    def _rows(self) -> dict[str, list[Row]]:
        return self.groups.common_rows(self.top, self.confidence, self.target)

    @cached_property
    def _axis(self) -> Axis:
        rows = [row for rows in self._rows.values() for row in rows]
        return Axis(min(row.low for row in rows), max(row.high for row in rows))

    @cached_property
    def _decimals(self) -> int:
        return decimals_for(row.standard_error for rows in self._rows.values() for row in rows)

    def _panel(self, name: str, estimate: Estimate) -> str:
        found = certainties(estimate, self.confidence, self.target)
        lines = "\n".join(self._line(row, found[row.index]) for row in self._rows[name])
        head = f'<tr><th>value</th><th class="draw">{self._axis.header()}</th><th>estimate</th></tr>'
        return f"""<section>
<h2>{escape(name)} <span class="soft">{counted(estimate.reports, "report")}</span></h2>
<table>
<thead>{head}</thead>
<tbody>
{lines}
</tbody>
</table>
</section>"""

    def _line(self, row: Row, certainty: Certainty) -> str:
        label, short = escape(row.label), escape(shortened(row.label, _LONGEST_LABEL))
        interval = f"{percent(row.low, self._decimals)} to {percent(row.high, self._decimals)}"
        drawing = self._axis.drawing(row.frequency, row.low, row.high, certainty)
        number = f'{percent(row.frequency, self._decimals)}<span class="unseen">, {interval}</span>'
        cells = f'<td class="draw" title="{interval}">{drawing}</td><td title="{interval}">{number}</td>'
        return f'<tr><td title="{label}"><bdi>{short}</bdi></td>{cells}</tr>'
