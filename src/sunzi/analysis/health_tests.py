"""One test on a tally, and the tests on parts of a report whose distribution does not depend on the value.

The modulus of a modular report is uniform, and the view of a record has its public share. Uniform is also the class a
of a cyclotomic block B(a,b): each class has equally many blocks with and without any given point. The total number of
ones in unary reports has mean n(p + (k−1)q) and variance n(p(1−p) + (k−1)q(1−q)) for every histogram. And no message is
more likely than P(y|x) with x in its block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.analysis.statistics import Cumulants, any_of, largest_count, smallest_count, two_sided
from sunzi.designs.response import BlockResponse
from sunzi.numerics.counters import Counters
from sunzi.protocols.channel import Channel
from sunzi.tally import Tally

Kind = Literal["balance", "residual", "consistency"]


@dataclass(frozen=True)
class HealthFinding:
    """The result of one test on a tally. Honest reports of any histogram give a p-value that is uniform or larger.

    ``p_value`` is None where the test does not apply; ``reason`` then says why.
    """

    name: str
    kind: Kind
    expected: str
    """What honest reports satisfy, in words."""
    statistic: float | None = None
    degrees_of_freedom: float | None = None
    p_value: float | None = None
    reason: str = ""

    @property
    def figures(self) -> str:
        """The numbers in one line."""
        if self.p_value is None or self.statistic is None:
            return self.reason
        freedom = "" if self.degrees_of_freedom is None else f" on {self.degrees_of_freedom:,.0f} degrees of freedom"
        chance = f"p = {self.p_value:.2g}" if self.p_value > 1e-99 else "p < 1e-99"
        return f"{self.statistic:,.4g}{freedom}, {chance}"

    def verdict(self, significance: float) -> str:
        """One line: whether it holds, and the numbers."""
        if self.p_value is None:
            return f"{self.name}: cannot say, {self.reason}"
        holds = (
            "consistent with honest reports" if self.p_value > significance else "NOT consistent with honest reports"
        )
        return f"{self.name}: {holds} ({self.figures})"

    def to_dict(self, significance: float) -> dict[str, Any]:
        """Everything as JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "expected": self.expected,
            "statistic": self.statistic,
            "degrees_of_freedom": self.degrees_of_freedom,
            "p_value": self.p_value,
            "alarm": self.p_value is not None and self.p_value <= significance,
            "verdict": self.verdict(significance),
        }


Counted = Sequence[tuple[BlockResponse, Counters, int]]
"""Block responses with reports, each with its counters and its number of reports."""

_SMALLEST_CELL = 5
_SMALLEST_NORMAL = 30


def expected_counts(counts: Integers, shares: Floats) -> tuple[float, Cumulants]:
    """Pearson's statistic of counts that should have these shares, and its exact mean and variance."""
    cells, total, inverse = counts.size, int(counts.sum()), float(np.sum(1 / shares))
    statistic = float(np.sum((counts - total * shares) ** 2 / (total * shares)))
    variance = 2 * (cells - 1) + (inverse - cells**2 - 2 * cells + 2) / total
    return statistic, Cumulants(cells - 1, variance, 8 * (cells - 1), 4 * (inverse - 3 * cells + 2) / total)


def uniform_counts(counts: Integers) -> tuple[float, Cumulants]:
    """:func:`expected_counts` with equal shares."""
    return expected_counts(counts, np.full(counts.size, 1 / counts.size))


def block_balance(tally: Tally, shares: Floats) -> HealthFinding:
    """Reports per modulus or view: multinomial with these probabilities."""
    name, expected = "block balance", "every modulus or view is drawn as often as the plan says, up to chance"
    counts = np.array(tally.block_reports)
    if counts.size == 1:
        return HealthFinding(name, "balance", expected, reason="there is only one modulus or view")
    needed = round(_SMALLEST_CELL / float(shares.min()))
    if tally.reports < needed:
        return HealthFinding(name, "balance", expected, reason=_few(needed))
    statistic, cumulants = expected_counts(counts, shares)
    return HealthFinding(name, "balance", expected, statistic, counts.size - 1, cumulants.upper_tail(statistic))


def class_balance(blocks: Counted) -> HealthFinding | None:
    """Reports per class of blocks, within each modulus; None if no design has several classes."""
    parts = []
    needed = 0
    for response, counters, reports in blocks:
        design = response.design
        classes = design.class_count
        if classes == 1:
            continue
        needed = max(needed, _SMALLEST_CELL * classes * len(blocks))
        if reports >= _SMALLEST_CELL * classes:
            cells, multiplicities = counters.nonzero()
            counts = np.bincount(cells // (design.message_count // classes), multiplicities, minlength=classes)
            parts.append(uniform_counts(counts.astype(np.int64)))
    if not needed:
        return None
    name, expected = "class balance", "every class of blocks is drawn equally often, up to chance"
    if not parts:
        return HealthFinding(name, "balance", expected, reason=_few(needed))
    statistic = sum(part for part, _ in parts)
    cumulants = sum((part for _, part in parts[1:]), parts[0][1])
    return HealthFinding(name, "balance", expected, statistic, cumulants.mean, cumulants.upper_tail(statistic))


def bit_balance(channel: Channel, tally: Tally) -> HealthFinding:
    """The total number of ones; equivalent to asking whether the estimated frequencies sum to 1."""
    name = "bit balance"
    expected = "the number of ones in all reports fits frequencies that sum to 1, up to noise"
    rates, others = channel.probabilities, channel.points - 1
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
    expected = "no message is more frequent than if all users held the same value"
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
    return f"too few reports; about {needed:,} are needed"
