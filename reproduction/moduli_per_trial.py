"""Moduli drawn anew in every trial, as in the paper, against one fixed good set; and what its theorems say of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, log
from typing import TYPE_CHECKING, Any

import numpy as np

import sunzi
from sunzi.planning import candidate, paper_search, reference_error
from sunzi.planning.conditioning import condition_number, paper_gram
from sunzi.planning.populations import Population

from .experiment import Cell, Claim, Experiment, Row, Scale, verdict
from .figures import head, legend_below, panels, style
from .statistics import summary
from .table import Table
from .trials import POPULATIONS, USERS, squared_errors, warm_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]

_CHUNK = 25
NEIGHBOURS = (401, 409, 419, 421, 431, 433, 439, 443)
"""Eight neighbouring primes: valid by the paper's conditions (i) and (ii) at k = 1,024, and bad."""
FIRST_TWENTY = (
    *(151, 157, 163, 167, 173, 179, 181, 191, 193, 197),
    *(199, 211, 223, 227, 229, 233, 239, 241, 251, 257),
)
"""The first 20 primes above 150."""


class ModuliPerTrial(Experiment):
    """The paper's search run with a new seed for every trial; then a default plan of Sunzi for all trials."""

    name = "moduli-per-trial"
    title = "Moduli drawn anew in every trial, and one fixed good set"
    reproduces = "the trials of the paper, each with its own moduli, and its theorems on κ"

    def cells(self, scale: Scale) -> list[Cell]:
        """Searches in portions, so that a killed run loses little."""
        cells = [
            Cell.of(
                (min(first + _CHUNK, searches) - first) * (0.2 + 4.8 * size / 22_000),
                kind="drawn",
                domain_size=size,
                epsilon=epsilon,
                first=first,
                stop=min(first + _CHUNK, searches),
            )
            for size, epsilon, searches, _ in _settings(scale)
            for first in range(0, searches, _CHUNK)
        ]
        cells += [
            Cell.of(trials * 2e-5 * size, kind="fixed", domain_size=size, epsilon=epsilon, trials=trials)
            for size, epsilon, _, trials in _settings(scale)
        ]
        bad = (("neighbours", NEIGHBOURS), ("first twenty above 150", FIRST_TWENTY))
        cells += [
            Cell.of(1.0, kind="bad", label=label, moduli=moduli, domain_size=1024, epsilon=1.0)
            for label, moduli in bad
            if scale != "tiny"
        ]
        sizes = range(2, 6) if scale == "tiny" else range(2, 65)
        return [*cells, *(Cell.of(0.3, kind="small", domain_size=size, epsilon=1.0) for size in sizes)]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """A row a search, or a row a population for the fixed set."""
        warm_up()
        size, epsilon = cell["domain_size"], cell["epsilon"]
        if cell["kind"] == "fixed":
            return _fixed(cell, seed)
        if cell["kind"] == "small":
            return [_small(size, epsilon)]
        if cell["kind"] == "bad":
            return [_bad(size, epsilon, cell["moduli"])]
        seeds = cell.seeds(seed, cell["stop"] - cell["first"])
        return [_drawn(size, epsilon, cell["first"] + place, words) for place, words in enumerate(seeds)]

    def draw(self, table: Table) -> Figure:
        """Spread of the error ratio, and κ against it."""
        return _picture(table)

    def claims(self, table: Table) -> Sequence[Claim]:
        """On 1.3, κ and both theorems."""
        return [
            _ratio_claim(table),
            _kappa_claim(table),
            _theorem_three(table),
            _theorem_four(table),
            _loose(table),
            _arbitrary(table),
            _logarithmic(table),
        ]

    def notes(self, table: Table) -> Sequence[str]:
        """The fixed set beside the drawn ones."""
        drawn, fixed = table.where(kind="drawn"), table.where(kind="fixed")
        parts = []
        for size in table.where(kind="drawn").distinct("domain_size"):
            mine = drawn.where(domain_size=size)
            other = fixed.where(domain_size=size)
            parts.append(
                f"at k = {size:,} the drawn sets have {_mean(mine, 'ratio')} times the error of SS and "
                f"{_mean(mine, 'bits_share')} of its bits, the fixed one {_mean(other, 'ratio')} times and "
                f"{_mean(other, 'bits_share')}"
            )
        return (
            "The error ratio is exact (trace(T⁻¹)/k over that of SS, for items that nobody holds), so that it shows "
            "the "
            "luck of the search and nothing else; each drawn set was also used in one simulated collection a "
            "population. The fixed set is the default of `make_plan`: " + "; ".join(parts) + ".",
        )


def _settings(scale: Scale) -> list[tuple[int, float, int, int]]:
    """k, ε, how many searches, and how many trials with the fixed set. At k = 22,000 a search takes ten seconds."""
    if scale == "full":
        small = [(1024, epsilon, 300, 300) for epsilon in (0.5, 1.0, 5.0)]
        return small + [(22_000, epsilon, 100, 100) for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 5.0)]
    if scale == "quick":
        return [(1024, epsilon, 25, 25) for epsilon in (0.5, 1.0, 3.0, 5.0)]
    return [(64, 1.0, 3, 3)]


def _ratio(size: int, epsilon: float, error: float) -> float:
    return error / reference_error(size, epsilon)


def _drawn(size: int, epsilon: float, search: int, words: list[int]) -> Row:
    found = paper_search(size, epsilon, search)
    plan = sunzi.make_plan("mss", size, epsilon, moduli=found.moduli)
    measured = {
        _column(population): _short(squared_errors(plan, population, USERS, [words])[0]) for population in POPULATIONS
    }
    return {
        "search": search,
        "length": len(found.moduli),
        "smallest": found.moduli[0],
        "largest": found.moduli[-1],
        "sum_share": _short(sum(found.moduli) / size),
        "ratio": _short(_ratio(size, epsilon, found.error)),
        "kappa": _short(found.kappa),
        "kappa_bound": _short(found.kappa_bound),
        "l_theory": _short(found.l_theory),
        "fallback": int(found.used_fallback),
        "bits_share": _bits_share(plan),
        **measured,
    }


def _fixed(cell: Cell, seed: int) -> list[Row]:
    size, epsilon = cell["domain_size"], cell["epsilon"]
    plan = sunzi.make_plan("mss", size, epsilon)
    rows: list[Row] = []
    for population in POPULATIONS:
        errors = squared_errors(plan, population, USERS, cell.seeds(seed, cell["trials"]))
        rows.append(
            {
                "population": population,
                **summary(errors),
                "ratio": _short(_ratio(size, epsilon, plan.expected_mse(1))),
                "bits_share": _bits_share(plan),
            }
        )
    return rows


def _bad(size: int, epsilon: float, moduli: Sequence[int]) -> Row:
    error = candidate(size, epsilon, "mss", moduli).error
    gram = paper_gram(size, moduli, sunzi.make_plan("mss", size, epsilon, moduli=moduli).epsilon)
    return {
        "length": len(moduli),
        "ratio": _short(_ratio(size, epsilon, error)),
        "kappa": _short(condition_number(gram)),
        "kappa_bound": _short(kappa_bound(size, epsilon, len(moduli))),
    }


def _small(size: int, epsilon: float) -> Row:
    """Whether the search finds anything on a small domain."""
    try:
        found = paper_search(size, epsilon)
    except sunzi.ParameterError:
        return {"found": 0}
    return {
        "found": 1,
        "length": len(found.moduli),
        "largest": found.moduli[-1],
        "kappa": _short(found.kappa),
        "fallback": int(found.used_fallback),
    }


def kappa_bound(size: int, epsilon: float, length: int, beta: float = 20.0) -> float:
    """Theorem 4's α(ℓ+T*)/(ℓ−T*) with the paper's β and its bound on α."""
    odds = exp(epsilon)
    collisions = ceil(log(size) / log(size / (beta * length)))
    alpha = (beta + odds) / (1 / beta + odds)
    return alpha * (length + collisions) / (length - collisions)


def _bits_share(plan: sunzi.Plan) -> float:
    plain = sunzi.make_plan("ss", plan.domain.size, plan.epsilon)
    return _short(plan.report_bits / plain.report_bits)


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _mean(table: Table, column: str) -> str:
    return f"{table.column(column).mean():.3g}"


def _picture(table: Table) -> Figure:
    drawn, fixed = table.where(kind="drawn"), table.where(kind="fixed")
    sizes = drawn.distinct("domain_size")
    figure, axes = panels(1, len(sizes) + 1)
    for place, size in enumerate(sizes):
        _draw_spread(axes[0, place], drawn.where(domain_size=size), fixed.where(domain_size=size))
        head(axes[0, place], f"k = {size:,}", "ε", "error relative to ss, exact")
    last = axes[0, len(sizes)]
    for place, size in enumerate(sizes):
        rows = drawn.where(domain_size=size, epsilon=1.0)
        look = {**style("", (6, 1)[place % 2]), "linestyle": "none", "markersize": 3.5}
        last.plot(rows.column("kappa"), rows.column("ratio"), label=f"one search, k = {size:,}", **look)
    head(last, "κ and the error, ε = 1", "κ = cond(A_w) of the set found", "error relative to ss, exact")
    legend_below(figure)
    return figure


def _draw_spread(axes: Any, drawn: Table, fixed: Table) -> None:
    epsilons = drawn.distinct("epsilon")
    data = [drawn.where(epsilon=epsilon).column("ratio") for epsilon in epsilons]
    places = np.arange(len(epsilons))
    boxes = axes.boxplot(data, positions=places, widths=0.5, whis=(0, 100), medianprops={"color": "#000000"})
    boxes["boxes"][0].set_label("drawn anew: quartiles, smallest and largest")
    one = [fixed.where(epsilon=epsilon).column("ratio")[0] for epsilon in epsilons]
    axes.plot(places, one, label="one fixed set (Sunzi's default)", **{**style("", 2), "linestyle": "none"})
    axes.axhline(1.3, color="#777777", linewidth=1, label="1.3")
    axes.set_xticks(places, [f"{epsilon:g}" for epsilon in epsilons])


def _ratio_claim(table: Table) -> Claim:
    drawn = table.where(kind="drawn")
    light, means, worst = drawn.column("ratio"), [], []
    for size in drawn.distinct("domain_size"):
        for epsilon in drawn.where(domain_size=size).distinct("epsilon"):
            rows = drawn.where(domain_size=size, epsilon=epsilon)
            for population in POPULATIONS:
                chances = Population.parse(population).chances(size)
                base = sunzi.make_plan("ss", size, epsilon).expected_mse(USERS, chances)
                measured = rows.column(_column(population)) / base
                means.append(float(measured.mean()))
                worst.append(float(measured.max()))
    return Claim(
        words="the empirical ratio MSE_MSS/MSE_SS never exceeded κ ≈ 1.3 across all (k, ε) we tested",
        where="Our Contributions",
        measured=f"averaged over the trials of a point, each with its own search: {min(means):.3f} to "
        f"{max(means):.3f}; the worst single trial of {light.size} searches {max(worst):.2f}; exactly, for items that "
        f"nobody holds, {light.min():.3f} to {light.max():.3f}",
        verdict="holds" if max(means) <= 1.3 else "in part",
        why="True of averages, which is what the paper reports. Single trials exceed it by chance and by the luck of "
        f"the search. The ratio of errors is not κ: κ of these sets is {drawn.column('kappa').min():.1f} to "
        f"{drawn.column('kappa').max():.1f}.",
    )


def _column(population: str) -> str:
    """Where a drawn set's simulated error stands."""
    return f"mse_{population.partition(':')[0]}"


def _kappa_claim(table: Table) -> Claim:
    drawn = table.where(kind="drawn")
    kappa, fallback = drawn.column("kappa"), drawn.column("fallback")
    return Claim(
        words="our modulus search keeps κ ≤ 10",
        where="Our Contributions; moduli selection, Steps 1 to 3 and the deterministic fallback",
        measured=f"κ is {kappa.min():.2f} to {kappa.max():.2f} over {kappa.size} searches; the fallback was used in "
        f"{fallback.mean():.0%}",
        verdict=verdict(float((kappa <= 10).mean())),
        why="By construction: a set with κ > 10 is refused. That κ ≤ 10 bounds the error is another matter, see below.",
    )


def _theorem_three(table: Table) -> Claim:
    drawn, bad = table.where(kind="drawn"), table.where(kind="bad")
    below = float((drawn.column("ratio") <= drawn.column("kappa")).mean())
    broken = [row for row in bad if _number(row, "ratio") > _number(row, "kappa")]
    example = "".join(
        f"; the {row['label']} have κ = {_number(row, 'kappa'):,.0f} and {_number(row, 'ratio'):,.0f} times the error "
        "of SS"
        for row in broken
    )
    return Claim(
        words="For any frequency vector f and any moduli choice with finite κ: MSE_MSS ≤ κ·4e^ε/(n(e^ε−1)²)",
        where="Theorem “Worst-Case MSE of MSS”",
        measured=f"true of {below:.0%} of the sets that the search found{example}",
        verdict="does not hold" if broken else verdict(below),
        why="The proof needs ‖G‖² = κ²/σ_max², so the bound holds with κ² only (and every column of A has one 1 a "
        "block, "
        "not every row). With κ² and κ ≤ 10 it promises 100 times the error of SS, where 1.1 to 1.3 is found: it says "
        "nothing of practical use.",
    )


def _theorem_four(table: Table) -> Claim:
    drawn, bad = table.where(kind="drawn"), table.where(kind="bad")
    kept = drawn.column("kappa") <= drawn.column("kappa_bound")
    epsilons = drawn.column("epsilon")
    shares = ", ".join(
        f"{kept[(epsilons >= low) & (epsilons <= high)].mean():.0%} at ε from {low:g} to {high:g}"
        for low, high in ((0.5, 2.0), (2.5, 5.0))
        if ((epsilons >= low) & (epsilons <= high)).any()
    )
    broken = [row for row in bad if _number(row, "kappa") > _number(row, "kappa_bound")]
    example = "".join(
        f"; {row['label']} ({row['length']} moduli, k = 1,024, ε = 1): bound {_number(row, 'kappa_bound'):.1f}, κ = "
        f"{_number(row, 'kappa'):,.0f}"
        for row in broken
    )
    return Claim(
        words="With probability 1 over the random prime selection, κ ≤ α(ℓ+T*)/(ℓ−T*)",
        where="Theorem “Condition-number bound”",
        measured=f"of the sets that the search found the bound is met by {shares}{example}",
        verdict="does not hold" if broken or not kept.all() else "holds",
        why="Gershgorin's discs must count all k/m_j collisions of a value in a block, not the T* moduli that can make "
        "two given values collide. At small ε the bound is met because α is large; as ε grows α goes to 1, and the "
        "sets that the search itself finds break it.",
    )


def _loose(table: Table) -> Claim:
    drawn = table.where(kind="drawn")
    shorter = float((drawn.column("length") < drawn.column("l_theory")).mean())
    return Claim(
        words="the bound is sufficient but generally not tight; smaller values of ℓ frequently satisfy κ ≤ κ_max in "
        "practice",
        where="Remark “Conservative bound”",
        measured=f"{shorter:.0%} of the sets found have κ ≤ 10 with fewer moduli than ℓ_theory",
        verdict="in part" if shorter > 0 else "does not hold",
        why="Smaller ℓ do satisfy it. But the bound is not sufficient, since the theorem behind it is false.",
    )


def _arbitrary(table: Table) -> Claim:
    small = table.where(kind="small")
    found = small.column("found")
    above = float((small.column("largest") > small.column("domain_size")).mean())
    sizes = small.column("domain_size")
    return Claim(
        words="it accepts arbitrary k and ε",
        where="Comparison with PGR",
        measured=f"the search finds moduli for {found.mean():.0%} of all k from {sizes.min():.0f} to {sizes.max():.0f} "
        f"at ε = 1; in {above:.0%} of them a modulus exceeds k",
        verdict="holds" if found.all() else "in part",
        why="On small domains the band has too few primes, and the deterministic fallback goes beyond k: such a block "
        "is SS on a domain larger than k, and “m_j < k” of the abstract does not hold. (PGR takes any k and ε too: it "
        "embeds k values in the next projective space.)",
    )


def _logarithmic(table: Table) -> Claim:
    drawn = table.where(kind="drawn")
    parts = []
    for size in drawn.distinct("domain_size"):
        rows = drawn.where(domain_size=size)
        parts.append(
            f"k = {size:,}: ℓ = {rows.column('length').mean():.1f} on average, Σm_j = "
            f"{rows.column('sum_share').mean():.1f}·k"
        )
    return Claim(
        words="one can select moduli such that Σ_j m_j = O(k) (since each m_j < k and ℓ = Θ(log k))",
        where="Server-side decoding, overall runtime",
        measured="; ".join(parts),
        verdict="in part",
        why="ℓ is bounded by ℓ_max = 20 and does not follow log k between these two sizes, while Σm_j stays the same "
        "multiple of k: O(k) agrees with what is found. The reason given does not lead there: m_j < k and ℓ = Θ(log k) "
        "give O(k log k).",
    )


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    return float("nan") if value is None or isinstance(value, str) else float(value)


EXPERIMENT = ModuliPerTrial()
