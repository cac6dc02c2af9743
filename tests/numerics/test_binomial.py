from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest

from sunzi.numerics import binomial

PI = Decimal("3.14159265358979323846264338327950288419716939937510")


def log_factorial(number: int) -> Decimal:
    """By Stirling's series from 100 on, to more than 25 digits; below, exactly."""
    if number < 100:
        product = Decimal(1)
        for factor in range(2, number + 1):
            product *= factor
        return product.ln()
    x = Decimal(number)
    series = sum(
        (term / x**power for term, power in zip(
            (Decimal(1) / 12, Decimal(-1) / 360, Decimal(1) / 1260, Decimal(-1) / 1680, Decimal(1) / 1188,
             Decimal(-691) / 360360, Decimal(1) / 156),
            (1, 3, 5, 7, 9, 11, 13), strict=True)),
        Decimal(0),
    )  # fmt: skip
    return (x + Decimal(1) / 2) * x.ln() - x + (2 * PI).ln() / 2 + series


def exact(trials: int, count: int, probability: float | Decimal) -> tuple[Decimal, Decimal]:
    """P(X = count) and P(X ≥ count), to about 25 digits."""
    p = Decimal(probability)
    log_mass = log_factorial(trials) - log_factorial(count) - log_factorial(trials - count)
    log_mass += count * p.ln() + (trials - count) * (1 - p).ln()
    term = total = log_mass.exp()
    ratio, j = p / (1 - p), count
    while j < trials and term > total * Decimal("1e-25"):
        term *= ratio * (trials - j) / (j + 1)
        total += term
        j += 1
    return log_mass.exp(), total


@pytest.mark.parametrize("probability", [0.5, 0.03])
@pytest.mark.parametrize("trials", [150, 10_000, 1_000_000, 1_000_000_000])
def test_masses_and_tails_are_far_closer_than_the_margin(trials: int, probability: float) -> None:
    deviation = (trials * probability * (1 - probability)) ** 0.5
    with localcontext() as context:
        context.prec = 50
        for distance in (0.5, 3.0, 8.0):
            count = min(trials, round(trials * probability + distance * deviation))
            mass, tail = exact(trials, count, probability)
            arguments = np.array(float(trials)), np.array(float(count)), probability
            for found, true in ((binomial.mass(*arguments), mass), (binomial.at_least(*arguments), tail)):
                assert (
                    abs(Decimal(float(found)) / true - 1)
                    < Decimal(float(binomial.margin(np.array(float(trials))))) / 20
                )


@pytest.mark.parametrize("trials", [10_000, 1_000_000, pytest.param(1_000_000_000, marks=pytest.mark.slow)])
def test_both_tails_are_moved_by_the_margin(trials: int) -> None:
    """``between`` computes the lower tail by another function than the upper one."""
    probability, deviation = 0.03, (trials * 0.03 * 0.97) ** 0.5
    margin = float(binomial.margin(np.array(float(trials))))
    with localcontext() as context:
        context.prec = 50
        for distance in (3.0, 8.0):
            low, high = (round(trials * probability + sign * distance * deviation) for sign in (-1, 1))
            upper = exact(trials, high, Decimal(probability))[1]
            lower = exact(trials, trials - low + 1, 1 - Decimal(probability))[1]
            edges = np.array([0.0, low, high, trials + 1.0])
            for above, sign in ((True, 1), (False, -1)):
                found = binomial.between(np.array(float(trials)), edges, probability, above)
                for bound, true in ((found[0], lower), (found[-1], upper)):
                    moved = sign * float(Decimal(float(bound)) / true - 1)
                    assert 0.95 * margin < moved < 1.05 * margin


def test_small_numbers_are_exact() -> None:
    for trials in (1, 2, 7, 13):
        for probability in (0.5, 0.1, 0.9):
            p = Fraction(probability)
            masses = [float(comb(trials, j) * p**j * (1 - p) ** (trials - j)) for j in range(trials + 1)]
            counts = np.arange(trials + 1.0)
            every = np.full(trials + 1, float(trials))
            assert np.allclose(binomial.mass(every, counts, probability), masses, rtol=1e-13)
            assert np.allclose(binomial.at_least(every, counts, probability), np.cumsum(masses[::-1])[::-1], rtol=1e-13)
            edges = np.arange(trials + 2.0)
            assert np.allclose(binomial.between(np.array(float(trials)), edges, probability), masses, rtol=1e-10)


def test_counts_outside_the_range() -> None:
    five = np.full(2, 5.0)
    assert binomial.mass(five, np.array([-1.0, 6.0]), 0.5).tolist() == [0, 0]
    assert binomial.at_least(five, np.array([-1.0, 6.0]), 0.5).tolist() == [1, 0]
    assert binomial.mass(np.zeros(1), np.zeros(1), 0.5).tolist() == [1]


def test_bounds_enclose_the_mass_of_a_cell() -> None:
    edges = np.array([0.0, 250.0, 290.0, 310.0, 310.0, 400.0, 1001.0])
    masses = [comb(1000, j) * 3 ** (1000 - j) for j in range(1001)]
    true = [sum(masses[int(a) : int(b)]) / 4**1000 for a, b in pairwise(edges)]
    above, below = (binomial.between(np.array(1000.0), edges, 0.25, above=side) for side in (True, False))
    assert np.all(below <= true)
    assert np.all(true <= above)
    assert np.allclose(above, below, rtol=1e-9)
