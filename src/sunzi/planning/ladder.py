"""Where a search looks: numbers of moduli, for each a ladder of report lengths, and all along the limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from sunzi._typing import Floats
from sunzi.planning.exchange import Limits
from sunzi.planning.space import Rows, SearchSpace
from sunzi.planning.starts import is_promising, start_with_cost, start_with_mean

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
_DENSE_COUNTS = (*range(1, 33), 36, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256)
_COARSE_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SHARES = (0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 0.9, 1.0)
_COARSE_SHARES = (0.12, 0.25, 0.5, 0.8, 1.0)
_FINE_FROM = 1500
# Blocks differ by more than this in what they give away only where ε is large for the domain.
_ATTACK_SPREAD = 0.05
# Smaller moduli give away little because they tell little; any protocol could waste reports as well.
_LEAST_TELLING = 0.05


@dataclass(frozen=True)
class Request:
    """All that the result of a search depends on, beside the blocks and the clock."""

    max_bits: float
    """Limit on the mean bits of a report."""
    max_attack: float
    max_moduli: int
    evaluations: int
    """About so many Gram matrices are inverted."""
    seed: int


@dataclass(frozen=True)
class Run:
    """So many moduli under these limits."""

    count: int
    limits: Limits


def runs(space: SearchSpace, request: Request) -> list[Run]:
    """For every number of moduli, every length of the ladder; each once more under a tighter attack limit where that
    makes a difference.
    """
    fine = request.evaluations >= _FINE_FROM
    most = min(request.max_moduli, len(space.blocks))
    counts = {count for count in (_COUNTS if fine else _COARSE_COUNTS) if count < most} | {most}
    planned = []
    for count in sorted(counts):
        for bits in _ladder(space, count, _SHARES if fine else _COARSE_SHARES, request.max_bits):
            cost = space.family.affordable_cost(count, bits)
            planned += [Run(count, Limits(cost, guesses)) for guesses in _guess_limits(space, count, cost, request)]
    return planned


def runs_at_the_limit(space: SearchSpace, request: Request) -> list[Run]:
    """One run for nearly every number of moduli, right at the limits."""
    most, bits = min(request.max_moduli, len(space.blocks)), request.max_bits
    guesses = request.max_attack * space.family.domain_size
    counts = sorted({count for count in _DENSE_COUNTS if count < most} | {most})
    costs = [space.family.affordable_cost(count, bits) if bits < inf else inf for count in counts]
    return [Run(count, Limits(cost, guesses)) for count, cost in zip(counts, costs, strict=True)]


def _ladder(space: SearchSpace, count: int, shares: tuple[float, ...], limit: float) -> list[float]:
    """Report lengths at which the mean modulus takes these shares of the domain's size, up to the limit, and the limit
    itself.
    """
    starts = [start_with_mean(space, _middles(count), share) for share in shares]
    lengths = {_bits(space, rows) for rows in starts if is_promising(space, rows)}
    if any(length > limit for length in lengths):
        lengths = {length for length in lengths if length < limit} | {limit}
    return sorted(lengths)


def _bits(space: SearchSpace, rows: Rows) -> float:
    return space.family.bits([space.blocks[row].cost for row in rows])[0]


def _middles(count: int) -> Floats:
    return (np.arange(count) + 0.5) / count


def _guess_limits(space: SearchSpace, count: int, cost: float, request: Request) -> Iterator[float]:
    """The limit asked for; or none, and one halfway down to the least, if that is much less."""
    asked = request.max_attack * space.family.domain_size
    yield asked
    if asked < inf:
        return
    rows = start_with_cost(space, _middles(count), cost)
    if rows is not None:
        usual = float(space.guesses[rows].mean())
        telling = space.guesses[space.stand_ins >= _LEAST_TELLING * space.size]
        least = float(np.sort(telling)[:count].mean())
        if least < (1 - _ATTACK_SPREAD) * usual:
            yield (least + usual) / 2
