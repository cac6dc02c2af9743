"""A comparison as a picture: error, bits, decoding and attackability against what was varied. Needs matplotlib, the
``plot`` extra, so import this module only to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure

from sunzi.errors import ParameterError
from sunzi.planning.comparison import ComparisonRow
from sunzi.protocols.registry import catalogue

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel

Varied = Literal["epsilon", "size", "users"]

# Okabe and Ito's palette, distinct under every common colour blindness. Each colour has its own marker and dash, for
# lines that coincide and for print in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D00")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))
_MOST_TICKS = 7
_NAMES: dict[str, str] = {"epsilon": "epsilon", "size": "values in the domain", "users": "users"}


@dataclass(frozen=True)
class _Panel:
    title: str
    unit: str
    figures: dict[str, list[tuple[float, float]]]
    spreads: dict[str, list[float]]


def draw_comparison(records: Sequence[ComparisonRow], varied: Varied) -> Figure:
    """Four panels with one line per protocol; simulations show measured values, with bars of two standard errors."""
    shown = [record for record in records if record.axes is not None]
    if not shown:
        raise ParameterError("there is nothing to draw: every protocol refused every setting")
    figure = Figure(figsize=(11, 8), layout="constrained")
    names = list(dict.fromkeys(record.protocol for record in records))
    for place, panel in enumerate(_panels(shown, varied), start=1):
        _draw(figure.add_subplot(2, 2, place), panel, names, varied)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.suptitle(_title(shown, varied), x=0.01, ha="left")
    return figure


def _panels(records: Sequence[ComparisonRow], varied: Varied) -> list[_Panel]:
    is_simulated = all(record.simulated is not None for record in records)
    if is_simulated:
        error = _panel(records, varied, "mse", "error", "mean squared error, measured", spread="mse_error")
        work = _panel(records, varied, "decode_seconds", "decoding", "seconds, measured")
    else:
        histogram = "flat" if any(record.columns()["skewed_error"] is None for record in records) else "skewed"
        error = _panel(
            records, varied, f"{histogram}_error", "error", f"root mean squared error, {histogram} histogram"
        )
        work = _panel(records, varied, "work", "reading and decoding", "elementary operations")
    bits = _panel(records, varied, "bits", "report", "mean bits")
    attack = _panel(records, varied, "attackability", "attackability", "success of the best guess from one report")
    return [error, bits, work, attack]


def _panel(
    records: Sequence[ComparisonRow], varied: Varied, column: str, title: str, unit: str, spread: str | None = None
) -> _Panel:
    figures: dict[str, list[tuple[float, float]]] = {}
    spreads: dict[str, list[float]] = {}
    for record in records:
        row = record.columns()
        if row[column] is not None:
            place = {"epsilon": row["epsilon"], "size": row["domain_size"], "users": row["users"]}[varied]
            figures.setdefault(record.protocol, []).append((float(place), float(row[column])))
            spreads.setdefault(record.protocol, []).append(2 * float(row[spread]) if spread else 0.0)
    return _Panel(title, unit, figures, spreads)


def _draw(axes: Panel, panel: _Panel, names: Sequence[str], varied: Varied) -> None:
    for name in names:
        if name in panel.figures:
            points = np.array(panel.figures[name])
            style = _style(name)
            axes.errorbar(
                points[:, 0],
                points[:, 1],
                yerr=np.array(panel.spreads[name]) if any(panel.spreads[name]) else None,
                label=name,
                color=_COLOURS[style],
                marker=_MARKERS[style],
                linestyle=_DASHES[style],
                linewidth=1.4,
                markersize=6,
                markerfacecolor="none",
                capsize=2,
            )
    axes.set_yscale("log")
    if varied != "epsilon":
        _spread_by_factors(axes, sorted({place for points in panel.figures.values() for place, _ in points}))
    axes.set_title(panel.title, loc="left", fontsize="medium", fontweight="bold")
    axes.set_ylabel(panel.unit)
    axes.set_xlabel(_NAMES[varied])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(which="major", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


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
