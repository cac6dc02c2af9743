"""Systems of moduli and weights for tests, and the matrices that they stand for, written out."""

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIZES = [1, 2, 3, 5, 30, 60, 101, 300]
SEEDS = [0, 1]


def primes_below(limit: int) -> list[int]:
    return [n for n in range(2, limit) if all(n % d for d in range(2, int(n**0.5) + 1))]


def primes_from(start: int) -> Iterator[int]:
    return (n for n in itertools.count(max(2, start)) if all(n % d for d in range(2, int(n**0.5) + 1)))


CROWDED = [prime for prime in primes_below(300) if prime > 150][:20]


def incidence(modulus: int, size: int) -> NDArray[np.float64]:
    """A_m, entry by entry."""
    return np.equal.outer(np.arange(modulus), np.arange(size) % modulus).astype(np.float64)


def gram(size: int, moduli: list[int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros((size, size))
    for modulus, weight in zip(moduli, weights, strict=True):
        matrix = incidence(modulus, size)
        total += weight * matrix.T @ matrix
    return total


def random_system(size: int, seed: int) -> tuple[list[int], NDArray[np.float64]]:
    """Distinct primes of full rank, some beyond the size; weights over two orders of magnitude, far from 1."""
    generator = np.random.default_rng([size, seed])
    pool = generator.permutation(primes_below(size + max(20, size // 5))).tolist()
    moduli: list[int] = []
    while sum(modulus - 1 for modulus in moduli) < 1.5 * size or len(moduli) < 3:
        moduli.append(pool.pop())
    return moduli, 1e6 * 10.0 ** generator.uniform(-2, 0, len(moduli))


def spread_primes(size: int, count: int) -> list[int]:
    candidates = np.array(primes_below(size))
    return [
        int(candidates[np.searchsorted(candidates, at)]) for at in np.linspace(size / (20 * count), 0.95 * size, count)
    ]
