"""Every threshold proves its ε against independent 330-bit bounds on e^ε, from both sides."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sunzi.client.epsilon import parse_epsilon
from sunzi.client.errors import PrivacyError
from sunzi.client.thresholds import (
    check_truth_threshold,
    check_unary_thresholds,
    exponential_below,
    optimal_unary_thresholds,
    symmetric_unary_thresholds,
    truth_threshold,
)
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue
from sunzi.protocols.unary import OptimalUnaryEncoding, Rappor

SETTINGS = 10_000
PRECISION = 330
ONE = 1 << PRECISION
SCALE = 1 << 96


def exponential_bounds(epsilon):
    """Integers L ≤ 2^330·e^ε ≤ U: the Taylor series of e^(ε/2^s), ε/2^s ≤ 1/2, squared s times, rounded outwards."""
    shift = max(0, (2 * epsilon.numerator // epsilon.denominator).bit_length())
    numerator, denominator = epsilon.numerator, epsilon.denominator << shift
    low_term = high_term = low = high = ONE
    index = 0
    while high_term > 1:
        index += 1
        low_term = low_term * numerator // (denominator * index)
        high_term = -(-high_term * numerator // (denominator * index))
        low, high = low + low_term, high + high_term
    high += 2  # the rest is less than twice the next term, because each term is at most half of the one before
    for _ in range(shift):
        low, high = low * low >> PRECISION, -(-high * high >> PRECISION)
    assert (high - low) * (1 << 250) < low
    return low, high


def random_epsilon(generator):
    """Various rationals: decimals, ratios of large integers, and the extremes 1/100 and 12."""
    kind = generator.integers(6)
    if kind == 0:
        return Fraction(1, 100)
    if kind == 1:
        return Fraction(12)
    if kind == 2:
        return parse_epsilon(round(float(generator.uniform(0.01, 12)), int(generator.integers(2, 12))))
    if kind == 3:
        return Fraction(int(generator.integers(1, 1201)), 100)
    if kind == 4:
        denominator = int(generator.integers(10**6, 10**17))
        return Fraction(int(denominator * generator.uniform(0.01, 12)), denominator)
    return parse_epsilon(round(float(np.exp(generator.uniform(np.log(1e-6), np.log(32)))), 16))


def settings(seed):
    generator = np.random.default_rng(seed)
    for _ in range(SETTINGS):
        epsilon = random_epsilon(generator)
        kind = ("block", "block", "grr", "oue", "rappor")[generator.integers(5)]
        points = int(np.exp(generator.uniform(np.log(2), np.log(2**31))))
        block_size = 1 if kind == "grr" else int(generator.integers(1, points))
        if kind == "block" and generator.random() < 0.5:
            block_size = min(max(1, round(points / (np.exp(float(epsilon)) + 1))), points - 1)
        yield kind, max(points, 2), block_size, epsilon


def test_ten_thousand_settings_are_certified_by_independent_bounds():
    """p and q satisfy ε by the lower bounds; one step further they violate it by the upper bounds."""
    seen = {"certified": 0, "refused": 0}
    for kind, points, block_size, epsilon in settings(31):
        low, high = exponential_bounds(epsilon)
        if kind == "oue":
            check_oue(epsilon, low, high)
        elif kind == "rappor":
            check_rappor(epsilon)
        elif not check_block(points, block_size, epsilon, low, high):
            seen["refused"] += 1
            continue
        seen["certified"] += 1
    assert seen["certified"] > 0.95 * SETTINGS


def check_block(points, block_size, epsilon, low, high):
    """T(v−w) ≤ w·e^ε·(2^64−T); T+1 violates it with E, T+2 with e^ε itself. False if the setting is refused."""
    words, rest = 1 << 64, points - block_size
    scaled = block_size * exponential_below(epsilon)
    try:
        threshold = truth_threshold(block_size, points, epsilon)
    except PrivacyError:
        largest = (scaled << 64) // (scaled + rest * SCALE)
        assert largest * points <= block_size * words or not 0 < largest < words
        return False
    assert threshold * rest * ONE <= block_size * low * (words - threshold)
    assert (threshold + 1) * rest * SCALE > scaled * (words - threshold - 1)
    assert (threshold + 2) * rest * ONE > block_size * high * (words - threshold - 2)
    assert threshold * points > block_size * words
    with pytest.raises(PrivacyError):
        check_truth_threshold(threshold + 1, block_size, points, epsilon)
    return True


def check_oue(epsilon, low, high):
    """p(1−q) ≤ e^ε·q(1−p) with p = 1/2, and a q one step smaller would violate it."""
    words = 1 << 64
    true, false = optimal_unary_thresholds(epsilon)
    assert true == words // 2
    check_unary_thresholds(true, false, epsilon)
    assert true * (words - false) * ONE <= low * false * (words - true)
    smaller = false - 2
    assert true * (words - smaller) * ONE > high * smaller * (words - true)
    with pytest.raises(PrivacyError):
        check_unary_thresholds(true, false - 1, epsilon)


def check_rappor(epsilon):
    """(p/q)² ≤ e^ε with q = 1 − p exactly, proved by p/q ≤ e^(ε/2), and a p one step larger would violate it."""
    words = 1 << 64
    low, high = exponential_bounds(epsilon / 2)
    true, false = symmetric_unary_thresholds(epsilon)
    assert true + false == words
    check_unary_thresholds(true, false, epsilon)
    assert true * ONE <= low * false
    assert (true + 2) * ONE > high * (false - 2)
    with pytest.raises(PrivacyError):
        check_unary_thresholds(true + 1, false - 1, epsilon)


@pytest.mark.parametrize("epsilon", ["1/1000000000000000000", "1/100", "1/10", "1/2", "1", "12", "31/3", "32"])
def test_the_integer_exponential_is_below_and_close(epsilon):
    exact = Fraction(epsilon)
    low, high = exponential_bounds(exact)
    found = exponential_below(exact)
    assert found << (PRECISION - 96) <= low
    assert (found << (PRECISION - 96)) * ((1 << 60) + 1) > high << 60  # short by less than one part in 2^60


def test_the_independent_bounds_hold_e():
    low, high = exponential_bounds(Fraction(1))
    digits = "2.7182818284590452353602874713526624977572470936999595749669676277240766303535475945713821785251664274246"
    assert Fraction(low, ONE) < Fraction(digits) + Fraction(1, 10 ** (len(digits) - 2))
    assert Fraction(digits) < Fraction(high, ONE)
    assert Fraction(high - low, ONE) < Fraction(1, 10**80)


def test_the_thresholds_of_plans_are_certified_as_they_are_written():
    """Clients read the digits in the plan's JSON, so these are certified, over random settings of all protocols."""
    generator = np.random.default_rng(32)
    for number in range(240):
        name = catalogue()[number % len(catalogue())]
        epsilon = random_epsilon(generator)
        size = int(np.exp(generator.uniform(np.log(2), np.log(500))))
        plan = make_plan(name, size, epsilon)
        parameters = json.loads(plan.canonical)["parameters"]
        low, _ = exponential_bounds(epsilon)
        if name in ("rappor", "oue"):
            true, false = (int(parameters[key]) for key in ("true_threshold", "false_threshold"))
            assert 0 < false < true < 1 << 64
            assert true * ((1 << 64) - false) * ONE <= low * false * ((1 << 64) - true)
            continue
        records = parameters["responses"] if name.startswith("mss") else [parameters["response"]]
        for record in records:
            points, block_size = sizes(record)
            threshold = int(record["threshold"])
            assert threshold * (points - block_size) * ONE <= block_size * low * ((1 << 64) - threshold)
            assert threshold * points > block_size << 64


def sizes(record):
    """Points and block size as stated in the record."""
    if record["design"] == "singletons":
        return record["points"], 1
    if record["design"] == "projective":
        order, dimension = record["order"], record["dimension"]
        return (order**dimension - 1) // (order - 1), (order ** (dimension - 1) - 1) // (order - 1)
    return record["points"], record["block_size"]


@pytest.mark.parametrize("word_bits", [3, 4, 8, 16, 32])
def test_narrow_words_are_certified_too(word_bits):
    generator = np.random.default_rng(word_bits)
    words, certified = 1 << word_bits, 0
    for _ in range(200):
        epsilon, points = random_epsilon(generator), int(generator.integers(2, 40))
        block_size = int(generator.integers(1, points))
        low, high = exponential_bounds(epsilon)
        try:
            threshold = truth_threshold(block_size, points, epsilon, word_bits)
        except PrivacyError:
            continue
        certified += 1
        rest = points - block_size
        assert threshold * rest * ONE <= block_size * low * (words - threshold)
        assert (threshold + 1) * rest * ONE > block_size * high * (words - threshold - 1)
    assert certified > 20


@pytest.mark.parametrize(
    ("block_size", "points"), [(1, 1000), (1, 1 << 31), (10, 1000), (999, 1000), (1 << 19, 1 << 24), (1, 40)]
)
def test_settings_that_cannot_be_certified_are_refused(block_size, points):
    """At ε = 10^-18 the largest p that satisfies ε, rounded down to 64 bits, is no longer above chance."""
    with pytest.raises(PrivacyError, match="no information"):
        truth_threshold(block_size, points, Fraction(1, 10**18))


def test_two_values_can_be_told_apart_even_then():
    epsilon = Fraction(1, 10**18)
    assert truth_threshold(1, 2, epsilon) > 1 << 63
    assert make_plan("grr", 2, epsilon).epsilon == epsilon
    with pytest.raises(PrivacyError, match="no information"):
        make_plan("grr", 1000, epsilon)


@pytest.mark.parametrize("block_size", [0, -1, 5, 6])
def test_a_block_must_have_a_point_and_miss_one(block_size):
    with pytest.raises(PrivacyError, match="block size"):
        check_truth_threshold(1 << 62, block_size, 5, Fraction(1))


@pytest.mark.parametrize("wrong", [-1, 1, -1000, 1 << 40])
def test_a_response_accepts_only_the_threshold_that_it_derives(wrong):
    for design in (Singletons(100), Subsets(100, 27)):
        response = BlockResponse(design, Fraction(1))
        right = response.parameters()
        assert BlockResponse.from_parameters(right, Fraction(1)) == response
        with pytest.raises(PrivacyError):
            BlockResponse.from_parameters({**right, "threshold": str(response.threshold + wrong)}, Fraction(1))
        with pytest.raises(PrivacyError):  # the threshold of a larger ε under a smaller ε is a leak
            BlockResponse.from_parameters(BlockResponse(design, Fraction(11, 10)).parameters(), Fraction(1))


@pytest.mark.parametrize("protocol", [Rappor, OptimalUnaryEncoding])
@pytest.mark.parametrize("change", [(1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1)])
def test_a_unary_protocol_accepts_only_the_thresholds_that_it_derives(protocol, change):
    names = ("true_threshold", "false_threshold")
    right = dict(zip(names, protocol.derive_thresholds(Fraction(1), 64), strict=True))
    given = {name: str(threshold) for name, threshold in right.items()}
    assert protocol.from_parameters(10, Fraction(1), given).true_threshold == right["true_threshold"]
    wrong = {name: str(right[name] + step) for name, step in zip(names, change, strict=True)}
    with pytest.raises(PrivacyError):
        protocol.from_parameters(10, Fraction(1), wrong)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (0.01, Fraction(1, 100)),
        (1.1, Fraction(11, 10)),
        (1e-5, Fraction(1, 100_000)),
        (12.0, Fraction(12)),
        (3, Fraction(3)),
        ("1/3", Fraction(1, 3)),
        ("0.25", Fraction(1, 4)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(5, 7), Fraction(5, 7)),
        (np.float64(0.1), Fraction(1, 10)),
    ],
)
def test_epsilon_means_what_it_says(given, meant):
    assert parse_epsilon(given) == meant
    assert make_plan("grr", 5, given).epsilon == meant
    assert make_plan("grr", 5, given) == make_plan("grr", 5, meant)


def test_a_float_is_not_its_binary_expansion():
    assert Fraction(0.1) != Fraction(1, 10)
    assert make_plan("ss-compact", 50, 0.1) == make_plan("ss-compact", 50, "1/10")
    assert make_plan("ss-compact", 50, 0.1) != make_plan("ss-compact", 50, Fraction(0.1).limit_denominator(10**17))
