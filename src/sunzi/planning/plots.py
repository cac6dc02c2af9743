"""A comparison as a picture: error, efficiency, bits, decoding, attackability and, on request, central ε against what
was varied. Needs matplotlib, the ``plot`` extra, so import this module only to draw.

Errors of good protocols differ by a few percent, so they are drawn relative to the least possible error
(docs/mathematics.md §8), on an axis that is linear within 1 % of it and logarithmic beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from sunzi.batch import BatchGuarantee
from sunzi.client.errors import ParameterError
from sunzi.display.plotting import LINES, style_axes
from sunzi.formatting import with_prefix
from sunzi.planning.comparison import ComparisonRow
from sunzi.planning.floor import least_error
from sunzi.planning.record_comparison import AVERAGE, MethodRow
from sunzi.protocols.registry import catalogue

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel

Varied = Literal["epsilon", "size", "users"]

# Each colour has its own marker and dash, for lines that coincide and for print in grey.
_COLOURS = (*LINES, "#000000", "#8C6D00")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))
_MOST_TICKS = 7
_MOST_PANELS = 4
_ROWS = 2
_NAMES: dict[str, str] = {"epsilon": "epsilon", "size": "values in the domain", "users": "users"}


_RELATIVE_TICKS = (-90, -50, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)
_MOST_DECADES = 2

Point = tuple[float, float, float]
"""Where a figure is drawn: x, y and two standard errors of y."""


@dataclass(frozen=True)
class _Panel:
    title: str
    unit: str
    points: dict[str, list[Point]]
    label: Callable[[float], str]
    """A tick as text."""
    is_relative: bool = False
    attacks: Mapping[str, list[Point]] = field(default_factory=dict)
    """Where a band from the points ends."""


def draw_comparison(records: Sequence[ComparisonRow], varied: Varied) -> Figure:
    """One panel per axis with one line per protocol; simulations show measured values, with two standard errors."""
    shown = [record for record in records if record.axes is not None]
    if not shown:
        raise ParameterError("there is nothing to draw: every protocol refused every setting")
    panels, names = _panels(shown, varied), list(dict.fromkeys(record.protocol for record in records))
    styles = {name: _style(name) for name in names}
    columns = -(-len(panels) // _ROWS)
    figure = Figure(figsize=(5.2 * columns, 4 * _ROWS), layout="constrained")
    for place, panel in enumerate(panels, start=1):
        _draw(figure.add_subplot(_ROWS, columns, place), panel, names, varied, styles)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.suptitle(_title(shown, varied), x=0.01, ha="left")
    return figure


def draw_record_comparison(rows: Sequence[MethodRow], varied: Varied) -> Figure:
    """Standard errors with one line per method: a panel per question or, of many tables, one of their average."""
    names = list(dict.fromkeys(row.method for row in rows))
    panels = _question_panels(rows, varied)
    figure = Figure(figsize=(5.5 * len(panels[:2]), 4.5 * -(-len(panels) // 2)), layout="constrained")
    for place, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(-(-len(panels) // 2), len(panels[:2]), place)
        _draw(axes, panel, names, varied, {name: style for style, name in enumerate(names)})
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5 if len(panels) > 1 else 2, frameon=False)
    fixed = {"epsilon": f"epsilon {float(rows[0].epsilon):g}", "users": f"{rows[0].users:,} users"}
    figure.suptitle(", ".join(text for name, text in fixed.items() if name != varied), x=0.01, ha="left")
    return figure


def _question_panels(rows: Sequence[MethodRow], varied: Varied) -> list[_Panel]:
    questions = list(dict.fromkeys(row.question for row in rows))
    panels = []
    for question in questions if len(questions) <= _MOST_PANELS else [AVERAGE]:
        points: dict[str, list[Point]] = {}
        for row in rows:
            if row.question == question:
                points.setdefault(row.method, []).append((float(getattr(row, varied)), row.standard_error, 0.0))
        panels.append(_Panel(question, "standard error", points, _share))
    return panels


def _panels(records: Sequence[ComparisonRow], varied: Varied) -> list[_Panel]:
    is_simulated = all(record.simulated is not None for record in records)
    column, unit, label = "work", "elementary operations", _operations
    if is_simulated:
        column, unit, label = "decode_seconds", "time, measured", _seconds
    batch = next((record.axes.batch for record in records if record.axes is not None), None)
    central = [] if batch is None else [_central_panel(records, varied, batch)]
    return [
        _error_panel(records, varied, is_simulated=is_simulated),
        _panel(records, varied, "efficiency", "efficiency", "least possible MSE / MSE", _share),
        _panel(records, varied, "bits", "report", "mean bits", lambda value: f"{value:,.0f}"),
        _panel(records, varied, column, "decoding" if is_simulated else "reading and decoding", unit, label),
        _panel(records, varied, "attackability", "attackability", "success of a guess from one report", _share),
        *central,
    ]


def _central_panel(records: Sequence[ComparisonRow], varied: Varied, batch: BatchGuarantee) -> _Panel:
    title = f"batch of all users' shuffled reports, all honest,\nno smaller batch is published, delta {batch.delta:g}"
    unit = "central epsilon, one value replaced;\nan attack reaches the end of the band"
    panel = _panel(records, varied, "central_epsilon", title, unit, "{:g}".format)
    return replace(panel, attacks=_panel(records, varied, "central_attack", title, unit, "{:g}".format).points)


def _error_panel(records: Sequence[ComparisonRow], varied: Varied, *, is_simulated: bool) -> _Panel:
    """Root mean squared errors, in percent above the least that is possible if values are equally frequent."""
    histogram = "flat" if any(record.columns()["skewed_error"] is None for record in records) else "skewed"
    points: dict[str, list[Point]] = {}
    for record in records:
        row, setting = record.columns(), record.setting
        least = least_error(setting.domain_size, setting.epsilon, setting.users)
        error, spread = row[f"{histogram}_error"], 0.0
        if is_simulated:
            error = float(row["mse"]) ** 0.5
            spread = float(row["mse_error"]) / error if error else 0.0  # two standard errors of the root
        points.setdefault(record.protocol, []).append(
            (_place(record, varied), _rounded(100 * (error / least - 1)), 100 * spread / least)
        )
    kind = "measured" if is_simulated else f"{histogram} histogram"
    return _Panel("error", f"compared with the least possible, {kind}", points, _relative, is_relative=True)


def _rounded(percentage: float) -> float:
    """Zero instead of a rounding error."""
    return 0.0 if abs(percentage) < 1e-6 else percentage


def _relative(percentage: float) -> str:
    return f"{percentage:+,.0f} %".replace("-", "−") if percentage else "±0 %"


def _operations(value: float) -> str:
    return with_prefix(value).replace(".0 ", " ").strip()


def _share(value: float) -> str:
    return f"{100 * value:g} %"


def _seconds(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{1e3 * value:g} ms" if value >= 1e-3 else f"{1e6 * value:g} µs"


def _panel(
    records: Sequence[ComparisonRow],
    varied: Varied,
    column: str,
    title: str,
    unit: str,
    label: Callable[[float], str],
) -> _Panel:
    points: dict[str, list[Point]] = {}
    for record in records:
        value = record.columns()[column]
        if value is not None:
            points.setdefault(record.protocol, []).append((_place(record, varied), float(value), 0.0))
    return _Panel(title, unit, points, label)


def _place(record: ComparisonRow, varied: Varied) -> float:
    row = record.columns()
    return float({"epsilon": row["epsilon"], "size": row["domain_size"], "users": row["users"]}[varied])


def _draw(axes: Panel, panel: _Panel, names: Sequence[str], varied: Varied, styles: Mapping[str, int]) -> None:
    for name in names:
        if name in panel.points:
            points = np.array(panel.points[name])
            style = styles[name]
            axes.errorbar(
                points[:, 0],
                points[:, 1],
                yerr=points[:, 2] if points[:, 2].any() else None,
                label=name,
                color=_COLOURS[style],
                marker=_MARKERS[style],
                linestyle=_DASHES[style],
                linewidth=1.4,
                markersize=6,
                markerfacecolor="none",
                capsize=2,
            )
        if name in panel.attacks:
            reached = np.array(panel.attacks[name])
            bounds = [y for x, y, _ in panel.points[name] if x in reached[:, 0]]
            axes.fill_between(
                reached[:, 0], reached[:, 1], bounds, color=_COLOURS[styles[name]], alpha=0.25, linewidth=0
            )
    if panel.is_relative:
        _spread_around_zero(axes, [y for points in panel.points.values() for _, y, _ in points])
    else:
        heights = [y for points in panel.points.values() for _, y, _ in points]
        scale_by_factors(axes, min(heights), max(heights))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: panel.label(value)))
    if varied != "epsilon":
        _spread_by_factors(axes, sorted({x for points in panel.points.values() for x, _, _ in points}))
    axes.set_title(panel.title, loc="left", fontsize="medium", fontweight="bold")
    axes.set_ylabel(panel.unit)
    axes.set_xlabel(_NAMES[varied])
    style_axes(axes)


def _spread_around_zero(axes: Panel, heights: Sequence[float]) -> None:
    """An axis of percentages, linear up to 1 % and logarithmic beyond."""
    axes.set_yscale("symlog", linthresh=1)
    low = min(-0.3, 1.3 * min(heights))
    high = max(3.0, 1.3 * max(heights))
    axes.set_ylim(low, high)
    axes.set_yticks([tick for tick in _RELATIVE_TICKS if low <= tick <= high])
    axes.yaxis.set_minor_locator(NullLocator())


def scale_by_factors(axes: Panel, low: float, high: float) -> None:
    """A logarithmic vertical axis, with ticks between powers of ten if the range is narrow."""
    axes.set_yscale("log")
    is_narrow = high <= 10**_MOST_DECADES * low
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,), numticks=9))
    axes.yaxis.set_minor_locator(NullLocator())


def _style(name: str) -> int:
    """A protocol looks the same in every picture."""
    known = catalogue()
    return known.index(name) % len(_COLOURS)


def _spread_by_factors(axes: Panel, places: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers as ticks at some of the settings."""
    axes.set_xscale("log")
    ticks = places[:: -(-len(places) // _MOST_TICKS)]
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.set_xticks([], minor=True)


def _title(records: Sequence[ComparisonRow], varied: Varied) -> str:
    """The fixed parameters."""
    setting = records[0].setting
    fixed = {
        "size": f"{setting.domain_size:,} values",
        "epsilon": f"epsilon {float(setting.epsilon):g}",
        "users": f"{setting.users:,} users",
    }
    parts = [text for name, text in fixed.items() if name != varied]
    trials = records[0].trials
    if trials is not None:
        parts.append(f"{trials.number} simulated collections of {trials.population} values, seed {trials.seed}")
    return ", ".join(parts)
