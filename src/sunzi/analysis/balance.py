"""Parts of a report whose distribution does not depend on the value, whatever the histogram.

The modulus of a modular report is uniform. So is the class a of a cyclotomic block B(a,b): each class holds equally
many blocks with and without any given point. The number of ones of all unary reports together has mean n(p + (k−1)q)
and variance n(p(1−p) + (k−1)q(1−q)), whoever holds what. And no message is likelier than P(y|x) with x in its block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sunzi._typing import Integers
from sunzi.analysis.health_finding import HealthFinding
from sunzi.analysis.tails import Cumulants, any_of, largest_count, smallest_count, two_sided
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.numerics.counters import Counters
from sunzi.protocols.unary import UnaryProtocol
from sunzi.tally import Tally

Counted = Sequence[tuple[BlockResponse, Counters, int]]
"""Block responses, each with its counters and its number of reports; blocks without reports are left out."""

_SMALLEST_CELL = 5
_SMALLEST_NORMAL = 30


def uniform_counts(counts: Integers) -> tuple[float, Cumulants]:
    """Pearson's statistic of counts that should be uniform, and its exact mean and variance."""
    cells, total = counts.size, int(counts.sum())
    expected = total / cells
    statistic = float(np.sum((counts - expected) ** 2) / expected)
    variance = 2 * (cells - 1) * (1 - 1 / total)
    return statistic, Cumulants(cells - 1, variance, 8 * (cells - 1), 4 * (cells - 1) * (cells - 2) / total)


def block_balance(tally: Tally) -> HealthFinding:
    """Reports a modulus: multinomial with equal chances."""
    name, expected = "block balance", "every modulus is drawn by equally many clients, but for chance"
    counts = np.array(tally.block_reports)
    if counts.size == 1:
        return HealthFinding(name, "balance", expected, reason="there is one modulus only")
    if tally.reports < _SMALLEST_CELL * counts.size:
        return HealthFinding(name, "balance", expected, reason=_few(_SMALLEST_CELL * counts.size))
    statistic, cumulants = uniform_counts(counts)
    return HealthFinding(name, "balance", expected, statistic, counts.size - 1, cumulants.upper_tail(statistic))


def class_balance(blocks: Counted) -> HealthFinding | None:
    """Reports a cyclotomic class, within each modulus; None if no design has several classes."""
    parts = []
    needed = 0
    for response, counters, reports in blocks:
        design = response.design
        if not isinstance(design, Cyclotomic) or design.classes == 1:
            continue
        needed = max(needed, _SMALLEST_CELL * design.classes * len(blocks))
        if reports >= _SMALLEST_CELL * design.classes:
            cells, multiplicities = counters.nonzero()
            counts = np.bincount(cells // design.points, multiplicities, minlength=design.classes)
            parts.append(uniform_counts(counts.astype(np.int64)))
    if not needed:
        return None
    name, expected = "class balance", "every class of blocks is drawn by equally many clients, but for chance"
    if not parts:
        return HealthFinding(name, "balance", expected, reason=_few(needed))
    statistic = sum(part for part, _ in parts)
    cumulants = sum((part for _, part in parts[1:]), parts[0][1])
    return HealthFinding(name, "balance", expected, statistic, cumulants.mean, cumulants.upper_tail(statistic))


def bit_balance(protocol: UnaryProtocol, tally: Tally) -> HealthFinding:
    """All ones together. The same as asking whether the estimated frequencies add up to 1."""
    name = "bit balance"
    expected = "the number of ones in all reports, hence the sum of the estimated frequencies, which is 1 but for noise"
    rates, others = protocol.probabilities, protocol.domain_size - 1
    variance = rates.true * (1 - rates.true) + others * rates.false * (1 - rates.false)
    if tally.reports * variance < _SMALLEST_NORMAL:
        return HealthFinding(name, "balance", expected, reason=_few(round(_SMALLEST_NORMAL / variance)))
    mean = tally.reports * (rates.true + others * rates.false)
    score = float((tally.counters.total() - mean) / (tally.reports * variance) ** 0.5)
    return HealthFinding(name, "balance", expected, score, None, two_sided(score))


def message_frequency(blocks: Counted) -> HealthFinding | None:
    """The most frequent message of every design that counts messages: exact, at any number of reports."""
    found = []
    for response, counters, reports in blocks:
        design = response.design
        if design.counts_blocks and design.block_size > 1:
            largest = counters.extremes()[1]
            chance = float(response.message_probabilities()[0])
            found.append((largest_count(largest, reports, chance, design.message_count), largest / (reports * chance)))
    if not found:
        return None
    expected = "no message comes more often than if everybody held the same value"
    ratio = max(ratio for _, ratio in found)
    return HealthFinding("message frequency", "balance", expected, ratio, None, any_of([p for p, _ in found]))


def lowest_counts(counts: Integers, reports: int, false: float) -> tuple[float, float]:
    """The standard score of the smallest support count, and a bound on its chance: a point that nobody holds is still
    supported by Binomial(n, q) reports, and any other point by more. Exact.
    """
    lowest = int(counts.min())
    score = (lowest - reports * false) / (reports * false * (1 - false)) ** 0.5
    return score, smallest_count(lowest, reports, false, counts.size)


def _few(needed: int) -> str:
    return f"too few reports; it takes about {needed:,}"
