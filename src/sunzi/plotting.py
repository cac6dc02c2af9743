"""Plots of an estimate. Needs matplotlib (the ``plot`` extra)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sunzi._typing import Floats
from sunzi.errors import ParameterError
from sunzi.formatting import shortened
from sunzi.verdicts import Verdict, verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sunzi.estimate import Estimate
    from sunzi.uncertainty import Target

# Okabe and Ito's palette: distinguishable with any common colour blindness, and in grey.
_CLEAR, _UNCLEAR, _INTERVAL, _TRUTH = "#56B4E9", "#D5DCE3", "#333333", "#D55E00"
# Face and edge of a bar.
_SHADES: dict[Verdict, tuple[str, str]] = {
    "clear": (_CLEAR, _CLEAR),
    "alone": ("#FFFFFF", _CLEAR),
    "unclear": (_UNCLEAR, _UNCLEAR),
}
_NAMES: dict[Verdict, str] = {
    "clear": "above 0, tested for all values at once",
    "alone": "above 0 by its own interval only",
    "unclear": "not distinguishable from 0",
}
_LONGEST_LABEL = 28
# Installed fonts that may have the characters that the usual font lacks.
_FALLBACK_FONTS = re.compile("CJK|Han Sans|WenQuanYi|YaHei|SimHei|PingFang|Hiragino|Gothic|Noto Sans|Unicode")
_UNKNOWN_CHARACTER = "□"


class MissingGlyphsWarning(UserWarning):
    """No installed font has some characters of the labels in a picture."""


def plot_estimate(
    estimate: Estimate,
    path: str | Path | None = None,
    *,
    top: int = 20,
    confidence: float = 0.95,
    target: Target = "reporters",
    truth: Sequence[float] | Floats | None = None,
) -> Figure:
    """The largest frequencies as bars, never without their intervals; pale where chance could explain them."""
    if top < 1:
        raise ParameterError(f"top must be at least 1, got {top}")
    if truth is not None and len(truth) != estimate.domain.size:
        raise ParameterError(f"truth must have {estimate.domain.size} frequencies, got {len(truth)}")
    rows = estimate.top(top, confidence, target=target)
    figure = Figure(figsize=(8, 1.4 + 0.32 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    values = np.array([row.frequency for row in rows])
    low, high = np.array([row.low for row in rows]), np.array([row.high for row in rows])
    # A score interval need not be centred, and may even miss the estimate by a rounding error.
    reach = np.maximum(np.vstack([values - low, high - values]), 0.0)
    found = verdicts(estimate, confidence, target)
    shades = [_SHADES[found[row.index]] for row in rows]
    faces, edges = [face for face, _ in shades], [edge for _, edge in shades]
    axes.barh(places, values, color=faces, edgecolor=edges, linewidth=1.2, height=0.7)
    axes.errorbar(values, places, xerr=reach, fmt="none", ecolor=_INTERVAL, elinewidth=1.2, capsize=3)
    if truth is not None:
        axes.plot([truth[row.index] for row in rows], places, linestyle="none", marker="D", markersize=5, color=_TRUTH)
    _dress(axes, estimate, [row.label for row in rows], confidence, with_truth=truth is not None)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _dress(axes: Axes, estimate: Estimate, labels: list[str], confidence: float, *, with_truth: bool) -> None:
    """Axis, labels, legend and title."""
    shown, fonts = _drawable([shortened(label, _LONGEST_LABEL).replace("$", r"\$") for label in labels])
    axes.set_yticks(np.arange(len(labels)), shown, fontfamily=fonts)
    axes.invert_yaxis()
    axes.axvline(0, color=_INTERVAL, linewidth=0.8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
    axes.set_xlabel("estimated frequency (unbiased, so values below 0 can occur)")
    axes.set_title(f"Top {len(labels)} of {estimate.domain.size:,} values, {estimate.reports:,} reports", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    interval = f"each value's own {100 * confidence:g} % interval"
    handles: list[Patch | Line2D] = [
        *(Patch(facecolor=_SHADES[each][0], edgecolor=_SHADES[each][1], label=_NAMES[each]) for each in _SHADES),
        Line2D([], [], color=_INTERVAL, marker="|", linewidth=1.2, label=interval),
    ]
    if with_truth:
        handles.append(Line2D([], [], color=_TRUTH, marker="D", linestyle="none", label="truth"))
    axes.legend(handles=handles, loc="lower right", frameon=False, fontsize="small")


def _drawable(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels, and the fonts to draw them with; characters that no installed font has become boxes, with a warning
    of what to install.
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
    return [label.translate(dict.fromkeys(missing, _UNKNOWN_CHARACTER)) for label in labels], fonts


def _characters(path: str) -> set[int]:
    return set(get_font(path).get_charmap())
