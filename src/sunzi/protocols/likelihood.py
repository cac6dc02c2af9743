"""Maximum likelihood over all histograms, by expectation maximisation on counted blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sunzi._typing import Floats
from sunzi.designs.base import Design
from sunzi.numerics.counters import Counters
from sunzi.numerics.toeplitz import fold, tile

LARGEST_DENSE = 1 << 26
_ITERATIONS = 300
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class CountedBlocks:
    """The counts of one design's messages, and e^ε as certified: P(y|x) is ``odds`` times larger where y's block
    contains x.
    """

    design: Design
    counters: Counters
    odds: float


def maximum_likelihood(blocks: Sequence[CountedBlocks], start: Floats) -> Floats:
    """The histogram f that maximises Σ_y c_y·log Σ_x f_x·P(y|x), x read modulo each design's points.

    The counts are a sufficient statistic, so nothing that the reports say is lost. Expectation maximisation with
    extrapolation (SQUAREM): every step keeps f a probability vector, and an extrapolated step that lowers the
    likelihood is given up.
    """
    counts = [block.counters.dense().astype(np.float64) for block in blocks]
    reports = sum(float(count.sum()) for count in counts)

    def step(frequencies: Floats) -> tuple[Floats, float]:
        factor = np.zeros(start.size)
        likelihood = 0.0
        for block, count in zip(blocks, counts, strict=True):
            folded = fold(frequencies, block.design.points)
            mixture = 1 + (block.odds - 1) * np.maximum(block.design.block_sums(folded), 0.0)
            likelihood += float(count @ np.log(mixture))
            share = count / mixture
            spread = block.design.spread(share, block.design.points)
            factor += tile(share.sum() + (block.odds - 1) * np.maximum(spread, 0.0), start.size)
        updated = frequencies * factor / reports
        return updated / updated.sum(), likelihood

    return _accelerate(step, (start + 1 / start.size) / 2)


def _accelerate(step: Callable[[Floats], tuple[Floats, float]], start: Floats) -> Floats:
    """SQUAREM (Varadhan and Roland 2008), monotone."""
    current = start
    for _ in range(_ITERATIONS):
        first, before = step(current)
        second, _ = step(first)
        change, curvature = first - current, second - 2 * first + current
        if np.abs(change).sum() < _TOLERANCE:
            return second
        bend = float(np.linalg.norm(curvature))
        length = min(-1.0, -float(np.linalg.norm(change)) / bend) if bend > 0 else -1.0
        # A zero would stay zero forever, so a jump may shrink a frequency tenfold but not wipe it out.
        jumped = np.maximum(current - 2 * length * change + length**2 * curvature, second / 10)
        jumped /= jumped.sum()
        after_jump, reached = step(jumped)
        current = after_jump if reached >= before else second
    return current
