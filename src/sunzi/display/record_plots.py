"""Plots of distributions and cross tables. Needs matplotlib (the ``plot`` extra)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from sunzi.display.plotting import INTERVAL, SHADES, VERMILION, drawable, legend_handles, saved
from sunzi.errors import EstimateError
from sunzi.formatting import percent, shortened
from sunzi.results.certainty import certainties

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sunzi.domains.ranges import OrderedDomain
    from sunzi.results.cross_tables import TableEstimate
    from sunzi.results.means import MeanEstimate
    from sunzi.results.ordered import OrderedEstimate
    from sunzi.results.uncertainty import Target

_CAPTION = (
    "blue: above 0, tested for all cells at once\nwhite: above 0 by its own interval only\n"
    "grey: not distinguishable from 0\n±: a standard error"
)
_DATES = 5
_MARKED = (0.5, 0.95)
_LONGEST_LABEL = 18
_MOST_CELLS = 1600
_CHARACTER = 0.0095  # the width of one, as a share of the axes
_DARK = 0.6  # of the largest frequency: text on darker cells is white


def plot_ordered(
    estimate: OrderedEstimate, path: str | Path | None, bins: int, confidence: float, target: Target
) -> Figure:
    """The histogram of wider bins with intervals, and below it the cumulative distribution with its band."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    _draw_density(upper, estimate, bins, confidence, target)
    _draw_cumulative(lower, estimate, confidence, target)
    _name_axis(lower, estimate.bins)
    upper.set_title(f"{estimate.reports:,} reports", loc="left")
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    # Distributions have any shape, so no corner is guaranteed to be free: the legend is below.
    handles = legend_handles(confidence)
    figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize="small")
    return saved(figure, path)


def _name_axis(axes: Axes, bins: OrderedDomain) -> None:
    """Label the axis with the unit of the numbers, or with some dates."""
    (name,), fonts = drawable(["date" if bins.is_dates else bins.unit or "value"])
    axes.set_xlabel(name, fontfamily=fonts)
    if bins.is_dates:
        days = np.linspace(bins.low, bins.high, _DATES).round()
        axes.set_xticks(days, [bins.shown_number(day) for day in days.tolist()])


def _draw_density(axes: Axes, estimate: OrderedEstimate, bins: int, confidence: float, target: Target) -> None:
    wide = estimate.histogram(bins)
    low, high = wide.interval(confidence, target=target)
    found = certainties(wide, confidence, target)
    width = (estimate.bins.high - estimate.bins.low) / len(wide)
    middles = estimate.bins.low + width * (np.arange(len(wide)) + 0.5)
    faces, edges = ([SHADES[each][part] for each in found] for part in (0, 1))
    axes.bar(middles, wide.frequencies, 0.85 * width, color=faces, edgecolor=edges)
    spread = np.maximum([wide.frequencies - low, high - wide.frequencies], 0)
    axes.errorbar(middles, wide.frequencies, spread, linestyle="none", color=INTERVAL, linewidth=1, capsize=2)
    axes.axhline(0, color=INTERVAL, linewidth=0.8)
    axes.set_ylabel("share of a bin (unbiased, can be below 0)")


def _draw_cumulative(axes: Axes, estimate: OrderedEstimate, confidence: float, target: Target) -> None:
    found = estimate.cdf(confidence, target=target)
    blue = SHADES["clear"][0]
    axes.fill_between(found.edges, found.low, found.high, color=blue, alpha=0.35, linewidth=0)
    axes.plot(found.edges, found.values, color=INTERVAL, linewidth=1.2)
    for probability in _MARKED:
        each = estimate.quantile(probability, confidence, target=target)
        axes.plot([each.low, each.high], [probability, probability], color=VERMILION, linewidth=2)
        axes.plot([each.value], [probability], marker="D", color=VERMILION, markersize=5)
        name = "median" if probability == 0.5 else f"{100 * probability:g} %"
        value, low, high = (estimate.bins.shown_number(end) for end in (each.value, each.low, each.high))
        value, low = (end.removesuffix(f" {estimate.bins.unit}") for end in (value, low))
        text = f"{name}: {value}, {low} to {high}"
        # The curve rises from the lower left to the upper right, and leaves the other two corners free.
        bins, needed = estimate.bins, _CHARACTER * len(text) * (estimate.bins.high - estimate.bins.low)
        if each.high > (bins.low + bins.high) / 2:
            place, offset, side = each.low, (-6, 6), "right"
        else:
            place, offset, side = each.high, (6, -14), "left"
        if (place - bins.low if side == "right" else bins.high - place) < needed:  # a long interval leaves no room
            place, offset, side = bins.low, (6, 6), "left"
        (text,), fonts = drawable([text])
        axes.annotate(
            text,
            (place, probability),
            offset,
            textcoords="offset points",
            horizontalalignment=side,
            fontfamily=fonts,
            fontsize="small",
            bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1},
        )
    axes.set_xlim(estimate.bins.low, estimate.bins.high)
    axes.set_ylim(-0.05, 1.08)
    axes.set_ylabel(f"share below, with the {100 * confidence:g} %\ninterval of each point alone")


def plot_mean(estimate: MeanEstimate, path: str | Path | None, confidence: float, target: Target) -> Figure:
    """The mean with its interval, over the shares of the points to which numbers were rounded."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.add_subplot()
    low, high = estimate.interval(confidence, target=target)
    width = 0.3 * (estimate.grid[1] - estimate.grid[0])
    axes.bar(estimate.grid, estimate.frequencies, width, color=SHADES["unclear"][0], label="rounded to this point")
    spread = np.maximum([estimate.frequencies - low, high - estimate.frequencies], 0)
    axes.errorbar(estimate.grid, estimate.frequencies, spread, linestyle="none", color=INTERVAL, linewidth=1, capsize=2)
    mean = estimate.mean(confidence, target=target)
    label = f"mean, with {100 * confidence:g} % interval"
    axes.axvspan(mean.low, mean.high, color=VERMILION, alpha=0.25, linewidth=0)
    axes.axvline(mean.value, color=VERMILION, linewidth=2, label=label)
    axes.axhline(0, color=INTERVAL, linewidth=0.8)
    (summary,), fonts = drawable([estimate.summary(confidence, target=target)])
    axes.set_title(f"{estimate.reports:,} reports. {summary}", loc="left", fontfamily=fonts)
    axes.set_ylabel("share of a point")
    _name_axis(axes, estimate.bins)
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize="small")
    return saved(figure, path)


def plot_table(estimate: TableEstimate, path: str | Path | None, confidence: float, target: Target) -> Figure:
    """A heat map of a table of two attributes, with its margins; cells that may be noise are grey, and those that are
    above 0 by their own interval only are white.
    """
    sizes = estimate.table.shape
    if len(sizes) != 2 or estimate.table.size > _MOST_CELLS:
        raise EstimateError(f"a heat map shows two attributes and at most {_MOST_CELLS} cells, got {list(sizes)}")
    names = estimate.attributes
    figure = Figure(figsize=(2.6 + 1.05 * sizes[1], 2.2 + 0.55 * sizes[0]), layout="constrained")
    axes = figure.add_subplot()
    found = np.array(certainties(estimate, confidence, target)).reshape(sizes)
    shown = np.ma.masked_array(np.maximum(estimate.table, 0), found != "clear")
    axes.set_facecolor(SHADES["unclear"][0])
    face, edge = SHADES["alone"]
    for row, column in np.argwhere(found == "alone").tolist():
        axes.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, facecolor=face, edgecolor=edge))
    image = axes.imshow(shown, cmap="Blues", vmin=0, aspect="auto")
    errors = estimate.standard_errors(target).reshape(sizes)
    largest = float(shown.max()) if shown.count() else 1.0
    for (row, column), share in np.ndenumerate(estimate.table):
        text = f"{percent(float(share), 1)}\n± {percent(float(errors[row, column]), 1)}"
        is_dark = found[row, column] == "clear" and share > _DARK * largest
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if is_dark else "black")
    for axis, name, caption in ((axes.yaxis, names[0], ""), (axes.xaxis, names[1], f"\n\n{_CAPTION}")):
        margin = estimate.margin(name)
        labels = [shortened(row.label.removeprefix(f"{name} "), _LONGEST_LABEL) for row in margin]
        (title, *labels), fonts = drawable([name, *labels])
        shares = [percent(float(share), 1) for share in margin.frequencies]
        texts = [f"{label}\n{share}" for label, share in zip(labels, shares, strict=True)]
        axis.set_ticks(range(len(texts)), texts, fontsize=8, fontfamily=fonts)
        axis.set_label_text(title + caption, fontfamily=fonts)
    axes.set_title(f"{estimate.reports:,} reports", loc="left")
    figure.colorbar(image, ax=axes, format=PercentFormatter(1))
    return saved(figure, path)
