"""Designs that keep the attackability of a report within a limit: larger blocks reveal less (docs/mathematics.md §4).

Above the optimal size, errors grow with blocks, so each family takes the smallest blocks that keep the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log10

from sunzi.client.designs.finite_fields import LARGEST_ORDER
from sunzi.client.errors import ParameterError
from sunzi.designs.base import Design
from sunzi.designs.choice import ERROR_TOLERANCE, choose_compact, compact_candidates, optimal_block_size, subset_error
from sunzi.designs.projective import choose_projective, projective_or_singletons
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.checks import real_number
from sunzi.numerics.finite_fields import nearest_prime_power, prime_power

# A formula may be off by this much in its last digits, so its answer is tried and taken only if it keeps the limit.
_ROUNDING = 1e-9
# Messages whose block misses the domain lower the attackability; there are none to speak of where a block is expected
# to contain this many values.
_MANY_VALUES = 60
_DIGITS = 4


@dataclass(frozen=True)
class AttackLimit:
    """The largest attackability that a design on at least ``domain_size`` points may have."""

    domain_size: int
    epsilon: Fraction
    most: float

    def __post_init__(self) -> None:
        if not 0 < real_number("max_attack", self.most) <= 1:
            raise ParameterError(f"max_attack must lie between 0 and 1, got {self.most}")

    def allows(self, points: int, size: int, design: Callable[[], Design]) -> bool:
        """Whether a design of blocks of this size keeps the limit; it is made only where the bound does not decide."""
        bound = self.bound(points, size)
        if bound <= self.most:
            return True
        may_miss = points - self.domain_size >= size and self.domain_size * size < _MANY_VALUES * points
        is_close = bound <= self.most * (1 + _ROUNDING)
        return (may_miss or is_close) and self.reached(design()) <= self.most

    def reached(self, design: Design) -> float:
        """The exact attackability of a design."""
        return BlockResponse(design, self.epsilon).best_guess_sum(self.domain_size) / self.domain_size

    def bound(self, points: int, size: int) -> float:
        """The attackability of blocks of this size; exact if every block meets the domain, else an upper bound."""
        odds = exp(self.epsilon)
        return points * odds / (size * odds + points - size) / self.domain_size

    def block_size(self, points: int) -> int:
        """The smallest size at which the bound keeps the limit, v·(e^ε/(k·x) − 1)/(e^ε − 1) rounded up; it may be too
        large for a block.
        """
        odds = exp(self.epsilon)
        ratio = (odds / (self.domain_size * self.most) - 1) / (odds - 1)
        return max(1, ceil(points * ratio * (1 - _ROUNDING)))

    def refusal(self, protocol: str, least: float) -> ParameterError:
        """The error of a protocol whose designs reveal at least this much."""
        scale = 10 ** (_DIGITS - 1 - floor(log10(least)))
        reachable = ceil(least * scale) / scale
        return ParameterError(
            f"max_attack={self.most:g} is out of reach of {protocol} on {self.domain_size:,} values at epsilon "
            f"{float(self.epsilon):g}: the least it reaches is {reachable:.{_DIGITS}g}, and a guess without a report "
            f"succeeds with {1 / self.domain_size:.{_DIGITS}g}"
        )


def subsets_within(limit: AttackLimit, code: str | None = None) -> Design:
    """Subsets of the smallest size from the optimal one on."""
    values = limit.domain_size
    first = max(optimal_block_size(values, limit.epsilon), limit.block_size(values))
    for size in range(first, min(first + 2, values)):
        design = Singletons(values) if size == 1 and code is None else Subsets(values, size, code or "")
        if limit.reached(design) <= limit.most:
            return design
    raise limit.refusal("ss", limit.bound(values, values - 1))


def compact_within(limit: AttackLimit) -> Design:
    """Of the cyclotomic designs that keep the limit, the shortest message within 1 % of the least error."""
    default = choose_compact(limit.domain_size, limit.epsilon)
    if limit.reached(default) <= limit.most:
        return default
    found = compact_candidates(limit.domain_size, limit.epsilon, limit.block_size)
    allowed = [each for each in found if limit.allows(each.points, each.block_size, each.design)]
    if not allowed:
        largest = compact_candidates(limit.domain_size, limit.epsilon, lambda points: points - 1)
        raise limit.refusal("ss-compact", min(limit.bound(each.points, each.block_size) for each in largest))
    best = min(candidate.error for candidate in allowed)
    return min(candidate for candidate in allowed if candidate.error <= ERROR_TOLERANCE * best).design()


def projective_within(limit: AttackLimit) -> Design:
    """Of the geometries that keep the limit, the one with the least error: smaller fields have larger hyperplanes."""

    def keeps(design: Design) -> bool:
        return limit.allows(design.points, design.block_size, lambda: design)

    values, epsilon = limit.domain_size, limit.epsilon
    default = projective_or_singletons(values, epsilon)
    if limit.reached(default) <= limit.most:
        return default
    designs = sorted(
        _geometries(values, epsilon), key=lambda each: subset_error(values, epsilon, each.block_size, each.points)
    )
    found = next(filter(keeps, designs), None)
    if found is not None:
        return found
    raise limit.refusal("pgr", min(limit.bound(each.points, each.block_size) for each in [default, *designs]))


def _geometries(domain_size: int, epsilon: Fraction) -> Iterator[Design]:
    """The smallest geometry with hyperplanes of several points over every field up to the usual one."""
    for order in range(2, min(nearest_prime_power(min(exp(epsilon) + 1, LARGEST_ORDER)), domain_size) + 1):
        if prime_power(order) is not None:
            with suppress(ParameterError):  # more than 2^31 points
                design = choose_projective(domain_size, epsilon, order)
                if design.block_size > 1:
                    yield design
