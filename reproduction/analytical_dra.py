"""The paper's formulas for the attack, compared with the attack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import claims
from .dra import attack_cells, measure_attack
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding
from .figures import common_legend, curve, head, name_of, name_of_population, panels, style
from .table import Table


class AnalyticalReconstruction(Experiment):
    """Figure "analytical vs. empirical DRA"."""

    name = "analytical-dra"
    title = "Formulas for the attack against the attack"
    reproduces = "the figure on empirical against analytical DRA (appendix), four panels"
    measurement = "attack"

    def cells(self, scale: Scale) -> list[Cell]:
        """The cells of ``dra`` for SS and MSS."""
        return attack_cells(scale, ("ss", "mss"))

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """As ``dra`` does."""
        return measure_attack(cell, seed)

    def draw(self, table: Table) -> Figure:
        """Lines are formulas, markers are measurements."""
        sizes, populations = table.distinct("k"), table.distinct("population")
        figure, axes = panels(len(sizes), len(populations), "Reconstruction attack: lines are formulas, marks measured")
        for row, size in enumerate(sizes):
            for column, population in enumerate(populations):
                _panel(axes[row, column], table.where(k=size, population=population))
                head(axes[row, column], f"{name_of_population(population)}, k = {size:,}", "ε", "DRA", logarithmic=True)
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """SS matches; the bound for MSS is not an upper bound."""
        return [self._subsets(table), self._bound(table), self._table_formula(table)]

    def _subsets(self, table: Table) -> Evidence:
        part = table.where(protocol="ss")
        distances = _distances(part, "uniform")
        return Evidence(
            claim=claims.SUBSETS_MATCH,
            measured=(
                f"{len(part)} points, largest distance {distances.max():.1f} standard errors, "
                f"ratio {_ratios(part, 'uniform').min():.3f} to {_ratios(part, 'uniform').max():.3f}"
            ),
            finding=finding(float((distances < 4.5).mean())),
            why="SS treats all values alike, so e^ε/(we^ε + k − w) is exact for every population.",
        )

    def _bound(self, table: Table) -> Evidence:
        part = table.where(protocol="mss")
        above = int(np.sum(part.column("boxed") > part.column("mean") + 3 * part.column("standard_error")))
        ratios = _ratios(part, "boxed")
        return Evidence(
            claim=claims.UPPER_BOUND,
            measured=(
                f"the boxed formula is above the measured DRA by more than 3 standard errors at {above} of {len(part)} "
                f"points; measured over formula is {ratios.min():.2f} to {ratios.max():.2f}"
            ),
            finding=finding(above / len(part)),
            why=(
                "p_j/(w_j⌈k/m_j⌉) assumes the largest support that a report can have, and so the smallest probability "
                "of a right guess. It is a lower bound for every value and every population, as the boxed inequality "
                "itself says. It is exact where w_j = 1 and all users have a residue that most values share, such as "
                "that of value 0. See erratum 6 of docs/paper-notes.md."
            ),
        )

    def _table_formula(self, table: Table) -> Evidence:
        part = table.where(protocol="mss")
        uniform, exact = _ratios(part, "uniform"), _distances(part, "expected")
        return Evidence(
            claim=claims.TABLE_ATTACK,
            beyond=(
                f"under Zipf(3) and spike, measured over the formula of MSS is {uniform.min():.2f} to "
                f"{uniform.max():.2f}; the same expectation weighted by the population agrees within "
                f"{exact.max():.1f} standard errors"
            ),
            beyond_finding=finding(float((np.abs(uniform - 1) <= 0.03).mean())),
            why=(
                "Table 1's formula is exact when all values are equally frequent. Zipf and Spike put nearly all users "
                "on value 0, which lies in a residue class with ⌈k/m_j⌉ members, so it is guessed less often than "
                "average. Compared with these populations, a formula for the uniform case is above the measured "
                "points. This may be the overestimate that the paper's figure shows and interprets as a conservative "
                "bound."
            ),
        )

    def notes(self, table: Table) -> Sequence[str]:  # noqa: ARG002 - does not depend on the scale
        """Describe the curves."""
        return (
            "The measured points are those of `dra`. Three formulas for MSS: the boxed one of the main text, the one "
            "of Table 1 (all values equally frequent), and the appendix's expectation over filler sets weighted by the "
            "population.",
        )


def _ratios(part: Table, column: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return part.column("mean") / part.column(column)


def _distances(part: Table, column: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.abs(part.column("mean") - part.column(column)) / np.maximum(part.column("standard_error"), 1e-12)


def _panel(axes: Axes, part: Table) -> None:
    for name in ("ss", "mss"):
        mine = part.where(protocol=name)
        look = style(name) | {"linestyle": "none"}
        curve(
            axes,
            mine.column("epsilon"),
            mine.column("mean"),
            f"{name_of(name)}, measured",
            spread=mine.column("standard_error"),
            **look,
        )
    lines = [("ss", "uniform", "SS, formula", "--"), ("mss", "boxed", "MSS, boxed “upper bound”", "-")]
    lines += [("mss", "uniform", "MSS, Table 1", "-."), ("mss", "expected", "MSS, for this population", ":")]
    colours = ("#D55E00", "#0072B2", "#009E73", "#000000")
    for (name, column, label, dash), colour in zip(lines, colours, strict=True):
        mine = part.where(protocol=name)
        axes.plot(mine.column("epsilon"), mine.column(column), dash, color=colour, linewidth=1.3, label=label)


EXPERIMENT = AnalyticalReconstruction()
