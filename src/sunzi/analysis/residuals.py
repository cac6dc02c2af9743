"""Residuals: what no histogram explains in the counts of messages (docs/mathematics.md §1).

Message y of a block response has probability P0 + (P1 − P0)·Σ_{x in y} f_x. So
for every f the expected counts of M messages lie in the v-dimensional range of the incidence matrix N, and the part of
the counts outside of it, QN with Q = 1 − Π, is noise alone. By NᵀN = (r−λ)I + λJ the projection Π
needs one decoding. Since Π_yy = v/M for every message,

    E|QN|² = n(1 − v/M)  exactly,        Var|QN|² = 2·tr(QDQD),  D = diag(expected counts).

The traces are estimated from a few random vectors. Nobody holds a point at or above the domain's size: each is
supported by Binomial(n, q) reports, for every f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.analysis.health_tests import HealthFinding
from sunzi.analysis.statistics import Cumulants, two_sided
from sunzi.designs.base import Design
from sunzi.designs.response import BlockResponse
from sunzi.numerics.counters import Counters
from sunzi.protocols.likelihood import LARGEST_DENSE

_PROBED_FREEDOM = 2048
_PROBED_CELLS = 1 << 15
_FEWEST_PROBES, _MOST_PROBES = 3, 16
_SMALLEST_NORMAL = 30
_MOST_UNUSED = 4096
_SEED = 20_231
# Below this squared coefficient of variation, uneven expected counts change the variance by at most 1 or 2 per cent.
_EVEN = 0.01


@dataclass(frozen=True)
class CountedDesign:
    """One design's counters, and the histogram of the points in use as estimated, projected onto the simplex."""

    response: BlockResponse
    counters: Counters
    reports: int
    support: Integers
    """How many reported blocks contain each of the design's points."""
    histogram: Floats

    @property
    def design(self) -> Design:
        """The design of the response."""
        return self.response.design

    @cached_property
    def expected_counts(self) -> Floats:
        """n·P(y) for every message y."""
        inside, outside = (float(chance) for chance in self.response.message_probabilities())
        held = np.clip(self.design.block_sums(self.histogram), 0.0, 1.0)
        return self.reports * (outside + (inside - outside) * held)

    @cached_property
    def unevenness(self) -> float:
        """The squared coefficient of variation of the expected counts; tiny unless an item is heavy."""
        relative = self.expected_counts * (self.design.message_count / self.reports) - 1
        return float(relative @ relative) / self.design.message_count

    @property
    def unused(self) -> int:
        """The number of points that no value uses, or as many as are looked at."""
        used = self.histogram.size
        return max(0, min(self.design.points - used, max(used, _MOST_UNUSED)))

    @property
    def unused_support(self) -> Floats:
        """How much the number of reports that support each of these differs from its expectation."""
        used = self.histogram.size
        support = self.support[used : used + self.unused].astype(np.float64)
        return support - self.reports * self.response.probabilities.false

    @property
    def unused_variance(self) -> float:
        """The variance of each of them."""
        rate = self.response.probabilities.false
        return self.reports * rate * (1 - rate)

    @property
    def is_even(self) -> bool:
        """Whether all messages are nearly equally likely, so that no trace needs to be estimated."""
        return self.unevenness <= _EVEN


def probes(size: int, freedom: int, cost: int, turn: int = 0) -> Floats:
    """Rows of fixed pseudo-random signs: enough to estimate the trace of a matrix of ``freedom`` degrees of freedom to
    within a few per cent, and fewer where each costs transforms of ``cost`` cells. The parts of a large matrix share
    its degrees of freedom, and each uses a different ``turn``, so that their errors average out.
    """
    rows = max(1, min(_MOST_PROBES, -(-_PROBED_FREEDOM // freedom), max(_FEWEST_PROBES, _PROBED_CELLS // cost)))
    return np.random.default_rng(_SEED + turn).choice([-1.0, 1.0], (rows, size))


def message_residual(parts: Sequence[CountedDesign]) -> HealthFinding | None:
    """The counts of messages that no histogram explains; None if no design has more messages than points."""
    parts = [part for part in parts if part.design.counts_blocks and part.design.message_count > part.design.points]
    if not parts:
        return None
    name, expected = "message residual", "the counts of messages fit some histogram of the points, up to noise"
    freedom = sum(part.design.message_count - part.design.points for part in parts)
    if sum(part.design.message_count for part in parts) > LARGEST_DENSE:
        return HealthFinding(
            name, "residual", expected, None, freedom, reason="the design has too many messages to fit"
        )
    statistic, total = 0.0, Cumulants(0, 0, 0)
    for turn, part in enumerate(parts):
        scale = part.design.message_count / part.reports  # so that each cell weighs its inverse variance
        statistic += scale * _outside(part)
        total += _cumulants(part, freedom, turn).scaled(scale)
    if total.has_too_few_reports:
        return HealthFinding(name, "residual", expected, None, freedom, reason="too few reports for these messages")
    return HealthFinding(name, "residual", expected, statistic, freedom, total.upper_tail(statistic))


def _outside(part: CountedDesign) -> float:
    """|QN|², from centred counts, to avoid cancellation."""
    design, reports = part.design, part.reports
    replication, pairs = _regularity(design)
    counts = part.counters.nonzero()[1].astype(np.float64)
    spread = float(counts @ counts) - reports**2 / design.message_count
    support = part.support - reports * design.block_size / design.points
    return spread - float(support @ support) / (replication - pairs)


def _cumulants(part: CountedDesign, freedom: int, turn: int) -> Cumulants:
    design, expected = part.design, part.expected_counts
    share = 1 - design.points / design.message_count
    coincidences = 4 * float(expected @ expected) * share**3
    second, third = _even_traces(part) if part.is_even else _estimated_traces(design, expected, freedom, turn)
    return Cumulants.of_traces(part.reports * share, second, third, coincidences)


def _even_traces(part: CountedDesign) -> tuple[float, float]:
    """tr(QD)² and tr(QD)³ of D = d(1 + E): those of Q, plus a bound from |E|²."""
    design, mean = part.design, part.reports / part.design.message_count
    freedom, excess = design.message_count - design.points, design.message_count * part.unevenness
    return mean**2 * (freedom + excess), mean**3 * (freedom + 3 * excess)


def _estimated_traces(design: Design, expected: Floats, freedom: int, turn: int = 0) -> tuple[float, float]:
    second, third = [], []
    for signs in probes(design.message_count, freedom, design.message_count, turn):
        outside = _left_over(design, np.sqrt(expected) * signs)
        second.append(float(expected @ outside**2))
        third.append(float(np.sum(_left_over(design, expected * outside) ** 2)))
    return float(np.mean(second)), float(np.mean(third))


def _regularity(design: Design) -> tuple[float, float]:
    """r and λ: how many messages contain a given point, and two given points."""
    replication = design.message_count * design.block_size / design.points
    return replication, replication * (design.block_size - 1) / (design.points - 1)


def _left_over(design: Design, vector: Floats) -> Floats:
    """The residual Qu = u − N(NᵀN)⁻¹Nᵀu of a vector u."""
    replication, pairs = _regularity(design)
    support = design.spread(vector, design.points)
    support -= pairs / (replication * design.block_size) * support.sum()
    return vector - design.block_sums(support) / (replication - pairs)


def unused_points(parts: Sequence[CountedDesign]) -> list[HealthFinding]:
    """The points that no value uses: each alone, and all together."""
    parts = [part for part in parts if part.unused and part.design.counts_blocks]
    if not parts:
        return []
    number = sum(part.unused for part in parts)
    if sum(part.design.message_count for part in parts) > LARGEST_DENSE:
        return [_unused(number, reason="the design has too many messages to fit")]
    statistic, total = 0.0, Cumulants(0, 0, 0)
    for turn, part in enumerate(parts):
        support, variance = part.unused_support, part.unused_variance
        statistic += float(support @ support) / variance
        total += _unused_cumulants(part, number, turn).scaled(1 / variance)
    if total.has_too_few_reports:
        return [_unused(number, reason="too few reports for these points")]
    findings = [_unused(number, statistic, total.upper_tail(statistic))]
    several = [part for part in parts if part.unused > 1]
    return [*findings, _sum_of_frequencies(several)] if several else findings


def _unused(
    number: int, statistic: float | None = None, chance: float | None = None, reason: str = ""
) -> HealthFinding:
    expected = "points that no value uses are estimated at 0, up to noise"
    return HealthFinding("unused points", "residual", expected, statistic, number, chance, reason)


def _unused_cumulants(part: CountedDesign, freedom: int, turn: int = 0) -> Cumulants:
    """The cumulants of Σ(c_x − nq)² over unused points."""
    rate, number = part.response.probabilities.false, part.unused
    variance, skew = part.unused_variance, (1 - 2 * rate) ** 2
    if part.is_even:
        # All messages equally likely: C = d(r−λ)I − (a little)J, which the design's regularity gives.
        replication, pairs = _regularity(part.design)
        mean = part.reports / part.design.message_count
        own, common = mean * (replication - pairs), mean * (pairs - replication**2 / part.design.message_count)
        second = (number - 1) * own**2 + (own + number * common) ** 2
        third = (number - 1) * own**3 + (own + number * common) ** 3
    else:
        second, third = _unused_traces(part, freedom, turn)
    # Pairs of reports that share a point add 4n²·E[K³]; and squares of binomial counts spread a little more.
    coincidences = 4 * number * skew * variance * rate * (1 - rate)
    found = Cumulants.of_traces(number * variance, second, third, coincidences)
    return Cumulants(found.mean, found.variance + number * variance * skew, found.third, found.pairs)


def _unused_traces(part: CountedDesign, freedom: int, turn: int = 0) -> tuple[float, float]:
    """tr C² and tr C³ of the covariance C = Bᵀ(diag μ − μμᵀ/n)B of the support of unused points."""
    design, expected, used, number = part.design, part.expected_counts, part.histogram.size, part.unused

    def covariance(values: Floats) -> Floats:
        sums = design.block_sums(np.concatenate([np.zeros(used), values]))
        weighted = expected * (sums - float(expected @ sums) / part.reports)
        return design.spread(weighted, used + number)[used:]

    second, third = [], []
    for signs in probes(number, freedom, design.message_count, turn):
        image = covariance(signs)
        second.append(float(image @ image))
        third.append(float(image @ covariance(image)))
    return float(np.mean(second)), float(np.mean(third))


def _sum_of_frequencies(parts: Sequence[CountedDesign]) -> HealthFinding:
    """Σ f̂ = 1 over all points, so the sum over the used ones is 1 exactly if the unused points sum to 0."""
    name, expected = "sum of frequencies", "the estimated frequencies of all values sum to 1, up to noise"
    scores = [score for score in map(_unused_score, parts) if score is not None]
    if not scores:
        return HealthFinding(name, "consistency", expected, reason="too few reports")
    worst = max(scores, key=abs)
    return HealthFinding(name, "consistency", expected, worst, None, min(1.0, len(scores) * two_sided(worst)))


def _unused_score(part: CountedDesign) -> float | None:
    """The standard score of the unused points' sum; None with too few reports. The variance is that of the value for
    which it is largest, hence an upper bound for every histogram.
    """
    used, support = part.histogram.size, part.unused_support
    inside, outside = (float(chance) for chance in part.response.message_probabilities())
    overlaps = part.design.block_sums(np.concatenate([np.zeros(used), np.ones(support.size)]))
    overlaps -= support.size * part.response.probabilities.false
    squares = part.design.spread(overlaps**2, used)
    worst = part.reports * (outside * float(overlaps @ overlaps) + (inside - outside) * float(squares.max()))
    return None if worst < _SMALLEST_NORMAL else float(support.sum()) / worst**0.5
