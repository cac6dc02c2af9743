"""Primes, factors and primitive roots, exact for all integers below 2^64."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ParameterError

# Deterministic Miller–Rabin witnesses for every integer below 3.3·10^24 (Sorenson and Webster 2015).
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


def is_prime(number: int) -> bool:
    """Whether ``number`` is prime (deterministic below 3.3·10^24)."""
    if number < 2:
        return False
    for prime in _WITNESSES:
        if number % prime == 0:
            return number == prime
    odd, shifts = number - 1, 0
    while odd % 2 == 0:
        odd //= 2
        shifts += 1
    return all(_passes(number, witness, odd, shifts) for witness in _WITNESSES)


def _passes(number: int, witness: int, odd: int, shifts: int) -> bool:
    power = pow(witness, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(shifts - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


def next_prime(number: int) -> int:
    """The smallest prime that is at least ``number``."""
    candidate = max(2, number)
    while not is_prime(candidate):
        candidate += 1
    return candidate


def previous_prime(number: int) -> int:
    """The largest prime that is at most ``number``, which must be at least 2."""
    candidate = number
    while candidate >= 2:
        if is_prime(candidate):
            return candidate
        candidate -= 1
    raise ParameterError(f"there is no prime at most {number}")


def primes_up_to(limit: int) -> NDArray[np.int64]:
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


def is_primitive_root(generator: int, prime: int) -> bool:
    """Whether ``generator`` generates the whole multiplicative group of Z_prime."""
    if not 1 <= generator < prime:
        return False
    return all(pow(generator, (prime - 1) // factor, prime) != 1 for factor, _ in factorize(prime - 1))


def primitive_root(prime: int) -> int:
    """The smallest primitive root of a prime."""
    generator = 1
    while not is_primitive_root(generator, prime):
        generator += 1
    return generator
