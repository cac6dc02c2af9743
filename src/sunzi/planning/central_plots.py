"""The central ε of a plan as a picture. Needs matplotlib, the ``plot`` extra, so import this module only to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from sunzi.batch import READERS, BatchGuarantee
from sunzi.display.plotting import BLUE, SKY, VERMILION, style_axes
from sunzi.formatting import counted, percent
from sunzi.planning.central_curves import BatchCurves
from sunzi.planning.plots import scale_by_factors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOUND, _BAND, _ATTACK, _LOCAL, _OWN = BLUE, SKY, VERMILION, "#666666", "#000000"
_TITLE_WIDTH = 130


def draw_batch(curves: BatchCurves) -> Figure:
    """The proven ε and the attack as a band, over the size of the batch and over the ε of a report."""
    sized = "people in exactly the same batches" if curves.own.cohort else "reports in a batch"
    panels: list[tuple[str, Sequence[BatchGuarantee], Callable[[BatchGuarantee], float]]] = [
        (sized, curves.by_size, lambda guarantee: guarantee.cohort or guarantee.minimum_reports)
    ]
    if curves.by_epsilon:
        panels.append(("epsilon of one report", curves.by_epsilon, lambda guarantee: float(guarantee.local_epsilon)))
    figure = Figure(figsize=(5.2 * len(panels), 4.6), layout="constrained")
    for number, (name, guarantees, place) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number)
        _draw(axes, guarantees, curves.own, place)
        axes.set_xlabel(name)
        if number == 1:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_ylabel("central epsilon")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    width = _TITLE_WIDTH * len(panels) // 2
    figure.suptitle(fill(_title(curves), width), x=0.01, ha="left", fontsize="medium")
    return figure


def _draw(
    axes: Axes,
    guarantees: Sequence[BatchGuarantee],
    own: BatchGuarantee,
    place: Callable[[BatchGuarantee], float],
) -> None:
    known = [guarantee for guarantee in guarantees if guarantee.attack_epsilon is not None]
    if known:
        places = [place(guarantee) for guarantee in known]
        attacks = [guarantee.attack_epsilon or 0.0 for guarantee in known]
        bounds = [guarantee.epsilon for guarantee in known]
        axes.fill_between(places, attacks, bounds, color=_BAND, alpha=0.35, linewidth=0)
        reached = "an attack reaches this"
        axes.plot(places, attacks, color=_ATTACK, linestyle="--", linewidth=1.4, zorder=3, label=reached)
    places = [place(guarantee) for guarantee in guarantees]
    bounds = [guarantee.epsilon for guarantee in guarantees]
    alone = [float(guarantee.local_epsilon) for guarantee in guarantees]
    axes.plot(places, bounds, color=_BOUND, linewidth=2, label="proven: at most this")
    axes.plot(places, alone, color=_LOCAL, linestyle=":", linewidth=1.4, label="one report, seen alone")
    point = f"this plan: {own.epsilon:.3g}"
    axes.plot([place(own)], [own.epsilon], color=_OWN, marker="o", linestyle="none", zorder=4, label=point)
    axes.set_yscale("log")
    scale_by_factors(axes, *axes.get_ylim())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    style_axes(axes)


def _title(curves: BatchCurves) -> str:
    """All conditions of the figures."""
    own = curves.own
    size = f"{own.cohort:,} people in the same batches" if own.cohort else counted(own.minimum_reports, "report")
    kept = "repeated memoised reports" if own.cohort else "fresh noise"
    epochs = f", {own.epochs:,} epochs with {kept}" if own.epochs > 1 else ""
    return (
        f"{curves.protocol}, {curves.domain_size:,} values, epsilon {float(own.local_epsilon):g} per report, {size}, "
        f"{percent(own.honest_share)} honest{epochs}, delta {own.delta:g}, one value replaced. "
        f"The reader {READERS[own.reader]}."
    )
