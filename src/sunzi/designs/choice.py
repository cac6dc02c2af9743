"""Which block size and which compact design suit a number of points and ε: choices of a planner, never of a client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp

from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.singletons import Singletons
from sunzi.errors import ParameterError
from sunzi.numerics.bits import index_bits
from sunzi.numerics.primes import divisors, next_prime

# Designs within this factor of the best error count as equal; the shortest message wins among them.
ERROR_TOLERANCE = 1.01
_PRIMES_TRIED = 60
_CLASSES_PER_OPTIMUM = 8


def optimal_block_size(points: int, epsilon: Fraction) -> int:
    """round(v/(e^ε+1)), clamped to [1, v−1]."""
    return min(max(1, round(points / (exp(epsilon) + 1))), points - 1)


def light_variance(points: int, block_size: int, epsilon: Fraction) -> float:
    """q(1−q)/Δ²: the variance of one debiased report at a point that nobody holds."""
    odds = exp(epsilon)
    true = block_size * odds / (block_size * odds + points - block_size)
    false = (block_size - true) / (points - 1)
    gap = (true * points - block_size) / (points - 1)
    return false * (1 - false) / gap**2


@dataclass(frozen=True, order=True)
class _Candidate:
    bits: int
    variance: float
    points: int
    classes: int
    joined: int
    with_zero: bool

    def design(self) -> Cyclotomic:
        return Cyclotomic(self.points, self.classes, tuple(range(self.joined)), self.with_zero)


def _candidates(points: int, epsilon: Fraction) -> Iterator[_Candidate]:
    """Unions of classes of Z_points whose size comes near the optimum."""
    optimum = exp(epsilon) + 1
    for classes in divisors(points - 1):
        if classes > _CLASSES_PER_OPTIMUM * optimum:
            return
        class_size = (points - 1) // classes
        nearest = int(points / optimum / class_size)
        for joined in {max(1, nearest), min(nearest + 1, classes)}:
            for with_zero in (False, True):
                size = joined * class_size + int(with_zero)
                if 1 <= size < points and joined <= classes:
                    variance = light_variance(points, size, epsilon)
                    yield _Candidate(index_bits(classes * points), variance, points, classes, joined, with_zero)


def best_cyclotomic(points: int, epsilon: Fraction) -> tuple[Design, float]:
    """The compact design on exactly ``points`` (a prime) points, and its light variance; singletons where blocks of one
    point are best.
    """
    candidates = list(_candidates(points, epsilon))
    alone = light_variance(points, 1, epsilon)
    best = min((candidate.variance for candidate in candidates), default=alone)
    if alone <= best or not candidates:
        return Singletons(points), alone
    chosen = min(candidate for candidate in candidates if candidate.variance <= ERROR_TOLERANCE * best)
    return chosen.design(), chosen.variance


def choose_compact(domain_size: int, epsilon: Fraction) -> Design:
    """The compact design for a domain: among the primes just above it, the shortest message within 1 % of the best
    error.
    """
    alone = light_variance(domain_size, 1, epsilon)
    candidates: list[_Candidate] = []
    prime = next_prime(domain_size)
    for _ in range(_PRIMES_TRIED):
        candidates.extend(_candidates(prime, epsilon))
        prime = next_prime(prime + 1)
    best = min((candidate.variance for candidate in candidates), default=alone)
    if alone <= ERROR_TOLERANCE * best:
        return Singletons(domain_size)
    return min(candidate for candidate in candidates if candidate.variance <= ERROR_TOLERANCE * best).design()


def cyclotomic_with(domain_size: int, epsilon: Fraction, classes: int, points: int | None = None) -> Cyclotomic:
    """The best union of a given number of classes, on the given prime or on the first prime above the domain that has
    so many.
    """
    if classes < 1:
        raise ParameterError(f"classes must be at least 1, got {classes}")
    prime = points or next_prime(domain_size)
    while (prime - 1) % classes:
        if points or prime > 1000 * classes * domain_size:
            raise ParameterError(f"classes must divide a prime minus 1; {classes} does not divide {prime - 1}")
        prime = next_prime(prime + 1)
    found = [candidate for candidate in _candidates(prime, epsilon) if candidate.classes == classes]
    if not found:
        raise ParameterError(f"no union of {classes} classes suits epsilon {epsilon}; use about {exp(epsilon) + 1:.0f}")
    return min(found, key=lambda candidate: candidate.variance).design()
