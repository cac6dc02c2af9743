"""Checks of arguments: what they accept, and that errors show the value."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, shown, whole_number
from sunzi.numerics import intervals
from sunzi.numerics.checks import real_number
from sunzi.plan import make_plan


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers_become_plain_integers(value):
    assert type(whole_number("count", value, 3, 3)) is int


@pytest.mark.parametrize("value", [2, 6, 3.0, True, "3", None, [3], Fraction(3)])
def test_other_values_are_refused_with_the_bounds(value):
    with pytest.raises(ParameterError, match="count must be a whole number between 3 and 5, got"):
        whole_number("count", value, 3, 5)


def test_without_an_upper_bound_there_is_none():
    assert whole_number("count", 10**30, 0) == 10**30
    with pytest.raises(ParameterError, match="count must be a whole number of at least 0, got -1"):
        whole_number("count", -1, 0)


@pytest.mark.parametrize("value", [1, 1.0, Fraction(1), np.float32(1), np.int64(1)])
def test_real_numbers_become_plain_floats(value):
    assert type(real_number("ridge", value)) is float


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), 10**400, 1j])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ParameterError, match="ridge must be a number, got"):
        real_number("ridge", value)


def test_long_values_are_cut_in_messages():
    assert shown(Fraction(1, 3)) == "1/3"
    assert shown("x" * 1000) == "'" + "x" * 199 + "…"
    assert shown(10**60) == "a number of 61 digits"
    assert shown(10**5000) == "a number of very many digits (int)"


def test_numbers_that_python_does_not_write():
    huge = 10**5000
    for ask in (
        lambda: make_plan("ss", 10, 1, block_size=huge),
        lambda: make_plan("grr", 10, huge),
        lambda: make_plan("grr", 10, 1).domain.index(huge),
        lambda: make_plan("mss", 30, 1, moduli=[17, 19, 23]).expected_mse(huge),
        lambda: intervals.check_confidence(huge),
    ):
        with pytest.raises(ParameterError, match="a number of very many digits"):
            ask()
