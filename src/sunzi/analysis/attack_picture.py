"""Success against the number of reports, as a picture. Needs matplotlib, the ``plot`` extra; nothing imports this
module before a picture is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np
from matplotlib.figure import Figure

from sunzi.analysis.attack import Attack, Growth
from sunzi.errors import ParameterError

# Okabe and Ito's palette: distinct under every common colour blindness, and in grey.
_FRESH, _MEMOISED, _LINES = "#D55E00", "#0072B2", "#333333"


def draw_growth(attack: Attack) -> Figure:
    """One curve for fresh noise in every report, one for a client that sends its first report again."""
    if not attack.repeated:
        raise ParameterError("a picture shows success against the number of reports: say how many, such as 1,2,5,10")
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.add_subplot()
    curves = (
        (attack.repeated, _FRESH, "o", "-", "fresh noise in every report"),
        (attack.memoised, _MEMOISED, "s", "--", "the same report sent again"),
    )
    for grown, colour, marker, dash, label in curves:
        numbers, rates, reach = _points(grown)
        axes.errorbar(
            numbers,
            rates,
            yerr=reach,
            color=colour,
            marker=marker,
            linestyle=dash,
            label=label,
            linewidth=1.6,
            markersize=5,
            capsize=3,
        )
    if attack.formula is not None:
        axes.axhline(attack.formula, color=_LINES, linewidth=0.9, linestyle=":", label="one report, by formula")
    axes.axhline(attack.baseline, color=_LINES, linewidth=0.9, label="no report")
    axes.set_xscale("log")
    ticks = [growth.reports for growth in attack.repeated]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel("reports of one value")
    axes.set_ylabel("attacker guesses right")
    confidence = attack.success.confidence
    axes.set_title(
        f"{attack.protocol}, {attack.domain_size:,} values, epsilon {float(attack.epsilon):g} a report, "
        f"prior {PurePath(attack.prior).name}; bars: {100 * confidence:g} % intervals",
        loc="left",
        fontsize="medium",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="best")
    return figure


def _points(grown: Sequence[Growth]) -> tuple[list[int], list[float], np.ndarray]:
    numbers, rates = [growth.reports for growth in grown], [growth.success.rate for growth in grown]
    low = [growth.success.rate - growth.success.low for growth in grown]
    high = [growth.success.high - growth.success.rate for growth in grown]
    return numbers, rates, np.array([low, high])
