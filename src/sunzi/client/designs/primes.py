"""Primes and primitive roots, as far as a client must check them."""

from __future__ import annotations

from functools import lru_cache

# Miller and Rabin's test with these bases is exact below 3.3·10^24 (Sorenson and Webster 2015).
_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


def is_prime(number: int) -> bool:
    """Whether a number below 3.3·10^24 is prime."""
    if number < 2:
        return False
    for base in _BASES:
        if number % base == 0:
            return number == base
    twos = (number - 1 & 1 - number).bit_length() - 1
    return all(_is_probable_prime(number, base, twos) for base in _BASES)


def _is_probable_prime(number: int, base: int, twos: int) -> bool:
    power = pow(base, number - 1 >> twos, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


@lru_cache
def prime_factors(number: int) -> tuple[int, ...]:
    """The distinct prime factors, ascending."""
    factors, divisor = [], 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            factors.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return tuple(factors if number == 1 else [*factors, number])


def is_primitive_root(generator: int, prime: int) -> bool:
    """Whether the powers of ``generator`` are all residues but 0."""
    order = prime - 1
    return 1 <= generator < prime and all(
        pow(generator, order // factor, prime) != 1 for factor in prime_factors(order)
    )
