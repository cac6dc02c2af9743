"""Planners choose block sizes and compact designs: against all other choices."""

from fractions import Fraction

import pytest

from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError
from sunzi.designs.choice import (
    best_cyclotomic,
    choose_compact,
    cyclotomic_with,
    optimal_block_size,
    subset_error,
)
from sunzi.designs.singletons import Singletons
from sunzi.plan import make_plan

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3), Fraction(8)]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("points", [2, 3, 10, 57, 200])
def test_no_other_block_size_has_a_much_smaller_error(points, epsilon):
    """Rounding the real optimum costs 1 % at most."""
    chosen = optimal_block_size(points, epsilon)
    assert 1 <= chosen < points
    best = min(subset_error(points, epsilon, size) for size in range(1, points))
    assert subset_error(points, epsilon) == subset_error(points, epsilon, chosen) <= 1.01 * best


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("size", [2, 20, 57, 1000, 22_000])
def test_a_compact_design_holds_the_domain_at_nearly_the_error_of_subsets(size, epsilon):
    design = choose_compact(size, epsilon)
    assert design.points >= size
    reached = subset_error(size, epsilon, design.block_size, design.points)
    assert reached <= (1.04 if size < 57 else 1.01) * subset_error(size, epsilon)


def test_large_budgets_take_single_points():
    assert choose_compact(57, Fraction(8)).kind == "singletons"
    assert best_cyclotomic(53, Fraction(8))[0].kind == "singletons"


@pytest.mark.parametrize("points", [13, 31, 101, 1009])
def test_the_stated_error_is_the_designs_own(points):
    for epsilon in EPSILONS:
        design, error = best_cyclotomic(points, epsilon)
        assert design.points == points
        assert error == subset_error(points, epsilon, design.block_size)


def test_a_number_of_classes_on_the_first_suitable_prime():
    design = cyclotomic_with(20, Fraction(1), classes=4)
    assert (design.points, design.classes) == (29, 4)
    assert is_prime(design.points)
    assert cyclotomic_with(20, Fraction(1), classes=6, points=31).points == 31


def test_classes_that_do_not_divide_are_refused():
    with pytest.raises(ParameterError, match="5 does not divide 22"):
        cyclotomic_with(20, Fraction(1), classes=5, points=23)
    with pytest.raises(ParameterError, match="no union of 1000 classes suits epsilon 1; use about 4"):
        cyclotomic_with(20, Fraction(1), classes=1000)


@pytest.mark.parametrize("size", [8, 100, 1024])
def test_compact_blocks_of_a_requested_size(size):
    """Blocks of few points have exactly the requested size, others within 1 % or as near as any union of classes."""
    for block_size in {2, 3, 4, 5, 10, size // 4, size // 2}:
        if block_size < size:
            design = make_plan("ss-compact", size, 5, block_size=block_size).protocol.design
            assert size <= design.points <= 1.05 * size + 10
            assert abs(design.block_size - block_size) <= 0.02 * block_size
            assert design.message_count <= design.points**2
    assert make_plan("ss-compact", size, 5, block_size=1).protocol.design == Singletons(size)
    with pytest.raises(ParameterError, match="block_size"):
        make_plan("ss-compact", size, 5, block_size=size)
    with pytest.raises(ParameterError, match="block_size determines the design, so classes cannot be given too"):
        make_plan("ss-compact", size, 5, block_size=3, classes=4)
