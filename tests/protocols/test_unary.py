"""Unary encodings: words decide bits in order, payloads of any width, and thresholds that are refused."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, PlanError, PrivacyError
from sunzi.client.protocols.unary import MOST_VALUES
from sunzi.numerics.randomness import ReproducibleSource, ScriptedSource
from sunzi.protocols.unary import OptimalUnaryEncoding, Rappor
from sunzi.wire import payload_integers

KINDS = [Rappor, OptimalUnaryEncoding]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bit_is_one_if_its_word_is_below_its_threshold(kind):
    """One word per value, in order; the value's own bit has its own threshold."""
    protocol = kind(3, Fraction(1))
    true, false = protocol.thresholds
    words = [false - 1, true, false]  # of the values 0, 1, 2; value 1 is sent
    message = protocol.randomize(np.array([1]), ScriptedSource(words))
    assert protocol.support_table(message).tolist() == [[True, False, False]]
    message = protocol.randomize(np.array([1]), ScriptedSource([false, true - 1, false - 1]))
    assert protocol.support_table(message).tolist() == [[False, True, True]]


def test_probabilities_are_those_of_the_literature():
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(4)):
        symmetric, optimal = (kind(10, epsilon).probabilities for kind in KINDS)
        root = exp(epsilon / 2)
        assert (symmetric.true, symmetric.false) == pytest.approx((root / (root + 1), 1 / (root + 1)), rel=1e-12)
        assert (optimal.true, optimal.false) == pytest.approx((0.5, 1 / (exp(epsilon) + 1)), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 8, 63, 64, 65, 200])
def test_payloads_of_any_width_are_read_back(kind, size):
    protocol = kind(size, Fraction(1))
    messages = protocol.randomize(np.arange(40) % size, ReproducibleSource(1))
    encoded = protocol.encode(messages)
    assert all(0 <= payload < 1 << size for payload in payload_integers(encoded.payloads[0]))
    assert np.array_equal(protocol.decode(encoded), messages)
    assert np.array_equal(protocol.count(messages).dense(), protocol.support_table(messages).sum(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_large_batches_are_randomised_in_pieces_from_the_same_words(kind, monkeypatch):
    protocol, values = kind(50, Fraction(1)), np.arange(300) % 50
    whole = protocol.randomize(values, ReproducibleSource(2))
    counted = protocol.count(whole)
    monkeypatch.setattr("sunzi.protocols.unary._ROWS_OF_WORDS", 50 * 7)
    assert np.array_equal(protocol.randomize(values, ReproducibleSource(2)), whole)
    assert protocol.count(whole) == counted


@pytest.mark.parametrize("kind", KINDS)
def test_other_thresholds_than_the_derived_ones_are_refused(kind):
    protocol = kind(5, Fraction(1))
    stated = protocol.parameters()
    assert kind.from_parameters(5, Fraction(1), stated) == protocol
    for name, value in stated.items():
        with pytest.raises(PrivacyError, match="thresholds must be"):
            kind.from_parameters(5, Fraction(1), stated | {name: str(int(value) + 1)})
        with pytest.raises(PlanError, match=f"{name} must be a string of decimal digits"):
            kind.from_parameters(5, Fraction(1), stated | {name: int(value)})


def test_sizes_and_words_out_of_range_are_refused():
    for size in (1, MOST_VALUES + 1):
        with pytest.raises(ParameterError, match="at most 2\\^24 values"):
            Rappor(size, Fraction(1))
    with pytest.raises(ParameterError, match="needs 64-bit words, the source returns 8-bit words"):
        Rappor(2, Fraction(1)).randomize(np.array([0]), ScriptedSource([0, 0], 8))
