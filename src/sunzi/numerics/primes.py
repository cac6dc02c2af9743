"""Primes, factors, primitive roots and cyclotomic classes, exact for all integers below 2^64."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sunzi._typing import Integers
from sunzi.client.designs.primes import is_prime, is_primitive_root


def next_prime(number: int) -> int:
    """The smallest prime that is at least ``number``."""
    candidate = max(2, number)
    while not is_prime(candidate):
        candidate += 1
    return candidate


def primes_up_to(limit: int) -> Integers:
    """All primes at most ``limit``, ascending, by a sieve."""
    if limit < 2:
        return np.empty(0, dtype=np.int64)
    sieve = np.ones(limit + 1, dtype=np.bool_)
    sieve[:2] = False
    for candidate in range(2, int(limit**0.5) + 1):
        if sieve[candidate]:
            sieve[candidate * candidate :: candidate] = False
    return np.flatnonzero(sieve).astype(np.int64)


@lru_cache(maxsize=4096)
def factorize(number: int) -> tuple[tuple[int, int], ...]:
    """Prime factors with exponents, ascending, by trial division (meant for numbers below 2^40)."""
    factors: list[tuple[int, int]] = []
    rest, divisor = number, 2
    while divisor * divisor <= rest:
        exponent = 0
        while rest % divisor == 0:
            rest //= divisor
            exponent += 1
        if exponent:
            factors.append((divisor, exponent))
        divisor += 1 if divisor == 2 else 2
    if rest > 1:
        factors.append((rest, 1))
    return tuple(factors)


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    found = [1]
    for prime, exponent in factorize(number):
        found = [divisor * prime**power for divisor in found for power in range(exponent + 1)]
    return sorted(found)


def primitive_root(prime: int) -> int:
    """The smallest primitive root of a prime."""
    generator = 1
    while not is_primitive_root(generator, prime):
        generator += 1
    return generator


def powers(generator: int, modulus: int, count: int) -> Integers:
    """g^0, g^1, …, g^(count−1) modulo m, by doubling. m < 2^31, so that products fit in 63 bits."""
    table = np.ones(max(count, 1), dtype=np.int64)
    filled = 1
    while filled < count:
        step = pow(generator, filled, modulus)
        take = min(filled, count - filled)
        table[filled : filled + take] = table[:take] * step % modulus
        filled += take
    return table[:count]


def cyclotomic_order(modulus: int, classes: int, generator: int, union: tuple[int, ...], with_zero: bool) -> Integers:
    """All points of Z_m, those of the base block D first (docs/mathematics.md §2). The wire format fixes this order.

    D is the union of the classes C_c = {g^(c + e·i)}, c in ``union`` in the given order, i = 0, 1, …, then 0 if
    ``with_zero``. The other classes follow by ascending c, then 0 if it is not in D.
    """
    table = powers(generator, modulus, modulus - 1).reshape(-1, classes)
    others = sorted(set(range(classes)) - set(union))
    zero = np.zeros(1, dtype=np.int64)
    inside = [table[:, index] for index in union]
    outside = [table[:, index] for index in others]
    parts = [*inside, zero, *outside] if with_zero else [*inside, *outside, zero]
    return np.concatenate(parts)
