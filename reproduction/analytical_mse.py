"""The analytical error of SS and MSS against the measured one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats

from . import claims
from .collecting import LINEAR, CollectingExperiment, amounts
from .experiment import Cell, Evidence, Scale, finding
from .figures import common_legend, curve, head, name_of_population, panels, style
from .mse import error_cells
from .table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METHODS = ("ss", "mss")
_CLOSE = 0.05
"""A formula closely matches a measurement that is within 5 % of it, up to four standard errors."""


class AnalyticalError(CollectingExperiment):
    """The collections of ``mse``, compared with formulas."""

    name = "analytical-mse"
    title = "Analytical against measured error"
    reproduces = "the figure “Comparison between analytical and empirical MSE for SS and MSS”"
    columns: ClassVar[tuple[str, ...]] = (
        *("scale", "seed", "sunzi", "domain_size", "users", "population", "epsilon", "method", "trials"),
        *("mean", "standard_error", "predicted", "predicted_light", "printed"),
    )

    def cells(self, scale: Scale) -> list[Cell]:
        """SS and MSS."""
        return [cell for cell in error_cells(scale) if cell["protocol"] in _METHODS]

    def draw(self, table: Table) -> Figure:
        """Formula divided by measurement: 1 is perfect."""
        sizes, populations = table.distinct("domain_size"), table.distinct("population")
        figure, axes = panels(len(sizes), len(populations), height=3.2)
        for line, size in enumerate(sizes):
            for place, population in enumerate(populations):
                _draw_panel(axes[line, place], table.where(domain_size=size, population=population))
                head(
                    axes[line, place],
                    f"k = {size:,}, {name_of_population(population)}",
                    "ε",
                    "formula / measured error",
                )
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Tightness for every distribution and size."""
        return [_tight(table), _printed(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """Describe the curves."""
        return (
            f"{amounts(table)} "
            "The paper's formulas against its decoder: for SS the 4e^ε/(n(e^ε−1)²) of Table 1, for MSS the boxed "
            "equation as printed, without the ridge. Sunzi's formulas against Sunzi's linear decoder: the exact "
            "variance at the population's histogram, and its part for items that nobody holds, nor any item with one "
            "of their residues. Formulas for MSS are means over the sets of moduli; the trace of the printed equation "
            "is estimated by random probes, with an error far below those of the measurement.",
        )


def _draw_panel(axes: Any, part: Table) -> None:
    subsets, paper, linear = (part.where(method=method) for method in ("ss", "mss", LINEAR))
    curves = (
        (subsets, table_formula(subsets), "SS, Table 1", {**style("ss"), "linestyle": "-"}),
        (paper, paper.column("printed"), "MSS, the boxed equation", {**style("mss"), "linestyle": "-"}),
        (subsets, subsets.column("predicted"), "SS, exact (Sunzi)", style("", 1)),
        (linear, linear.column("predicted"), "MSS, exact (Sunzi)", style("", 2)),
        (linear, linear.column("predicted_light"), "MSS, items that nobody holds (Sunzi)", style("", 3)),
    )
    for rows, formula, label, look in curves:
        ratio = formula / rows.column("mean")
        spread = ratio * rows.column("standard_error") / rows.column("mean")
        curve(axes, rows.column("epsilon"), ratio, label, spread=spread, **look)
    axes.axhline(1.0, color="#777777", linewidth=1)


def table_formula(rows: Table) -> Floats:
    """Table 1's error of SS."""
    odds = np.exp(rows.column("epsilon"))
    return np.asarray(4 * odds / (rows.column("users") * (odds - 1) ** 2))


def _deviation(rows: Table, formula: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """A formula over a measurement minus 1, and where it is close."""
    values = formula / rows.column("mean") - 1
    noise = np.nan_to_num(rows.column("standard_error") / rows.column("mean"))
    return np.asarray(values), np.abs(values) < _CLOSE + 4 * noise


def _signed(values: Floats) -> str:
    return f"{values.min():+.1%} to {values.max():+.1%}"


def _tight(table: Table) -> Evidence:
    subsets, linear = table.where(method="ss"), table.where(method=LINEAR)
    plain, plain_close = _deviation(subsets, table_formula(subsets))
    printed, printed_close = _printed_deviation(table)
    ours, ours_close = _deviation(subsets, subsets.column("predicted"))
    exact, exact_close = _deviation(linear, linear.column("predicted"))
    light, _ = _deviation(linear, linear.column("predicted_light"))
    return Evidence(
        claim=claims.ANALYTICAL_ERROR,
        measured=f"formula against measurement: SS {_signed(plain)}, within 5 % at {plain_close.mean():.0%} of points; "
        f"MSS {_signed(printed)}, within 5 % at {printed_close.mean():.0%} of points",
        finding=finding(float(np.concatenate([plain_close, printed_close]).mean())),
        beyond=f"Sunzi's exact variance: SS {_signed(ours)}, MSS with planned weights {_signed(exact)}; for items that "
        f"nobody holds, MSS {_signed(light)}",
        beyond_finding=finding(float(np.concatenate([ours_close, exact_close]).mean())),
        why="The exact variance, S = diag(d0+d1·g) + α11ᵀ + β(1gᵀ+g1ᵀ) − ggᵀ per block, is tight everywhere. The "
        "paper's equation for MSS is too large at small ε (next claim). Formulas for items that nobody holds are too "
        "low at large ε, where items that share a residue with a frequent one have a larger error.",
    )


def _printed_deviation(table: Table) -> tuple[Floats, NDArray[np.bool_]]:
    rows = table.where(method="mss")
    return _deviation(rows, rows.column("printed"))


def _printed(table: Table) -> Evidence:
    values, close = _printed_deviation(table)
    return Evidence(
        claim=claims.PRINTED_ERROR,
        measured=f"the equation as printed against measurement: {_signed(values)}; within 5 % at {close.mean():.0%} of "
        "points",
        finding=finding(float(close.mean())),
        why="Its covariance diag(π) − ππᵀ is right for subsets of one residue only. In a subset of fixed size ω two "
        "residues are nearly uncorrelated, and the variance in almost every direction is π(1−π), not π: the printed "
        "equation is too large by a factor up to 1/(1−π) ≈ 1+e^−ε, and tight only at large ε. (The paper's curves may "
        "come from code that differs from the equation.) The cross-block term −(ℓ/n²)uuᵀ does not exist either, as "
        "blocks are uncorrelated given their sizes, but is too small to be visible.",
    )


EXPERIMENT = AnalyticalError()
