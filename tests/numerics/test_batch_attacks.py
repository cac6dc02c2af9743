from math import exp

import pytest

from sunzi.numerics import batch_attacks
from sunzi.numerics.bit_sums import BitSums


def test_two_kinds_are_one_column_of_bits() -> None:
    assert batch_attacks.among_two(0.5, 0.2, 1000).delta(0.1) == BitSums(0.5, 0.2, 2).attack(1000).delta(0.1)


def test_the_attack_of_three_kinds_has_the_probabilities_of_a_distribution() -> None:
    for odds, victim, others in ((exp(1), 0.1, 0.1), (exp(4), 0.01, 0.02), (exp(2), 0.05, 0.3)):
        for users in (30, 1000, 10**6):
            found = batch_attacks.among_three(odds, victim, others, users)
            assert 0.97 < found.mass.sum() <= 1 + 1e-9
            assert found.unbounded == 0


def test_attacks_on_several_batches_succeed_more_often() -> None:
    one = batch_attacks.among_three(exp(4), 0.001, 0.001, 10**5)
    found = [one.times(batches).epsilon_below(1e-8) for batches in (1, 4, 16)]
    assert found[1] == pytest.approx(2 * found[0], rel=0.1)
    assert found[2] == pytest.approx(4 * found[0], rel=0.2)
