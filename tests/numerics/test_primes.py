"""Primes, factors and primitive roots against trial division and known hard cases."""

from itertools import pairwise
from math import isqrt, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.designs.primes import is_prime, is_primitive_root
from sunzi.numerics.primes import (
    cyclotomic_order,
    divisors,
    factorize,
    next_prime,
    powers,
    primes_up_to,
    primitive_root,
)


def slow_is_prime(number):
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def test_all_small_numbers():
    assert [number for number in range(-5, 5000) if is_prime(number)] == list(filter(slow_is_prime, range(5000)))
    assert primes_up_to(4999).tolist() == list(filter(slow_is_prime, range(5000)))


# Strong pseudoprimes to the first bases (Jaeschke; Sorenson and Webster), Carmichael numbers, squares of primes.
COMPOSITES = [
    2047,
    1373653,
    25326001,
    3215031751,
    2152302898747,
    3474749660383,
    341550071728321,
    3825123056546413051,
    561,
    41041,
    825265,
    (2**31 - 1) ** 2,
    4294967291 * 4294967279,
    2**64 - 1,
]
PRIMES = [2**31 - 1, 2**61 - 1, 4294967291, 2**64 - 59, 18446744073709551557, 67108859, 1000003]


@pytest.mark.parametrize("number", COMPOSITES)
def test_composites_that_fool_weaker_tests(number):
    assert not is_prime(number)


@pytest.mark.parametrize("number", PRIMES)
def test_large_primes(number):
    assert is_prime(number)


def test_next_prime():
    for number in range(-3, 2000):
        above = next_prime(number)
        assert slow_is_prime(above)
        assert not any(slow_is_prime(between) for between in range(max(number, 2), above))


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 9, 25, 49, 121, 1000, 10_007])
def test_the_sieve_at_its_ends(limit):
    assert primes_up_to(limit).tolist() == [number for number in range(limit + 1) if slow_is_prime(number)]


@given(st.integers(1, 10**9))
def test_factors_multiply_to_the_number(number):
    factors = factorize(number)
    assert prod(prime**exponent for prime, exponent in factors) == number
    assert all(is_prime(prime) and exponent >= 1 for prime, exponent in factors)
    assert all(first < second for (first, _), (second, _) in pairwise(factors))


def test_divisors_by_trial():
    for number in range(1, 800):
        assert divisors(number) == [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def test_primitive_roots_by_their_powers():
    for prime in filter(slow_is_prime, range(150)):
        for generator in range(-1, prime + 2):
            generates = 1 <= generator < prime and len({pow(generator, i, prime) for i in range(prime)}) == prime - 1
            assert is_primitive_root(generator, prime) == generates
        smallest = primitive_root(prime)
        assert is_primitive_root(smallest, prime)
        assert not any(is_primitive_root(generator, prime) for generator in range(1, smallest))


def test_known_large_primitive_roots():
    assert primitive_root(2**31 - 1) == 7
    assert primitive_root(191) == 19
    assert primitive_root(1_000_003) == 2


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 190])
def test_powers(count):
    assert powers(19, 191, count).tolist() == [pow(19, exponent, 191) for exponent in range(count)]


@pytest.mark.parametrize("with_zero", [False, True])
@pytest.mark.parametrize("union", [(0,), (2,), (1, 0), (0, 2, 4)])
def test_cyclotomic_order(union, with_zero):
    """Classes of Z_31 by their definition {g^(c + 5i)}, those of the union first."""
    classes = [[pow(3, index + 5 * step, 31) for step in range(6)] for index in range(5)]
    inside = [point for index in union for point in classes[index]]
    outside = [point for index in range(5) if index not in union for point in classes[index]]
    expected = [*inside, 0, *outside] if with_zero else [*inside, *outside, 0]
    assert cyclotomic_order(31, 5, 3, union, with_zero).tolist() == expected
