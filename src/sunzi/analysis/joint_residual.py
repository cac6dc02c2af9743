"""The residual of the fit that joins several channels: moduli, or views of a record.

Least squares chooses f̂ so that A f̂ is nearest to the estimates s of all channels (docs/mathematics.md §3, §3.3, §13,
§14). It leaves R = (s − Af)ᵀQ(s − Af) with Q = W − WAT⁻¹AᵀW on vectors whose parts sum to 0, the same for every f that
sums to 1, including the true one: R is noise alone. Where all items are light, n·R is chi-square with Σ(m_j − 1) − r
degrees of freedom, r the dimension of the fit. In general, with S_j the covariance of one report,

    E R = Σ_j tr(Q_jj S_j)/n_j,    Q_jj[a,a] = w_j − w_j/m_j − w_j²(A_jT⁻¹A_jᵀ)[a,a],

which costs one solve per channel, and Var R = 2·tr(QSQS), from a few vectors.
"""

from __future__ import annotations

import numpy as np

from sunzi._typing import Floats
from sunzi.analysis.health_tests import HealthFinding
from sunzi.analysis.residuals import probes
from sunzi.analysis.statistics import Cumulants
from sunzi.protocols.joint_fit import JointFit
from sunzi.protocols.modular_variance import covariance_times

_EVEN = 0.02
_NEGLIGIBLE = 0.02
# Up to here traces are exact sums over unit vectors, which random signs would estimate poorly.
_FEW_POINTS = 64


class FitResidual:
    """The residual of one fit."""

    def __init__(self, fit: JointFit) -> None:
        self._fit = fit
        self._total = sum(fit.reports)

    def statistic(self) -> float:
        """The residual n·Σ_j w_j|s_j − A_j f̂|²."""
        fit = self._fit
        pairs = zip(fit.estimates, fit.fitted, strict=True)
        return self._total * float(fit.weights @ [float(np.sum((found - near) ** 2)) for found, near in pairs])

    def cumulants(self) -> Cumulants:
        """The cumulants of the statistic under honest reports."""
        fit, freedom, reports = self._fit, self._fit.degrees_of_freedom, self._total
        mean, excess = reports * self._mean(), self._unevenness()
        coincidences = reports**3 * self._coincidences()
        if excess <= _EVEN * freedom:
            # nQS = P(1 + E) with a projection P: tr(P(1+E))² = df + 2·tr PE + tr PEPE, and the mean knows tr PE.
            return Cumulants.of_traces(mean, 2 * mean - freedom + excess, 3 * mean - 2 * freedom + excess, coincidences)
        size = sum(estimates.size for estimates in fit.estimates)
        if size <= _FEW_POINTS:
            traces = np.sum([self._traces(unit) for unit in np.eye(size)], axis=0)
        else:
            traces = np.mean([self._traces(signs) for signs in probes(size, freedom, size)], axis=0)
        second, third = reports**2 * float(traces[0]), reports**3 * float(traces[1])
        return Cumulants.of_traces(mean, second, third, coincidences)

    def _variances(self, place: int) -> Floats:
        """The variances of the points of one report."""
        moments = self._fit.moments[place]
        return moments.light + moments.heavy * self._fit.histograms[place]

    def _unevenness(self) -> float:
        """|E|²: how far the variances of all points are from the inverse weights."""
        total = 0.0
        for place, (weight, reports) in enumerate(zip(self._fit.weights.tolist(), self._fit.reports, strict=True)):
            total += float(np.sum((self._total * weight / reports * self._variances(place) - 1) ** 2))
        return total

    def _mean(self) -> float:
        """The expected residual of one report."""
        total = 0.0
        for place, (weight, reports) in enumerate(zip(self._fit.weights.tolist(), self._fit.reports, strict=True)):
            variances = self._variances(place)
            own = weight - weight / variances.size - weight**2 * self._fit.own_shares(place)
            total += float(np.sum(own * variances)) / reports
        return total - self._mean_of_squares()

    def _mean_of_squares(self) -> float:
        """Σ_j g_jᵀQ_jj g_j/n_j: one solve per channel, skipped where even Σ_j w_j|g_j|²/n_j is negligible."""
        fit = self._fit
        blocks = list(zip(fit.weights.tolist(), fit.histograms, fit.reports, strict=True))
        most = sum(weight * float(block @ block) / reports for weight, block, reports in blocks)
        if self._total * most < _NEGLIGIBLE * fit.degrees_of_freedom**0.5:
            return 0.0
        total = 0.0
        for place, (weight, block, reports) in enumerate(blocks):
            left = float(block @ block) - 1 / block.size - weight * fit.explained(place, block)
            total += weight * left / reports
        return total

    def _traces(self, signs: Floats) -> tuple[float, float]:
        """zᵀQSQSz and zᵀQSQSQSz for one vector z of random signs."""
        parts = np.split(signs, np.cumsum([estimates.size for estimates in self._fit.estimates])[:-1])
        left = self._covariance(self._quadratic(parts))
        once = self._quadratic(self._covariance(parts))
        twice = self._quadratic(self._covariance(once))
        return _inner(left, once), _inner(left, twice)

    def _covariance(self, parts: list[Floats]) -> list[Floats]:
        """The product S·v, channel by channel."""
        blocks = zip(self._fit.moments, self._fit.histograms, parts, self._fit.reports, strict=True)
        return [covariance_times(moments, block, part) / reports for moments, block, part, reports in blocks]

    def _quadratic(self, parts: list[Floats]) -> list[Floats]:
        """The product Q·v, with one solve."""
        centred = [part - part.mean() for part in parts]
        blocks = zip(self._fit.weights.tolist(), centred, self._fit.image(centred), strict=True)
        return [weight * (part - image) for weight, part, image in blocks]

    def _coincidences(self) -> float:
        """4·Σ n_j²·E[K³] over pairs of reports in channel j, K = (w_j/(n_jΔ_j)²)(|B ∩ B'| − w²/m), which is
        hypergeometric.
        """
        fit, total = self._fit, 0.0
        for response, weight, reports in zip(fit.responses, fit.weights.tolist(), fit.reports, strict=True):
            kernel = weight / (reports * response.probabilities.gap) ** 2
            overlap = overlap_third_moment(response.design.points, response.design.block_size)
            total += 4 * reports**2 * kernel**3 * overlap
        return total


def _inner(left: list[Floats], right: list[Floats]) -> float:
    return sum(float(one @ other) for one, other in zip(left, right, strict=True))


def overlap_third_moment(points: int, size: int) -> float:
    """The third central moment of the overlap of two random blocks of ``size`` out of ``points`` points."""
    if points < 3:
        return 0.0
    rest = points - size
    variance = (size * rest / points) ** 2 / (points - 1)
    return variance * (points - 2 * size) ** 2 / (points * (points - 2))


def fit_residual(fit: JointFit) -> HealthFinding:
    """The residual of the least-squares fit of all channels."""
    name = "fit residual"
    expected = "the counts of all moduli or views fit one histogram, up to noise"
    freedom = fit.degrees_of_freedom
    if freedom < 1:
        return HealthFinding(name, "residual", expected, reason="moduli or views leave no degree of freedom")
    residual = FitResidual(fit)
    cumulants = residual.cumulants()
    if cumulants.has_too_few_reports:
        return HealthFinding(name, "residual", expected, None, freedom, reason="too few reports for these points")
    statistic = residual.statistic()
    return HealthFinding(name, "residual", expected, statistic, freedom, cumulants.upper_tail(statistic))
