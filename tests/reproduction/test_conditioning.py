"""The condition number against a dense singular value decomposition."""

import sys
from fractions import Fraction
from math import exp, inf
from pathlib import Path

import numpy as np
import pytest

from sunzi.designs.choice import optimal_block_size
from sunzi.numerics.primes import primes_up_to

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.conditioning import (
    condition_number,
    gram_condition_number,
    paper_gram,
    paper_weight,
    surely_exceeds,
)

NEIGHBOURS = (401, 409, 419, 421, 431, 433, 439, 443)


def weighted_design(size, moduli, epsilon):
    """A_w as the paper writes it: rows of A times the roots of the weights."""
    values = np.arange(size)
    return np.vstack(
        [
            np.sqrt(paper_weight(modulus, epsilon)) * (values % modulus == np.arange(modulus)[:, None])
            for modulus in moduli
        ]
    )


def random_moduli(generator, size, count):
    primes = primes_up_to(size)
    while True:
        moduli = generator.choice(primes[primes > 2], count, replace=False).tolist()
        if sum(moduli) - count >= size:
            return moduli


@pytest.mark.parametrize(
    ("size", "moduli", "epsilon"),
    [
        (30, (7, 11, 13, 23), 1),
        (100, (13, 37, 41, 53, 89), "1/2"),
        (100, (3, 101), 5),
        (300, (19, 47, 101, 149, 211), 2),
        (300, (2, 3, 5, 7, 83, 97, 139, 151, 163, 283), 5),
    ],
)
def test_condition_number_is_that_of_the_matrix(size, moduli, epsilon):
    epsilon = Fraction(epsilon)
    expected = np.linalg.cond(weighted_design(size, moduli, epsilon))
    assert condition_number(size, epsilon, moduli) == pytest.approx(expected, rel=1e-5)


def test_the_paper_bounds_neighbouring_primes_by_25_and_the_truth_is_252():
    assert 251 < condition_number(1024, Fraction(1), NEIGHBOURS) < 253


def test_hopelessly_conditioned_moduli_are_infinite_or_huge():
    nearly_singular = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
    assert condition_number(300, Fraction(1), nearly_singular) > 1e3


def test_a_limit_spares_the_work_where_it_is_surely_exceeded():
    assert condition_number(1024, 1, NEIGHBOURS, limit=10) == inf
    assert condition_number(1024, 1, NEIGHBOURS, limit=300) == condition_number(1024, "1", NEIGHBOURS)


def test_screening_is_never_wrong_and_often_decides():
    generator = np.random.default_rng(5)
    decided = 0
    for _ in range(60):
        size = int(generator.integers(60, 250))
        gram = paper_gram(size, random_moduli(generator, size, int(generator.integers(3, 9))), Fraction(1))
        kappa = gram_condition_number(gram)
        for limit in (2.0, 5.0, 10.0, kappa * 1.001):
            if surely_exceeds(gram, limit):
                assert kappa > limit
                decided += 1
    assert decided > 40


def test_weight_is_the_papers():
    modulus, epsilon = 101, Fraction(2)
    size, odds = optimal_block_size(modulus, epsilon), exp(2)
    true = size * odds / (size * odds + modulus - size)
    false = (size * odds * (size - 1) + (modulus - size) * size) / ((modulus - 1) * (size * odds + modulus - size))
    rate = false + (true - false) / modulus
    assert paper_weight(modulus, epsilon) == pytest.approx((true - false) ** 2 / (rate * (1 - rate)), rel=1e-12)
