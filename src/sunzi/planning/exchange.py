"""Local search by exchange: swap one modulus at a time for the one that the sensitivities rank first, and keep the swap
if the exact error says so.

The aim is ln(error) plus multipliers times the shares used of what a report may cost and give away. The multipliers
rise while a limit is broken and fall while it is not, so the search settles on the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf

import numpy as np

from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.planning.space import Rows, SearchSpace

Record = Callable[[Rows, float], bool]
"""Told of every set whose exact error was computed; returns whether there is effort left."""

# A modulus is taken out but for this share of its weight, so that T keeps its rank.
_REMAINING_WEIGHT = 0.1
_SWAPS_TRIED = 2
_IDLE_ROUNDS = 2
_LEAST_GAIN = 1e-6
_COST_WORTH = 1.5
# Reports wasted on a tiny modulus give nothing away and tell nothing: attackability is bought about one for one.
_GUESS_WORTH = 1.0
_ADJUSTMENT = 10.0
_FASTEST_ADJUSTMENT = 0.1
_LARGEST_MULTIPLIER = 1e6


@dataclass(frozen=True)
class Limits:
    """What the blocks of one set may cost together, and the mean that they may give away to guesses."""

    cost: float
    guesses: float = inf

    def allow(self, space: SearchSpace, rows: Rows) -> bool:
        """Whether these rows keep to both."""
        return bool(space.costs[rows].sum() <= self.cost and space.guesses[rows].mean() <= self.guesses)


class Exchange:
    """One run: a set of fixed size that is improved under limits."""

    def __init__(
        self, space: SearchSpace, start: Rows, limits: Limits, record: Record, generator: np.random.Generator
    ) -> None:
        self._space, self._limits, self._record, self._generator = space, limits, record, generator
        self._rows, self._error = start, inf
        # The slope of ln(1/(1 − k/Σm)), about the error, in Σm: a good guess of what cost is worth.
        self._cost_multiplier = _COST_WORTH * space.size / max(space.size, int(space.stand_ins[start].sum()))
        self._guess_multiplier = _GUESS_WORTH if limits.guesses < inf else 0.0
        self._left = 0

    def run(self, evaluations: int) -> None:
        """Improve until rounds over all moduli change nothing any more, or so many errors were computed."""
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
