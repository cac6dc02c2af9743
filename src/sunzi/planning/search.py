"""The search on the exact error: a Pareto front of moduli over error, bits, attackability and decoding work.

For many numbers of moduli and lengths of report a set in good shape is made and improved by exchange; where there are
limits, sets of all numbers of moduli then compete right at them. Whatever was evaluated enters the front on its merits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic

import numpy as np

from sunzi.errors import EstimateError
from sunzi.planning.blocks import BlockFamily
from sunzi.planning.candidates import Candidate, from_blocks, front, spread_out
from sunzi.planning.exchange import Exchange
from sunzi.planning.ladder import Request, Run, runs, runs_at_the_limit
from sunzi.planning.space import Rows, SearchSpace, search_space
from sunzi.planning.starts import giving_away_less, is_promising, places, start_with_cost

Progress = Callable[[int, int], None]
"""Told how many steps of the search are done, and of how many."""

_STARTS_COMPARED = 3
# Under a limit this share of the effort goes into the sets right at it.
_SHARE_AT_THE_LIMIT = 0.5
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
    tell = progress or _tell_nobody
    planned = runs(space, request)
    limited = min(request.max_bits, request.max_attack) < inf
    elsewhere = round((1 - _SHARE_AT_THE_LIMIT) * request.evaluations) if limited else request.evaluations
    # In random order, so that a search cut short has looked everywhere a little.
    order = np.random.default_rng(request.seed).permutation(len(planned)).tolist()
    for done, index in enumerate(order, start=1):
        generator = np.random.default_rng([request.seed, index])
        _improve(space, planned[index], max(1, elsewhere // len(planned)), log, generator)
        tell(done, len(planned) + 1)
    if limited:
        _compete(space, runs_at_the_limit(space, request), request, request.evaluations - elsewhere, log)
    candidates = _verified(space, _found(space, log, request))
    tell(len(planned) + 1, len(planned) + 1)
    return candidates


def _tell_nobody(done: int, total: int) -> None:
    """No progress was asked for."""


def _improve(
    space: SearchSpace,
    run: Run,
    evaluations: int,
    log: _Log,
    generator: np.random.Generator,
    start: Rows | None = None,
) -> tuple[float, Rows] | None:
    """Improve a set, or else the best of a few new ones; return the best within the run's limits, if there is one."""
    if monotonic() >= log.deadline:
        return None
    best: list[tuple[float, Rows]] = []

    def record(rows: Rows, error: float) -> bool:
        if run.limits.allow(space, rows) and (not best or error < best[0][0]):
            best[:] = [(error, rows)]
        return log.record(rows, error)

    starts = [start] if start is not None else _starts(space, run, min(_STARTS_COMPARED, evaluations), generator)
    errors = [space.error(rows) for rows in starts]
    for rows, error in zip(starts, errors, strict=True):
        record(rows, error)
    if starts and evaluations > len(starts):
        rows = starts[int(np.argmin(errors))]
        if min(errors) <= _HOPELESS_RATIO * space.variances[rows].mean():
            Exchange(space, rows, run.limits, record, generator).run(evaluations - len(starts))
    return best[0] if best else None


def _starts(space: SearchSpace, run: Run, number: int, generator: np.random.Generator) -> list[Rows]:
    made = [start_with_cost(space, places(run.count, generator), run.limits.cost) for _ in range(number)]
    repaired = [giving_away_less(space, rows, run.limits.guesses) for rows in made if rows is not None]
    return [rows for rows in repaired if is_promising(space, rows)]


def _compete(space: SearchSpace, contenders: list[Run], request: Request, evaluations: int, log: _Log) -> None:
    """Improve all runs a little, the better half of them some more, and so on to the last."""
    generator = np.random.default_rng([request.seed, len(contenders)])
    rounds = max(1, len(contenders).bit_length())
    standing: list[tuple[float, Rows | None, Run]] = [(inf, None, run) for run in contenders]
    for _ in range(rounds):
        share = max(1, evaluations // (rounds * max(1, len(standing))))
        for index, (error, rows, run) in enumerate(standing):
            found = _improve(space, run, share, log, generator, rows)
            if found is not None and found[0] < error:
                standing[index] = (*found, run)
        standing = sorted((each for each in standing if each[0] < inf), key=lambda each: each[0])
        del standing[max(1, len(standing) // 2) :]


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
            exact.append(from_blocks(family, blocks, family.error(blocks)))
        except EstimateError:
            continue
    return _front(exact, most)
