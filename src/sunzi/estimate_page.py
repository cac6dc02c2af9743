"""A histogram as one self-contained web page, without scripts, fonts or images from elsewhere.

Each row of the table has its own drawing with bar and interval; all share one axis. A small script on the page searches
and sorts; without it, the page shows the same.
"""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from sunzi.formatting import attacker_success, counted, decimals_for, percent, privacy_bound, shortened
from sunzi.markup import PAGE_STYLE, STYLE, for_notebook
from sunzi.verdicts import MEANINGS, Verdict, verdicts

if TYPE_CHECKING:
    from sunzi.estimate import Estimate, PostprocessedHistogram, Row
    from sunzi.plan import Plan
    from sunzi.uncertainty import Target

_HEIGHT = 26
_MARGIN = 6  # percent of the width
_STEPS = (1, 2, 5, 10)
_LONGEST_LABEL = 36

_SEARCH_STYLE = """
.search { margin-top: 1.5rem; }
.search input { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft);
  border-radius: .3rem; padding: .25rem .5rem; width: min(20rem, 100%); box-sizing: border-box; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th button:hover { text-decoration: underline; }
th[aria-sort="descending"] button::after { content: " ▾" / ""; }
th[aria-sort="ascending"] button::after { content: " ▴" / ""; }
"""
_CHART_STYLE = """
.sunzi {
  td.draw, th.draw { padding: 0; line-height: 0; text-align: left; }
  svg { display: block; width: 20rem; }
  .grid { stroke: var(--line); } .zero { stroke: var(--soft); }
  .bar { fill: var(--clear); } .bar.unclear { fill: var(--unclear); }
  .bar.alone { fill: none; stroke: var(--clear); stroke-width: 1.5; }
  .whisker, .cap { stroke: var(--interval); stroke-width: 1.5; }
  .tick { fill: var(--soft); font-size: 11px; text-anchor: middle; }
  @media (max-width: 48rem) { /* a value takes three lines: its name and estimate, the bar, the interval and users */
    table, thead, tbody { display: block; }
    tr { display: grid; grid-template-columns: 1fr auto; }
    thead tr { display: flex; flex-wrap: wrap; gap: 0 1rem; }
    th { padding: 0; }
    th.draw { order: 9; }
    th.draw, .draw svg { width: 100%; }
    tbody tr { border-top: 1px solid var(--line); padding: .3rem 0; }
    td { border: 0; padding: 0; }
    td:first-child { white-space: normal; overflow-wrap: anywhere; line-height: 1.25; padding-right: .75rem;
      font-weight: 600; }
    td.draw { grid-area: 2 / 1 / 3 / 3; }
    td.estimate { grid-area: 1 / 2; align-self: end; font-weight: 600; line-height: 1.25; }
    td.interval { grid-area: 3 / 1; text-align: left; }
    td.users { grid-area: 3 / 2; }
    td.users::after { content: " users"; }
    td.processed { grid-area: 4 / 1 / 5 / 3; text-align: left; }
    td.processed::before { content: attr(data-name) ": "; }
    td.interval, td.users, td.processed { color: var(--soft); font-size: .9rem; }
  }
}
"""
_SCRIPT = """
const rows = [...document.querySelectorAll("tbody tr")];
const heads = [...document.querySelectorAll("thead th")];
const search = document.querySelector("input");
const found = document.querySelector("output");
search.parentElement.parentElement.hidden = false;
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  let count = 0;
  for (const row of rows) {
    row.hidden = !row.cells[0].title.toLowerCase().includes(wanted);
    count += !row.hidden;
  }
  found.textContent = wanted ? `${count} of ${rows.length} found` : "";
});
heads.forEach((head, column) => {
  if (head.className === "draw") return;
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const order = head.ariaSort === (column ? "descending" : "ascending") ? !column : !!column;
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].title;
    const compare = new Intl.Collator(undefined, { numeric: true }).compare;
    rows.sort((a, b) => (column ? key(a) - key(b) : compare(key(a), key(b))) * (order ? -1 : 1));
    for (const other of heads) other.removeAttribute("aria-sort");
    head.ariaSort = order ? "descending" : "ascending";
    document.querySelector("tbody").append(...rows);
  });
});
"""


@dataclass(frozen=True)
class EstimatePage:
    """An estimate as a web page, or as the table alone."""

    estimate: Estimate
    top: int = 50
    confidence: float = 0.95
    target: Target = "reporters"
    processed: PostprocessedHistogram | None = None
    """A post-processed copy, for a column of its own."""

    def page(self, title: str | None = None, collection: str | None = None, day: date | None = None) -> str:
        """The whole page; the default title is the number of reports and values, and the day is today."""
        size = self._size()
        about = [f"Collection {collection}"] if collection is not None else []
        about += [] if title is None else [size]
        about.append((day or date.today()).isoformat())
        title = size if title is None else title
        digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{PAGE_STYLE}{STYLE}{_SEARCH_STYLE}{_CHART_STYLE}</style>
</head>
<body class="sunzi">
<h1>{escape(title)}</h1>
<p class="soft">{escape(" · ".join(about))}</p>
{self._introduction()}
<p class="search" hidden><label>Search <input type="search" spellcheck="false"></label> <output></output></p>
<div class="scroll">
{self._table()}
</div>
{self._notes()}
<script>{_SCRIPT}</script>
</body>
</html>
"""

    def fragment(self) -> str:
        """The table with its legend, for a notebook."""
        content = f'<p>{self._size()}. {self._legend()}</p>\n<div class="scroll">\n{self._table()}\n</div>'
        return for_notebook(content, _CHART_STYLE)

    def _size(self) -> str:
        return f"{counted(self.estimate.reports, 'report')}, {counted(self.estimate.domain.size, 'value')}"

    def _introduction(self) -> str:
        return f"{_guarantee(self.estimate.plan)}<p>{self._legend()}</p>"

    def _legend(self) -> str:
        size, confidence = self.estimate.domain.size, f"{100 * self.confidence:g}&nbsp;%"
        whom = {
            "reporters": "the users who reported",
            "population": "the population from which the users who reported are a random sample",
        }[self.target]
        shown = "All" if self.top >= size else f"The {self.top:,} most frequent of"
        return f"""{shown} {counted(size, "value")}. Each bar is an estimated frequency; the line across its end is the
value's own {confidence} confidence interval for {whom}. {self._keys()}."""

    def _keys(self) -> str:
        """The verdicts that occur."""
        meant = [verdict for verdict in MEANINGS if verdict in {self._verdicts[row.index] for row in self._rows}]
        return "; ".join(f'<span class="key {verdict}"></span> {MEANINGS[verdict]}' for verdict in meant)

    @cached_property
    def _rows(self) -> list[Row]:
        return self.estimate.top(self.top, self.confidence, target=self.target)

    @cached_property
    def _verdicts(self) -> list[Verdict]:
        return verdicts(self.estimate, self.confidence, self.target)

    def _notes(self) -> str:
        order = " to first order" if self.estimate.weights == "efficient" else ""
        notes = [
            f"Estimates are unbiased{order}: the noise goes both ways, so a rare value can come out below 0. The "
            "largest estimates tend to be a little too large, because they were selected for being large."
        ]
        if self.processed is not None:
            method, effect = self.processed.method, self.processed.effect
            notes.append(f"The column {method} is post-processed and therefore has no interval: {effect}.")
        if self.estimate.plan is not None:
            notes.append(f"Protocol {self.estimate.plan.protocol.name}, plan {self.estimate.plan.fingerprint}.")
        return "\n".join(f'<p class="soft">{escape(note)}</p>' for note in notes)

    def _table(self) -> str:
        rows = self._rows
        decimals = decimals_for(row.standard_error for row in rows)
        axis = _Axis(min(row.low for row in rows), max(row.high for row in rows))
        heads = ["value", "estimate", f"{100 * self.confidence:g} % interval", "users"]
        if self.processed is not None:
            heads.append(f"{self.processed.method}, no interval")
        cells = [f'<th role="columnheader">{escape(head)}</th>' for head in heads]
        cells[1] = cells[1].replace("<th", '<th aria-sort="descending"')
        cells.insert(1, f'<th class="draw">{axis.header()}</th>')
        lines = [self._row(row, axis, decimals) for row in rows]
        body = "\n".join(lines)
        # The roles keep this a table for screen readers where the style makes blocks of it.
        head = f'<thead role="rowgroup"><tr role="row">{"".join(cells)}</tr></thead>'
        return f'<table role="table">\n{head}\n<tbody role="rowgroup">\n{body}\n</tbody>\n</table>'

    def _row(self, row: Row, axis: _Axis, decimals: int) -> str:
        label, short = escape(row.label), escape(shortened(row.label, _LONGEST_LABEL))
        interval = f"{percent(row.low, decimals)} to {percent(row.high, decimals)}"
        cells = [
            _cell("estimate", row.frequency, percent(row.frequency, decimals)),
            _cell("interval", row.low, interval),
            _cell("users", row.count, f"{row.count:,.0f}"),
        ]
        if self.processed is not None:
            share = float(self.processed.frequencies[row.index])
            cells.append(_cell("processed", share, percent(share, decimals), self.processed.method))
        drawing = axis.drawing(row.frequency, row.low, row.high, self._verdicts[row.index])
        name = f'<td role="rowheader" title="{label}"><bdi>{short}</bdi></td>'
        return f'<tr role="row">{name}<td class="draw">{drawing}</td>{"".join(cells)}</tr>'


def _cell(kind: str, value: float, text: str, name: str = "") -> str:
    """A number with the value by which it is sorted."""
    named = f' data-name="{escape(name)}"' if name else ""
    return f'<td role="cell" class="{kind}" data-value="{value:.9g}"{named}>{text}</td>'


def _guarantee(plan: Plan | None) -> str:
    """A paragraph about the plan's privacy; empty where the plan is not known."""
    if plan is None:
        return ""
    guess = attacker_success(plan.attackability, plan.domain.size).replace(" %", "&nbsp;%")
    guarantee = privacy_bound(plan.epsilon)
    return f"<p>Each value was randomised before it was sent, with {guarantee}. {guess[0].upper()}{guess[1:]}.</p>\n"


class _Axis:
    """The horizontal positions of frequencies within a drawing."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = min(low, 0.0), max(high, 0.0)
        spread = self._high - self._low
        power = 10.0 ** math.floor(math.log10(spread / 5))
        self._step = next(power * step for step in _STEPS if power * step >= spread / 6)
        first, last = math.ceil(self._low / self._step), math.floor(self._high / self._step)
        self._ticks = [self._step * number for number in range(first, last + 1)]

    def _at(self, frequency: float) -> str:
        share = (frequency - self._low) / (self._high - self._low)
        return f"{_MARGIN + (100 - 2 * _MARGIN) * share:.2f}%"

    def header(self) -> str:
        """The axis labels."""
        decimals = max(0, -math.floor(math.log10(100 * self._step) + 1e-9))
        texts = "".join(
            f'<text class="tick" x="{self._at(tick)}" y="16">{percent(tick, decimals)}</text>' for tick in self._ticks
        )
        return f'<svg height="20" aria-hidden="true">{texts}</svg>'

    def drawing(self, frequency: float, low: float, high: float, verdict: Verdict) -> str:
        """A bar from 0 to the estimate with its interval; hidden from screen readers, who get the numbers."""
        lines = "".join(
            _line("grid" if tick else "zero", self._at(tick), self._at(tick), 0, _HEIGHT) for tick in self._ticks
        )
        start, stop = sorted([0.0, frequency])
        width = (100 - 2 * _MARGIN) * (stop - start) / (self._high - self._low)
        bar = f'<rect class="bar {verdict}" x="{self._at(start)}" y="5" width="{width:.2f}%" height="16"/>'
        middle = _HEIGHT / 2
        whisker = _line("whisker", self._at(low), self._at(high), middle, middle)
        caps = "".join(_line("cap", self._at(end), self._at(end), middle - 4, middle + 4) for end in (low, high))
        return f'<svg height="{_HEIGHT}" aria-hidden="true">{lines}{bar}{whisker}{caps}</svg>'


def _line(kind: str, x1: str, x2: str, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y1:g}" y2="{y2:g}"/>'
