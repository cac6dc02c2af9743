"""What needs no trials: Theorem 1 by enumeration, the sizes of subsets, integers, and two formulas of the appendix."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, exp
from typing import TYPE_CHECKING, Any

import numpy as np

import sunzi
from sunzi.client.thresholds import SCALE, exponential_below

from . import claims
from .attackers import expected_of_block, values_behind_messages
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding, finding_of
from .figures import common_legend, curve, head, panels, style
from .moduli_search import paper_search, shared_epsilon
from .table import Table, number_in
from .trials import EPSILONS, paper_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sunzi.designs import BlockResponse

ENUMERATED = (
    (6, (2, 3, 5)),
    (12, (3, 5, 7)),
    (17, (5, 7, 11)),
    (29, (7, 11, 13)),
    (9, (3, 11)),
)
"""Domains and moduli small enough to list every output, one with a modulus above k."""
ATTACKED = (100, 1024)
"""The domains of the paper's figures on attack."""
SMALL_ORDER = 3
"""The field of the small plane whose truncations are listed."""
_AGREE, _CLOSE = 1e-6, 0.05


class Exact(Experiment):
    """Every row is exact: probabilities are listed or computed, never simulated."""

    name = "exact"
    title = "What can be checked exactly"
    reproduces = "Theorem 1, Algorithm 1, and the appendix's formulas for PGR with k < K and for ω = 1"

    def cells(self, scale: Scale) -> list[Cell]:
        """Small mechanisms, the paper's own points, and one plan for its arithmetic."""
        epsilons = {"full": EPSILONS, "quick": (0.5, 1.0, 2.0, 3.0, 4.0, 5.0), "tiny": (1.0, 5.0)}[scale]
        sizes = ATTACKED[:1] if scale == "tiny" else ATTACKED
        cells = [
            Cell.of(0.5, part="privacy", k=size, moduli=moduli, epsilon=epsilon)
            for size, moduli in ENUMERATED[: 2 if scale == "tiny" else None]
            for epsilon in epsilons
        ]
        cells += [Cell.of(1.0, part="attack", k=size, epsilon=epsilon) for size in sizes for epsilon in epsilons]
        searched = sizes if scale != "full" else (*sizes, 22_000)
        cells += [Cell.of(1.0, part="sizes", k=size, epsilon=epsilon) for size in searched for epsilon in epsilons]
        points = SMALL_ORDER**2 + SMALL_ORDER + 1
        cells += [Cell.of(0.1, part="small plane", k=size, epsilon=3.0) for size in range(SMALL_ORDER + 2, points)]
        return [*cells, Cell.of(0.5, part="arithmetic", k=100, epsilon=1.0)]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """One row, or one per formula."""
        size, epsilon = cell["k"], cell["epsilon"]
        if cell["part"] == "privacy":
            return [_enumerate(sunzi.make_plan("mss", size, epsilon, moduli=cell["moduli"]))]
        if cell["part"] == "attack":
            return [_truncated(sunzi.make_plan("pgr", size, epsilon)), _one_residue(size, epsilon)]
        if cell["part"] == "small plane":
            return [_truncated(sunzi.make_plan("pgr", size, epsilon, order=SMALL_ORDER))]
        if cell["part"] == "sizes":
            moduli = paper_search(size, shared_epsilon(size, epsilon)).moduli
            rounded = [round(modulus / (exp(epsilon) + 1)) for modulus in moduli]
            return [{"moduli": len(moduli), "empty": rounded.count(0)}]
        return [_arithmetic(sunzi.make_plan("mss", size, epsilon, code="arithmetic"), seed)]

    def draw(self, table: Table) -> Figure:
        """The appendix's formula for truncated PGR, and the share of moduli whose subset is empty as printed."""
        figure, (left, right) = _two_panels()
        part = table.where(part="attack", formula="truncated")
        for place, size in enumerate(part.distinct("k")):
            rows = part.where(k=size)
            ratio = rows.column("printed") / rows.column("exact")
            curve(left, rows.column("epsilon"), ratio, f"PGR, k = {size:,}", **style("", place))
        left.axhline(1.0, color="#777777", linewidth=1)
        head(left, "the appendix's DRA of PGR for k < K", "ε", "formula / exact")
        part = table.where(part="sizes")
        for place, size in enumerate(part.distinct("k")):
            rows = part.where(k=size)
            share = rows.column("empty") / rows.column("moduli")
            curve(right, rows.column("epsilon"), share, f"moduli of the search, k = {size:,}", **style("", place + 3))
        head(right, "moduli with ⌊m/(e^ε+1)⌉ = 0", "ε", "share of the moduli")
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Two formulas, the theorem, and the arithmetic."""
        return [_private(table), _sizes(table), _integers(table), _one_residue_formula(table), _pgr_formula(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """What was listed."""
        rows = table.where(part="privacy")
        return (
            f"Theorem 1: {len(rows)} small mechanisms, for which the probability of every output under every value is "
            f"listed as an exact fraction, once as Algorithm 1 defines it and once with the thresholds of the shipped "
            f"client, {int(rows.column('outputs').sum()):,} outputs in all. The formulas of the appendix are compared "
            "with the exact success of the best guess if all values are equally likely, at every k and ε of the "
            "paper's figures.",
        )


def _two_panels() -> tuple[Figure, Any]:
    figure, axes = panels(1, 2, height=3.2)
    return figure, axes[0]


def output_probabilities(value: int, blocks: Sequence[tuple[int, int, Fraction]]) -> dict[Any, Fraction]:
    """P[(j, Z)] of Algorithm 1 for every output; blocks are (m_j, ω_j, p_j)."""
    found = {}
    for index, (modulus, chosen, truth) in enumerate(blocks):
        inside, outside = comb(modulus - 1, chosen - 1), comb(modulus - 1, chosen)
        for subset in combinations(range(modulus), chosen):
            chance = truth / inside if value % modulus in subset else (1 - truth) / outside
            found[index, subset] = chance / len(blocks)
    return found


def largest_ratio(size: int, blocks: Sequence[tuple[int, int, Fraction]]) -> Fraction:
    """The largest likelihood ratio of one output under two values; the probabilities of each value must sum to 1."""
    tables = [output_probabilities(value, blocks) for value in range(size)]
    assert all(sum(table.values()) == 1 for table in tables)
    return max(max(table[output] for table in tables) / min(table[output] for table in tables) for output in tables[0])


def _enumerate(plan: sunzi.Plan) -> Row:
    """Algorithm 1 with a rational number just below e^ε, and the client's own thresholds."""
    size, responses = plan.domain.size, plan.protocol.responses
    odds = Fraction(exponential_below(responses[0].epsilon), SCALE)
    shapes = [(response.design.points, response.design.block_size) for response in responses]
    printed = [(m, w, w * odds / (w * odds + m - w)) for m, w in shapes]
    shipped = [(m, w, response.inclusion) for (m, w), response in zip(shapes, responses, strict=True)]
    ratios = [largest_ratio(size, blocks) for blocks in (printed, shipped)]
    return {
        "outputs": sum(comb(m, w) for m, w in shapes),
        "printed_private": int(ratios[0] <= odds),
        "shipped_private": int(ratios[1] <= odds),
        "shortfall": float(1 - ratios[1] / odds),
    }


def truncated_formula(plan: sunzi.Plan) -> float:
    """The appendix's E[DRA] of PGR: a mean over messages, as if all of them were equally likely."""
    size, odds = plan.domain.size, exp(plan.epsilon)
    behind = values_behind_messages(plan.protocol.responses[0].design, size)
    return float(np.mean(np.where(behind > 0, odds / (size + (odds - 1) * behind), 1 / size)))


def _truncated(plan: sunzi.Plan) -> Row:
    return {
        "formula": "truncated",
        "points": plan.protocol.responses[0].design.points,
        "printed": truncated_formula(plan),
        "exact": plan.attackability,
    }


def singleton_formula(responses: Sequence[BlockResponse], size: int) -> float:
    """The appendix's special case (b) for blocks with one residue."""
    chances = [response.probabilities.true * min(response.design.points, size) / size for response in responses]
    return float(np.mean(chances))


def _one_residue(size: int, epsilon: float) -> Row:
    """Over the blocks with ω_j = 1 of one search, if there are any."""
    responses = [each for each in paper_plan(size, epsilon).protocol.responses if each.design.block_size == 1]
    row: Row = {"formula": "one residue", "blocks": len(responses)}
    if responses:
        even = np.full(size, 1 / size)
        row["printed"] = singleton_formula(responses, size)
        row["exact"] = float(np.mean([expected_of_block(each, size, even) for each in responses]))
    return row


def _arithmetic(plan: sunzi.Plan, seed: int) -> Row:
    """Whether the client compares and draws integers only, and whether the server's estimates are numbers of users."""
    users = 1000
    numbers = [number for each in plan.protocol.responses for number in (each.threshold, *each.word_bounds)]
    tally = plan.tally(plan.client(seed=seed).reports(np.arange(users) % plan.domain.size))
    estimated = plan.estimate(tally).frequencies * users
    return {
        "client": int(all(isinstance(number, int) for number in numbers)),
        "server": int(np.allclose(estimated, np.rint(estimated), atol=1e-6)),
    }


def _private(table: Table) -> Evidence:
    rows = table.where(part="privacy")
    printed, shipped = rows.column("printed_private"), rows.column("shipped_private")
    return Evidence(
        claim=claims.PRIVATE,
        measured=f"every likelihood ratio is at most e^ε in {int(printed.sum())} of {len(rows)} mechanisms of "
        "Algorithm 1, all outputs and pairs of values listed",
        finding="for" if printed.all() else "against",
        beyond=f"with the integer thresholds of the shipped client in {int(shipped.sum())} of {len(rows)}; its largest "
        f"ratio falls short of e^ε by at most {rows.column('shortfall').max():.0e} of it",
        beyond_finding="for" if shipped.all() else "against",
        why="The block is drawn independently of the value, and a subset with the residue is e^ε times as likely as "
        "one without it. The shipped client is enumerated over all its random words by "
        "`tests/proof/test_enumeration.py` (`test_modular_protocols`), and its thresholds are certified in integers by "
        "`tests/proof/test_certificates.py`.",
    )


def _sizes(table: Table) -> Evidence:
    rows = table.where(part="sizes")
    broken = rows.column("empty") > 0
    epsilons, sizes = rows.column("epsilon"), rows.column("k")
    listed = "; ".join(
        f"k = {size:,} from ε = {epsilons[broken & (sizes == size)].min():g} on"
        for size in rows.distinct("k")
        if (broken & (sizes == size)).any()
    )
    return Evidence(
        claim=claims.SUBSET_SIZE,
        measured=f"a subset of at least one residue for all moduli at {int((~broken).sum())} of {broken.size} points; "
        + (
            f"an empty one for up to {(rows.column('empty') / rows.column('moduli')).max():.0%} of the moduli: {listed}"
            if listed
            else "never an empty one"
        ),
        finding=finding(float((~broken).mean())),
        why="Where m_j < (e^ε+1)/2 the printed size rounds to 0: the report is empty, p_j = q_j = 0, and the debiased "
        "estimate divides by 0. The size must be at least 1, as the appendix's special case ω_j = 1 and our "
        "implementation have it (erratum 16 of docs/paper-notes.md).",
    )


def _integers(table: Table) -> Evidence:
    (row,) = table.where(part="arithmetic").rows
    client, server = (bool(number_in(row, side)) for side in ("client", "server"))
    says = {True: "integers only", False: "not only integers"}
    return Evidence(
        claim=claims.INTEGERS,
        measured=f"the user draws, compares and sends {says[client]} in our implementation; the server's estimates are "
        f"{says[server]}",
        finding=finding_of(client, server),
        why="Residues and subsets are integers. Algorithm 1 as printed compares a real ζ with a real p_J, which can be "
        "done with an integer threshold, as our client does, but the server's weights, debiased counts and least "
        "squares are real numbers. PGR, with which the claim compares, also works with integers if its field is prime.",
    )


def _agreement(rows: Table) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return rows.column("printed") / rows.column("exact")


def _one_residue_formula(table: Table) -> Evidence:
    rows = Table(row for row in table.where(part="attack", formula="one residue") if row.get("printed") is not None)
    ratio = _agreement(rows)
    return Evidence(
        claim=claims.ONE_RESIDUE,
        measured=f"formula over the expectation: {ratio.min():.6f} to {ratio.max():.6f}, for the blocks with ω_j = 1 "
        f"at the {len(rows)} points that have any",
        finding=finding(float((np.abs(ratio - 1) < _AGREE).mean())),
        why="With one residue the attacker guesses among the n_{j,z} values behind it, and weighting by n_{j,z}/k "
        "leaves p_j times the number of residues in use.",
    )


def _pgr_formula(table: Table) -> Evidence:
    """At the paper's own points first; then on all truncations of a small plane."""
    rows, small = (table.where(part=part, formula="truncated") for part in ("attack", "small plane"))
    ratio, others = _agreement(rows), _agreement(small)
    worst = rows.rows[int(np.argmax(np.abs(ratio - 1)))]
    return Evidence(
        claim=claims.TRUNCATED_FORMULA,
        measured=f"formula over exact: {ratio.min():.3f} to {ratio.max():.3f}, within 5 % at "
        f"{int((np.abs(ratio - 1) < _CLOSE).sum())} of {ratio.size} points but exact only at "
        f"{int((np.abs(ratio - 1) < _AGREE).sum())}; the farthest at k = {worst['k']:,}, ε = {worst['epsilon']:g}, "
        f"K = {worst['points']:,}",
        finding=finding(float((np.abs(ratio - 1) < _CLOSE).mean())),
        beyond=f"on truncations of the plane with {small.rows[0]['points']} points, ε = "
        f"{small.rows[0]['epsilon']:g}, {others.min():.3f} to {others.max():.3f}, within 5 % at "
        f"{int((np.abs(others - 1) < _CLOSE).sum())} of {others.size}",
        beyond_finding=finding(float((np.abs(others - 1) < _CLOSE).mean())),
        why="It assumes that all messages are equally likely. After truncation a hyperplane with more of the k values "
        "is reported more often; the exact value is (P0/k)(e^ε·N⁺+N⁰) (erratum 7 of docs/paper-notes.md). With many "
        "points the difference is small. Table 1's formula, for k = K, is exact (`geometry`).",
    )


EXPERIMENT = Exact()
