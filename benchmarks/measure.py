"""Timing on a busy machine: processor time instead of wall-clock time, and both sides of a ratio alternately.

Other programs affect processor time only through shared caches and the changing clock rate. These change slowly, so a
ratio is taken between consecutive runs, and the median over several such pairs is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import process_time

Action = Callable[[], object]

LEAST_SECONDS = 0.02
"""Shorter runs are repeated within one reading of the clock."""

LONG_SECONDS = 1.0
"""A first call longer than this is enough warm-up, even if part of it was compiling or filling caches."""


@dataclass(frozen=True)
class Comparison:
    """Medians over all rounds; ratios are medians of the per-round ratios."""

    measured: float
    """Seconds per run of the measured action."""
    reference: float
    """Seconds per run of the reference."""
    slowdown: float
    """Measured over reference."""
    speedup: float
    """Reference over measured."""


def compare(measured: Action, reference: Action, rounds: int = 7, warm_up: bool = True) -> Comparison:
    """Time both alternately. A warm-up call of each also determines how many calls fill one reading of the clock."""
    calls = [_calls_needed(action) if warm_up else 1 for action in (measured, reference)]
    return paired([(_timed(measured, calls[0]), _timed(reference, calls[1])) for _ in range(rounds)])


def paired(rounds: list[tuple[float, float]]) -> Comparison:
    """Build a comparison from pairs of times of consecutive runs."""
    return Comparison(
        median(mine for mine, _ in rounds),
        median(theirs for _, theirs in rounds),
        median(mine / theirs for mine, theirs in rounds),
        median(theirs / mine for mine, theirs in rounds),
    )


def seconds(action: Action, rounds: int = 5, warm_up: bool = True) -> float:
    """Median time of one call."""
    calls = _calls_needed(action) if warm_up else 1
    return median(_timed(action, calls) for _ in range(rounds))


def _calls_needed(action: Action) -> int:
    if _timed(action, 1) > LONG_SECONDS:
        return 1
    return max(1, min(1000, round(LEAST_SECONDS / max(_timed(action, 1), 1e-6))))


def _timed(action: Action, calls: int) -> float:
    start = process_time()
    for _ in range(calls):
        action()
    return (process_time() - start) / calls
