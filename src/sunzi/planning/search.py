"""The search on the exact error: a Pareto front of moduli over error, bits, attackability and decoding work.

For many numbers of moduli and lengths of report a set in good shape is made and improved by exchange; whatever was
evaluated on the way competes for the front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from time import monotonic

import numpy as np

from sunzi.errors import EstimateError
from sunzi.numerics.residues import expected_error
from sunzi.planning.blocks import Block, BlockFamily
from sunzi.planning.candidates import Candidate, from_blocks, front, spread_out
from sunzi.planning.exchange import Exchange, Limits
from sunzi.planning.space import Rows, SearchSpace, search_space
from sunzi.planning.starts import giving_away_less, is_promising, places, start_with_cost, start_with_mean

Progress = Callable[[int, int], None]
"""Told how many steps of the search are done, and of how many."""

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_ALL_COUNTS = 32
_COARSE_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SHARES = (0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 0.9, 1.0)
_COARSE_SHARES = (0.12, 0.25, 0.5, 0.8, 1.0)
_FINE_FROM = 2000
_STARTS_COMPARED = 3
# Blocks differ by more than this in what they give away only where ε is large for the domain.
_ATTACK_SPREAD = 0.05
_MOST_CANDIDATES = 100
# At full scale about so many values are inverted in all, and never fewer than so many sets.
_VERIFIED_VALUES, _FEWEST_VERIFIED = 1_500_000, 12
# Sets so much worse than the best one found are of no use, whatever else they spare.
_WORST_RATIO = 3.0
# From so many times the error of a single block on, improving a set takes long and leads nowhere.
_HOPELESS_RATIO = 20.0


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


@dataclass
class _Log:
    """Every set whose error was computed, and when to stop."""

    deadline: float
    rows: list[Rows] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def record(self, rows: Rows, error: float) -> bool:
        """Keep it; returns whether there is time left."""
        if error < inf:
            self.rows.append(rows)
            self.errors.append(error)
        return monotonic() < self.deadline


@dataclass(frozen=True)
class _Run:
    """So many moduli under these limits."""

    count: int
    limits: Limits


def search(
    family: BlockFamily, request: Request, seconds: float = inf, progress: Progress | None = None
) -> list[Candidate]:
    """The front by ascending error; empty if nothing was found within the limits. The same request gives the same
    front, unless ``seconds`` cut the search short.
    """
    space, log = search_space(family, request.max_moduli), _Log(monotonic() + seconds)
    runs = _runs(space, request)
    # In random order, so that a search cut short has looked everywhere a little.
    order = np.random.default_rng(request.seed).permutation(len(runs)).tolist()
    for done, index in enumerate(order):
        if monotonic() < log.deadline:
            generator = np.random.default_rng([request.seed, index])
            _improve(space, runs[index], max(1, request.evaluations // len(runs)), log, generator)
        if progress is not None:
            progress(done + 1, len(runs) + 1)
    candidates = _verified(space, _best(space, log, request))
    if progress is not None:
        progress(len(runs) + 1, len(runs) + 1)
    return candidates


def _runs(space: SearchSpace, request: Request) -> list[_Run]:
    """For every number of moduli, a ladder of report lengths; each once more under a tighter attack limit where that
    makes a difference.
    """
    fine = request.evaluations >= _FINE_FROM
    runs = []
    for count in _counts(min(request.max_moduli, len(space.blocks)), fine):
        for bits in _ladder(space, count, _SHARES if fine else _COARSE_SHARES, request.max_bits):
            cost = space.family.affordable_cost(count, bits)
            runs += [_Run(count, Limits(cost, guesses)) for guesses in _guess_limits(space, count, cost, request)]
    return runs


def _counts(most: int, fine: bool) -> list[int]:
    """Numbers of moduli to try; where there are few, every number."""
    if fine and most <= _ALL_COUNTS:
        return list(range(1, most + 1))
    return sorted({count for count in (_COUNTS if fine else _COARSE_COUNTS) if count < most} | {most})


def _ladder(space: SearchSpace, count: int, shares: tuple[float, ...], limit: float) -> list[float]:
    """Report lengths at which the mean modulus takes these shares of the domain's size, up to the limit, and the limit
    itself.
    """
    middle = (np.arange(count) + 0.5) / count
    starts = [start_with_mean(space, middle, share) for share in shares]
    lengths = {_bits(space, rows) for rows in starts if is_promising(space, rows)}
    if any(length > limit for length in lengths):
        lengths = {length for length in lengths if length < limit} | {limit}
    return sorted(lengths)


def _bits(space: SearchSpace, rows: Rows) -> float:
    return space.family.bits([space.blocks[row].cost for row in rows])[0]


def _guess_limits(space: SearchSpace, count: int, cost: float, request: Request) -> Iterator[float]:
    """The limit asked for; or none, and one halfway down to the least, if that is much less."""
    asked = request.max_attack * space.family.domain_size
    yield asked
    if asked < inf:
        return
    rows = start_with_cost(space, (np.arange(count) + 0.5) / count, cost)
    if rows is not None:
        usual = float(space.guesses[rows].mean())
        least = float(np.sort(space.guesses)[:count].mean())
        if least < (1 - _ATTACK_SPREAD) * usual:
            yield (least + usual) / 2


def _improve(space: SearchSpace, run: _Run, evaluations: int, log: _Log, generator: np.random.Generator) -> None:
    """Improve the best of a few starts."""
    starts = []
    for _ in range(min(_STARTS_COMPARED, evaluations)):
        rows = start_with_cost(space, places(run.count, generator), run.limits.cost)
        if rows is not None:
            rows = giving_away_less(space, rows, run.limits.guesses)
        if rows is not None and is_promising(space, rows):
            error = space.error(rows)
            log.record(rows, error)
            starts.append((error, rows))
    if not starts or evaluations == len(starts):
        return
    error, rows = min(starts, key=lambda start: start[0])
    if error <= _HOPELESS_RATIO * space.variances[rows].mean():
        Exchange(space, rows, run.limits, log.record, generator).run(evaluations - len(starts))


def _best(space: SearchSpace, log: _Log, request: Request) -> list[Candidate]:
    """The front of what was found within the limits, with errors at the space's own scale."""
    by_set = {tuple(sorted(rows.tolist())): error for rows, error in zip(log.rows, log.errors, strict=True)}
    found = [from_blocks(space.family, [space.blocks[row] for row in rows], error) for rows, error in by_set.items()]
    allowed = [each for each in found if each.bits <= request.max_bits and each.attackability <= request.max_attack]
    return _front(allowed, _MOST_CANDIDATES)


def _front(candidates: list[Candidate], most: int) -> list[Candidate]:
    if not candidates:
        return []
    worst = _WORST_RATIO * min(candidate.error for candidate in candidates)
    useful = [candidate for candidate in candidates if candidate.error <= worst]
    axes = np.array([candidate.axes for candidate in useful])
    kept = np.array(front(axes))
    return [useful[row] for row in kept[spread_out(axes[kept], most)]]


def _verified(space: SearchSpace, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates with their exact errors, if those so far are of a smaller scale."""
    family = space.family
    if space.size == family.domain_size:
        return candidates
    most = max(_FEWEST_VERIFIED, _VERIFIED_VALUES // family.domain_size)
    exact = []
    for candidate in _front(candidates, most):
        blocks = [block for block in map(family.block, candidate.moduli) if block is not None]
        try:
            error = expected_error(family.domain_size, candidate.moduli, _variances(blocks))
        except EstimateError:
            continue
        exact.append(from_blocks(family, blocks, error))
    return _front(exact, most)


def _variances(blocks: list[Block]) -> list[float]:
    return [block.variance for block in blocks]
