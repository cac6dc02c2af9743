"""How long a report is, for every protocol and for many runs of the paper's moduli search."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np

import sunzi

from . import claims
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding
from .figures import common_legend, curve, head, name_of, panels, style
from .moduli_search import light_error, light_reference, paper_search, shared_epsilon
from .table import Table, number_in
from .trials import EPSILONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIXED = ("grr", "ss", "ss-compact", "pgr", "rappor", "oue", "mss-compact")
LARGE = 22_000
PAPER_SEARCHES = 300
_ERRORS_OF = 5
"""Searches per cell whose exact error is computed; bits are computed for all."""


class Bits(Experiment):
    """Cells are portions of the searches. One search serves several ε where its result does not depend on them; other
    cells check that.
    """

    name = "bits"
    title = "Bits of a report"
    reproduces = "the figure on per-user message length, k = 1,024 and 22,000"
    version = 2

    def cells(self, scale: Scale) -> list[Cell]:
        """Portions of the searches, the protocols without one, and the check."""
        epsilons = {"tiny": (1.0, 5.0), "quick": (0.5, 1.0, 2.0, 3.0, 4.0, 5.0), "full": EPSILONS}[scale]
        sizes = (128,) if scale == "tiny" else (1024, LARGE)
        found = [Cell.of(0.5, part="fixed", k=size, epsilons=epsilons) for size in sizes]
        for size in sizes:
            total, portion, seconds = _amount(size, scale)
            groups = _groups(size, epsilons)
            found += [
                Cell.of(seconds * portion, part="search", k=size, at=at, epsilons=served, first=first, searches=portion)
                for at, served in groups
                for first in range(0, total, portion)
            ]
        checks = {"tiny": 1, "quick": 1, "full": 8}[scale]
        return found + [
            Cell.of(10 if size == LARGE else 1, part="check", k=size, at=at, other=other, first=0, searches=checks)
            for size in sizes
            for at, served in _groups(size, epsilons)
            for other in sorted({served[0], served[-1]} - {at})
        ]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """Bits, and for some sets the error relative to SS."""
        if cell["part"] == "fixed":
            return [
                {"protocol": name, "epsilon": epsilon, "bits": sunzi.make_plan(name, cell["k"], epsilon).report_bits}
                for epsilon in cell["epsilons"]
                for name in FIXED
            ]
        # Seed 1, the default, has the searches 0, 1, … that other experiments use and the cache keeps.
        searches = [(seed ^ 1) * 10_000 + cell["first"] + place for place in range(cell["searches"])]
        sets = [paper_search(cell["k"], cell["at"], search).moduli for search in searches]
        if cell["part"] == "check":
            again = [paper_search(cell["k"], cell["other"], search).moduli for search in searches]
            return [{"same": sum(mine == its for mine, its in zip(sets, again, strict=True))}]
        return [_row(cell["k"], epsilon, sets) for epsilon in cell["epsilons"]]

    def draw(self, table: Table) -> Figure:
        """One panel per domain; the band is one standard deviation over searches."""
        sizes = table.where(part="fixed").distinct("k")
        figure, axes = panels(
            1, len(sizes), "Bits of a report; the band of MSS is one standard deviation over searches"
        )
        for panel, size in zip(axes[0], sizes, strict=True):
            part = table.where(part="fixed", k=size)
            for name in FIXED:
                mine = part.where(protocol=name)
                curve(panel, mine.column("epsilon"), mine.column("bits"), name_of(name), **style(name))
            found = pooled(table, size)
            across = [row["epsilon"] for row in found]
            means = np.array([row["mean"] for row in found])
            spread = np.array([row["deviation"] for row in found])
            curve(panel, across, means, "MSS", **style("mss"))
            panel.fill_between(across, means - spread, means + spread, color="#000000", alpha=0.15, linewidth=0)
            head(panel, f"k = {size:,}", "ε", "bits", logarithmic=True)
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Fewer than SS, and how few."""
        return [self._fewer(table), self._half(table), self._abstract(table), self._fixed(table)]

    def _fewer(self, table: Table) -> Evidence:
        rows = _against_subsets(table)
        below = sum(row["largest"] < row["ss"] for row in rows)
        worst = max(rows, key=lambda row: row["largest"] / row["ss"])
        return Evidence(
            claim=claims.FEWER_BITS,
            measured=(
                f"every search gave fewer bits than SS at {below} of {len(rows)} points; the longest of all was "
                f"{worst['largest'] / worst['ss']:.0%} of SS (k = {worst['k']:,.0f}, ε = {worst['epsilon']:g})"
            ),
            finding=finding(below / len(rows)),
            why="All moduli of the search stay below 0.95·k, and a subset of Z_m takes about m/k of the bits of one of "
            "[k].",
        )

    def _half(self, table: Table) -> Evidence:
        """For it if somewhere at ε ≤ 1 the mean over searches is clearly no more than one half, in part if it is near
        that or single searches get there.
        """
        rows = _against_subsets(table)
        private = [row for row in rows if row["epsilon"] <= 1]
        ratios, at_private = (np.array([row["mean"] / row["ss"] for row in part]) for part in (rows, private))
        lowest = rows[int(np.argmin(ratios))]
        least = min(row["least"] / row["ss"] for row in private)
        reached = any(row["mean"] + 2 * row["deviation"] / row["trials"] ** 0.5 <= 0.5 * row["ss"] for row in private)
        near = at_private.min() <= 0.6 or least <= 0.5
        return Evidence(
            claim=claims.HALF_THE_BITS,
            measured=(
                f"for ε ≤ 1 the mean over searches is {at_private.min():.1%} to {at_private.max():.1%} of SS, and the "
                f"shortest of all searches {least:.0%}; over all ε the mean is {ratios.min():.1%} to "
                f"{ratios.max():.1%}, the lowest at k = {lowest['k']:,.0f}, ε = {lowest['epsilon']:g}"
            ),
            finding="for" if reached else "in part" if near else "against",
            why=(
                "The search minimises the error, not the length of reports, so the mean modulus determines the saving: "
                "somewhat less than one half on average, more for some searches, and no more in high-privacy regimes "
                "than elsewhere. A search with a limit on bits achieves shorter reports at the same error "
                "(docs/moduli.md)."
            ),
        )

    def _abstract(self, table: Table) -> Evidence:
        rows = _against_subsets(table)
        factors = [row["mean"] / row["residue_bits"] for row in rows]
        return Evidence(
            claim=claims.RESIDUE_BITS,
            measured=f"a report is {min(factors):.1f} to {max(factors):.0f} times as long as that",
            finding=finding(float(np.mean(np.array(factors) <= 1.05))),
            beyond="mss-compact, which sends a block of a cyclotomic design instead of any subset, takes "
            f"{_span(table, 'mss-compact')} bits",
            why=(
                "A residue has ⌈log2 m_j⌉ bits, but a report is a subset of residues, as in the paper's own formula "
                "for the cost. The abstract's figure is reached only where w_j = 1. See erratum 8 of "
                "docs/paper-notes.md."
            ),
        )

    def _fixed(self, table: Table) -> Evidence:
        part = table.where(part="fixed")
        wanted = [(row, ceil(log2(number_in(row, "k")))) for row in part.where(protocol=("grr", "pgr"))]
        more = [row for row, bits in wanted if number_in(row, "bits") > bits]
        only_pgr = all(row["protocol"] == "pgr" for row in more)
        largest = max((number_in(row, "bits") - bits for row, bits in wanted), default=0.0)
        return Evidence(
            claim=claims.TABLE_BITS,
            measured=(
                f"⌈log2 k⌉ is right for GRR; PGR needs more at {len(more)} of {len(part.where(protocol='pgr'))} "
                f"points, up to {largest:g} bits"
                if only_pgr
                else "GRR needs more as well"
            ),
            finding=finding(1 - len(more) / len(wanted)),
            why="PGR names one of K ≥ k hyperplanes, and K depends on ε by the prime power next to e^ε+1; k = K is the "
            "exception.",
        )

    def notes(self, table: Table) -> Sequence[str]:
        """The number of searches, and which results were shared."""
        texts = []
        for size in table.where(part="fixed").distinct("k"):
            found = pooled(table, size)
            errors = [row["error"] for row in found]
            texts.append(
                f"k = {size:,}: {found[0]['trials']:g} searches per point{_fewer(found[0]['trials'])}, error "
                f"{min(errors):.2f} to "
                f"{max(errors):.2f} times SS on average over {found[0]['with_error']:g} of them"
            )
        check = table.where(part="check")
        note = "The paper's search with its own parameters and a new seed each time. " + "; ".join(texts) + "."
        if check.rows:
            note += (
                " The result of a search depends on ε only through the ratio of the blocks' weights, so one search "
                f"serves all ε at k = 22,000 and those up to 2 at k = 1,024; of "
                f"{int(check.column('searches').sum())} searches run again at the ends of these ranges, "
                f"{int(check.column('same').sum())} found the same moduli."
            )
        return (note,)


def _fewer(searches: float) -> str:
    return "" if searches >= PAPER_SEARCHES else f" (fewer than the paper's {PAPER_SEARCHES})"


def _groups(size: int, epsilons: Sequence[float]) -> list[tuple[float, tuple[float, ...]]]:
    """The ε at which to search, and the ε that share its result."""
    groups: dict[float, list[float]] = {}
    for epsilon in epsilons:
        groups.setdefault(shared_epsilon(size, epsilon), []).append(epsilon)
    return [(at, tuple(served)) for at, served in groups.items()]


def _amount(size: int, scale: Scale) -> tuple[int, int, float]:
    """Number of searches, searches per cell, and seconds per search."""
    if size == LARGE:
        return {"tiny": (0, 1, 1.0), "quick": (2, 1, 6.0), "full": (100, 5, 2.6)}[scale]
    return {"tiny": (2, 1, 0.3), "quick": (10, 10, 0.4), "full": (300, 50, 0.4)}[scale]


def _row(size: int, epsilon: float, sets: Sequence[tuple[int, ...]]) -> Row:
    bits = [sunzi.make_plan("mss", size, epsilon, moduli=moduli, code="arithmetic").report_bits for moduli in sets]
    errors = [light_error(size, epsilon, moduli) for moduli in sets[:_ERRORS_OF]]
    residue = [ceil(log2(len(moduli))) + np.mean(np.ceil(np.log2(moduli))) for moduli in sets]
    return {
        "protocol": "mss",
        "epsilon": epsilon,
        "bits": float(np.mean(bits)),
        "squares": float(np.mean(np.square(bits))),
        "least": min(bits),
        "largest": max(bits),
        "moduli": float(np.mean([len(moduli) for moduli in sets])),
        "residue_bits": float(np.mean(residue)),
        "error": float(np.mean(errors)) / light_reference(size, epsilon),
    }


def pooled(table: Table, size: int) -> list[dict[str, float]]:
    """All searches of a domain together, one row per ε."""
    part, rows = table.where(part="search", k=size), []
    for epsilon in part.distinct("epsilon"):
        mine = part.where(epsilon=epsilon)
        trials = mine.column("searches")
        mean, square, residue = (
            float(np.average(mine.column(name), weights=trials)) for name in ("bits", "squares", "residue_bits")
        )
        error = float(np.average(mine.column("error"), weights=np.minimum(trials, _ERRORS_OF)))
        rows.append(
            {
                "k": size,
                "epsilon": epsilon,
                "trials": float(trials.sum()),
                "mean": mean,
                "deviation": max(square - mean**2, 0.0) ** 0.5,
                "least": float(mine.column("least").min()),
                "largest": float(mine.column("largest").max()),
                "residue_bits": residue,
                "error": error,
                "with_error": float(np.minimum(trials, _ERRORS_OF).sum()),
            }
        )
    return rows


def _against_subsets(table: Table) -> list[dict[str, float]]:
    fixed = table.where(part="fixed")
    return [
        row | {"ss": fixed.number("bits", protocol="ss", k=size, epsilon=row["epsilon"])}
        for size in fixed.distinct("k")
        for row in pooled(table, size)
    ]


def _span(table: Table, protocol: str) -> str:
    bits = table.where(part="fixed", protocol=protocol).column("bits")
    return f"{bits.min():g} to {bits.max():g}"


EXPERIMENT = Bits()
