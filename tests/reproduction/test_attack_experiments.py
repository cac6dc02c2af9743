"""The experiments on bits, server time and attack: attackers, decoders and formulas against slow, obvious code."""

import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.attackers import boxed_rate, expected_rate, success_rate
from reproduction.bits import FIXED, LARGE, pooled
from reproduction.comparison import formula_attack, formula_bits, formula_error
from reproduction.decoders import LeastSquares, dynamic_frequencies
from reproduction.dra import compare
from reproduction.exact import largest_ratio, output_probabilities, singleton_formula, truncated_formula
from reproduction.geometry import closed_form, projective_size
from reproduction.runtime import FROM_BYTES, PAPER, PHASES, speedups
from reproduction.table import Table

import sunzi
from reproduction import catalogue, claims
from sunzi.analysis.evidence import read_reports
from sunzi.planning import Population

BOUND = float(stats.norm.isf(1e-6 / 2 / 30))  # two-sided, over the thirty tests that use it
SETTINGS = [
    ("grr", 12, 1, {}),
    ("ss", 12, 1, {}),
    ("ss-compact", 12, 2, {"classes": 3, "points": 13}),
    ("pgr", 12, 3, {"order": 3}),
    ("pgr", 3, 3, {"order": 4}),  # some hyperplanes miss the domain
    ("rappor", 12, 1, {}),
    ("oue", 12, 3, {}),
    ("mss", 17, 1, {"moduli": (3, 5, 7, 13)}),
    ("mss", 10, 2, {"moduli": (3, 11)}),  # a modulus above the domain
    ("mss-compact", 20, 2, {"moduli": (5, 7, 13)}),
]


@pytest.mark.parametrize("population", ["uniform", "spike"])
@pytest.mark.parametrize(("name", "size", "epsilon", "options"), SETTINGS)
def test_the_attacker_succeeds_as_often_as_on_real_reports(name, size, epsilon, options, population):
    """For each report in bytes, a random guess among its supported values has a known probability of success."""
    users = 40_000
    plan = sunzi.make_plan(name, size, epsilon, **options)
    values = Population.parse(population).draw(size, users, 5)
    table = read_reports(plan, plan.client(seed=6).report_indices(values)).table(np.arange(size))
    supported = table.sum(axis=1)
    chances = np.where(table[np.arange(users), values], 1 / np.maximum(supported, 1), 0.0)
    chances[supported == 0] = 1 / size
    rate = success_rate(plan, values, [7])
    # The rate adds the randomness of the guess to the variation of the probabilities.
    noise = np.sqrt((rate * (1 - rate) + chances.var()) / users)
    assert abs(rate - chances.mean()) < BOUND * noise


@pytest.mark.parametrize(("name", "size", "epsilon", "options"), SETTINGS)
def test_over_equally_frequent_values_the_attacker_reaches_attackability(name, size, epsilon, options):
    users = 60_000
    plan = sunzi.make_plan(name, size, epsilon, **options)
    rate = success_rate(plan, np.arange(users) % size, [8])
    expected = plan.attackability
    assert abs(rate - expected) < BOUND * np.sqrt(expected * (1 - expected) / users)


def listed_rate(plan, value):
    """The mean over blocks of p·E[1/(values behind a subset with the value's residue)], with every subset listed."""
    size, rates = plan.domain.size, []
    for response in plan.protocol.responses:
        points, chosen = response.design.points, response.design.block_size
        behind = np.bincount(np.arange(size) % points, minlength=points)
        own = value % points
        others = [point for point in range(points) if point != own]
        sizes = [behind[own] + behind[list(rest)].sum() for rest in combinations(others, chosen - 1)]
        rates.append(response.probabilities.true * np.mean(1 / np.array(sizes)))
    return np.mean(rates)


@pytest.mark.parametrize("epsilon", ["1/2", 1, 3])
def test_expected_rate_is_the_mean_over_all_subsets(epsilon):
    plan = sunzi.make_plan("mss", 17, epsilon, moduli=(3, 5, 7, 11))
    listed = np.array([listed_rate(plan, value) for value in range(17)])
    assert expected_rate(plan, np.full(17, 1 / 17)) == pytest.approx(plan.attackability, rel=1e-12)
    for value in (0, 1, 8, 16):
        assert expected_rate(plan, np.eye(17)[value]) == pytest.approx(listed[value], rel=1e-12)
    assert np.all(boxed_rate(plan) <= listed * (1 + 1e-12))
    assert boxed_rate(plan) < 0.98 * listed.mean()
    subsets = sunzi.make_plan("ss", 17, epsilon)
    assert expected_rate(subsets, np.eye(17)[3]) == pytest.approx(subsets.attackability, rel=1e-12)


@pytest.mark.parametrize("ridge", [0.0, None])
def test_lsmr_finds_what_the_library_does(ridge):
    plan = sunzi.make_plan("mss", 60, 1, moduli=(7, 11, 31, 53))
    tally = plan.simulate(np.random.default_rng(1).integers(60, size=3000), seed=2)
    solver = LeastSquares(plan, tally, ridge)
    found, iterations = solver.solve(tolerance=1e-14)
    library = plan.estimate(tally, weights="paper", ridge="paper" if ridge is None else 0.0).frequencies
    if ridge is not None:  # the library then moves the estimate so that it sums to 1
        matrix = solver.matrix.toarray()
        direction = np.linalg.solve(matrix.T @ matrix, np.ones(60))
        found += direction * ((1 - found.sum()) / direction.sum())
    np.testing.assert_allclose(found, library, atol=1e-9)
    assert 0 < iterations < 500


def test_the_dynamic_programme_finds_what_the_library_does():
    plan = sunzi.make_plan("pgr", 200, 2)
    tally = plan.simulate(np.random.default_rng(1).integers(200, size=2000), seed=2)
    np.testing.assert_allclose(
        dynamic_frequencies(plan, tally), plan.estimate(tally, weights="planned").frequencies, atol=1e-12
    )


@pytest.mark.parametrize("epsilon", [1, 3, 5])
@pytest.mark.parametrize("name", ["grr", "rappor", "ss", "mss"])
def test_table_1_is_right_about_these(name, epsilon):
    plan = sunzi.make_plan(name, 300, epsilon, **({"code": "arithmetic"} if name == "mss" else {}))
    assert formula_bits(plan) == plan.report_bits
    assert formula_attack(plan) == pytest.approx(plan.attackability, rel=1e-9)
    if name == "grr":
        light = plan.protocol.probabilities.variance(0) / 100
        assert formula_error(name, 300, epsilon, 100) == pytest.approx(light, rel=1e-9)


def test_table_1_is_wrong_about_a_truncated_geometry():
    plan = sunzi.make_plan("pgr", 300, 3)
    assert plan.protocol.design.points > 400
    assert formula_bits(plan) < plan.report_bits
    assert formula_attack(plan) < 0.8 * plan.attackability
    assert formula_bits(sunzi.make_plan("oue", 300, 3)) is formula_attack(sunzi.make_plan("oue", 300, 3)) is None


def test_pooling_searches_of_several_cells():
    bits = np.array([[3.0, 5.0], [9.0, 11.0]])
    rows = [
        {
            "part": "search",
            "k": 10,
            "epsilon": 1.0,
            "searches": 2,
            "bits": part.mean(),
            "squares": np.mean(part**2),
            "least": part.min(),
            "largest": part.max(),
            "residue_bits": 2.0,
            "error": 1.0,
        }
        for part in bits
    ]
    (row,) = pooled(Table(rows), 10)
    assert (row["trials"], row["mean"], row["least"], row["largest"]) == (4, bits.mean(), 3, 11)
    assert row["deviation"] == pytest.approx(bits.std())


def timed(seconds_of_pgr):
    ways = {"mss": 0.01, "mss by lsmr": 0.01, "pgr": seconds_of_pgr, "pgr by programme": seconds_of_pgr}
    counted = {"part": "iterations", "epsilon": 2.0, "kappa": 3.0}
    sent = {"part": "bytes", "k": 300} | dict.fromkeys(PHASES, 0.01)
    return Table(
        [
            {"way": way, "epsilon": epsilon, "median": seconds, "counting": 0.001, "points": 500, "k": 300}
            for epsilon in PAPER
            for way, seconds in (ways | {"ss-compact": 0.01, "mss-compact": 0.01}).items()
        ]
        + [counted | {"k": size, "iterations": number} for size, number in ((300, 17), (300, 19), (900, 20))]
        + [sent | {"protocol": name, "epsilon": epsilon} for name in FROM_BYTES for epsilon in PAPER]
    )


@pytest.mark.parametrize(("seconds", "finding"), [(0.12, "for"), (0.02, "in part"), (0.005, "against")])
def test_the_finding_on_the_speed_up(seconds, finding):
    table = timed(seconds)
    assert speedups(table, "pgr", "mss") == pytest.approx([seconds / 0.01] * len(PAPER))
    piece = catalogue.find("runtime").evidence(table)[0]
    assert piece.claim == claims.SPEED_UP
    assert piece.finding == piece.beyond_finding == finding
    assert f"{seconds / 0.01:.2f}" in piece.measured
    assert "from bytes to frequencies 1.00 to 1.00 times" in piece.beyond


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.5])
def test_the_closed_form_of_pgr_is_right_on_its_own_domain(epsilon):
    size = projective_size(100, epsilon)
    assert closed_form(size, epsilon) == pytest.approx(sunzi.make_plan("pgr", size, epsilon).attackability, rel=1e-9)


def test_the_appendix_on_truncated_pgr_against_all_messages():
    """Each message listed: the formula takes a plain mean, the truth weights messages by their probability."""
    plan = sunzi.make_plan("pgr", 5, 3, order=3)
    response = plan.protocol.responses[0]
    messages = np.arange(response.design.points)
    table = np.array([response.design.contains(messages, np.full(13, value)) for value in range(5)])
    inside, outside = (float(chance) for chance in response.message_probabilities())
    likelihood = np.where(table, inside, outside)
    posterior = likelihood.max(axis=0) / likelihood.sum(axis=0)
    assert truncated_formula(plan) == pytest.approx(posterior.mean(), rel=1e-9)
    assert plan.attackability == pytest.approx(posterior @ likelihood.mean(axis=0), rel=1e-9)
    assert truncated_formula(plan) > 1.1 * plan.attackability


def test_one_residue_is_the_special_case_of_the_expectation():
    plan = sunzi.make_plan("mss", 17, 5, moduli=(3, 5, 7, 11))
    assert {response.design.block_size for response in plan.protocol.responses} == {1}
    listed = np.mean([listed_rate(plan, value) for value in range(17)])
    assert singleton_formula(plan.protocol.responses, 17) == pytest.approx(listed, rel=1e-12)


def test_enumerated_privacy_finds_the_exact_ratio_and_a_violation():
    odds = Fraction(3)
    blocks = [(m, w, w * odds / (w * odds + m - w)) for m, w in ((3, 1), (7, 2))]
    assert sum(output_probabilities(4, blocks).values()) == 1
    assert largest_ratio(10, blocks) == odds
    greedy = [(m, w, truth + (1 - truth) / 100) for m, w, truth in blocks]
    assert largest_ratio(10, greedy) > odds


def attacked(rates):
    return Table(
        {"protocol": name, "k": 10, "epsilon": epsilon, "population": "spike", "mean": rate, "standard_error": 0.01}
        for epsilon in (1.0, 2.0)
        for name, rate in rates.items()
    )


@pytest.mark.parametrize(("mine", "expected"), [(0.1, (2, 0, 0)), (0.29, (0, 2, 0)), (0.5, (0, 0, 2))])
def test_comparing_with_the_lowest_of_others(mine, expected):
    assert compare(attacked({"mss": mine, "ss": 0.3, "grr": 0.6}), ["ss", "grr"]) == expected


def test_a_protocol_that_the_paper_does_not_run_is_evidence_beyond_its_setting():
    rates = {"mss": 0.5, "rappor": 0.3, "grr": 0.9, "ss": 0.8, "pgr": 0.8, "oue": 0.8}
    rows = [
        row | {"k": 100, "population": name, "best": 0.9, "uniform": 0.1, "expected": 0.1, "without_report": 0.8}
        for name in ("zipf:3", "spike")
        for row in attacked(rates)
    ]
    found = {piece.claim: piece for piece in catalogue.find("dra").evidence(Table(rows))}
    assert found[claims.LOWEST_OF_ALL].finding == "for"
    assert found[claims.LOWEST_OF_ALL].beyond_finding == "against"
    assert found[claims.LOWEST_ATTACK].finding == "for"
    assert found[claims.ANY_INPUT].finding == "for"
    assert found[claims.GRR_ATTACK].finding == "for"


@pytest.mark.parametrize(
    ("share", "deviation", "finding"),
    [
        (0.4, 0.01, "for"),
        (0.49, 0.1, "in part"),
        (0.5475, 0.06, "in part"),
        (0.56, 0.06, "in part"),
        (0.8, 0.06, "against"),
    ],
)
def test_one_half_is_reached_clearly_nearly_or_not(share, deviation, finding):
    mean, searches = 100 * share, 16
    fixed = [{"part": "fixed", "k": 10, "epsilon": 1.0, "protocol": name, "bits": 100.0} for name in FIXED]
    found = {
        "part": "search",
        "k": 10,
        "epsilon": 1.0,
        "searches": searches,
        "bits": mean,
        "squares": mean**2 + (100 * deviation) ** 2,
        "least": mean - 10,
        "largest": mean + 10,
        "residue_bits": 2.0,
        "error": 1.0,
    }
    pieces = {piece.claim: piece.finding for piece in catalogue.find("bits").evidence(Table([*fixed, found]))}
    assert pieces[claims.HALF_THE_BITS] == finding


def test_full_sizes_are_the_papers():
    cells = {name: catalogue.find(name).cells("full") for name in ("dra", "bits", "runtime", "comparison", "geometry")}
    assert {cell["k"] for cell in cells["dra"]} == {100, 1024}
    assert {cell["trials"] for cell in cells["dra"] + cells["comparison"] + cells["geometry"]} == {300}
    assert {cell["users"] for cell in cells["dra"] + cells["runtime"]} == {10_000}
    timed = [cell for cell in cells["runtime"] if "part" not in dict(cell.parameters)]
    assert [cell["epsilon"] for cell in timed] == list(PAPER)
    assert all(cell["collections"] * cell["rounds"] >= 100 for cell in timed)
    assert {cell["k"] for cell in cells["runtime"]} == {1024, LARGE}
    sent = [cell for cell in cells["runtime"] if dict(cell.parameters).get("part") == "bytes"]
    assert [(cell["epsilon"], cell["users"]) for cell in sent] == [(epsilon, 10_000) for epsilon in PAPER]
    for size, least in ((1024, 300), (LARGE, 100)):
        found = [cell for cell in cells["bits"] if cell["part"] == "search" and cell["k"] == size]
        for epsilon in (0.5, 2.0, 3.5, 5.0):
            assert sum(cell["searches"] for cell in found if epsilon in cell["epsilons"]) == least
    shared = {cell for cell in cells["dra"] if cell["protocol"] in ("ss", "mss")}
    assert set(catalogue.find("analytical-dra").cells("full")) == shared
