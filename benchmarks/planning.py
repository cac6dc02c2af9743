"""The search for moduli: the speed of an exact error, the errors it reaches, and a comparison with the paper's search.

`python -m benchmarks.planning` measures everything in about three minutes and writes the tables of docs/moduli.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from reproduction.moduli_search import MOST_MODULI, PaperSearch, paper_search
from scipy.linalg import eigh, toeplitz

from benchmarks import settings
from benchmarks.measure import compare
from benchmarks.results import Result
from sunzi.designs.choice import optimal_block_size
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.plan import Plan, make_plan
from sunzi.planning import ModuliCandidate, choose_moduli, evaluate_moduli, reference_error, search_cache
from sunzi.planning.moduli_candidates import Kind, subset_bits
from sunzi.protocols.modular import ModularSubsetSelection
from sunzi.protocols.modular_variance import sampling_variance
from sunzi.protocols.moduli import moduli_error, spread_moduli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "moduli.md"
BEGIN = "<!-- measured: written by python -m benchmarks.planning, do not edit by hand -->"
END = "<!-- measured: end -->"

ERROR_SIZE, ERROR_MODULI = 2048, 16
# The larger the domain, the less the figures depend on ε.
COMPARED = {
    100: tuple(Fraction(half, 2) for half in range(1, 11)),
    1024: tuple(Fraction(whole) for whole in range(1, 6)),
    22_000: (Fraction(1), Fraction(3), Fraction(5)),
}
SUBSET_SIZE = 1024
# A limit of one hour has no effect except to bypass the cache.
_UNCACHED = 3600.0
_USERS = 10_000


@dataclass(frozen=True)
class Goal:
    """An error, relative to subset selection, that must be reached within a number of mean bits."""

    kind: Kind
    domain_size: int
    epsilon: int
    bits: float
    ratio: float
    wording: str


def goals() -> list[Goal]:
    """Fractions of the bits of subset selection for mss, whole bits for mss-compact."""
    whole = subset_bits(SUBSET_SIZE, optimal_block_size(SUBSET_SIZE, Fraction(1)))
    shares = ((0.50, 1.07), (0.35, 1.17), (0.25, 1.27))
    return [
        *(Goal("mss", SUBSET_SIZE, 1, share * whole, ratio, f"{share:.0%} of ss") for share, ratio in shares),
        Goal("mss-compact", settings.DOMAIN_SIZE, 1, 21, 1.12, "21 bits"),
        Goal("mss-compact", settings.DOMAIN_SIZE, 5, 25, 1.12, "25 bits"),
    ]


def exact_errors(scale: float) -> Iterator[Result]:
    """Exact error of one set of moduli, against all eigenvalues of the dense Gram matrix."""
    size = settings.domain_size(ERROR_SIZE, scale)
    variance = partial(ModularSubsetSelection.block_variance, size, Fraction(1))
    moduli = spread_moduli(size, variance, ERROR_MODULI)
    variances = np.array([variance(modulus) for modulus in moduli])
    column = ToeplitzGram(size, tuple(moduli), 1 / (len(moduli) * variances)).first_column

    def dense() -> float:
        values, vectors = eigh(toeplitz(column))
        ones = vectors @ (vectors.sum(axis=0) / values)
        return float((1 / values).sum() - ones @ ones / ones.sum()) / size - sampling_variance(size)

    fast = partial(moduli_error, size, moduli, variances)
    if abs(fast() / dense() - 1) > 1e-8:
        raise ValueError(f"the exact error is {fast()}, by eigenvalues {dense()}")
    times = compare(fast, dense, settings.rounds(3, scale))
    yield Result(
        "planning/exact-error",
        f"exact error of {len(moduli)} moduli, {size:,} values",
        times.measured,
        "all eigenvalues of the dense Gram matrix",
        times.reference,
        times.speedup,
        100,
        "at least",
        {"domain_size": size, "moduli": len(moduli)},
    )


def reached(scale: float) -> Iterator[Result]:
    """Errors that the search reaches within a limit on bits, relative to subset selection."""
    for goal in goals():
        found, seconds = _timed(goal, "quick" if scale >= 1 else 20)
        yield Result(
            f"planning/{goal.kind}/k-{goal.domain_size}/epsilon-{goal.epsilon}/{goal.wording}",
            f"search for {goal.kind}, {goal.domain_size:,} values, ε = {goal.epsilon}, {goal.wording}: error",
            seconds,
            "error of ss",
            None,
            found.error / reference_error(goal.domain_size, goal.epsilon),
            goal.ratio,
            "at most",
            {"bits": found.bits, "moduli": len(found.moduli)},
        )


def planning(scale: float) -> Iterator[Result]:
    """Time to evaluate one set of moduli, and the errors of the sets that the search finds."""
    yield from exact_errors(scale)
    yield from reached(scale)


def _timed(goal: Goal, effort: Any) -> tuple[ModuliCandidate, float]:
    start = process_time()
    found = choose_moduli(
        goal.domain_size, goal.epsilon, goal.kind, max_bits=goal.bits, effort=effort, seconds=_UNCACHED
    )
    return found, process_time() - start


@dataclass(frozen=True)
class Comparison:
    """The paper's search and ours with reports of at most the same length; ours also with at most the paper's number of
    moduli.
    """

    domain_size: int
    epsilon: Fraction
    paper: PaperSearch
    paper_seconds: float
    theirs: ModuliCandidate
    ours: ModuliCandidate
    our_seconds: float
    with_few: ModuliCandidate


def against_paper(domain_size: int, epsilon: Fraction) -> Comparison:
    """Both searches with seed 0, ours with low effort."""
    start = process_time()
    paper = paper_search(domain_size, epsilon)
    middle = process_time()
    theirs = evaluate_moduli(domain_size, epsilon, "mss", paper.moduli)
    search = partial(
        choose_moduli, domain_size, epsilon, "mss", max_bits=theirs.bits, effort="quick", seconds=_UNCACHED
    )
    ours = search()
    seconds = process_time() - middle
    return Comparison(
        domain_size, epsilon, paper, middle - start, theirs, ours, seconds, search(max_moduli=MOST_MODULI)
    )


def _goal_table() -> Iterator[str]:
    yield "| kind | values | ε | limit | error / ss | bits | moduli | goal | search |"
    yield "|---|--:|--:|---|--:|--:|--:|--:|--:|"
    for goal in goals():
        found, seconds = _timed(goal, "quick")
        ratio = found.error / reference_error(goal.domain_size, goal.epsilon)
        yield (
            f"| `{goal.kind}` | {goal.domain_size:,} | {goal.epsilon} | {goal.wording} | {ratio:.3f} | "
            f"{found.bits:.1f} | {len(found.moduli)} | ≤ {goal.ratio} | {seconds:.1f} s |"
        )


def _comparison_table() -> Iterator[str]:
    theirs, ours = "paper: ℓ | κ | bound on κ | error / ss | bits | time", "ours: ℓ | error / ss | bits | time"
    yield f"| values | ε | {theirs} | {ours} | ratio | ours, ℓ ≤ {MOST_MODULI}: error / ss |"
    yield "|" + 14 * "--:|"
    worst = 0.0
    for domain_size, epsilons in COMPARED.items():
        for epsilon in epsilons:
            each = against_paper(domain_size, epsilon)
            ratio = each.ours.error / each.theirs.error
            worst = max(worst, ratio if each.ours.bits <= each.theirs.bits else inf)
            yield _comparison_row(each, ratio)
    yield ""
    yield f"The largest ratio is {worst:.3f}."


def _comparison_row(each: Comparison, ratio: float) -> str:
    reference = reference_error(each.domain_size, each.epsilon)
    cells = [
        f"{each.domain_size:,}",
        f"{float(each.epsilon):g}",
        str(len(each.theirs.moduli)),
        f"{each.paper.kappa:.1f}",
        "∞" if each.paper.kappa_bound == inf else f"{each.paper.kappa_bound:.1f}",
        f"{each.theirs.error / reference:.3f}",
        f"{each.theirs.bits:.1f}",
        f"{each.paper_seconds:.1f} s",
        str(len(each.ours.moduli)),
        f"{each.ours.error / reference:.3f}",
        f"{each.ours.bits:.1f}",
        f"{each.our_seconds:.1f} s",
        f"{ratio:.3f}",
        f"{each.with_few.error / reference:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def _histogram_table() -> Iterator[str]:
    """Errors under realistic histograms, of the paper's moduli and of ours within their bits."""
    yield "| values | ε | moduli | ℓ | bits | all equal | Zipf, s = 1 | one value |"
    yield "|--:|--:|---|--:|--:|--:|--:|--:|"
    for domain_size, epsilon in ((1024, 3), (1024, 4), (1024, 5), (100, 3), (100, 5)):
        paper = evaluate_moduli(domain_size, epsilon, "mss", paper_search(domain_size, epsilon).moduli)
        ours = choose_moduli(domain_size, epsilon, "mss", max_bits=paper.bits, effort="quick", seconds=_UNCACHED)
        sets = {"the paper's search": paper.moduli, "`choose_moduli`": ours.moduli}
        for name, moduli in sets.items():
            plan = make_plan("mss", domain_size, epsilon, moduli=moduli)
            ratios = " | ".join(f"{ratio:.3f}" for ratio in _relative_errors(plan))
            yield f"| {domain_size:,} | {epsilon} | {name} | {len(moduli)} | {plan.report_bits:.1f} | {ratios} |"


def _relative_errors(plan: Plan) -> Iterator[float]:
    """Relative to subset selection: a uniform histogram, Zipf's law, and one value held by all users."""
    size = plan.domain.size
    reference = make_plan("ss", size, plan.epsilon)
    zipf, alone = 1 / np.arange(1.0, size + 1), np.zeros(size)
    alone[0] = 1.0
    for histogram in (np.full(size, 1 / size), zipf / zipf.sum(), alone):
        yield plan.expected_mse(_USERS, histogram) / reference.expected_mse(_USERS, histogram)


def main() -> None:
    """Replace the text between the two marks of docs/moduli.md."""
    os.environ[search_cache.VARIABLE] = ""
    error = next(exact_errors(1.0))
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} must contain the lines {BEGIN!r} and {END!r}")
    parts = [
        "\n".join(_goal_table()),
        f"The exact error of {ERROR_MODULI} moduli at {ERROR_SIZE:,} values took {1000 * error.seconds:.1f} ms, "
        f"{error.ratio:.0f} times less than the eigenvalues of the dense matrix.",
        "### Against the paper's search",
        "\n".join(_comparison_table()),
        "### Under realistic histograms",
        "\n".join(_histogram_table()),
    ]
    joined = "\n\n".join(parts)
    PAGE.write_text(f"{before}{BEGIN}\n\n{joined}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
