"""How the error of one trial is distributed: the paper's CDFs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from . import claims
from .collecting import LEVELS, PAPERS, CollectingExperiment, amounts, decoders_in
from .experiment import Cell, Evidence, Scale, finding, finding_of
from .figures import common_legend, head, name_of, name_of_population, panels, style
from .mse import error_cells
from .table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = tuple(f"q{level:g}" for level in LEVELS)
_EPSILONS = (1.0, 4.0)


class ErrorDistribution(CollectingExperiment):
    """Quantiles of the mean squared error over trials, relative to the mean of SS."""

    name = "error-cdf"
    title = "Distribution of the error over trials"
    reproduces = "the figure “Error distribution from experiments”, its CDFs (a) to (d)"
    columns: ClassVar[tuple[str, ...]] = (
        *("scale", "seed", "sunzi", "domain_size", "users", "population", "epsilon", "method", "trials"),
        *("mean", "standard_error", *_COLUMNS),
    )

    def cells(self, scale: Scale) -> list[Cell]:
        """Two of the paper's ε."""
        return [cell for cell in error_cells(scale) if cell["epsilon"] in _EPSILONS and cell["protocol"] in PAPERS]

    def draw(self, table: Table) -> Figure:
        """One panel per population and size; columns are ε."""
        settings = [(size, name) for size in table.distinct("domain_size") for name in table.distinct("population")]
        epsilons = table.distinct("epsilon")
        figure, axes = panels(len(epsilons), len(settings), width=3.6, height=3.1)
        for line, epsilon in enumerate(epsilons):
            for place, (size, population) in enumerate(settings):
                part = table.where(epsilon=epsilon, domain_size=size, population=population)
                panel = axes[line, place]
                base = float(part.where(method="ss").column("mean")[0])
                for place_of_look, method in enumerate((*PAPERS[1:], *decoders_in(table))):  # GRR is far outside
                    panel.plot(
                        _quantiles(part, method) / base, LEVELS, label=name_of(method), **_look(method, place_of_look)
                    )
                far = float(part.where(method="grr").column("q0.5")[0]) / base
                panel.text(0.98, 0.04, f"GRR at {far:,.0f} →", transform=panel.transAxes, ha="right", color="#0072B2")
                title = f"k = {size:,}, {name_of_population(population)}, ε = {epsilon:g}"
                head(panel, title, "error of a trial / mean error of SS", "share of trials")
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Closeness, spread, and the largest errors."""
        return [_close(table), _steady(table), _grr_worst(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """Define the error of a trial."""
        return (
            f"{amounts(table)} "
            "Each curve is the distribution over trials of (1/k)·‖f̂ − f‖², on the collections of `mse`; the paper "
            "does not state the ε of its CDFs, so we show a small and a large one. MSS is decoded with the paper's "
            "weights and ridge; the same tallies decoded by Sunzi are beside it.",
        )


def _look(method: str, place: int) -> dict[str, object]:
    return {**style(method, place), "marker": None, "linewidth": 1.6}


def _quantiles(part: Table, method: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rows = part.where(method=method)
    return np.array([rows.column(name)[0] for name in _COLUMNS])


def _medians(table: Table, method: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return table.where(method=method).column("q0.5")


def _close(table: Table) -> Evidence:
    to_ss = _medians(table, "mss") / _medians(table, "ss")
    to_pgr = _medians(table, "mss") / _medians(table, "pgr")
    both = np.concatenate([to_ss, to_pgr])
    apart = table.where(method="mss").column("q0.05") > table.where(method="ss").column("q0.95")
    return Evidence(
        claim=claims.WITHIN_LIMIT,
        measured=f"the median error is {to_ss.min():.3f} to {to_ss.max():.3f} times that of SS, {to_pgr.min():.3f} to "
        f"{to_pgr.max():.3f} times that of PGR",
        finding=finding(float((both <= 1.3).mean())),
        why=f"Close, not equal: in {apart.sum()} of {apart.size} settings 95 % of the trials of MSS err more than 95 % "
        "of those of SS.",
    )


def _spread(table: Table, method: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rows = table.where(method=method)
    return (rows.column("q0.95") - rows.column("q0.05")) / rows.column("q0.5")


def _steady(table: Table) -> Evidence:
    mine, theirs, other = (_spread(table, method) for method in ("mss", "ss", "pgr"))
    population = {
        name: table.where(method="mss", population=name).column("q0.5") for name in table.distinct("population")
    }
    first, *rest = population.values()
    apart = max((float(np.abs(other / first - 1).max()) for other in rest), default=0.0)
    widest = int(np.argmax(other))
    row = table.where(method="pgr").rows[widest]
    return Evidence(
        claim=claims.STEADY,
        measured=f"the middle 90 % of trials span {mine.min():.0%} to {mine.max():.0%} of the median for MSS, "
        f"{theirs.min():.0%} to {theirs.max():.0%} for SS, {other.min():.0%} to {other.max():.0%} for PGR; medians of "
        f"MSS under Zipf and spike differ by {apart:.1%} at most",
        finding=finding_of(mine.max() < 0.5, apart < 0.15),
        why="A trial averages over k items, so its error varies by about √(2/k) with any set of moduli. MSS adds the "
        "spread between sets of moduli, which the paper searches anew in every trial (`moduli-per-trial`). "
        f"PGR spreads most at k = {row['domain_size']:,}, ε = {row['epsilon']:g}, "
        f"{name_of_population(str(row['population']))}: "
        f"{other[widest]:.0%}, where SS spans {theirs[widest]:.0%}. There the distribution of values matters: on a "
        "truncated geometry, values have different errors.",
    )


def _grr_worst(table: Table) -> Evidence:
    least = table.where(method="grr").column("q0")
    others = [table.where(method=method).column("q1") for method in PAPERS[1:]]
    above = (least > np.max(others, axis=0)).mean()
    return Evidence(
        claim=claims.GRR_WORST,
        measured=f"the best trial of GRR has a larger error than the worst of any other protocol in {above:.0%} of "
        "settings",
        finding=finding(float(above)),
        why="See `mse`.",
    )


EXPERIMENT = ErrorDistribution()
