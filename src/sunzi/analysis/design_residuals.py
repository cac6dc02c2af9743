"""What one design's counters must satisfy beyond any histogram (docs/mathematics.md §1).

Message y of a block response has probability P0 + (P1 − P0)·Σ_{x in y} f_x. So the expected counts of M messages lie in
the v-dimensional range of the incidence matrix N, whatever f is, and the part of the counts outside of it, QN with
Q = 1 − Π, is noise alone. By NᵀN = (r−λ)I + λJ the projection Π needs one decoding. Since Π_yy = v/M for every message,

    E|QN|² = n(1 − v/M)  exactly,        Var|QN|² = 2·tr(QDQD),  D = diag(expected counts).

The traces are estimated from a few random vectors. Points at or above the domain's size are held by nobody: each is
supported by Binomial(n, q) reports, whatever f is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.analysis.health_finding import HealthFinding
from sunzi.analysis.tails import Cumulants, two_sided
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
# Below this squared coefficient of variation, expected counts are even but for a per cent or two of the variance.
_EVEN = 0.01


@dataclass(frozen=True)
class CountedDesign:
    """One design's counters, and the histogram of its points as estimated, projected onto the simplex."""

    response: BlockResponse
    counters: Counters
    reports: int
    support: Integers
    """How many reported blocks contain each of the design's points."""
    histogram: Floats

    @property
    def design(self) -> Design:
        """The design."""
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
    def is_even(self) -> bool:
        """Whether all messages are so nearly equally likely that no trace needs to be estimated."""
        return self.unevenness <= _EVEN


def probes(size: int, freedom: int, cost: int) -> Floats:
    """Rows of random signs of this length, always the same: enough for the trace of a matrix of so many degrees of
    freedom to within some per cent, and fewer where each costs transforms of ``cost`` cells.
    """
    rows = max(1, min(_MOST_PROBES, -(-_PROBED_FREEDOM // freedom), max(_FEWEST_PROBES, _PROBED_CELLS // cost)))
    return np.random.default_rng(_SEED).choice([-1.0, 1.0], (rows, size))


def message_residual(parts: Sequence[CountedDesign]) -> HealthFinding | None:
    """The counts of messages that no histogram explains; None if no design has more messages than points."""
    parts = [part for part in parts if part.design.counts_blocks and part.design.message_count > part.design.points]
    if not parts:
        return None
    name, expected = "message residual", "the counts of messages fit some histogram of the points, but for noise"
    freedom = sum(part.design.message_count - part.design.points for part in parts)
    if sum(part.design.message_count for part in parts) > LARGEST_DENSE:
        return HealthFinding(
            name, "residual", expected, None, freedom, reason="the design has too many messages to fit"
        )
    statistic, total = 0.0, Cumulants(0, 0, 0)
    for part in parts:
        scale = part.design.message_count / part.reports  # so that each cell weighs its inverse variance
        statistic += scale * _outside(part)
        total += _cumulants(part).scaled(scale)
    if total.has_too_few_reports:
        return HealthFinding(name, "residual", expected, None, freedom, reason="too few reports for so many messages")
    return HealthFinding(name, "residual", expected, statistic, freedom, total.upper_tail(statistic))


def _outside(part: CountedDesign) -> float:
    """|QN|², from centred counts, so that nothing large cancels."""
    design, reports = part.design, part.reports
    replication, pairs = _regularity(design)
    counts = part.counters.nonzero()[1].astype(np.float64)
    spread = float(counts @ counts) - reports**2 / design.message_count
    support = part.support - reports * design.block_size / design.points
    return spread - float(support @ support) / (replication - pairs)


def _cumulants(part: CountedDesign) -> Cumulants:
    design, expected = part.design, part.expected_counts
    share = 1 - design.points / design.message_count
    coincidences = 4 * float(expected @ expected) * share**3
    second, third = _even_traces(part) if part.is_even else _estimated_traces(design, expected)
    return Cumulants.of_traces(part.reports * share, second, third, coincidences)


def _even_traces(part: CountedDesign) -> tuple[float, float]:
    """tr(QD)² and tr(QD)³ of D = d(1 + E): those of Q, and at most so much more that |E|² allows."""
    design, mean = part.design, part.reports / part.design.message_count
    freedom, excess = design.message_count - design.points, design.message_count * part.unevenness
    return mean**2 * (freedom + excess), mean**3 * (freedom + 3 * excess)


def _estimated_traces(design: Design, expected: Floats) -> tuple[float, float]:
    second, third = [], []
    for signs in probes(design.message_count, design.message_count, design.message_count):
        outside = _left_over(design, np.sqrt(expected) * signs)
        second.append(float(expected @ outside**2))
        third.append(float(np.sum(_left_over(design, expected * outside) ** 2)))
    return float(np.mean(second)), float(np.mean(third))


def _regularity(design: Design) -> tuple[float, float]:
    """r and λ: the messages that contain a point, and two points."""
    replication = design.message_count * design.block_size / design.points
    return replication, replication * (design.block_size - 1) / (design.points - 1)


def _left_over(design: Design, vector: Floats) -> Floats:
    """Qu = u − N(NᵀN)⁻¹Nᵀu."""
    replication, pairs = _regularity(design)
    support = design.spread(vector, design.points)
    support -= pairs / (replication * design.block_size) * support.sum()
    return vector - design.block_sums(support) / (replication - pairs)


def unused_points(part: CountedDesign, domain_size: int) -> list[HealthFinding]:
    """The points that no value uses: each on its own, and all together."""
    design = part.design
    number = min(design.points - domain_size, max(domain_size, _MOST_UNUSED))
    if number <= 0 or not design.counts_blocks:
        return []
    if design.message_count > LARGEST_DENSE:
        return [_unused(number, reason="the design has too many messages to fit")]
    rate, reports = part.response.probabilities.false, part.reports
    support = part.support[domain_size : domain_size + number].astype(np.float64) - reports * rate
    variance = reports * rate * (1 - rate)
    cumulants = _unused_cumulants(part, number, domain_size).scaled(1 / variance)
    if cumulants.has_too_few_reports:
        return [_unused(number, reason="too few reports for so many points")]
    statistic = float(support @ support) / variance
    findings = [_unused(number, statistic, cumulants.upper_tail(statistic))]
    if number > 1:
        findings.append(_sum_of_frequencies(part, support, domain_size))
    return findings


def _unused(
    number: int, statistic: float | None = None, chance: float | None = None, reason: str = ""
) -> HealthFinding:
    expected = "points that no value uses are estimated at 0, but for noise"
    return HealthFinding("unused points", "residual", expected, statistic, number, chance, reason)


def _unused_cumulants(part: CountedDesign, number: int, domain_size: int) -> Cumulants:
    """Of Σ(c_x − nq)² over unused points."""
    rate = part.response.probabilities.false
    variance, skew = part.reports * rate * (1 - rate), (1 - 2 * rate) ** 2
    if part.is_even:
        # All messages equally likely: C = d(r−λ)I − (a little)J, which the design's regularity gives.
        replication, pairs = _regularity(part.design)
        mean = part.reports / part.design.message_count
        own, common = mean * (replication - pairs), mean * (pairs - replication**2 / part.design.message_count)
        second = (number - 1) * own**2 + (own + number * common) ** 2
        third = (number - 1) * own**3 + (own + number * common) ** 3
    else:
        second, third = _unused_traces(part, number, domain_size)
    # Pairs of reports that share a point add 4n²·E[K³]; and squares of binomial counts spread a little more.
    coincidences = 4 * number * skew * variance * rate * (1 - rate)
    found = Cumulants.of_traces(number * variance, second, third, coincidences)
    return Cumulants(found.mean, found.variance + number * variance * skew, found.third, found.pairs)


def _unused_traces(part: CountedDesign, number: int, domain_size: int) -> tuple[float, float]:
    """tr C² and tr C³ of the covariance C = Bᵀ(diag μ − μμᵀ/n)B of the support of unused points."""
    design, expected = part.design, part.expected_counts

    def covariance(values: Floats) -> Floats:
        sums = design.block_sums(np.concatenate([np.zeros(domain_size), values]))
        weighted = expected * (sums - float(expected @ sums) / part.reports)
        return design.spread(weighted, domain_size + number)[domain_size:]

    second, third = [], []
    for signs in probes(number, number, design.message_count):
        image = covariance(signs)
        second.append(float(image @ image))
        third.append(float(image @ covariance(image)))
    return float(np.mean(second)), float(np.mean(third))


def _sum_of_frequencies(part: CountedDesign, support: Floats, domain_size: int) -> HealthFinding:
    """Σ f̂ = 1 over all points; so the sum over the domain is 1 exactly if the unused points add up to 0.

    The variance is that of the value for which it is largest, hence an upper bound for every histogram.
    """
    name, expected = "sum of frequencies", "the estimated frequencies of all values add up to 1, but for noise"
    inside, outside = (float(chance) for chance in part.response.message_probabilities())
    overlaps = part.design.block_sums(np.concatenate([np.zeros(domain_size), np.ones(support.size)]))
    overlaps -= support.size * part.response.probabilities.false
    squares = part.design.spread(overlaps**2, domain_size)
    worst = outside * float(overlaps @ overlaps) + (inside - outside) * float(squares.max())
    if part.reports * worst < _SMALLEST_NORMAL:
        return HealthFinding(name, "consistency", expected, reason="too few reports")
    score = float(support.sum()) / (part.reports * worst) ** 0.5
    return HealthFinding(name, "consistency", expected, score, None, two_sided(score))
