"""The search for moduli by exact error: a Pareto front over error, bits, attackability and decoding work.

For many numbers of moduli and report lengths a set of good shape is made and improved by exchange: swap one modulus at
a time for the one that promises most, and keep the swap if the exact error agrees. The objective is ln(error) plus
multipliers times the used shares of what a report may cost and give away. The multipliers rise while a limit is broken
and fall while it is not, so the search settles on the limit. With limits, sets of all numbers of moduli then compete
right at them. Every evaluated set can enter the front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import exp, inf
from time import monotonic

import numpy as np

from sunzi._typing import Floats, Progress
from sunzi.errors import EstimateError
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.planning.moduli_candidates import BlockFamily, ModuliCandidate, front, spread_out
from sunzi.planning.moduli_space import (
    Rows,
    SearchSpace,
    giving_away_less,
    is_promising,
    places,
    search_space,
    start_with_cost,
    start_with_mean,
)

Recorder = Callable[[Rows, float], bool]
"""Called with every set whose exact error was computed; returns whether to go on."""

# A modulus is taken out except for this share of its weight, so that T keeps its rank.
_REMAINING_WEIGHT = 0.1
_SWAPS_TRIED = 2
_IDLE_ROUNDS = 2
_LEAST_GAIN = 1e-6
_COST_WORTH = 1.5
# Reports wasted on a tiny modulus reveal nothing and help nothing: attackability trades about one for one.
_GUESS_WORTH = 1.0
_ADJUSTMENT = 10.0
_FASTEST_ADJUSTMENT = 0.1
_LARGEST_MULTIPLIER = 1e6


_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
_DENSE_COUNTS = (*range(1, 33), 36, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256)
_COARSE_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SHARES = (0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 0.9, 1.0)
_COARSE_SHARES = (0.12, 0.25, 0.5, 0.8, 1.0)
_FINE_FROM = 1500
# Blocks differ by more than this in what they give away only where ε is large for the domain.
_ATTACK_SPREAD = 0.05
# Smaller moduli reveal little because they carry little information; any protocol could waste reports as well.
_LEAST_TELLING = 0.05


_STARTS_COMPARED = 3
# With a limit, this share of the effort goes into sets right at the limit.
_SHARE_AT_THE_LIMIT = 0.5
_MOST_CANDIDATES = 100
# At full scale at most about this many values are inverted in total, but never fewer than 12 sets.
_VERIFIED_VALUES, _FEWEST_VERIFIED = 1_500_000, 12
# Sets with more than this multiple of the smallest error are useless, however short their reports.
_WORST_RATIO = 3.0
# Above this multiple of a single block's error, improving a set takes long and leads nowhere.
_HOPELESS_RATIO = 20.0


@dataclass(frozen=True)
class Limits:
    """The largest total cost of the blocks of a set, and the largest mean of their guesses."""

    cost: float
    guesses: float = inf

    def allow(self, space: SearchSpace, rows: Rows) -> bool:
        """Whether these rows keep to both."""
        return bool(space.costs[rows].sum() <= self.cost and space.guesses[rows].mean() <= self.guesses)


@dataclass(frozen=True)
class Request:
    """What the result of a search depends on, apart from the blocks and the clock."""

    max_bits: float
    """Limit on the mean bits per report."""
    max_attack: float
    max_moduli: int
    evaluations: int
    """About how many Gram matrices to invert."""
    seed: int


@dataclass(frozen=True)
class Run:
    """One start of the search: the number of moduli, and the limits."""

    count: int
    limits: Limits


@dataclass
class _Log:
    """Every set whose error was computed, and when to stop."""

    deadline: float
    rows: list[Rows] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def record(self, rows: Rows, error: float) -> bool:
        """Keep a set; return whether to go on."""
        if error < inf:
            self.rows.append(rows)
            self.errors.append(error)
        return not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether time is up and something was found."""
        return bool(self.rows) and monotonic() >= self.deadline


def search(
    family: BlockFamily, request: Request, seconds: float = inf, progress: Progress | None = None
) -> list[ModuliCandidate]:
    """The front by ascending error; empty if nothing was found within the limits. The same request gives the same
    front, unless ``seconds`` cut the search short.
    """
    space, log = search_space(family, request.max_moduli), _Log(monotonic() + seconds)
    planned = runs(space, request)
    limited = min(request.max_bits, request.max_attack) < inf
    elsewhere = round((1 - _SHARE_AT_THE_LIMIT) * request.evaluations) if limited else request.evaluations
    # In random order, so that a search cut short has looked everywhere a little.
    order = np.random.default_rng(request.seed).permutation(len(planned)).tolist()
    for done, index in enumerate(order, start=1):
        generator = np.random.default_rng([request.seed, index])
        _improve(space, planned[index], max(1, elsewhere // len(planned)), log, generator)
        if progress is not None:
            progress(done / (len(planned) + 1))
    if limited:
        _compete(space, runs_at_the_limit(space, request), request, request.evaluations - elsewhere, log)
    candidates = _verified(space, _found(space, log, request))
    if progress is not None:
        progress(1.0)
    return candidates


def _improve(
    space: SearchSpace,
    run: Run,
    evaluations: int,
    log: _Log,
    generator: np.random.Generator,
    start: Rows | None = None,
) -> tuple[float, Rows] | None:
    """Improve a set, or the best of a few new ones; return the best within the run's limits, if any."""
    if log.is_over:
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
    """Improve all runs a little, the better half of them more, and so on until one is left."""
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


def _found(space: SearchSpace, log: _Log, request: Request) -> list[ModuliCandidate]:
    """The front of what was found within the limits, with errors at the space's own scale."""
    by_set = {tuple(sorted(rows.tolist())): error for rows, error in zip(log.rows, log.errors, strict=True)}
    found = [
        ModuliCandidate.of(space.family, [space.blocks[row] for row in rows], error) for rows, error in by_set.items()
    ]
    allowed = [each for each in found if each.bits <= request.max_bits and each.attackability <= request.max_attack]
    return _front(allowed, _MOST_CANDIDATES)


def _front(candidates: list[ModuliCandidate], most: int) -> list[ModuliCandidate]:
    if not candidates:
        return []
    worst = _WORST_RATIO * min(candidate.error for candidate in candidates)
    useful = [candidate for candidate in candidates if candidate.error <= worst]
    axes = np.array([candidate.axes for candidate in useful])
    kept = np.array(front(axes))
    return [useful[row] for row in kept[spread_out(axes[kept], most)]]


def _verified(space: SearchSpace, candidates: list[ModuliCandidate]) -> list[ModuliCandidate]:
    """The candidates with their exact errors, if those so far are of a smaller scale."""
    family = space.family
    if space.size == family.domain_size:
        return candidates
    most = max(_FEWEST_VERIFIED, _VERIFIED_VALUES // family.domain_size)
    exact = []
    for candidate in _front(candidates, most):
        blocks = [block for block in map(family.block, candidate.moduli) if block is not None]
        try:
            exact.append(ModuliCandidate.of(family, blocks, family.error(blocks)))
        except EstimateError:
            continue
    return _front(exact, most)


def runs(space: SearchSpace, request: Request) -> list[Run]:
    """For every number of moduli and several report lengths one run, and one more under a tighter attack limit where
    that makes a difference.
    """
    fine = request.evaluations >= _FINE_FROM
    most = min(request.max_moduli, len(space.blocks))
    counts = {count for count in (_COUNTS if fine else _COARSE_COUNTS) if count < most} | {most}
    planned = []
    for count in sorted(counts):
        for bits in _report_lengths(space, count, _SHARES if fine else _COARSE_SHARES, request.max_bits):
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


def _report_lengths(space: SearchSpace, count: int, shares: tuple[float, ...], limit: float) -> list[float]:
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
    """The requested limit; without one, no limit, and one halfway to the least possible if that is much less."""
    requested = request.max_attack * space.family.domain_size
    yield requested
    if requested < inf:
        return
    rows = start_with_cost(space, _middles(count), cost)
    if rows is not None:
        usual = float(space.guesses[rows].mean())
        telling = space.guesses[space.stand_ins >= _LEAST_TELLING * space.size]
        least = float(np.sort(telling)[:count].mean())
        if least < (1 - _ATTACK_SPREAD) * usual:
            yield (least + usual) / 2


class Exchange:
    """One run: a set of fixed size that is improved under limits."""

    def __init__(
        self, space: SearchSpace, start: Rows, limits: Limits, record: Recorder, generator: np.random.Generator
    ) -> None:
        self._space, self._limits, self._record, self._generator = space, limits, record, generator
        self._rows, self._error = start, inf
        # The slope of ln(1/(1 − k/Σm)), about the error, in Σm: a good guess of what cost is worth.
        self._cost_multiplier = _COST_WORTH * space.size / max(space.size, int(space.stand_ins[start].sum()))
        self._guess_multiplier = _GUESS_WORTH if limits.guesses < inf else 0.0
        self._left = 0

    def run(self, evaluations: int) -> None:
        """Improve until rounds over all moduli change nothing, or ``evaluations`` errors were computed."""
        self._left = evaluations
        self._error = self._measure(self._rows)
        idle_rounds = 0
        while self._left > 0 and idle_rounds < _IDLE_ROUNDS:
            improved = False
            for position in self._generator.permutation(len(self._rows)).tolist():
                improved |= self._left > 0 and self._exchange(position)
                self._adjust_multipliers()
            idle_rounds = 0 if improved else idle_rounds + 1

    def _measure(self, rows: Rows) -> float:
        error = self._space.error(rows)
        self._left -= 1
        if not self._record(rows, error):
            self._left = 0
        return error

    def _exchange(self, position: int) -> bool:
        """Replace one modulus, if a better one is found."""
        weights = np.ones(len(self._rows))
        weights[position] = _REMAINING_WEIGHT
        without = self._space.gram(self._rows, weights)
        self._left -= 1
        if without is None:
            return False
        aim = np.log(self._error) + self._penalty(self._rows)
        for row in self._most_promising(without):
            rows = self._rows.copy()
            rows[position] = row
            error = self._measure(rows)
            if np.log(error) + self._penalty(rows) < aim - _LEAST_GAIN:
                self._rows, self._error = rows, error
                return True
        return False

    def _most_promising(self, without: ToeplitzGram) -> list[int]:
        """The blocks that would bring the aim down most, judged by the sensitivities of what is left."""
        count, costs, guesses = len(self._rows), self._space.costs, self._space.guesses
        promised = np.log(self._space.errors_with_one_more(without, count))
        promised += self._cost_multiplier / self._limits.cost * costs
        promised += self._guess_multiplier / (count * self._limits.guesses) * guesses
        promised[self._rows] = inf
        best = np.argsort(promised)[:_SWAPS_TRIED]
        return [int(row) for row in best if promised[row] < inf]

    def _penalty(self, rows: Rows) -> float:
        cost, guesses = self._used(rows)
        return self._cost_multiplier * cost + self._guess_multiplier * guesses

    def _used(self, rows: Rows) -> tuple[float, float]:
        """The shares used of both limits."""
        cost = self._space.costs[rows].sum() / self._limits.cost
        return float(cost), float(self._space.guesses[rows].mean() / self._limits.guesses)

    def _adjust_multipliers(self) -> None:
        cost, guesses = (
            exp(min(max(_ADJUSTMENT * (used - 1), -_FASTEST_ADJUSTMENT), _FASTEST_ADJUSTMENT))
            for used in self._used(self._rows)
        )
        self._cost_multiplier = min(cost * self._cost_multiplier, _LARGEST_MULTIPLIER)
        self._guess_multiplier = min(guesses * self._guess_multiplier, _LARGEST_MULTIPLIER)
