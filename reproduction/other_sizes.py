"""Other numbers of users, domain sizes and populations than the paper's main ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats

from . import claims
from .collecting import (
    EFFICIENT,
    PAPERS,
    CollectingExperiment,
    amounts,
    collecting_cell,
    efficient_cell,
)
from .experiment import Cell, Evidence, Scale, finding
from .figures import common_legend, curve, head, name_of, name_of_population, panels, style
from .table import Table
from .trials import USERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POPULATIONS = ("zipf:3", "spike", "zipf:1", "uniform")
_EPSILONS = (1.0, 3.0, 5.0)
_SIZES = (64, 100, 256, 1024, 4096)
_USERS = (1000, 10_000, 100_000)
_BASE_SIZE = 1024
_ALIKE = 1.15
"""Errors that differ by less count as equal."""


class OtherSizes(CollectingExperiment):
    """k from 64 to 4,096 with 10,000 users; 1,000 to 100,000 users with k = 1,024; four populations."""

    name = "other-sizes"
    title = "Other numbers of users, domain sizes and populations"
    reproduces = (
        "“additional experiments under different data distributions, numbers of users, and broader domain sizes”"
    )
    columns: ClassVar[tuple[str, ...]] = (
        *("scale", "seed", "sunzi", "domain_size", "users", "population", "epsilon", "method", "trials"),
        *("mean", "standard_error", "predicted", "bits"),
    )

    def cells(self, scale: Scale) -> list[Cell]:
        """Every setting with all populations at once."""
        sizes, users, epsilons = {
            "full": (_SIZES, _USERS, _EPSILONS),
            "quick": ((100, 256, 1024), (1000, 10_000), (1.0, 5.0)),
            "tiny": ((32, 64), (500, 1000), (1.0,)),
        }[scale]
        settings = [(size, USERS if scale != "tiny" else 1000) for size in sizes]
        settings += [(_BASE_SIZE if scale != "tiny" else 64, number) for number in users]
        cells = [
            collecting_cell(
                protocol,
                size,
                epsilon,
                _trials(scale),
                users=number,
                populations=_POPULATIONS,
                searches={"full": 10, "quick": 2, "tiny": 1}[scale],
            )
            for size, number in dict.fromkeys(settings)
            for protocol in PAPERS
            for epsilon in epsilons
        ]
        again = [cell for cell in cells if cell["protocol"] == "mss"]
        return cells + [efficient_cell(cell, {"full": 30, "quick": 4, "tiny": 2}[scale]) for cell in again]

    def draw(self, table: Table) -> Figure:
        """Errors relative to SS, against k and against n."""
        return _picture(table)

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Whether results depend on the setting."""
        return [_within(table), _scales(table), _independent(table), _grr(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """The settings, which the paper does not state."""
        sizes = ", ".join(f"{size:,}" for size in table.distinct("domain_size"))
        users = ", ".join(f"{number:,}" for number in table.distinct("users"))
        return (
            "The paper announces experiments with other numbers of users and domain sizes, but its appendix shows none "
            f"beyond k = 1,024 and 22,000 and n = 10,000. Here: k = {sizes}; n = {users}; populations "
            f"{', '.join(name_of_population(name) for name in table.distinct('population'))}. `mss` has moduli of ten "
            "of the paper's searches, by the error of items that nobody holds, and is decoded with the paper's weights "
            f"and ridge; the picture shows that decoder. {amounts(table)}{_tallies(table)}",
        )


def _tallies(table: Table) -> str:
    """How many of the tallies the efficient estimator decoded."""
    if EFFICIENT not in table.distinct("method"):
        return ""
    (number,) = table.where(method=EFFICIENT).distinct("trials")
    return f" {name_of(EFFICIENT)}, is measured on {number} of these tallies per point, fewer than the paper's 300."


def _trials(scale: Scale) -> int:
    return {"full": 300, "quick": 20, "tiny": 3}[scale]


def _picture(table: Table) -> Figure:
    users = USERS if USERS in table.distinct("users") else table.distinct("users")[-1]
    base = _BASE_SIZE if _BASE_SIZE in table.distinct("domain_size") else table.distinct("domain_size")[-1]
    views: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("domain_size", {"users": users}, "values in the domain"),
        ("users", {"domain_size": base}, "users"),
    )
    epsilons = table.distinct("epsilon")
    figure, axes = panels(2, len(epsilons), width=4.4, height=3.1)
    for line, (varied, fixed, across) in enumerate(views):
        for place, epsilon in enumerate(epsilons):
            part = table.where(epsilon=epsilon, **fixed)
            for number, population in enumerate(table.distinct("population")):
                rows, plain = (
                    _ordered(part.where(population=population, method=name), varied) for name in ("mss", "ss")
                )
                ratio = rows.column("mean") / plain.column("mean")
                spread = ratio * np.hypot(_relative(rows), _relative(plain))
                label = name_of_population(population)
                curve(axes[line, place], rows.column(varied), ratio, label, spread=spread, **style("", number))
            _label_places(axes[line, place], part.distinct(varied))
            axes[line, place].axhline(1.3, color="#777777", linewidth=1, label="1.3 times SS")
            held = ", ".join(f"{'k' if name == 'domain_size' else 'n'} = {value:,}" for name, value in fixed.items())
            head(axes[line, place], f"ε = {epsilon:g}, {held}", across, "error of MSS / SS")
    common_legend(figure)
    return figure


def _ordered(rows: Table, column: str) -> Table:
    return Table([rows.rows[place] for place in np.argsort(rows.column(column), kind="stable")])


def _label_places(axes: Any, places: list[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:,}" for place in places])
    axes.set_xticks([], minor=True)


def _relative(rows: Table) -> Floats:
    return np.asarray(np.nan_to_num(rows.column("standard_error") / rows.column("mean")))


def _ratios(table: Table, base: str, method: str = "mss") -> Floats:
    return np.asarray(table.where(method=method).column("mean") / table.where(method=base).column("mean"))


def _inside(table: Table, method: str) -> tuple[Floats, NDArray[np.bool_]]:
    """The error relative to SS, and where it is within 1.3 up to two standard errors."""
    ratio = _ratios(table, "ss", method)
    noise = _relative(table.where(method=method)) + _relative(table.where(method="ss"))
    return ratio, ratio <= 1.3 * (1 + 2 * noise)


def _within(table: Table) -> Evidence:
    ratio, inside = _inside(table, "mss")
    rows = table.where(method="mss").rows
    outside = sorted(
        ((float(value), row) for value, row, good in zip(ratio, rows, inside, strict=True) if not good),
        key=lambda pair: -pair[0],
    )
    examples = "; ".join(
        f"{value:.2f} at k = {row['domain_size']}, ε = {row['epsilon']}, {name_of_population(str(row['population']))}"
        for value, row in outside[:3]
    )
    spiky = np.array([row["population"] in ("zipf:3", "spike") for row in rows])
    decoded = ""
    if EFFICIENT in table.distinct("method"):
        other, good = _inside(table, EFFICIENT)
        decoded = (
            f"; {name_of(EFFICIENT)}: {other.min():.2f} to {other.max():.2f} times, within 1.3 at {good.mean():.0%} of "
            f"all settings, from {table.where(method=EFFICIENT).distinct('trials')[0]} tallies each"
        )
    return Evidence(
        claim=claims.OTHER_SETTINGS,
        beyond=f"with the paper's decoder {ratio.min():.2f} to {ratio.max():.2f} times the error of SS; within 1.3 at "
        f"{inside.mean():.0%} of all settings ({inside[spiky].mean():.0%} of those with the paper's populations)"
        + (f"; worst: {examples}" if examples else "")
        + decoded,
        beyond_finding=finding(float(inside.mean())),
        why="On small domains at large ε, a report nearly determines its residue, and the accuracy is limited by "
        "values that share residues. The error then depends on the frequencies of other values, which a search by the "
        "error of light items ignores. `sunzi.planning.choose_moduli` can plan for flat histograms instead "
        "(docs/moduli.md).",
    )


def _scales(table: Table) -> Evidence:
    rows = table.where(method="mss")
    product = rows.column("mean") * rows.column("users")
    keys = [(row["domain_size"], row["epsilon"], row["population"]) for row in rows]
    groups: dict[Any, list[float]] = {}
    for key, value in zip(keys, product.tolist(), strict=True):
        groups.setdefault(key, []).append(value)
    spreads = [max(values) / min(values) for values in groups.values() if len(values) > 1]
    worst = max(spreads, default=float("nan"))
    return Evidence(
        claim=claims.ERROR_BOUND,
        beyond=f"the error falls as 1/n: n times the error differs by a factor {worst:.3f} at most between numbers of "
        "users",
        why="This holds exactly, except that 1,000 users leave few users per block, so n_j varies more, and the ridge "
        "weighs more.",
    )


def _independent(table: Table) -> Evidence:
    """The paper's two populations at its k and number of users first, then all."""
    paper = table.where(population=("zipf:3", "spike"))
    paper = paper.where(domain_size=_BASE_SIZE, users=USERS) or paper  # smaller runs have neither
    measured, beyond = _changes(paper), _changes(table)
    return Evidence(
        claim=claims.DISTRIBUTION_FREE,
        measured=f"largest error over smallest between Zipf(3) and spike: {_listed(measured)}",
        finding=finding(float(np.mean(np.array(list(measured.values())) < _ALIKE))),
        beyond=f"among four populations, at the same setting: {_listed(beyond)}",
        beyond_finding=finding(float(np.mean(np.array(list(beyond.values())) < _ALIKE))),
        why="The worst case is a single number, but the error itself depends on the distribution: a little for SS and "
        "PGR, whose frequent items have a different error, and much for MSS at large ε, where the variance at a "
        "residue grows with its frequency.",
    )


def _changes(table: Table) -> dict[str, float]:
    """The largest error over the smallest among populations at the same setting, by protocol."""
    changes = {}
    for method in ("ss", "pgr", "mss"):
        part = table.where(method=method)
        stack = np.array([part.where(population=name).column("mean") for name in table.distinct("population")])
        changes[method] = float((stack.max(axis=0) / stack.min(axis=0)).max())
    return changes


def _listed(changes: dict[str, float]) -> str:
    return ", ".join(f"{value:.2f} for {name_of(method)}" for method, value in changes.items())


def _grr(table: Table) -> Evidence:
    ratio = np.min([_ratios(table, method, "grr") for method in PAPERS if method != "grr"], axis=0)
    rows = table.where(method="grr")
    crossing = rows.column("domain_size") > 3 * np.exp(rows.column("epsilon")) + 2
    return Evidence(
        claim=claims.GRR_WORST,
        beyond=f"at other k and n true of {(ratio > 1).mean():.0%} of all settings, and of "
        f"{(ratio > 1)[crossing].mean():.0%} of those with k > 3e^ε+2",
        beyond_finding=finding(float((ratio > 1).mean())),
        why="GRR is the better protocol where k < 3e^ε+2 (447 values at ε = 5), which the paper's k never are.",
    )


EXPERIMENT = OtherSizes()
