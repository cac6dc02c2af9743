"""How long a subset's word is where logarithms cannot tell. tests/numerics/test_subset_code.py tests the code."""

import math
import random

import pytest

from sunzi.client.designs.subset_code import TOP, _exact_bits, word_bits


def by_the_definition(points, size):
    room = TOP - points * (points + 1) // 2
    return (-(-math.comb(points, size) * TOP // room) - 1).bit_length()


def test_leading_bits_tell_the_length_of_every_word():
    generator = random.Random(3)
    small = [(points, size) for points in range(2, 70) for size in range(1, points)]
    large = [(points, generator.randrange(1, points)) for points in generator.choices(range(70, 4000), k=400)]
    for points, size in small + large:
        room = TOP - points * (points + 1) // 2
        assert _exact_bits(points, size, room) == word_bits(points, size) == by_the_definition(points, size)


def test_a_plan_with_a_doubtful_length_costs_no_binomial(monkeypatch):
    """Its logarithm is within 1e-6 of a whole number, and its binomial has a million digits in base 2."""

    def refused(*arguments):
        raise AssertionError(f"the binomial of {arguments}")

    monkeypatch.setattr(math, "comb", refused)
    assert word_bits(1_048_568, 392_068) == 999_932


@pytest.mark.long
def test_the_doubtful_length_is_right():
    assert by_the_definition(1_048_568, 392_068) == 999_932
