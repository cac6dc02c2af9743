"""The analytical error of SS and MSS against the measured one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import claims
from .collecting import CollectingExperiment
from .experiment import Cell, Evidence, Scale, finding
from .figures import curve, head, legend_below, panels, style
from .mse import error_cells
from .table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METHODS = ("ss", "mss")
_TIGHT = 0.02


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
                head(axes[line, place], f"k = {size:,}, {population}", "ε", "formula / measured error")
        legend_below(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Tightness for every distribution and size."""
        return [_tight(table), _printed(table)]

    def notes(self, table: Table) -> Sequence[str]:  # noqa: ARG002 - does not depend on the results
        """Describe the curves."""
        return (
            "Three formulas for MSS: Sunzi's exact variance at the population's histogram (`expected_mse` with a "
            "histogram), the same for items that nobody holds (trace(T⁻¹)/k, which its search for moduli minimises), "
            "and the paper's equation as printed (k = 1,024 only: it needs dense matrices).",
        )


def _draw_panel(axes: Any, part: Table) -> None:
    looks = (
        ("ss", "predicted", "ss, exact", style("ss")),
        ("mss", "predicted", "mss, exact", style("mss")),
        ("mss", "predicted_light", "mss, light items only", style("", 2)),
        ("mss", "printed", "mss, the paper's equation as printed", style("", 3)),
    )
    for method, column, label, look in looks:
        rows = part.where(method=method)
        ratio = rows.column(column) / rows.column("mean")
        if not np.isnan(ratio).all():
            spread = ratio * rows.column("standard_error") / rows.column("mean")
            curve(axes, rows.column("epsilon"), ratio, label, spread=spread, **look)
    axes.axhline(1.0, color="#777777", linewidth=1)


def _deviation(table: Table, column: str, **where: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rows = table.where(**where)
    values = rows.column(column) / rows.column("mean") - 1
    return values[~np.isnan(values)]


def _signed(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return f"{values.min():+.1%} to {values.max():+.1%}"


def _tight(table: Table) -> Evidence:
    parts = {method: _deviation(table, "predicted", method=method) for method in _METHODS}
    light = _deviation(table, "predicted_light", method="mss")
    noise = np.nan_to_num(table.column("standard_error") / table.column("mean")).max()
    everything = np.abs(np.concatenate(list(parts.values())))
    return Evidence(
        claim=claims.ANALYTICAL_ERROR,
        measured=f"formula against measurement: SS {_signed(parts['ss'])}, MSS {_signed(parts['mss'])} (standard "
        f"errors up to {noise:.1%}); for light items only, MSS {_signed(light)}",
        finding=finding(float((everything < _TIGHT + 4 * noise).mean())),
        why="The exact variance, S = diag(d0+d1·g) + α11ᵀ + β(1gᵀ+g1ᵀ) − ggᵀ per block, is tight everywhere. It is "
        "not the paper's equation. Formulas for light items are too low at large ε, where items that share a residue "
        "with a frequent one have a larger error.",
    )


def _printed(table: Table) -> Evidence:
    values = _deviation(table, "printed", method="mss")
    noise = np.nan_to_num(table.column("standard_error") / table.column("mean")).max()
    tight = float((np.abs(values) < _TIGHT + 4 * noise).mean())
    return Evidence(
        claim=claims.PRINTED_ERROR,
        measured=f"the equation as printed against measurement: {_signed(values)}; tight at {tight:.0%} of points",
        finding=finding(tight),
        why="Its covariance diag(π) − ππᵀ is right for subsets of one residue only. In a subset of fixed size ω two "
        "residues are nearly uncorrelated, and the variance in almost every direction is π(1−π), not π: the printed "
        "equation is too large by a factor up to 1/(1−π) ≈ 1+e^−ε, and tight only at large ε. (The paper's curves may "
        "come from code that differs from the equation.) The cross-block term −(ℓ/n²)uuᵀ does not exist either, as "
        "blocks are uncorrelated given their sizes, but is too small to be visible.",
    )


EXPERIMENT = AnalyticalError()
