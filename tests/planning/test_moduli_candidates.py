"""Axes of candidates against the plans they stand for, and fronts against their definition."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from sunzi.client.errors import ParameterError
from sunzi.designs.choice import optimal_block_size
from sunzi.designs.subsets import Subsets
from sunzi.errors import EstimateError
from sunzi.numerics.primes import primes_up_to
from sunzi.plan import make_plan
from sunzi.planning import evaluate_moduli, reference_error
from sunzi.planning.moduli_candidates import block_family, front, spread_out, subset_bits


@pytest.mark.parametrize(
    ("kind", "size", "epsilon", "moduli"),
    [
        ("mss", 100, 1, (13, 37, 41, 53, 89)),
        ("mss", 100, 5, (7, 37, 53, 83, 89, 97)),
        ("mss", 10, "1/2", (3, 7, 11)),
        ("mss", 10, 4, (23,)),
        ("mss", 1024, 3, (181, 193, 431, 463, 491, 557, 683, 953)),
        ("mss-compact", 100, 1, (13, 37, 41, 61, 89)),
        ("mss-compact", 20, 2, (11, 17, 37)),
        ("mss-compact", 1024, 3, (127, 421, 547, 673, 967)),
    ],
)
def test_axes_are_those_of_the_plan(kind, size, epsilon, moduli):
    found = evaluate_moduli(size, epsilon, kind, moduli[::-1])
    plan = make_plan(kind, size, epsilon, moduli=moduli)
    assert found.moduli == moduli
    assert found.error == pytest.approx(plan.expected_mse(1), rel=1e-9)
    assert found.bits == pytest.approx(plan.report_bits, rel=1e-12)
    assert found.max_bits == plan.max_report_bits
    assert found.attackability == pytest.approx(plan.attackability, rel=1e-9)
    assert found.decode_work == pytest.approx(plan.protocol.linear_cost(10**9).operations, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "epsilon", "moduli"), [("mss", 4, (211, 397, 557, 683, 953)), ("mss-compact", 3, (421, 547, 673, 967))]
)
def test_flat_errors_are_those_of_the_plan_at_equal_frequencies(kind, epsilon, moduli):
    found = evaluate_moduli(1024, epsilon, kind, moduli)
    plan = make_plan(kind, 1024, epsilon, moduli=moduli)
    assert found.error == pytest.approx(plan.expected_mse(1, np.full(1024, 1 / 1024)), rel=0.01)


def test_payload_bits_are_exact():
    for points in primes_up_to(700).tolist():
        for size in {1, 2, points // 4 or 1, optimal_block_size(points, Fraction(1, 2))}:
            if size < points:
                shortest = (comb(points, size) - 1).bit_length()
                assert subset_bits(points, size) == (points if size > 1 and points <= 1.25 * shortest else shortest)
    assert subset_bits(8, 4) == 8  # a bitmap: log2 70 is 7
    assert subset_bits(9, 2) == 6  # log2 36
    assert subset_bits(32771, 5) == Subsets(32771, 5).payload_bits


@pytest.mark.parametrize("size", [2, 3])
def test_powers_of_two_are_not_rounded_up(size):
    points = {2: 2, 3: 4}[size]
    assert subset_bits(points, 1) == size - 1


def test_compact_bits_are_what_the_messages_need():
    family = block_family("mss-compact", 1000, Fraction(1))
    assert family.bits([512, 512]) == (10.0, 10)
    assert family.bits([512, 513]) == (11.0, 11)
    assert family.affordable_cost(2, 10.9) == 1024


def test_subset_bits_share_a_selector():
    family = block_family("mss", 1000, Fraction(1))
    assert family.bits([10, 20, 30]) == (22.0, 32)
    assert family.affordable_cost(3, 22.0) == 60


def test_reference_is_plain_subset_selection():
    plan = make_plan("ss", 1024, 1)
    assert reference_error(1024, 1) == pytest.approx(plan.expected_mse(1), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((100, 1, "ss", (101,)), ParameterError, "kind must be one of"),
        ((1, 1, "mss", (2,)), ParameterError, "domain_size must be at least 2"),
        ((100, 1, "mss", (11, 13)), EstimateError, "do not determine 100"),
        ((100, -1, "mss", (101,)), ParameterError, "epsilon must be positive"),
        ((1000, 1, "mss-compact", (983, 23)), ParameterError, "no good block of"),
    ],
)
def test_bad_candidates_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        evaluate_moduli(*arguments)


def dominates(first, second):
    return bool((first <= second).all() and (first < second).any())


def test_front_is_not_dominated_and_covers_everything():
    axes = np.exp(np.random.default_rng(2).normal(0, 0.3, (400, 4)))
    kept = front(axes)
    assert 5 < len(kept) < 400
    assert [axes[row, 0] for row in kept] == sorted(axes[row, 0] for row in kept)
    for row in kept:
        assert not any(dominates(other, axes[row]) for other in axes)
    # Every dropped candidate is beaten by a kept one, up to the resolution.
    for row in axes:
        assert any((axes[other] <= row * 1.0501).all() for other in kept)


def test_rows_that_differ_too_little_count_once():
    axes = np.array([[1.0, 10.0, 0.5, 100.0], [1.00001, 10.0, 0.5, 100.0], [1.0, 10.0, 0.5, 100.001]])
    assert front(axes) == [0]


def test_a_better_axis_keeps_a_row():
    axes = np.array([[1.0, 10.0, 0.5, 100.0], [1.1, 9.0, 0.5, 100.0], [1.1, 10.0, 0.4, 100.0], [1.1, 10.0, 0.5, 50.0]])
    assert sorted(front(axes)) == [0, 1, 2, 3]


def test_spread_keeps_the_best_of_each_axis():
    axes = np.exp(np.random.default_rng(3).normal(0, 1, (200, 4)))
    taken = spread_out(axes, 10)
    assert len(taken) == len(set(taken)) == 10
    assert set(np.argmin(axes, axis=0).tolist()) <= set(taken)
    assert spread_out(axes[:7], 10) == list(range(7))
