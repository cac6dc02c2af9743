"""A table whose rows each draw a bar with its interval along one axis, in a notebook or on a self-contained page.

The page loads no scripts, fonts or images from elsewhere. An inline script searches and sorts; without it, the page
shows the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

from sunzi.display.markup import for_notebook, page
from sunzi.formatting import percent, shortened
from sunzi.results.certainty import Certainty

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
CHART_STYLE = """
.sunzi {
  td.draw, th.draw { padding: 0; line-height: 0; text-align: left; }
  svg { display: block; width: 20rem; }
  .grid { stroke: var(--line); } .zero { stroke: var(--soft); }
  .bar { fill: var(--clear); } .bar.unclear { fill: var(--unclear); }
  .bar.alone { fill: none; stroke: var(--clear); stroke-width: 1.5; }
  .whisker, .cap { stroke: var(--interval); stroke-width: 1.5; }
  .band { fill: var(--clear); opacity: .3; }
  .line { fill: none; stroke: var(--interval); stroke-width: 1.2; vector-effect: non-scaling-stroke; }
  .ring { fill: none; stroke: var(--interval); stroke-width: 1.5; }
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
    td.verdict { grid-area: 3 / 2; }
    td.before { grid-area: 4 / 1; text-align: left; }
    td.after { grid-area: 4 / 2; }
    td.before::before, td.after::before { content: attr(data-name) ": "; }
    td.interval, td.users, td.processed, td.verdict, td.before, td.after { color: var(--soft); font-size: .9rem; }
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


def chart_page(title: str, about: Iterable[str], introduction: str, table: str, notes: Iterable[str]) -> str:
    """The whole page. ``introduction`` and ``table`` are markup, other parts text."""
    paragraphs = "\n".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
    content = f"""<p class="soft">{escape(" · ".join(about))}</p>
{introduction}
<p class="search" hidden><label>Search <input type="search" spellcheck="false"></label> <output></output></p>
<div class="scroll">
{table}
</div>
{paragraphs}"""
    return page(title, content, _SEARCH_STYLE + CHART_STYLE, _SCRIPT)


def chart_fragment(legend: str, table: str) -> str:
    """The table with its legend, for a notebook."""
    return for_notebook(f'<p>{legend}</p>\n<div class="scroll">\n{table}\n</div>', CHART_STYLE)


def chart_table(heads: Sequence[str], sorted_by: int | None, axis: Headed, rows: Iterable[str]) -> str:
    """The table of rows by :func:`chart_row`, sorted by this column, if any. The axis follows the first head."""
    cells = [f'<th role="columnheader">{escape(head)}</th>' for head in heads]
    if sorted_by is not None:
        cells[sorted_by] = cells[sorted_by].replace("<th", '<th aria-sort="descending"')
    cells.insert(1, f'<th class="draw">{axis.header()}</th>')
    body = "\n".join(rows)
    # The roles keep this a table for screen readers where the style makes blocks of it.
    head = f'<thead role="rowgroup"><tr role="row">{"".join(cells)}</tr></thead>'
    return f'<table role="table">\n{head}\n<tbody role="rowgroup">\n{body}\n</tbody>\n</table>'


def chart_row(label: str, drawing: str, cells: Iterable[str]) -> str:
    """One row: the label, shortened if necessary, the drawing and the cells."""
    name = f'<td role="rowheader" title="{escape(label)}"><bdi>{escape(shortened(label, _LONGEST_LABEL))}</bdi></td>'
    return f'<tr role="row">{name}<td class="draw">{drawing}</td>{"".join(cells)}</tr>'


def cell(kind: str, value: float, text: str, name: str = "") -> str:
    """A number with the value by which it is sorted; narrow screens show the name before it."""
    named = f' data-name="{escape(name)}"' if name else ""
    return f'<td role="cell" class="{kind}" data-value="{value:.9g}"{named}>{text}</td>'


class Headed(Protocol):
    """An axis that can be labelled."""

    def header(self) -> str:
        """The axis labels."""


class Axis:
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

    def drawing(self, frequency: float, low: float, high: float, certainty: Certainty) -> str:
        """A bar from 0 to the estimate with its interval; hidden from screen readers, who get the numbers."""
        lines = "".join(
            _line("grid" if tick else "zero", self._at(tick), self._at(tick), 0, _HEIGHT) for tick in self._ticks
        )
        start, stop = sorted([0.0, frequency])
        width = (100 - 2 * _MARGIN) * (stop - start) / (self._high - self._low)
        bar = f'<rect class="bar {certainty}" x="{self._at(start)}" y="5" width="{width:.2f}%" height="16"/>'
        middle = _HEIGHT / 2
        whisker = _line("whisker", self._at(low), self._at(high), middle, middle)
        caps = "".join(_line("cap", self._at(end), self._at(end), middle - 4, middle + 4) for end in (low, high))
        return f'<svg height="{_HEIGHT}" aria-hidden="true">{lines}{bar}{whisker}{caps}</svg>'


def _line(kind: str, x1: str, x2: str, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y1:g}" y2="{y2:g}"/>'
