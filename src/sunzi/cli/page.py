"""A histogram as one self-contained web page, without scripts, fonts or images from elsewhere.

Each row of the table has its own drawing with bar and interval; all share one axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sunzi.formatting import attacker_success, counted, decimals_for, percent, privacy_bound

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.tables.writers import HistogramTable

_HEIGHT = 26
_MARGIN = 6  # percent of the width
_STEPS = (1, 2, 5, 10)

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6672; --line: #d9dfe5; --paper: #fff;
  --clear: #56b4e9; --unclear: #c9d1d9; --interval: #1d2329; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5b1; --line: #333c45; --paper: #14181c;
  --clear: #3a8fc0; --unclear: #4a545e; --interval: #e6eaee; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; }
.soft { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
.key { display: inline-block; width: .9em; height: .9em; vertical-align: -.1em; background: var(--clear); }
.key.unclear { background: var(--unclear); }
.scroll { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--soft); font-size: .85rem; vertical-align: bottom; white-space: nowrap; }
th, td { padding: 0 .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td { white-space: nowrap; line-height: 26px; border-top: 1px solid var(--line); }
td:first-child { max-width: min(16rem, 28vw); overflow: hidden; text-overflow: ellipsis; }
td.draw, th.draw { padding: 0; line-height: 0; text-align: left; }
svg { display: block; width: min(20rem, 58vw); }
.grid { stroke: var(--line); } .zero { stroke: var(--soft); }
.bar { fill: var(--clear); } .bar.unclear { fill: var(--unclear); }
.whisker, .cap { stroke: var(--interval); stroke-width: 1.5; }
.tick { fill: var(--soft); font-size: 11px; text-anchor: middle; }
"""


def render_page(plan: Plan, rows: HistogramTable, lowest: Sequence[float]) -> str:
    """The whole page. ``lowest`` holds the rows' simultaneous lower bounds over all values."""
    notes = rows.notes
    title = f"{counted(int(notes['reports']), 'report')}, {counted(plan.domain.size, 'value')}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{_introduction(plan, rows)}
<div class="scroll">
{_table(rows, lowest)}
</div>
{_notes(plan, rows)}
</body>
</html>
"""


def _introduction(plan: Plan, rows: HistogramTable) -> str:
    confidence = f"{100 * float(rows.notes['confidence']):g}&nbsp;%"
    whom = {
        "reporters": "the users who reported",
        "population": "the population from which the users who reported are a random sample",
    }[str(rows.notes["target"])]
    guarantee = privacy_bound(plan.epsilon)
    guess = attacker_success(plan.attackability, plan.domain.size).replace(" %", "&nbsp;%")
    shown = "All" if len(rows) == plan.domain.size else f"The {len(rows):,} most frequent of"
    return f"""<p>Each value was randomised before it was sent, with {guarantee}. {guess[0].upper()}{guess[1:]}.</p>
<p>{shown} {counted(plan.domain.size, "value")}. Each bar is an estimated frequency; the line across its end is the
{confidence} confidence interval for {whom}. <span class="key"></span> above 0, tested for all values at once;
<span class="key unclear"></span> not distinguishable from 0.</p>"""


def _notes(plan: Plan, rows: HistogramTable) -> str:
    order = " to first order" if rows.notes["weights"] == "efficient" else ""
    notes = [
        f"Estimates are unbiased{order}: the noise goes both ways, so a rare value can come out below 0. The largest "
        "estimates tend to be a little too large, because they were selected for being large."
    ]
    if "postprocess" in rows.notes:
        method, effect = rows.notes["postprocess"], rows.notes["postprocess_effect"]
        notes.append(f"The column {method} is post-processed and therefore has no interval: {effect}.")
    notes.append(f"Protocol {plan.protocol.name}, plan {plan.fingerprint}.")
    return "\n".join(f'<p class="soft">{escape(str(note))}</p>' for note in notes)


def _table(rows: HistogramTable, lowest: Sequence[float]) -> str:
    columns = rows.columns
    decimals = decimals_for(columns["standard_error"])
    axis = _Axis(min(columns["low"]), max(columns["high"]))
    method = rows.notes.get("postprocess")
    confidence = f"{100 * float(rows.notes['confidence']):g} % interval"
    heads = ["value", "estimate", confidence, "users", *([] if method is None else [f"{method}, no interval"])]
    cells = [f"<th>{escape(str(head))}</th>" for head in heads]
    cells.insert(1, f'<th class="draw">{axis.header()}</th>')  # first, so that a narrow screen shows it whole
    lines = [f"<table>\n<thead><tr>{''.join(cells)}</tr></thead>\n<tbody>"]
    for number in range(len(rows)):
        row = {name: values[number] for name, values in columns.items()}
        lines.append(_row(row, axis, decimals, method, clear=lowest[number] > 0))
    return "\n".join([*lines, "</tbody>\n</table>"])


def _row(row: dict[str, Any], axis: _Axis, decimals: int, method: object, *, clear: bool) -> str:
    label = escape(str(row["label"]))
    interval = f"{percent(row['low'], decimals)} to {percent(row['high'], decimals)}"
    cells = [percent(row["frequency"], decimals), interval, f"{row['count']:,.0f}"]
    if method is not None:
        cells.append(percent(row[f"frequency_{method}"], decimals))
    numbers = "".join(f"<td>{cell}</td>" for cell in cells)
    drawing = axis.drawing(row["frequency"], row["low"], row["high"], clear=clear)
    return f'<tr><td title="{label}"><bdi>{label}</bdi></td><td class="draw">{drawing}</td>{numbers}</tr>'


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

    def drawing(self, frequency: float, low: float, high: float, *, clear: bool) -> str:
        """A bar from 0 to the estimate with its interval; hidden from screen readers, who get the numbers."""
        lines = "".join(
            _line("grid" if tick else "zero", self._at(tick), self._at(tick), 0, _HEIGHT) for tick in self._ticks
        )
        start, stop = sorted([0.0, frequency])
        width = (100 - 2 * _MARGIN) * (stop - start) / (self._high - self._low)
        shade = "bar" if clear else "bar unclear"
        bar = f'<rect class="{shade}" x="{self._at(start)}" y="5" width="{width:.2f}%" height="16"/>'
        middle = _HEIGHT / 2
        whisker = _line("whisker", self._at(low), self._at(high), middle, middle)
        caps = "".join(_line("cap", self._at(end), self._at(end), middle - 4, middle + 4) for end in (low, high))
        return f'<svg height="{_HEIGHT}" aria-hidden="true">{lines}{bar}{whisker}{caps}</svg>'


def _line(kind: str, x1: str, x2: str, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y1:g}" y2="{y2:g}"/>'
