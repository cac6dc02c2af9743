"""Plots of estimates, differences and trends. Needs matplotlib (the ``plot`` extra)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.display.changes_page import certainty, meanings
from sunzi.formatting import shortened
from sunzi.results.certainty import MEANINGS, Certainty, certainties

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sunzi.results.changes import Difference, VerdictRule
    from sunzi.results.estimate import Estimate
    from sunzi.results.trends import Moment, Trend
    from sunzi.results.uncertainty import Target

# Okabe and Ito's palette: distinct under every common colour blindness, and in grey; its yellow is too pale.
BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
INK = "#333333"
LINES = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE)
"""The palette in the order in which lines take it."""

_CLEAR, _UNCLEAR, INTERVAL, _TRUTH = SKY, "#D5DCE3", INK, VERMILION
# Face and edge of a bar.
SHADES: dict[Certainty, tuple[str, str]] = {
    "clear": (_CLEAR, _CLEAR),
    "alone": ("#FFFFFF", _CLEAR),
    "unclear": (_UNCLEAR, _UNCLEAR),
}
_LINES = (*LINES, INK)
_LINES_SHOWN = 6
_PANEL_COLUMNS = 3
_NAMES: dict[Certainty, str] = {each: meaning.partition(":")[0] for each, meaning in MEANINGS.items()}
_LONGEST_LABEL = 28
# Installed fonts that may have characters missing from the default font.
_FALLBACK_FONTS = re.compile("CJK|Han Sans|WenQuanYi|YaHei|SimHei|PingFang|Hiragino|Gothic|Noto Sans|Unicode")
_UNKNOWN_CHARACTER = "□"


class MissingGlyphsWarning(UserWarning):
    """No installed font has some of the characters of a picture's labels."""


def plot_estimate(
    estimate: Estimate,
    path: str | Path | None,
    top: int,
    confidence: float,
    target: Target,
    truth: Sequence[float] | Floats | None,
) -> Figure:
    """The largest frequencies as bars, never without their intervals; pale where chance could explain them."""
    if truth is not None and len(truth) != estimate.domain.size:
        raise ParameterError(f"truth must have {estimate.domain.size} frequencies, got {len(truth)}")
    rows = estimate.top(check_top(top), confidence, target=target)
    found = certainties(estimate, confidence, target)
    bars = [Bar(row.label, row.frequency, row.low, row.high, found[row.index]) for row in rows]
    figure, axes = _bar_chart(bars)
    handles = legend_handles(confidence)
    if truth is not None:
        axes.plot(
            [truth[row.index] for row in rows], range(len(rows)), linestyle="none", marker="D", ms=5, color=_TRUTH
        )
        handles.append(Line2D([], [], color=_TRUTH, marker="D", linestyle="none", label="truth"))
    axes.set_xlabel("estimated frequency (unbiased, so values below 0 can occur)")
    axes.set_title(f"Top {len(rows)} of {estimate.domain.size:,} values, {estimate.reports:,} reports", loc="left")
    axes.legend(handles=handles, loc="lower right", frameon=False, fontsize="small")
    return saved(figure, path)


def plot_difference(
    difference: Difference, path: str | Path | None, top: int, confidence: float, verdict: VerdictRule
) -> Figure:
    """The clearest changes as bars with their intervals; pale where chance could explain them."""
    rows = difference.top(check_top(top), confidence, verdict)
    bars = [Bar(row.label, row.change, row.low, row.high, certainty(row)) for row in rows]
    figure, axes = _bar_chart(bars, below=0.8)
    axes.set_xlabel("change of frequency, after minus before")
    before, after = (f"{each.reports:,}" for each in (difference.before, difference.after))
    axes.set_title(
        f"{len(rows)} clearest changes of {difference.domain.size:,} values, {before} and {after} reports", loc="left"
    )
    # Changes go both ways, so no corner is guaranteed to be free: the legend is below.
    handles = legend_handles(confidence, meanings(confidence, verdict))
    figure.legend(handles=handles, loc="outside lower left", frameon=False, fontsize="small")
    return saved(figure, path)


@dataclass(frozen=True)
class Bar:
    """A value with its interval."""

    label: str
    value: float
    low: float
    high: float
    certainty: Certainty


def check_top(top: int) -> int:
    """Refuse a picture without bars."""
    if top < 1:
        raise ParameterError(f"top must be at least 1, got {top}")
    return top


def _bar_chart(bars: Sequence[Bar], below: float = 0.0) -> tuple[Figure, Axes]:
    """Labelled bars, the first on top, and space for a legend below, in inches."""
    figure = Figure(figsize=(8, 1.4 + below + 0.32 * len(bars)), layout="constrained")
    axes = figure.add_subplot()
    draw_bars(axes, bars)
    shown, fonts = drawable([shortened(bar.label, _LONGEST_LABEL) for bar in bars])
    axes.set_yticks(range(len(bars)), shown, fontfamily=fonts)
    axes.invert_yaxis()
    return figure, axes


def draw_bars(axes: Axes, bars: Sequence[Bar], linewidth: float = 1.2) -> None:
    """Horizontal bars with their intervals."""
    places = np.arange(len(bars))
    values, low, high = (np.array([getattr(bar, name) for bar in bars]) for name in ("value", "low", "high"))
    # A score interval may be off-centre, and even exclude the estimate by a rounding error.
    reach = np.maximum(np.vstack([values - low, high - values]), 0.0)
    faces, edges = zip(*(SHADES[bar.certainty] for bar in bars), strict=True)
    axes.barh(places, values, color=faces, edgecolor=edges, linewidth=linewidth, height=0.7)
    axes.errorbar(
        values, places, xerr=reach, fmt="none", ecolor=INTERVAL, elinewidth=linewidth, capsize=2.5 * linewidth
    )
    axes.axvline(0, color=INTERVAL, linewidth=0.8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
    style_axes(axes, "x")


def style_axes(axes: Axes, grid: Literal["x", "y", "both"] = "both") -> None:
    """No lines above and to the right, and a pale grid behind everything else."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def legend_handles(confidence: float, names: Mapping[Certainty, str] = _NAMES) -> list[Patch | Line2D]:
    """What the bars and lines of a picture mean."""
    interval = f"each value's own {100 * confidence:g} % interval"
    return [
        *(Patch(facecolor=SHADES[each][0], edgecolor=SHADES[each][1], label=names[each]) for each in SHADES),
        Line2D([], [], color=INTERVAL, marker="|", linewidth=1.2, label=interval),
    ]


def saved(figure: Figure, path: str | Path | None) -> Figure:
    """The figure, saved if there is a path."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def plot_trend(
    trend: Trend, path: str | Path | None, indices: Sequence[int], confidence: float, one_in: float | None
) -> Figure:
    """A line per value, never without its intervals; a ring marks an alarm."""
    chosen = list(indices) or trend.most_frequent(_LINES_SHOWN)
    names, fonts = drawable([shortened(trend.domain.shown(index), _LONGEST_LABEL) for index in chosen])
    alarms = {(alarm.index, alarm.moment) for alarm in trend.alarms(one_in)}
    if len(chosen) > len(_LINES):
        return _plot_panels(trend, path, dict(zip(chosen, names, strict=True)), fonts, confidence, alarms)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for index, name, colour in zip(chosen, names, _LINES[: len(chosen)], strict=True):
        columns = trend.columns([index], confidence)
        moments = np.array(columns["moment"])
        axes.fill_between(moments, columns["low"], columns["high"], color=colour, alpha=0.18, lw=0)
        axes.plot(moments, columns["frequency"], color=colour, marker=".", lw=1.4, label=name)
        raised = np.array([(index, moment) in alarms for moment in trend.moments])
        values_there = np.where(raised, columns["frequency"], np.nan)
        axes.plot(moments, values_there, color=colour, marker="o", ms=11, fillstyle="none", linestyle="none")
    _dress_trend(axes, trend, confidence)
    if any(index in chosen for index, _ in alarms):
        epochs = (one_in or trend.default_one_in) / trend.domain.size
        label = f"changed (one false\nalarm in {epochs:,.4g} epochs)"
        axes.plot([], color=INTERVAL, marker="o", ms=9, fillstyle="none", linestyle="none", label=label)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, prop={"family": fonts})
    return saved(figure, path)


def _plot_panels(
    trend: Trend,
    path: str | Path | None,
    names: Mapping[int, str],
    fonts: Sequence[str],
    confidence: float,
    alarms: set[tuple[int, Moment]],
) -> Figure:
    """A small chart per value, for more values than one chart can show distinctly."""
    rows = -(-len(names) // _PANEL_COLUMNS)
    figure = Figure(figsize=(9, 0.6 + 1.5 * rows), layout="constrained")
    panels = figure.subplots(rows, _PANEL_COLUMNS, squeeze=False, sharex=True).ravel()
    for axes, (index, name) in zip(panels, names.items(), strict=False):
        columns = trend.columns([index], confidence)
        axes.fill_between(columns["moment"], columns["low"], columns["high"], color=_LINES[0], alpha=0.2, lw=0)
        axes.plot(columns["moment"], columns["frequency"], color=_LINES[0], lw=1.4)
        raised = [place for place, moment in enumerate(trend.moments) if (index, moment) in alarms]
        marks = {name: [columns[name][place] for place in raised] for name in ("moment", "frequency")}
        axes.plot(marks["moment"], marks["frequency"], color=_LINES[1], marker="o", fillstyle="none", linestyle="none")
        axes.set_title(name, loc="left", fontsize="small", fontfamily=fonts)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
        axes.tick_params(labelsize="x-small")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=min(0.0, *columns["low"]))
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    title = f"{len(trend.moments)} epochs, {sum(trend.reports):,} reports, {100 * confidence:g} % intervals"
    figure.suptitle(f"{title}; a ring marks an alarm", x=0.01, ha="left", fontsize="medium")
    if trend.unit != "epoch":
        figure.autofmt_xdate()
    return saved(figure, path)


def _dress_trend(axes: Axes, trend: Trend, confidence: float) -> None:
    """Axes and title."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
    axes.set_title(
        f"{len(trend.moments)} epochs, {sum(trend.reports):,} reports, {100 * confidence:g} % intervals", loc="left"
    )
    style_axes(axes, "y")
    if trend.unit == "epoch":
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        axes.figure.autofmt_xdate()


def drawable(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels as matplotlib takes them, and the fonts to draw them with; characters that no installed font has
    become boxes, with a warning of what to install.
    """
    fonts = [FontProperties().get_name()]
    missing = {ord(character) for label in labels for character in label} - _characters(findfont(FontProperties()))
    for entry in fontManager.ttflist if missing else ():
        if _FALLBACK_FONTS.search(entry.name) and entry.name not in fonts:
            found = missing & _characters(entry.fname)
            if found:
                fonts.append(entry.name)
                missing -= found
    if missing:
        example = "".join(map(chr, sorted(missing)[:5]))
        warnings.warn(
            f"no installed font has the characters {example!r} of some labels, so the picture shows boxes; install a "
            "font that has them, such as Noto Sans CJK, or write an .html page",
            MissingGlyphsWarning,
            stacklevel=5,  # the caller of Estimate.plot
        )
    # Between two dollar signs would be a formula.
    replaced = {**dict.fromkeys(missing, _UNKNOWN_CHARACTER), ord("$"): r"\$"}
    return [label.translate(replaced) for label in labels], fonts


def _characters(path: str) -> set[int]:
    return set(get_font(path).get_charmap())
