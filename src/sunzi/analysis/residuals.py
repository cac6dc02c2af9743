"""Residuals: what no histogram explains in the counts of one design, and in the residue estimates of a modular tally.

**One design** (docs/mathematics.md §1). Message y of a block response has probability P0 + (P1 − P0)·Σ_{x in y} f_x. So
for every f the expected counts of M messages lie in the v-dimensional range of the incidence matrix N, and the part of
the counts outside of it, QN with Q = 1 − Π, is noise alone. By NᵀN = (r−λ)I + λJ the projection Π
needs one decoding. Since Π_yy = v/M for every message,

    E|QN|² = n(1 − v/M)  exactly,        Var|QN|² = 2·tr(QDQD),  D = diag(expected counts).

The traces are estimated from a few random vectors. Nobody holds a point at or above the domain's size: each is
supported by Binomial(n, q) reports, for every f.

**Residues** (docs/mathematics.md §3, §3.3). Least squares chooses f̂ so that A f̂ is nearest to the residue estimates s.
It leaves R = (s − Af)ᵀQ(s − Af) with Q = W − WAT⁻¹AᵀW + (WAτ)(WAτ)ᵀ/Στ, the same for every f that sums to 1, including
the true one: R is noise alone. Where all items are light, n·R is chi-square with Σ(m_j − 1) − (k − 1) degrees of
freedom. In general, with S_j the covariance of one report,

    E R = Σ_j tr(Q_jj S_j)/n_j,    Q_jj[a,a] = w_j − w_j²(A_jT⁻¹A_jᵀ)[a,a] + w_j²(A_jτ)[a]²/Στ,    Q_jj·1 = w_j·1,

which costs one solve per block, and Var R = 2·tr(QSQS), from a few random vectors.
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
from sunzi.numerics import simplex
from sunzi.numerics.counters import Counters
from sunzi.numerics.toeplitz import adjoint, fold, tile
from sunzi.protocols.likelihood import LARGEST_DENSE
from sunzi.protocols.modular_estimation import ModularDecoder
from sunzi.protocols.modular_variance import covariance_times

_PROBED_FREEDOM = 2048
_PROBED_CELLS = 1 << 15
_FEWEST_PROBES, _MOST_PROBES = 3, 16
_SMALLEST_NORMAL = 30
_MOST_UNUSED = 4096
_SEED = 20_231
# Below this squared coefficient of variation, uneven expected counts change the variance by at most 1 or 2 per cent.
_EVEN = 0.01
_EVEN_RESIDUES = 0.02
_NEGLIGIBLE = 0.02


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
    def is_even(self) -> bool:
        """Whether all messages are nearly equally likely, so that no trace needs to be estimated."""
        return self.unevenness <= _EVEN


def probes(size: int, freedom: int, cost: int) -> Floats:
    """Rows of fixed pseudo-random signs: enough to estimate the trace of a matrix of ``freedom`` degrees of freedom to
    within a few per cent, and fewer where each costs transforms of ``cost`` cells.
    """
    rows = max(1, min(_MOST_PROBES, -(-_PROBED_FREEDOM // freedom), max(_FEWEST_PROBES, _PROBED_CELLS // cost)))
    return np.random.default_rng(_SEED).choice([-1.0, 1.0], (rows, size))


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
    for part in parts:
        scale = part.design.message_count / part.reports  # so that each cell weighs its inverse variance
        statistic += scale * _outside(part)
        total += _cumulants(part).scaled(scale)
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


def _cumulants(part: CountedDesign) -> Cumulants:
    design, expected = part.design, part.expected_counts
    share = 1 - design.points / design.message_count
    coincidences = 4 * float(expected @ expected) * share**3
    second, third = _even_traces(part) if part.is_even else _estimated_traces(design, expected)
    return Cumulants.of_traces(part.reports * share, second, third, coincidences)


def _even_traces(part: CountedDesign) -> tuple[float, float]:
    """tr(QD)² and tr(QD)³ of D = d(1 + E): those of Q, plus a bound from |E|²."""
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
    """r and λ: how many messages contain a given point, and two given points."""
    replication = design.message_count * design.block_size / design.points
    return replication, replication * (design.block_size - 1) / (design.points - 1)


def _left_over(design: Design, vector: Floats) -> Floats:
    """The residual Qu = u − N(NᵀN)⁻¹Nᵀu of a vector u."""
    replication, pairs = _regularity(design)
    support = design.spread(vector, design.points)
    support -= pairs / (replication * design.block_size) * support.sum()
    return vector - design.block_sums(support) / (replication - pairs)


def unused_points(part: CountedDesign, domain_size: int) -> list[HealthFinding]:
    """The points that no value uses: each alone, and all together."""
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
        return [_unused(number, reason="too few reports for these points")]
    statistic = float(support @ support) / variance
    findings = [_unused(number, statistic, cumulants.upper_tail(statistic))]
    if number > 1:
        findings.append(_sum_of_frequencies(part, support, domain_size))
    return findings


def _unused(
    number: int, statistic: float | None = None, chance: float | None = None, reason: str = ""
) -> HealthFinding:
    expected = "points that no value uses are estimated at 0, up to noise"
    return HealthFinding("unused points", "residual", expected, statistic, number, chance, reason)


def _unused_cumulants(part: CountedDesign, number: int, domain_size: int) -> Cumulants:
    """The cumulants of Σ(c_x − nq)² over unused points."""
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
    """Σ f̂ = 1 over all points, so the sum over the domain is 1 exactly if the unused points sum to 0.

    The variance is that of the value for which it is largest, hence an upper bound for every histogram.
    """
    name, expected = "sum of frequencies", "the estimated frequencies of all values sum to 1, up to noise"
    inside, outside = (float(chance) for chance in part.response.message_probabilities())
    overlaps = part.design.block_sums(np.concatenate([np.zeros(domain_size), np.ones(support.size)]))
    overlaps -= support.size * part.response.probabilities.false
    squares = part.design.spread(overlaps**2, domain_size)
    worst = outside * float(overlaps @ overlaps) + (inside - outside) * float(squares.max())
    if part.reports * worst < _SMALLEST_NORMAL:
        return HealthFinding(name, "consistency", expected, reason="too few reports")
    score = float(support.sum()) / (part.reports * worst) ** 0.5
    return HealthFinding(name, "consistency", expected, score, None, two_sided(score))


class ResidueResidual:
    """The residual of one decoding, which gave these ``frequencies``."""

    def __init__(self, decoder: ModularDecoder, frequencies: Floats) -> None:
        self._decoder = decoder
        self._frequencies = frequencies
        projected = simplex.project(frequencies)
        self.histograms = [fold(projected, modulus) for modulus in decoder.moduli]
        """The residues of the estimate, projected onto the simplex: the g_j of all variances."""

    @property
    def degrees_of_freedom(self) -> int:
        """The degrees of freedom, Σ(m_j − 1) − (k − 1)."""
        return sum(modulus - 1 for modulus in self._decoder.moduli) - self._decoder.gram.size + 1

    @cached_property
    def residues(self) -> list[Floats]:
        """s_j of every block with reports."""
        return self._decoder.residue_estimates()

    def statistic(self) -> float:
        """The residual n·Σ_j w_j|s_j − A_j f̂|²."""
        decoder = self._decoder
        blocks = zip(decoder.weights.tolist(), decoder.moduli, self.residues, strict=True)
        total: float = sum(
            weight * float(np.sum((block - fold(self._frequencies, modulus)) ** 2)) for weight, modulus, block in blocks
        )
        return decoder.tally.reports * total

    def cumulants(self) -> Cumulants:
        """The cumulants of the statistic under honest reports."""
        decoder, freedom = self._decoder, self.degrees_of_freedom
        reports = decoder.tally.reports
        mean, excess = reports * self._mean(), self._unevenness()
        coincidences = reports**3 * self._coincidences()
        if excess <= _EVEN_RESIDUES * freedom:
            # nQS = P(1 + E) with a projection P: tr(P(1+E))² = df + 2·tr PE + tr PEPE, and the mean knows tr PE.
            return Cumulants.of_traces(mean, 2 * mean - freedom + excess, 3 * mean - 2 * freedom + excess, coincidences)
        size = sum(decoder.moduli)
        traces = np.mean([self._traces(signs) for signs in probes(size, freedom, size)], axis=0)
        second, third = reports**2 * float(traces[0]), reports**3 * float(traces[1])
        return Cumulants.of_traces(mean, second, third, coincidences)

    def _unevenness(self) -> float:
        """|E|²: how far the variances of all residues are from the inverse weights."""
        decoder, total = self._decoder, 0.0
        for index, block in enumerate(self.histograms):
            moments = decoder.moments[index]
            scale = decoder.tally.reports * float(decoder.weights[index]) / decoder.reports[index]
            total += float(np.sum((scale * (moments.light + moments.heavy * block) - 1) ** 2))
        return total

    def _mean(self) -> float:
        """The expected residual of one report."""
        gram, total = self._decoder.gram, 0.0
        ones = gram.ones_solution
        for index, modulus in enumerate(self._decoder.moduli):
            moments, weight = self._decoder.moments[index], float(self._decoder.weights[index])
            own = weight - weight**2 * fold(gram.product_diagonal(modulus), modulus)
            own += weight**2 * fold(ones, modulus) ** 2 / float(ones.sum())
            trace = float(own @ (moments.light + moments.heavy * self.histograms[index]))
            trace += weight * (moments.constant * modulus + 2 * moments.mixed)
            total += trace / self._decoder.reports[index]
        return total - self._mean_of_squares()

    def _mean_of_squares(self) -> float:
        """Σ_j g_jᵀQ_jj g_j/n_j: one solve per block, skipped where even Σ_j w_j|g_j|²/n_j is negligible."""
        decoder, gram = self._decoder, self._decoder.gram
        blocks = list(zip(decoder.weights.tolist(), self.histograms, decoder.reports, strict=True))
        most = sum(weight * float(block @ block) / reports for weight, block, reports in blocks)
        if decoder.tally.reports * most < _NEGLIGIBLE * self.degrees_of_freedom**0.5:
            return 0.0
        ones, total = gram.ones_solution, 0.0
        for weight, block, reports in blocks:
            tiled = tile(block, gram.size)
            solved = gram.apply_inverse(tiled)
            explained = float(tiled @ solved) - float(ones @ tiled) ** 2 / float(ones.sum())
            total += (weight * float(block @ block) - weight**2 * explained) / reports
        return total

    def _traces(self, signs: Floats) -> tuple[float, float]:
        """zᵀQSQSz and zᵀQSQSQSz for one vector z of random signs."""
        parts = np.split(signs, np.cumsum(self._decoder.moduli)[:-1])
        left = self._covariance(self._quadratic(parts))
        once = self._quadratic(self._covariance(parts))
        twice = self._quadratic(self._covariance(once))
        return _inner(left, once), _inner(left, twice)

    def _covariance(self, parts: list[Floats]) -> list[Floats]:
        """The product S·v, block by block."""
        decoder = self._decoder
        blocks = zip(decoder.moments, self.histograms, parts, decoder.reports, strict=True)
        return [covariance_times(moments, block, part) / reports for moments, block, part, reports in blocks]

    def _quadratic(self, parts: list[Floats]) -> list[Floats]:
        """The product Q·v, with one solve."""
        decoder, gram = self._decoder, self._decoder.gram
        image = gram.solve(adjoint(parts, decoder.moduli, decoder.weights, gram.size), total=0.0)
        blocks = zip(decoder.weights.tolist(), decoder.moduli, parts, strict=True)
        return [weight * (part - fold(image, modulus)) for weight, modulus, part in blocks]

    def _coincidences(self) -> float:
        """4·Σ n_j²·E[K³] over pairs of reports in block j, K = (w_j/(n_jΔ_j)²)(|B ∩ B'| − w²/m), which is
        hypergeometric.
        """
        decoder, total = self._decoder, 0.0
        responses = [response for response, used in zip(decoder.protocol.responses, decoder.used, strict=True) if used]
        for response, weight, reports in zip(responses, decoder.weights.tolist(), decoder.reports, strict=True):
            kernel = weight / (reports * response.probabilities.gap) ** 2
            overlap = _overlap_third_moment(response.design.points, response.design.block_size)
            total += 4 * reports**2 * kernel**3 * overlap
        return total


def _inner(left: list[Floats], right: list[Floats]) -> float:
    return sum(float(one @ other) for one, other in zip(left, right, strict=True))


def _overlap_third_moment(points: int, size: int) -> float:
    """The third central moment of the overlap of two random blocks of ``size`` out of ``points`` points."""
    if points < 3:
        return 0.0
    rest = points - size
    variance = (size * rest / points) ** 2 / (points - 1)
    return variance * (points - 2 * size) ** 2 / (points * (points - 2))


def residue_residual(residual: ResidueResidual) -> HealthFinding:
    """The residual of the least-squares fit of all residues."""
    name = "fit residual"
    expected = "the residue counts of all moduli fit one histogram, up to noise"
    freedom = residual.degrees_of_freedom
    if freedom < 1:
        return HealthFinding(name, "residual", expected, reason="the moduli leave no degree of freedom")
    cumulants = residual.cumulants()
    if cumulants.has_too_few_reports:
        return HealthFinding(name, "residual", expected, None, freedom, reason="too few reports for these residues")
    statistic = residual.statistic()
    return HealthFinding(name, "residual", expected, statistic, freedom, cumulants.upper_tail(statistic))
