"""Which block size and which compact design suit a number of points and ε. Planners choose; clients never do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp

from sunzi.client.designs.cyclotomic import MOST_POINTS
from sunzi.client.designs.design import index_bits
from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError, whole_number
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.singletons import Singletons
from sunzi.numerics.primes import divisors, next_prime
from sunzi.numerics.support_probabilities import SupportProbabilities

# Designs within this factor of the best error count as equal; the shortest message wins among them.
ERROR_TOLERANCE = 1.01
_PRIMES_TRIED = 60
_CLASSES_PER_OPTIMUM = 8
# Blocks of a given size are sought on primes up to this multiple of the domain's size, and a few more.
_FARTHEST_PRIME, _FEW_PRIMES = 1.05, 10


def optimal_block_size(points: int, epsilon: Fraction) -> int:
    """round(v/(e^ε+1)), clamped to [1, v−1]."""
    return min(max(1, round(points / (exp(epsilon) + 1))), points - 1)


def subset_error(
    domain_size: int, epsilon: Fraction, block_size: int | None = None, points: int | None = None
) -> float:
    """The mean squared error for one report of a design on ``points`` points, by default as many as values and with
    blocks of the optimal size; the same for every histogram.
    """
    points = domain_size if points is None else points
    size = optimal_block_size(points, epsilon) if block_size is None else block_size
    return SupportProbabilities.planned(points, size, epsilon).variance(1 / domain_size)


@dataclass(frozen=True, order=True)
class CompactCandidate:
    """A cyclotomic design that may be chosen; the shortest message comes first."""

    bits: int
    error: float
    points: int
    classes: int
    joined: int
    with_zero: bool

    @property
    def block_size(self) -> int:
        """The number of points in a block."""
        return self.joined * (self.points - 1) // self.classes + int(self.with_zero)

    def design(self) -> Cyclotomic:
        """The design itself."""
        return Cyclotomic(self.points, self.classes, tuple(range(self.joined)), self.with_zero)


def _candidates(
    points: int, domain_size: int, epsilon: Fraction, block_size: int | None = None
) -> Iterator[CompactCandidate]:
    """Unions of classes of Z_points whose size comes near ``block_size``, by default the optimum."""
    fraction = exp(epsilon) + 1 if block_size is None else points / block_size
    # Blocks of nearly all points need classes as small as what they leave out.
    finest = fraction if block_size is None else max(fraction, points / (points - block_size))
    for classes in divisors(points - 1):
        if classes > _CLASSES_PER_OPTIMUM * finest:
            return
        class_size = (points - 1) // classes
        nearest = int(points / fraction / class_size)
        for joined in {max(1, nearest), min(nearest + 1, classes)}:
            for with_zero in (False, True):
                size = joined * class_size + int(with_zero)
                if 1 <= size < points and joined <= classes:
                    error = subset_error(domain_size, epsilon, size, points)
                    yield CompactCandidate(index_bits(classes * points), error, points, classes, joined, with_zero)


def best_cyclotomic(points: int, epsilon: Fraction) -> tuple[Design, float]:
    """The compact design on exactly ``points`` (a prime) points, and its error; singletons where blocks of one
    point are best.
    """
    candidates = list(_candidates(points, points, epsilon))
    alone = subset_error(points, epsilon, 1)
    best = min((candidate.error for candidate in candidates), default=alone)
    if alone <= best or not candidates:
        return Singletons(points), alone
    chosen = min(candidate for candidate in candidates if candidate.error <= ERROR_TOLERANCE * best)
    return chosen.design(), chosen.error


def choose_compact(domain_size: int, epsilon: Fraction) -> Design:
    """The compact design for a domain: among the primes just above it, the shortest message within 1 % of the best
    error.
    """
    alone = subset_error(domain_size, epsilon, 1)
    candidates: list[CompactCandidate] = []
    prime = next_prime(domain_size)
    for _ in range(_PRIMES_TRIED):
        candidates.extend(_candidates(prime, domain_size, epsilon))
        prime = next_prime(prime + 1)
    best = min((candidate.error for candidate in candidates), default=alone)
    if alone <= ERROR_TOLERANCE * best:
        return Singletons(domain_size)
    return min(candidate for candidate in candidates if candidate.error <= ERROR_TOLERANCE * best).design()


def compact_candidates(domain_size: int, epsilon: Fraction, block_size: Callable[[int], int]) -> list[CompactCandidate]:
    """Unions of classes on primes a little above the domain, whose blocks have nearly the size that ``block_size``
    gives for their number of points.
    """
    candidates: list[CompactCandidate] = []
    first = prime = next_prime(domain_size)
    while not candidates or prime <= max(first, _FARTHEST_PRIME * domain_size + _FEW_PRIMES):
        candidates.extend(_candidates(prime, domain_size, epsilon, min(block_size(prime), prime - 1)))
        prime = next_prime(prime + 1)
    return candidates


def compact_of_size(domain_size: int, epsilon: Fraction, block_size: int) -> Design:
    """The compact design of the shortest message with blocks of this size, or where no union of classes has it, of
    nearly this size: blocks above the optimum reveal less and have a larger error.
    """
    block_size = whole_number("block_size", block_size, 1, domain_size - 1)
    if block_size == 1:
        return Singletons(domain_size)
    candidates = compact_candidates(domain_size, epsilon, lambda _: block_size)

    def distance(candidate: CompactCandidate) -> int:
        return abs(candidate.block_size - block_size)

    allowed = max(min(map(distance, candidates)), (ERROR_TOLERANCE - 1) * block_size)
    near = [candidate for candidate in candidates if distance(candidate) <= allowed]
    return min(near, key=lambda candidate: (candidate.bits, candidate.points, distance(candidate))).design()


def cyclotomic_with(domain_size: int, epsilon: Fraction, classes: int, points: int | None = None) -> Cyclotomic:
    """The best union of ``classes`` classes, on ``points`` points or on the first suitable prime above the domain."""
    classes = whole_number("classes", classes, 1)
    prime = _prime_with(classes, domain_size) if points is None else whole_number("points", points, 2, MOST_POINTS)
    if (prime - 1) % classes:
        raise ParameterError(f"classes must divide a prime minus 1; {classes} does not divide {prime - 1}")
    found = [candidate for candidate in _candidates(prime, domain_size, epsilon) if candidate.classes == classes]
    if not found:
        raise ParameterError(f"no union of {classes} classes suits epsilon {epsilon}; use about {exp(epsilon) + 1:.0f}")
    return min(found, key=lambda candidate: candidate.error).design()


def _prime_with(classes: int, domain_size: int) -> int:
    """The smallest prime that holds the domain and is 1 more than a multiple of ``classes``."""
    first = 1 + classes * max(1, -(-(domain_size - 1) // classes))
    for candidate in range(first, MOST_POINTS + 1, classes):
        if is_prime(candidate):
            return candidate
    raise ParameterError(
        f"no prime of {domain_size} to 2^26 is 1 more than a multiple of classes={classes}; use fewer classes"
    )
