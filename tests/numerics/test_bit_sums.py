from math import exp

import pytest

from sunzi.numerics.bit_sums import BitSums


@pytest.mark.parametrize(
    ("local", "bound", "attack"),
    [(1, 0.00305, 0.00284), (2, 0.00708, 0.00671), (4, 0.0223, 0.0220), (6, 0.0640, 0.0638)],
)
def test_optimal_bits(local: float, bound: float, attack: float) -> None:
    """Computed before by an independent program: a million users, δ = 1e-8."""
    sums = BitSums(0.5, 1 / (exp(local) + 1), 1024)
    assert sums.epsilon_above(10**6, 1e-8) == pytest.approx(bound, rel=1e-2)
    assert sums.epsilon_below(10**6, 1e-8) == pytest.approx(attack, rel=1e-2)


@pytest.mark.parametrize(("local", "bound", "attack"), [(5, 0.406, 0.285), (6.5, 0.909, 0.645), (7, 1.202, 0.864)])
def test_symmetric_bits(local: float, bound: float, attack: float) -> None:
    """As in an Internet draft on Prio with ε per bit, 10^5 users and δ = 1e-9, which claims .317, .906 and 1.528."""
    true = exp(local) / (exp(local) + 1)
    sums = BitSums(true, 1 - true, 100)
    assert sums.epsilon_above(10**5, 1e-9) == pytest.approx(bound, rel=1e-2)
    assert sums.epsilon_below(10**5, 1e-9) == pytest.approx(attack, rel=1e-2)


def test_two_values_have_one_column_to_attack() -> None:
    assert BitSums(0.5, 0.1, 2).epsilon_below(1000, 1e-6) < BitSums(0.5, 0.1, 3).epsilon_below(1000, 1e-6)


def test_delta_and_epsilon_agree() -> None:
    sums = BitSums(0.5, 0.2, 10)
    assert sums.largest_delta(1000, sums.epsilon_above(1000, 1e-6)) <= 1e-6
