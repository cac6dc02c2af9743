"""The success of an attacker as a picture. Needs matplotlib, the ``plot`` extra, so import this module only to draw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sunzi.analysis.attack import Attack, AttackGrowth
from sunzi.client.errors import ParameterError
from sunzi.display.plotting import BLUE, INK, VERMILION, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_growth(attack: Attack) -> Figure:
    """Success against the number of reports, for fresh noise and for a client that repeats its first report."""
    if not attack.repeated:
        raise ParameterError("the plot shows success against the number of reports: give some, such as 1,2,5,10")
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.add_subplot()
    _draw_curve(axes, attack.repeated, VERMILION, "o", "-", "fresh noise in every report")
    _draw_curve(axes, attack.memoised, BLUE, "s", "--", "the same report sent again")
    if attack.formula is not None:
        axes.axhline(attack.formula, color=INK, linewidth=0.9, linestyle=":", label="one report, by formula")
    axes.axhline(attack.baseline, color=INK, linewidth=0.9, label="no report")
    axes.set_xscale("log")
    ticks = [growth.reports for growth in attack.repeated]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel("reports of one value")
    axes.set_ylabel("attacker guesses right")
    axes.set_title(
        f"{attack.protocol}, {attack.choices:,} values, epsilon {float(attack.epsilon):g} per report, "
        f"prior {PurePath(attack.prior).name}; bars: {100 * attack.success.confidence:g} % intervals",
        loc="left",
        fontsize="medium",
    )
    style_axes(axes)
    axes.legend(frameon=False, loc="best")
    return figure


def _draw_curve(axes: Axes, grown: Sequence[AttackGrowth], colour: str, marker: str, dash: str, label: str) -> None:
    rates = np.array([growth.success.rate for growth in grown])
    low, high = ([getattr(growth.success, end) for growth in grown] for end in ("low", "high"))
    axes.errorbar(
        [growth.reports for growth in grown],
        rates,
        yerr=np.array([rates - low, high - rates]),
        color=colour,
        marker=marker,
        linestyle=dash,
        label=label,
        linewidth=1.6,
        markersize=5,
        capsize=3,
    )
