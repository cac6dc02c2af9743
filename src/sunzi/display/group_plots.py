"""Pictures of several groups. Needs matplotlib (the ``plot`` extra)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sunzi.display.plotting import Bar, check_top, draw_bars, drawable, legend_handles, saved
from sunzi.formatting import counted, shortened
from sunzi.results.certainty import certainties

if TYPE_CHECKING:
    from sunzi.results.uncertainty import Target
    from sunzi.tables.group_estimates import GroupEstimates

_ACROSS = 3
_MOST_PANELS = 30
_LONGEST_LABEL, _LONGEST_NAME = 24, 40


def plot_groups(
    groups: GroupEstimates,
    path: str | Path | None = None,
    *,
    top: int = 10,
    confidence: float = 0.95,
    target: Target = "reporters",
) -> Figure:
    """A small bar chart per group, at most for the 30 largest: the same values on one scale, with their intervals."""
    shown = list(groups.estimates)[:_MOST_PANELS]
    rows = groups.common_rows(check_top(top), confidence, target)
    across = min(_ACROSS, len(shown))
    down, height = math.ceil(len(shown) / across), 0.7 + 0.26 * len(rows[shown[0]])
    figure = Figure(figsize=(1.6 + 3.4 * across, 1.1 + height * down), layout="constrained")
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, shown, strict=False):
        found = certainties(groups.estimates[name], confidence, target)
        bars = [Bar(row.label, row.frequency, row.low, row.high, found[row.index]) for row in rows[name]]
        draw_bars(axes, bars, linewidth=1)
        axes.tick_params(labelsize="small", labelbottom=True)
        reports = counted(groups.estimates[name].reports, "report")
        (title,), fonts = drawable([f"{shortened(name, _LONGEST_NAME)}, {reports}"])
        axes.set_title(title, loc="left", fontsize="small", fontfamily=fonts)
    for axes in panels[len(shown) :]:
        axes.remove()
    labels, fonts = drawable([shortened(row.label, _LONGEST_LABEL) for row in rows[shown[0]]])
    panels[0].set_yticks(np.arange(len(labels)), labels, fontfamily=fonts)
    panels[0].invert_yaxis()
    figure.suptitle(_title(groups, len(shown)), x=0.01, ha="left", fontsize="medium")
    figure.legend(
        handles=legend_handles(confidence), loc="outside lower left", ncols=2, frameon=False, fontsize="small"
    )
    return saved(figure, path)


def _title(groups: GroupEstimates, shown: int) -> str:
    number = len(groups.estimates)
    parts = [counted(number, "group") if shown == number else f"the {shown} largest of {number} groups"]
    small = groups.small_groups()
    counts = "; ".join([*parts, *([] if small is None else [small])])
    return f"Estimated frequencies within groups (unbiased, so values below 0 can occur)\n{counts}"
