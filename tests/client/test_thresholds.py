"""Thresholds: parsing ε, refused settings, and the resulting probabilities. The proofs are in tests/proof."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.epsilon import parse_epsilon
from sunzi.client.errors import ParameterError, PrivacyError
from sunzi.client.thresholds import (
    check_truth_threshold,
    check_unary_thresholds,
    exponential_below,
    optimal_unary_thresholds,
    symmetric_unary_thresholds,
    truth_threshold,
)
from sunzi.numerics.support_probabilities import SupportProbabilities

EPSILONS = st.fractions(Fraction(1, 1000), 32, max_denominator=10**6)


@pytest.mark.parametrize(
    "wrong",
    [
        0,
        -1,
        "0",
        "-1/2",
        33,
        "33",
        1e300,
        float("nan"),
        float("inf"),
        True,
        False,
        None,
        "two",
        "",
        "1/0",
        [1],
        1j,
        b"1",
        "1e9999999",
        "1e9_999_999",
        "1e-9999999",
        Decimal("1e9999999"),
        "nan",
        "inf",
        "1/" + "9" * 5000,
        np.float32("nan"),
        np.bool_(True),
    ],
)
def test_an_invalid_epsilon_is_refused_and_named(wrong):
    with pytest.raises(ParameterError, match="epsilon"):
        parse_epsilon(wrong)


@pytest.mark.parametrize("wrong", [Fraction(1, 10**18 + 1), "1.0000000000000000001", Decimal(1) / 3])
def test_terms_of_more_than_eighteen_digits_are_refused(wrong):
    with pytest.raises(ParameterError, match="10\\^18"):
        parse_epsilon(wrong)


@pytest.mark.parametrize("given_as", [np.int64(2), np.int32(2), np.uint8(2), np.float64(2.0)])
def test_numbers_of_numpy_are_numbers(given_as):
    epsilon = parse_epsilon(given_as)
    assert epsilon == 2
    assert type(epsilon.numerator) is int
    assert exponential_below(epsilon) == exponential_below(Fraction(2))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_a_float_of_numpy_means_its_own_shortest_decimal_form(kind):
    assert parse_epsilon(kind("0.1")) == Fraction(1, 10)


@given(st.integers(2, 10**6), st.data(), EPSILONS)
def test_planned_probabilities_are_those_of_the_certified_threshold(points, data, epsilon):
    block_size = data.draw(st.integers(1, points - 1))
    planned = SupportProbabilities.planned(points, block_size, epsilon)
    threshold = truth_threshold(block_size, points, epsilon)
    certified = SupportProbabilities.of_block_response(threshold, block_size, points)
    for name in ("true", "false", "gap"):
        assert getattr(planned, name) == pytest.approx(getattr(certified, name), rel=1e-8)


@given(st.floats(0.01, 32))
def test_a_float_means_its_shortest_decimal_form(value):
    try:
        parsed = parse_epsilon(value)
    except ParameterError:
        assert max(Fraction(repr(value)).numerator, Fraction(repr(value)).denominator) > 10**18
        return
    assert parsed == Fraction(repr(value))
    assert float(parsed) == value


@given(EPSILONS)
def test_the_exponential_grows_and_is_at_least_its_first_terms(epsilon):
    found = exponential_below(epsilon)
    assert found >= (1 << 96) * (1 + epsilon) - 4
    assert found < exponential_below(epsilon + Fraction(1, 100))


def test_the_exponential_by_its_own_recurrence():
    """ε = 1: the sum of ⌊2^96/i!⌋ rounded step by step; 2.718… to 28 digits."""
    found = Fraction(exponential_below(Fraction(1)), 1 << 96)
    assert abs(found - Fraction("2.7182818284590452353602874713527")) < Fraction(1, 10**27)


@given(EPSILONS, st.integers(2, 10**6), st.data())
def test_the_truth_threshold_is_the_floor(epsilon, points, data):
    size = data.draw(st.integers(1, points - 1))
    scaled = size * exponential_below(epsilon)
    exact = Fraction(scaled, scaled + (points - size) * (1 << 96)) * (1 << 64)
    threshold = truth_threshold(size, points, epsilon)
    assert threshold <= exact < threshold + 1
    probabilities = SupportProbabilities.of_block_response(threshold, size, points)
    true = Fraction(threshold, 1 << 64)
    false = (size - true) / (points - 1)
    assert probabilities == SupportProbabilities(float(true), float(false), float(true - false))
    assert probabilities.gap > 0


@given(EPSILONS, st.integers(2, 1000), st.data())
def test_more_budget_never_means_less_truth(epsilon, points, data):
    size = data.draw(st.integers(1, points - 1))
    assert truth_threshold(size, points, epsilon) <= truth_threshold(size, points, epsilon + Fraction(1, 7))


@pytest.mark.parametrize("threshold", [0, -1, 1 << 64, (1 << 64) + 5])
def test_thresholds_outside_the_words_are_refused(threshold):
    with pytest.raises(PrivacyError, match="between 0 and"):
        check_truth_threshold(threshold, 1, 5, Fraction(1))


def test_a_threshold_that_leaks_and_one_that_is_mute():
    right = truth_threshold(2, 7, Fraction(1))
    check_truth_threshold(right, 2, 7, Fraction(1))
    check_truth_threshold(right - 1, 2, 7, Fraction(1))  # a little less information: private, but not valid in a plan
    with pytest.raises(PrivacyError, match="too large"):
        check_truth_threshold(right + 1, 2, 7, Fraction(1))
    chance = (2 << 64) // 7
    check_truth_threshold(chance + 1, 2, 7, Fraction(1))
    with pytest.raises(PrivacyError, match="no information"):
        check_truth_threshold(chance, 2, 7, Fraction(1))


@given(EPSILONS)
def test_unary_thresholds(epsilon):
    true, false = optimal_unary_thresholds(epsilon)
    assert true == 1 << 63
    exact = Fraction((1 << 96) << 64, exponential_below(epsilon) + (1 << 96))
    assert false - 1 < exact <= false
    check_unary_thresholds(true, false, epsilon)
    true, false = symmetric_unary_thresholds(epsilon)
    assert true + false == 1 << 64
    check_unary_thresholds(true, false, epsilon)
    probabilities = SupportProbabilities.of_unary(true, false)
    assert probabilities.gap == float(Fraction(true - false, 1 << 64)) > 0


@pytest.mark.parametrize(("true", "false"), [(5, 5), (4, 5), (0, 0), (1 << 64, 5), (5, 0), (5, -1)])
def test_unary_thresholds_must_be_in_order(true, false):
    with pytest.raises(PrivacyError, match="thresholds must satisfy"):
        check_unary_thresholds(true, false, Fraction(1))


def test_the_variance_of_one_report():
    """GRR at ε ≈ log 3 on 4 values: p = 1/2, q = 1/6, Δ = 1/3."""
    probabilities = SupportProbabilities(0.5, 1 / 6, 1 / 3)
    assert probabilities.variance() == pytest.approx(5 / 36 * 9)
    assert probabilities.variance(1.0) == pytest.approx(0.25 * 9)
    assert probabilities.variance(0.25) == pytest.approx((0.25 * 0.25 + 0.75 * 5 / 36) * 9)
