"""Choosing moduli: the search's results, its limits, and that it beats the paper's search."""

import re
import sys
from fractions import Fraction
from math import comb, inf
from pathlib import Path

import numpy as np
import pytest

from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError
from sunzi.designs.choice import optimal_block_size
from sunzi.plan import make_plan
from sunzi.planning import choose_moduli, evaluate_moduli, pareto_front, reference_error

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.moduli_search import paper_search

pytestmark = pytest.mark.slow

MAIN_EPSILONS = {1, 2, 4, 7, 10}  # halves; the other settings of the paper are tested with --long
EPSILONS = [
    pytest.param(Fraction(half, 2), marks=[] if half in MAIN_EPSILONS else [pytest.mark.long]) for half in range(1, 11)
]


@pytest.mark.parametrize(("share", "ratio"), [(0.50, 1.07), (0.35, 1.17), (0.25, 1.27)])
def test_errors_reached_at_shares_of_the_bits_of_subset_selection(share, ratio):
    size = optimal_block_size(1024, Fraction(1))
    bits = share * (comb(1024, size) - 1).bit_length()
    found = choose_moduli(1024, 1, "mss", max_bits=bits, effort=60)
    plan = make_plan("mss", 1024, 1, moduli=found.moduli)
    assert plan.report_bits <= bits
    assert plan.expected_mse(1) / make_plan("ss", 1024, 1).expected_mse(1) <= ratio


@pytest.mark.parametrize(("epsilon", "bits"), [(1, 21), (5, 25)])
def test_errors_reached_by_compact_blocks_on_a_large_domain(epsilon, bits):
    found = choose_moduli(22_000, epsilon, "mss-compact", max_bits=bits, max_moduli=16, effort=40)
    plan = make_plan("mss-compact", 22_000, epsilon, moduli=found.moduli)
    assert plan.report_bits <= bits
    assert plan.expected_mse(1) <= 1.12 * reference_error(22_000, epsilon)
    assert plan.expected_mse(1) == pytest.approx(found.error, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "effort"), [(100, 800), (1024, 50)])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_never_worse_than_the_papers_search(size, effort, epsilon):
    paper = paper_search(size, epsilon)
    theirs = evaluate_moduli(size, epsilon, "mss", paper.moduli)
    ours = choose_moduli(size, epsilon, "mss", max_bits=theirs.bits, effort=effort)
    assert ours.bits <= theirs.bits
    assert ours.error <= theirs.error


@pytest.mark.slow
@pytest.mark.parametrize(("size", "effort"), [(100, 400), (1024, 80)])
def test_at_large_epsilon_the_error_is_that_of_the_plan_and_below_the_papers(size, effort):
    epsilon, flat = 5, np.full(size, 1 / size)
    paper = paper_search(size, epsilon)
    bits = evaluate_moduli(size, epsilon, "mss", paper.moduli).bits
    ours = choose_moduli(size, epsilon, "mss", max_bits=bits, effort=effort)
    errors = [
        make_plan("mss", size, epsilon, moduli=moduli).expected_mse(1, flat) for moduli in (ours.moduli, paper.moduli)
    ]
    assert errors[0] < 0.92 * errors[1]
    assert errors[0] == pytest.approx(ours.error, rel=0.04)


def dominates(first, second):
    return first != second and all(mine <= theirs for mine, theirs in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", ["mss", "mss-compact"])
@pytest.mark.parametrize(("size", "epsilon"), [(60, 1), (60, 5), (300, 2)])
def test_front_is_a_front_of_honest_candidates(kind, size, epsilon):
    front = pareto_front(size, epsilon, kind, effort=200, max_moduli=12)
    assert len(front) > 3
    assert [each.error for each in front] == sorted(each.error for each in front)
    for each in front:
        assert all(map(is_prime, each.moduli))
        assert len(each.moduli) <= 12
        assert not any(dominates(other.axes, each.axes) for other in front)
    for each in front[:: len(front) // 3]:
        again = evaluate_moduli(size, epsilon, kind, each.moduli)
        assert again.axes == pytest.approx(each.axes, rel=1e-9)
        assert again.max_bits == each.max_bits


def test_limits_are_kept():
    front = pareto_front(100, 4, "mss", max_bits=14, max_attack=0.2, max_moduli=20, effort=300)
    assert front
    assert all(each.bits <= 14 and each.attackability <= 0.2 and len(each.moduli) <= 20 for each in front)


def test_an_attack_limit_costs_little_error_where_it_can_be_kept_cheaply():
    free = choose_moduli(200, 4, "mss", effort=200)
    limit = 0.9 * free.attackability
    held = choose_moduli(200, 4, "mss", max_attack=limit, effort=200)
    assert held.attackability <= limit
    assert held.error <= 1.3 * free.error


def test_errors_stay_positive_at_large_epsilon():
    """Also where hardly any error is left about the users at hand."""
    for epsilon in (7, 8, 12):
        found = choose_moduli(64, epsilon, "mss", effort="quick", max_moduli=20)
        assert 0 < found.error < 1.1 * reference_error(64, epsilon)


def test_moduli_of_no_use_are_refused_with_what_is_reached_instead():
    """Within an attackability of 0.15, moduli on 100 values at ε = 6 err 100,000 times as much as subsets."""
    with pytest.raises(ParameterError, match=r"[0-9e+.]+ times that of subset selection, above") as refusal:
        choose_moduli(100, 6, "mss", max_attack=0.15, effort="quick")
    size, ratio = re.search(r"max_attack=0.15\) has blocks of (\d+) and ([0-9.]+) times", str(refusal.value)).groups()
    blocks = make_plan("ss", 100, 6, max_attack=0.15)
    assert blocks.protocol.design.block_size == int(size)
    assert blocks.expected_mse(1) / reference_error(100, 6) == pytest.approx(float(ratio), rel=0.03)
    useless = choose_moduli(100, 6, "mss", max_attack=0.15, effort="quick", max_error_ratio=inf)
    assert useless.error > 1000 * reference_error(100, 6)


def test_impossible_limits_leave_nothing():
    assert pareto_front(100, 1, "mss", max_bits=3, effort=20) == []
    with pytest.raises(ParameterError, match="no moduli were found for mss on 100 values"):
        choose_moduli(100, 1, "mss", max_bits=3, effort=20)
    with pytest.raises(ParameterError, match=r"times that of subset selection, above max_error_ratio=0.1"):
        choose_moduli(100, 1, "mss", max_error_ratio=0.1, effort=20)


def test_objectives():
    options = {"effort": 200, "max_moduli": 16}
    front = pareto_front(300, 1, "mss", **options)
    for objective in ("error", "bits", "attackability", "decode_work"):
        best = choose_moduli(300, 1, "mss", objective=objective, **options)
        assert getattr(best, objective) == min(getattr(each, objective) for each in front)
    traffic = choose_moduli(300, 1, "mss", objective="traffic", **options)
    assert traffic.error * traffic.bits == min(each.error * each.bits for each in front)
    lean = choose_moduli(300, 1, "mss", objective="bits", max_error_ratio=1.2, **options)
    assert lean.error <= 1.2 * reference_error(300, 1)
    assert lean.bits < choose_moduli(300, 1, "mss", **options).bits


@pytest.mark.parametrize("kind", ["mss", "mss-compact"])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 8])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 9, 10])
def test_tiny_domains_have_moduli_too(kind, epsilon, size):
    found = choose_moduli(size, epsilon, kind, effort=40)
    plan = make_plan(kind, size, epsilon, moduli=found.moduli)
    assert plan.expected_mse(1) == pytest.approx(found.error)
    assert plan.report_bits == found.bits


def test_many_moduli_are_possible():
    front = pareto_front(1024, 1, "mss", max_moduli=150, effort=60)
    assert max(len(each.moduli) for each in front) == 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "ss"}, "kind must be one of"),
        ({"max_bits": 0}, "max_bits must be positive"),
        ({"max_attack": -1}, "max_attack must be positive"),
        ({"max_moduli": 257}, "max_moduli must be a whole number between 1 and 256"),
        ({"effort": "great"}, "effort must be one of"),
        ({"effort": 0}, "effort must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seconds": 0}, "seconds must be positive"),
        ({"objective": "beauty"}, "objective must be one of"),
        ({"max_error_ratio": 0}, "max_error_ratio must be positive"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        choose_moduli(**{"domain_size": 30, "epsilon": 1, "kind": "mss", "effort": 10, **options})
