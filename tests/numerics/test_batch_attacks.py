from math import comb, exp

import numpy as np
import pytest

from sunzi.numerics import batch_attacks
from sunzi.numerics.bit_sums import BitSums


def test_two_kinds_are_one_column_of_bits() -> None:
    assert batch_attacks.among_two(0.5, 0.2, 0.2, 1000).delta(0.1) == BitSums(0.5, 0.2, 2).attacks(1000)[0].delta(0.1)


def test_the_attack_of_three_kinds_has_the_probabilities_of_a_distribution() -> None:
    for odds, victim, others in ((exp(1), 0.1, 0.1), (exp(4), 0.01, 0.02), (exp(2), 0.05, 0.3)):
        for users in (30, 1000, 10**6):
            found = batch_attacks.among_three(odds, victim, others, users)
            for masses in (found.here, found.there):
                assert 0.97 < masses.sum() <= 1 + 1e-9


def test_attacks_on_several_batches_succeed_more_often() -> None:
    one = batch_attacks.among_three(exp(4), 0.001, 0.001, 10**5)
    found = [one.times(batches).epsilon_below(1e-8) for batches in (1, 4, 16)]
    assert found[1] == pytest.approx(2 * found[0], rel=0.1)
    assert found[2] == pytest.approx(4 * found[0], rel=0.2)


def test_two_kinds_are_two_binomials() -> None:
    """The largest δ of all sets of counts, from the laws of a count of 20 users."""
    true, false, users, epsilon = 0.6, 0.2, 20, 0.3
    others = np.array(
        [comb(users - 1, count) * false**count * (1 - false) ** (users - 1 - count) for count in range(users)]
    )
    here, there = (np.convolve(others, [1 - chance, chance]) for chance in (true, false))
    exact = float(np.maximum(here - exp(epsilon) * there, 0).sum())
    assert batch_attacks.among_two(true, false, false, users).delta(epsilon) == pytest.approx(exact, rel=1e-9)
