"""The search on the exact error: a Pareto front of moduli over error, bits, attackability and decoding work.

For many numbers of moduli and lengths of report a set in good shape is made and improved by exchange; under a limit,
moduli are then added to the best set and taken from it. Whatever was evaluated on the way competes for the front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic

import numpy as np

from sunzi.errors import EstimateError
from sunzi.numerics.residues import expected_error
from sunzi.planning.blocks import BlockFamily
from sunzi.planning.candidates import Candidate, from_blocks, front, spread_out
from sunzi.planning.exchange import Exchange, Limits, with_one_less, with_one_more
from sunzi.planning.ladder import Request, Run, runs
from sunzi.planning.space import Rows, SearchSpace, search_space
from sunzi.planning.starts import giving_away_less, is_promising, places, start_with_cost

Progress = Callable[[int, int], None]
"""Told how many steps of the search are done, and of how many."""

_STARTS_COMPARED = 3
# Under a limit this share of the effort goes into the best set within it.
_REFINING_SHARE = 0.4
_ROUNDS_A_REFINEMENT = 2.5
_MOST_CANDIDATES = 100
# At full scale about so many values are inverted in all, and never fewer than so many sets.
_VERIFIED_VALUES, _FEWEST_VERIFIED = 1_500_000, 12
# Sets so much worse than the best one found are of no use, whatever else they spare.
_WORST_RATIO = 3.0
# From so many times the error of a single block on, improving a set takes long and leads nowhere.
_HOPELESS_RATIO = 20.0


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


def search(
    family: BlockFamily, request: Request, seconds: float = inf, progress: Progress | None = None
) -> list[Candidate]:
    """The front by ascending error; empty if nothing was found within the limits. The same request gives the same
    front, unless ``seconds`` cut the search short.
    """
    space, log = search_space(family, request.max_moduli), _Log(monotonic() + seconds)
    planned = runs(space, request)
    limited = min(request.max_bits, request.max_attack) < inf
    refining = round(_REFINING_SHARE * request.evaluations) if limited else 0
    share = max(1, (request.evaluations - refining) // max(1, len(planned)))
    # In random order, so that a search cut short has looked everywhere a little.
    order = np.random.default_rng(request.seed).permutation(len(planned)).tolist()
    for done, index in enumerate(order, start=1):
        if monotonic() < log.deadline:
            _improve(space, planned[index], share, log, np.random.default_rng([request.seed, index]))
        if progress is not None:
            progress(done, len(planned) + 1)
    _refine(space, request, refining, log)
    candidates = _verified(space, _found(space, log, request))
    if progress is not None:
        progress(len(planned) + 1, len(planned) + 1)
    return candidates


def _improve(space: SearchSpace, run: Run, evaluations: int, log: _Log, generator: np.random.Generator) -> None:
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


def _refine(space: SearchSpace, request: Request, evaluations: int, log: _Log) -> None:
    """Add a modulus to the best set within the limits, or take one away, and improve the result; again and again."""
    generator = np.random.default_rng([request.seed, len(log.rows)])
    guesses = request.max_attack * space.family.domain_size
    used = 0
    while used < evaluations and monotonic() < log.deadline:
        best = _best_within(space, log, request)
        if best is None:
            return
        change = (with_one_more, with_one_less, None)[int(generator.integers(3))]
        start = best if change is None else change(space, best)
        if not 1 <= len(start) <= request.max_moduli or not is_promising(space, start):
            start = best
        cost = space.family.affordable_cost(len(start), request.max_bits) if request.max_bits < inf else inf
        steps = min(evaluations - used, max(8, round(_ROUNDS_A_REFINEMENT * len(start))))
        Exchange(space, start, Limits(cost, guesses), log.record, generator).run(steps)
        used += steps


def _best_within(space: SearchSpace, log: _Log, request: Request) -> Rows | None:
    """The set of smallest error so far that keeps to the limits."""
    for index in np.argsort(log.errors):
        rows = log.rows[index]
        cost = space.family.affordable_cost(len(rows), request.max_bits) if request.max_bits < inf else inf
        guesses = request.max_attack * space.family.domain_size
        if space.costs[rows].sum() <= cost and space.guesses[rows].mean() <= guesses:
            return rows
    return None


def _found(space: SearchSpace, log: _Log, request: Request) -> list[Candidate]:
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
            error = expected_error(family.domain_size, candidate.moduli, [block.variance for block in blocks])
        except EstimateError:
            continue
        exact.append(from_blocks(family, blocks, error))
    return _front(exact, most)
