"""How many moduli: ℓ in {3, 6, 9, 12, 15} against the optimised choice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

import sunzi
from sunzi._typing import Floats
from sunzi.planning import reference_error

from . import claims
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding, finding_of
from .figures import common_legend, curve, head, panels, style
from .moduli_search import find_valid_moduli, light_error, light_reference
from .table import Table, summary
from .trials import USERS, moduli_of, plan_of_trial, squared_errors, warm_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = (3, 6, 9, 12, 15)
OPTIMISED = "opt"
_POPULATION = "zipf:3"


class Lengths(Experiment):
    """Sets of a given ℓ as the paper's inner search finds them, and the sets of its outer search; one trial per set."""

    name = "lengths"
    title = "The number of moduli ℓ"
    reproduces = "the figure “Ablation study showing the impact of the number of moduli”"
    version = 2

    def cells(self, scale: Scale) -> list[Cell]:
        """k = 1,024, Zipf(3); a cell has all ℓ at one ε."""
        epsilons = {"full": (0.5, 1.0, 2.0, 3.0, 4.0, 5.0), "quick": (0.5, 1.0, 2.0, 3.5, 5.0), "tiny": (1.0, 4.0)}[
            scale
        ]
        sets, searches = {"full": (200, 25), "quick": (40, 10), "tiny": (4, 2)}[scale]
        size = 64 if scale == "tiny" else 1024
        return [
            Cell.of(
                0.3 * searches + sets * len(LENGTHS) * (0.015 + 0.02 / np.exp(epsilon)),
                domain_size=size,
                epsilon=epsilon,
                population=_POPULATION,
                users=USERS,
                sets=sets,
                searches=searches,
            )
            for epsilon in epsilons
        ]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """One row per ℓ and one for MSS[OPT]: means over sets of error, bits and attackability relative to SS, and how
        often a set is worse than one of the next smaller ℓ.
        """
        warm_up()
        rows: list[Row] = []
        before: dict[str, Floats] = {}
        for length in (*map(str, LENGTHS), OPTIMISED):
            found = _measure_sets(cell, length, seed)
            used = found.pop("moduli")
            row: Row = {"length": length, "trials": used.size, "moduli": float(used.mean())}
            for name, values in found.items():
                kept = summary(values.tolist())
                row |= {f"{name}_share": kept["mean"], f"{name}_share_error": kept["standard_error"]}
                if before and length != OPTIMISED:
                    row[f"{name}_worse"] = float(np.mean(values[:, None] > before[name]))
            rows.append(row)
            before = found
        return rows

    def draw(self, table: Table) -> Figure:
        """Error, bits and attackability, each relative to SS."""
        figure, axes = panels(1, 3, width=4.2, height=3.4)
        looks = {name: style("", place) for place, name in enumerate([str(length) for length in LENGTHS])}
        looks[OPTIMISED] = {**style("mss"), "linestyle": "--"}
        for name, look in looks.items():
            rows = _of(table, name)
            label = "MSS[OPT]" if name == OPTIMISED else f"ℓ = {name}"
            for panel, column in zip(axes[0], ("measured", "bits", "attack"), strict=True):
                values, spread = rows.column(f"{column}_share"), rows.column(f"{column}_share_error")
                curve(panel, rows.column("epsilon"), values, label, spread=spread, **look)
        head(axes[0, 0], "error, measured", "ε", "relative to SS")
        head(axes[0, 1], "bits", "ε", "relative to SS")
        head(axes[0, 2], "attackability (DRA), exact", "ε", "relative to SS")
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """The error is not monotone; the optimised choice is near the best."""
        sets = table.where(length=(*LENGTHS, *map(str, LENGTHS)))
        return [_middle(sets), _not_monotone(sets), _near_optimal(table), _other_criteria(table), _spectrum(sets)]

    def notes(self, table: Table) -> Sequence[str]:
        """Describe the curves."""
        used = _of(table, OPTIMISED).column("moduli")
        return (
            f"At {len(table.distinct('epsilon'))} of the paper's ten ε, for every ℓ "
            f"{max(table.distinct('sets'))} sets of moduli were drawn as in the paper's inner search "
            "(first draw with κ ≤ 10), each with one simulated collection, decoded as in the paper, which has 300. "
            f"MSS[OPT] is its whole search, {max(table.distinct('searches'))} times, with one collection each; it "
            f"takes {used.min():.0f} to {used.max():.0f} moduli on average. The picture and all verdicts are about "
            "means over these sets. The exact error is that of items that nobody holds.",
        )


def _measure_sets(cell: Cell, length: str, seed: int) -> dict[str, Floats]:
    """For every set of one ℓ: error by formula and in one trial, bits and attackability, relative to SS."""
    size, epsilon, users = cell["domain_size"], cell["epsilon"], cell["users"]
    sets = cell["searches"] if length == OPTIMISED else cell["sets"]
    plans = [_plan(cell, length, number) for number in range(sets)]
    plain, reference = sunzi.make_plan("ss", size, epsilon), reference_error(size, epsilon)
    errors = squared_errors(plans, cell["population"], users, cell.seeds(seed, sets))
    return {
        "error": np.array([light_error(size, epsilon, moduli_of(plan)) for plan in plans])
        / light_reference(size, epsilon),
        "measured": users * np.array(errors) / reference,
        "bits": np.array([plan.report_bits for plan in plans]) / plain.report_bits,
        "attack": np.array([plan.attackability for plan in plans]) / plain.attackability,
        "moduli": np.array([len(plan.protocol.responses) for plan in plans]),
    }


def _plan(cell: Cell, length: str, number: int) -> sunzi.Plan:
    size, epsilon = cell["domain_size"], cell["epsilon"]
    if length == OPTIMISED:
        return plan_of_trial(size, epsilon, number)
    moduli, _ = find_valid_moduli(size, epsilon, int(length), number)
    return sunzi.make_plan("mss", size, epsilon, moduli=moduli, code="arithmetic")


def _of(table: Table, name: str) -> Table:
    """Rows of one ℓ; a table read from a file has numbers where it can."""
    return table.where(length=(name, int(name) if name.isdigit() else name))


def _matrix(table: Table, column: str) -> Floats:
    """One row per ℓ, one column per ε."""
    return np.array([_of(table, str(length)).column(column) for length in LENGTHS])


def _change(sets: Table, name: str, one: int, other: int) -> Floats:
    """From one ℓ to another, in standard errors of the difference, at every ε."""
    first, second = (_of(sets, str(length)) for length in (one, other))
    noise = np.hypot(first.column(f"{name}_share_error"), second.column(f"{name}_share_error"))
    return np.asarray((second.column(f"{name}_share") - first.column(f"{name}_share")) / noise)


def _course(sets: Table, name: str, *lengths: int) -> list[float]:
    """Means over sets and ε for some ℓ."""
    return [float(_of(sets, str(length)).column(f"{name}_share").mean()) for length in lengths]


def _listed(sets: Table, name: str) -> str:
    means = _course(sets, name, *LENGTHS)
    return ", ".join(f"{mean:.3f} (ℓ = {length})" for length, mean in zip(LENGTHS, means, strict=True))


def _middle(sets: Table) -> Evidence:
    better = {name: (_change(sets, name, 3, 9) < -2) & (_change(sets, name, 12, 9) < -2) for name in ("error", "bits")}
    count = max(sets.distinct("sets"))
    # On a straight line the first step would change as much as the last.
    first, last = (_course(sets, "error", *pair) for pair in (LENGTHS[:2], LENGTHS[-2:]))
    curved = abs(first[0] - first[1]) > 2 * abs(last[0] - last[1])
    return Evidence(
        claim=claims.MIDDLE_LENGTH,
        measured=f"averaged over {count} sets ℓ = 9 beats both 3 and 12 by more than two standard errors in error "
        f"at {int(better['error'].sum())} of {better['error'].size} ε, in bits at {int(better['bits'].sum())}; error "
        f"relative to SS {_listed(sets, 'error')}; bits relative to SS {_listed(sets, 'bits')}",
        finding=finding_of(curved, bool(better["error"].any()), bool(better["bits"].any())),
        why="The relationship is non-linear: every further modulus helps less. With few moduli, each must be large to "
        "distinguish all values (Σ(m_j−1) ≥ k), which costs bits; with more they can be smaller, down to the band's "
        "lower end k/(20ℓ), as long as κ ≤ 10. Single draws vary enough for a set of ℓ = 9 to beat one of ℓ = 12.",
    )


def _steps(sets: Table, name: str) -> Floats:
    """Changes from every ℓ to the next, in standard errors."""
    return np.concatenate([_change(sets, name, *pair) for pair in pairwise(LENGTHS)])


def _not_monotone(sets: Table) -> Evidence:
    """A guarantee fails if more than one pair of sets in twenty breaks it."""
    worse = {name: sets.column(f"{name}_worse") for name in ("error", "bits")}
    worse = {name: values[~np.isnan(values)] for name, values in worse.items()}
    rises = {name: _steps(sets, name) > 2 for name in worse}
    text = "; ".join(
        f"{'has a larger error' if name == 'error' else 'sends more bits'} in {values.min():.0%} to {values.max():.0%} "
        f"of all pairs, and the mean over sets rises by more than two standard errors in {int(rises[name].sum())} of "
        f"{rises[name].size} steps"
        for name, values in worse.items()
    )
    return Evidence(
        claim=claims.NOT_MONOTONE,
        measured=f"a set of the next larger ℓ {text}",
        finding=finding_of(*(bool(values.max() > 0.05) for values in worse.values())),
        why="Sets of one ℓ differ more from each other than their mean does from that of the next ℓ, so a larger ℓ "
        "promises nothing for one set."
        + ("" if rises["error"].any() else " In the mean over sets the error does not rise with ℓ."),
    )


def _near_optimal(table: Table) -> Evidence:
    base = _of(table, OPTIMISED).column("measured_share")
    ratio = base / _matrix(table, "measured_share").min(axis=0)
    return Evidence(
        claim=claims.OPTIMISED,
        measured=f"{ratio.min():.3f} to {ratio.max():.3f} times the error of the best fixed ℓ, {base.min():.3f} to "
        f"{base.max():.3f} times that of SS",
        finding=finding(float((ratio <= 1.02).mean())),
        why="It takes the best of 19 draws, one per ℓ, by the exact error of light items.",
    )


def _other_criteria(table: Table) -> Evidence:
    bits, attack = (
        _of(table, OPTIMISED).column(name) / _matrix(table, name).min(axis=0) for name in ("bits_share", "attack_share")
    )
    return Evidence(
        claim=claims.OTHER_CRITERIA,
        measured=f"MSS[OPT] sends {bits.min():.2f} to {bits.max():.2f} times the bits of the shortest fixed ℓ, and has "
        f"{attack.min():.3f} to {attack.max():.3f} times the lowest attackability",
        finding="for" if bits.max() > 1.02 or attack.max() > 1.02 else "against",
        why="A low error requires large moduli, short reports require small ones. `sunzi plan` searches the whole "
        "Pareto front.",
    )


def _spectrum(sets: Table) -> Evidence:
    """A step of ℓ moves along the spectrum if it clearly pays for one of error and bits with the other."""
    error, bits = _steps(sets, "error"), _steps(sets, "bits")
    exchanged = (error * bits < 0) & (np.abs(error) > 2) & (np.abs(bits) > 2)
    both = (error < -2) & (bits < -2)
    shares = {name: sets.column(f"{name}_share") for name in ("bits", "error")}
    return Evidence(
        claim=claims.SPECTRUM,
        measured=f"between ℓ = {LENGTHS[0]} and {LENGTHS[-1]}: {shares['bits'].min():.2f} to "
        f"{shares['bits'].max():.2f} times the bits of SS, {shares['error'].min():.2f} to {shares['error'].max():.2f} "
        f"times its error; of {error.size} steps from one ℓ to the next {int(exchanged.sum())} trade one for the "
        f"other by more than two standard errors, and {int(both.sum())} lower both",
        finding=finding(float(exchanged.mean())),
        why="ℓ alone is a poor parameter: up to some ℓ, more moduli reduce bits and error together. The choice of "
        "moduli determines bits and error; docs/moduli.md shows the Pareto front that a search by the exact error "
        "reaches. A report of log2 C(m_j, ω_j) bits never comes near the ⌈log2 k⌉ of PGR at small ε.",
    )


EXPERIMENT = Lengths()
