"""What the residue estimates of a modular tally must satisfy beyond any histogram.

See docs/mathematics.md §3 and docs/mathematics.md §3.3.

Least squares chooses f̂ so that A f̂ comes nearest to the residue estimates s. What it leaves is R = (s − Af)ᵀQ(s − Af)
with Q = W − WAT⁻¹AᵀW + (WAτ)(WAτ)ᵀ/Στ, the same for every f that sums to 1, the true one included: noise alone. Where
all items are light n·R is chi-square with Σ(m_j − 1) − (k − 1) degrees of freedom. In general, S_j the covariance of
one report,

    E R = Σ_j tr(Q_jj S_j)/n_j,    Q_jj[a,a] = w_j − w_j²(A_jT⁻¹A_jᵀ)[a,a] + w_j²(A_jτ)[a]²/Στ,    Q_jj·1 = w_j·1,

which costs one solve a block, and Var R = 2·tr(QSQS), from a few random vectors.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sunzi._typing import Floats
from sunzi.analysis.design_residuals import probes
from sunzi.analysis.health_finding import HealthFinding
from sunzi.analysis.tails import Cumulants
from sunzi.numerics import simplex
from sunzi.numerics.toeplitz import adjoint, fold, tile
from sunzi.protocols.modular_estimation import ModularDecoder
from sunzi.protocols.modular_variance import covariance_times

_EVEN = 0.02
_NEGLIGIBLE = 0.02


class ResidueResidual:
    """The residual of one decoding, whose ``frequencies`` these are."""

    def __init__(self, decoder: ModularDecoder, frequencies: Floats) -> None:
        self._decoder = decoder
        self._frequencies = frequencies
        projected = simplex.project(frequencies)
        self.histograms = [fold(projected, modulus) for modulus in decoder.moduli]
        """The residues of the estimate's projection onto the simplex: the g_j of all variances."""

    @property
    def degrees_of_freedom(self) -> int:
        """Σ(m_j − 1) − (k − 1)."""
        return sum(modulus - 1 for modulus in self._decoder.moduli) - self._decoder.gram.size + 1

    @cached_property
    def residues(self) -> list[Floats]:
        """s_j of every block with reports."""
        return self._decoder.residue_estimates()

    def statistic(self) -> float:
        """n·Σ_j w_j|s_j − A_j f̂|²."""
        decoder = self._decoder
        blocks = zip(decoder.weights.tolist(), decoder.moduli, self.residues, strict=True)
        total: float = sum(
            weight * float(np.sum((block - fold(self._frequencies, modulus)) ** 2)) for weight, modulus, block in blocks
        )
        return decoder.tally.reports * total

    def cumulants(self) -> Cumulants:
        """Of the statistic under honest reports."""
        decoder, freedom = self._decoder, self.degrees_of_freedom
        reports = decoder.tally.reports
        mean, excess = reports * self._mean(), self._unevenness()
        coincidences = reports**3 * self._coincidences()
        if excess <= _EVEN * freedom:
            # nQS is a projection P but for E: tr(P(1+E))² = df + 2·tr PE + tr PEPE, and the mean knows tr PE.
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
        """E R."""
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
        """Σ_j g_jᵀQ_jj g_j/n_j: a solve a block, left out where even Σ_j w_j|g_j|²/n_j is nothing beside the noise."""
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
        """S·v, block by block."""
        decoder = self._decoder
        blocks = zip(decoder.moments, self.histograms, parts, decoder.reports, strict=True)
        return [covariance_times(moments, block, part) / reports for moments, block, part, reports in blocks]

    def _quadratic(self, parts: list[Floats]) -> list[Floats]:
        """Q·v in one solve."""
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
    expected = "the residue counts of all moduli fit one and the same histogram, but for noise"
    freedom = residual.degrees_of_freedom
    if freedom < 1:
        return HealthFinding(name, "residual", expected, reason="the moduli leave no degree of freedom")
    cumulants = residual.cumulants()
    if cumulants.has_too_few_reports:
        return HealthFinding(name, "residual", expected, None, freedom, reason="too few reports for so many residues")
    statistic = residual.statistic()
    return HealthFinding(name, "residual", expected, statistic, freedom, cumulants.upper_tail(statistic))
