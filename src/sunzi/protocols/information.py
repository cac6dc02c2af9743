"""The Fisher information of all reports at a reference histogram, and the estimate that it weights
(docs/mathematics.md §10).

A reference histogram, the *pilot*, fixes for every block j a symmetric matrix W_j and, from its reports, a vector r_j
with E r_j = W_j g_j for every true residue histogram g_j = A_j f. The solution f̂ of

    T f̂ = Σ_j A_jᵀ r_j + c·1,        T = Σ_j A_jᵀ W_j A_j,        1ᵀf̂ = 1

is therefore exactly unbiased for any fixed pilot, and if the pilot is the true histogram no unbiased estimate has a
smaller variance. Its covariance is then V = T⁻¹ − ττᵀ/(1ᵀτ), τ = T⁻¹1. A protocol with one design has one block, whose
modulus is the design's number of points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sunzi._typing import Floats
from sunzi.designs.base import Design
from sunzi.designs.response import BlockResponse
from sunzi.errors import EstimateError
from sunzi.numerics.toeplitz import ToeplitzGram, fold, tile
from sunzi.protocols.large_inverse import LargeInverse
from sunzi.protocols.modular_variance import BlockMoments

# T is formed and inverted up to this domain size, which takes a tenth of a second,
_FORMED_SIZE = 1500
# and if the matrices of all blocks take at most this many additions, about half a second.
_MOST_ADDITIONS = 1 << 25
_LISTED_INCIDENCES = 1 << 22
# Of small designs they are kept, as a sparse matrix of a few megabytes.
_KEPT_INCIDENCES = 1 << 21
# A residue histogram counts as flat if its largest entry changes the variance by a smaller share.
_NEGLIGIBLE = 1e-6
# A residue is heavy if it changes the information by more than this share: its own, or that of messages that name it.
_HEAVY = 0.3
_HEAVY_MESSAGES = 0.02
# At most this many heavy residues of a block whose rows cost a pass over all messages each.
_MOST_MESSAGE_ROWS = 8
# Conjugate gradients stop at this mean squared distance from the solution, in squared standard errors; for a trace, at
# this share of it.
_TOLERANCE = 1e-9
_TRACE_TOLERANCE = 1e-3
# And for the variance of a linear query, at this share of it.
_QUERY_TOLERANCE = 1e-6
_ITERATIONS = 1000
# Random signs for the trace of V, for weights; up to this size it is formed instead.
_SIGNS = 1 << 10
_SMALL_SIZE = 128
# Vectors of signs for the trace of V, for errors.
_TRACES = 4
_SEED = 9
# Items above this multiple of the median variance are heavy.
_OUTSTANDING = 1.5


class BlockInformation(ABC):
    """W_j of one block at a pilot, for all its reports; on the residues that occur, which are fewer than the points if
    the domain is smaller.
    """

    @property
    @abstractmethod
    def points(self) -> int:
        """m_j, the number of points."""

    def response(self, vector: Floats) -> Floats:
        """W_j·A_j·v: how much each residue estimate of the block enters the query that v = V·a answers."""
        return self.apply(_folded(vector, self))

    @abstractmethod
    def heavy_residues(self, most: int) -> NDArray[np.intp]:
        """The residues, at most ``most``, whose rows of W_j are unlike the others."""

    @abstractmethod
    def score(self, statistic: Floats) -> Floats:
        """r_j, from what this block's reports are counted as."""

    @abstractmethod
    def apply(self, vector: Floats) -> Floats:
        """The product W_j·vector."""

    @property
    @abstractmethod
    def diagonal(self) -> Floats:
        """The diagonal of W_j."""

    @property
    @abstractmethod
    def forming_cost(self) -> float:
        """About how many additions :meth:`formed` takes."""

    @abstractmethod
    def formed(self) -> Floats:
        """W_j as a matrix."""

    @abstractmethod
    def score_covariance(self, residues: Floats) -> Floats:
        """The covariance matrix of r_j if values follow this residue histogram, whatever the pilot is."""


@dataclass(frozen=True)
class PointInformation(BlockInformation):
    """The information in the point counts of a block: W = n·S⁻, S the covariance of one debiased report at the pilot.

    S⁻ = diag(h) − γhhᵀ with h = 1/(d0 + d1·g), γ = c/(c·Σh − m²), c = m·d0 + d1 − d1², inverts S on vectors that sum to
    0, and no others occur: two histograms differ by such a vector.
    """

    moments: BlockMoments
    reports: float
    pilot: Floats
    """The residue histogram, one entry per point."""
    size: int
    """How many residues occur."""

    @property
    def points(self) -> int:
        """The modulus."""
        return self.moments.points

    def heavy_residues(self, most: int) -> NDArray[np.intp]:
        """Where h is far from its median; light residues have about the same."""
        weights = self._weights[: self.size]
        deviations = np.abs(weights - np.median(weights))
        ranked = np.argsort(-deviations)[: min(most, self.size - 1)]
        return ranked[deviations[ranked] > _HEAVY * np.median(weights)]

    @cached_property
    def _weights(self) -> Floats:
        """h."""
        return 1 / (self.moments.light + self.moments.heavy * self.pilot)

    @cached_property
    def _coupling(self) -> float:
        """γ."""
        points, heavy = self.moments.points, self.moments.heavy
        if abs(heavy) * self.pilot.max() < _NEGLIGIBLE * self.moments.light:
            return 0.0  # h is constant, and hhᵀ does nothing to vectors that sum to 0
        constant = points * self.moments.light + heavy - heavy**2
        return float(constant / (constant * self._weights.sum() - points**2))

    def score(self, statistic: Floats) -> Floats:
        """W·s for the unbiased residue estimates s, one per point."""
        return self._times(statistic, self._weights)[: self.size]

    def apply(self, vector: Floats) -> Floats:
        """n·(h∘v − γh·(hᵀv))."""
        return self._times(vector, self._weights[: self.size])

    def _times(self, vector: Floats, weights: Floats) -> Floats:
        weighted: Floats = weights * vector
        weighted -= self._coupling * weighted.sum() * weights
        weighted *= self.reports
        return weighted

    @property
    def diagonal(self) -> Floats:
        """n·(h − γh²)."""
        weights = self._weights[: self.size]
        return self.reports * (weights - self._coupling * weights**2)

    @property
    def forming_cost(self) -> float:
        """One per entry."""
        return float(self.size**2)

    def formed(self) -> Floats:
        """A diagonal matrix less one of rank 1."""
        return self._formed_rows()[:, : self.size]

    def _formed_rows(self) -> Floats:
        """The rows of the residues that occur, with a column for every point."""
        rows = np.diag(self._weights) - self._coupling * np.outer(self._weights, self._weights)
        return np.asarray(self.reports * rows[: self.size])

    def score_covariance(self, residues: Floats) -> Floats:
        """W·S·W/n with the covariance S of one report (docs/mathematics.md §3.3)."""
        rows, moments = self._formed_rows(), self.moments
        covariance = np.diag(moments.light + moments.heavy * residues) + moments.constant
        covariance += moments.mixed * (residues[:, None] + residues) - np.outer(residues, residues)
        return np.asarray(rows @ covariance @ rows.T / self.reports)


@dataclass(frozen=True)
class MessageInformation(BlockInformation):
    """The information in the counted messages of a block, each of which names a whole block B_y of points.

    P(y|x) = P0·a_y[x] with a_y = 1 + (E−1)·1_{B_y} and E = e^ε, so message y has probability P0·μ_y at the pilot, μ_y =
    a_yᵀg, and W = n·P0·Σ_y a_y a_yᵀ/μ_y is the Fisher information.
    """

    design: Design
    odds: float
    reports: float
    pilot: Floats
    """The histogram of the residues that occur."""

    @property
    def points(self) -> int:
        """The design's points."""
        return self.design.points

    def heavy_residues(self, most: int) -> NDArray[np.intp]:
        """The most frequent ones, as far as they change the probability of messages."""
        ranked = np.argsort(-self.pilot)[: min(most, _MOST_MESSAGE_ROWS, self.pilot.size - 1)]
        typical = 1 + (self.odds - 1) * self.design.block_size / self.points
        return ranked[(self.odds - 1) * self.pilot[ranked] > _HEAVY_MESSAGES * typical]

    @cached_property
    def _mixture(self) -> Floats:
        """μ_y."""
        return 1 + (self.odds - 1) * np.maximum(self.design.block_sums(self.pilot), 0.0)

    @property
    def _scale(self) -> float:
        """n·P0."""
        expected = 1 + (self.odds - 1) * self.design.block_size / self.points
        return self.reports / (self.design.message_count * expected)

    def jump_rates(self) -> tuple[Floats, Floats]:
        """For every residue, as if all messages that name it moved its estimate by the same step: their probability,
        and how it grows with the frequency of the residue.

        Message y moves it in proportion to 1/μ_y and has probability P0·μ_y, so a message that also names a frequent
        value counts little. Sums of squares and cubes of the steps, S1 = Σ_y 1/μ_y and S2 = Σ_y 1/μ_y², are kept.
        """
        inverse = 1 / self._mixture
        squares, cubes = (self.design.spread(inverse**power, self.pilot.size) for power in (1, 2))
        gap = self._scale / self.reports * squares**2 / cubes
        return gap * squares / cubes, (self.odds - 1) * gap

    def score(self, statistic: Floats) -> Floats:
        """Σ_y (c_y/μ_y)·a_y for the counts c_y of all messages."""
        return self._gather(statistic / self._mixture)

    def apply(self, vector: Floats) -> Floats:
        """Σ_y (n·P0·(a_yᵀv)/μ_y)·a_y."""
        sums = self.design.block_sums(vector)
        sums *= self.odds - 1
        sums += vector.sum()
        sums /= self._mixture
        return self._scale * self._gather(sums)

    def _gather(self, shares: Floats) -> Floats:
        """Σ_y shares_y·a_y."""
        return shares.sum() + (self.odds - 1) * self.design.spread(shares, self.pilot.size)

    @cached_property
    def diagonal(self) -> Floats:
        """n·P0·Σ_y a_y²/μ_y."""
        inverse = 1 / self._mixture
        return self._scale * (inverse.sum() + (self.odds**2 - 1) * self.design.spread(inverse, self.pilot.size))

    @property
    def forming_cost(self) -> float:
        """For every message a look at every residue, and a product for every pair of them in its block."""
        size = self.pilot.size
        return self.design.message_count * (size + (self.design.block_size * size / self.points) ** 2)

    def formed(self) -> Floats:
        """n·P0·Σ_y a_y a_yᵀ/μ_y."""
        return self._scale * self._products(1 / self._mixture)

    def score_covariance(self, residues: Floats) -> Floats:
        """Every report adds a_y/μ_y, with the probability of y under the residues."""
        mixture = 1 + (self.odds - 1) * np.maximum(self.design.block_sums(residues[: self.pilot.size]), 0.0)
        mean = self._scale * self._gather(mixture / self._mixture)
        return self._scale * self._products(mixture / self._mixture**2) - np.outer(mean, mean) / self.reports

    def _products(self, shares: Floats) -> Floats:
        """Σ_y shares_y·a_y a_yᵀ, from the incidence of all messages."""
        size, start = self.pilot.size, 0
        matrix = np.zeros((size, size))
        for inside in self._incidences():
            stop = start + inside.shape[0]
            weighted = inside.copy()
            weighted.data *= np.repeat(shares[start:stop], np.diff(inside.indptr))
            matrix += (inside.T @ weighted).toarray()
            start = stop
        along = self.design.spread(shares, size)
        matrix *= (self.odds - 1) ** 2
        matrix += (self.odds - 1) * (along[:, None] + along) + shares.sum()
        return matrix

    def _incidences(self) -> Iterator[csr_array[Any, Any]]:
        """The incidence of all messages, a part at a time; that of a small design is kept for the next estimate."""
        size, count = self.pilot.size, self.design.message_count
        if count * size <= _KEPT_INCIDENCES:
            yield _all_incidences(self.design, size)
            return
        messages, step = self.design.every_message(), max(1, _LISTED_INCIDENCES // size)
        for start in range(0, count, step):
            yield csr_array(self.design.incidence(messages[start : start + step], size), dtype=np.float64)


@lru_cache(maxsize=16)
def _all_incidences(design: Design, size: int) -> csr_array[Any, Any]:
    return csr_array(design.incidence(design.every_message(), size), dtype=np.float64)


def block_information(
    response: BlockResponse, reports: float, pilot: Floats, whole: bool
) -> PointInformation | MessageInformation:
    """The information of a block's reports, at a pilot of the whole domain: of whole messages, or of point counts."""
    folded = fold(pilot, response.design.points)
    size = min(folded.size, pilot.size)
    if whole:
        return MessageInformation(response.design, response.odds, reports, folded[:size])
    return PointInformation(BlockMoments.of(response), reports, folded, size)


@dataclass(frozen=True, eq=False)
class Information:
    """T = Σ_j A_jᵀ W_j A_j on a domain of ``size`` values.

    ``flat`` is the Gram matrix of the planned weights, near T divided by the number of reports, with a fast inverse.
    """

    size: int
    blocks: Sequence[BlockInformation]
    flat: ToeplitzGram
    reports: float

    def multiply(self, vector: Floats) -> Floats:
        """The product T·vector."""
        total = np.zeros(self.size)
        for block in self.blocks:
            total += tile(block.apply(_folded(vector, block)), self.size)
        return total

    def adjoint(self, scores: Iterable[Floats]) -> Floats:
        """Σ_j A_jᵀ r_j."""
        return np.sum([tile(score, self.size) for score in scores], axis=0)

    def solve(self, goal: Floats, start: Floats, tolerance: float = _TOLERANCE) -> Floats:
        """T⁻¹(goal + c·1) with the c for which the entries sum to what the start sums to.

        Conjugate gradients among vectors that sum to 0, preconditioned by ``flat``. The squared length of the residual
        in that norm is the squared distance from the solution in standard errors.
        """
        solution = start.copy()
        residual = goal - self.multiply(start)
        step = self._precondition(residual)
        direction, length = step, float(residual @ step)
        for _ in range(_ITERATIONS):
            if not length > tolerance * self.size:
                break
            image = self.multiply(direction)
            rate = length / float(direction @ image)
            solution += rate * direction
            residual -= rate * image
            step = self._precondition(residual)
            length, before = float(residual @ step), length
            direction = step + length / before * direction
        return solution

    def _precondition(self, residual: Floats) -> Floats:
        """The inverse of n·flat among vectors that sum to 0."""
        ones = self.flat.ones_solution
        step = self.flat.apply_inverse(residual - residual.mean())
        step -= step.sum() / ones.sum() * ones
        return step / self.reports

    @cached_property
    def _covariance(self) -> Floats | None:
        """V, if it is small enough to form."""
        if self.size > _FORMED_SIZE or sum(block.forming_cost for block in self.blocks) > _MOST_ADDITIONS:
            return None
        total = np.zeros((self.size, self.size))
        for block in self.blocks:
            residues = np.arange(self.size) % block.points
            total += block.formed()[residues[:, None], residues]
        # Any multiple of 11ᵀ leaves V as it is; this one makes T positive definite.
        total += total.trace() / self.size
        inverse = scipy.linalg.inv(total, check_finite=False)
        ones = inverse.sum(axis=1)
        inverse -= np.outer(ones, ones / ones.sum())
        return inverse

    @property
    def is_formed(self) -> bool:
        """Whether V is exact."""
        return self._covariance is not None

    def solve_rows(self, rows: Floats) -> Floats:
        """V·a for every row a: by one solve each where V is not formed."""
        if self._covariance is not None:
            return rows @ self._covariance
        zeros = np.zeros(self.size)
        scales = [_QUERY_TOLERANCE * float(row @ self._precondition(row)) / self.size for row in rows]
        return np.array([self.solve(row, zeros, scale) for row, scale in zip(rows, scales, strict=True)])

    def sandwich(self, frequencies: Floats) -> Floats:
        """The covariance matrix of the estimate if values follow these frequencies instead of the pilot."""
        if self._covariance is None:
            raise EstimateError(
                f"standard errors of an estimate with a pilot of your own need a domain of at most {_FORMED_SIZE:,} "
                f"values; leave pilot out, or estimate with weights='planned'"
            )
        total = np.zeros((self.size, self.size))
        for block in self.blocks:
            residues = np.arange(self.size) % block.points
            covariance = block.score_covariance(fold(frequencies, block.points))
            total += covariance[residues[:, None], residues]
        return np.asarray(self._covariance @ total @ self._covariance)

    @cached_property
    def variances(self) -> Floats:
        """The diagonal of V: exact on small domains, elsewhere within a few per cent."""
        if self._covariance is not None:
            return self._covariance.diagonal().copy()
        variances = self._structured.variances
        if any(isinstance(block, MessageInformation) for block in self.blocks):
            # Light items are alike, and messages couple them in ways that means do not show: match their total.
            heavy = variances > _OUTSTANDING * np.median(variances)
            variances[~heavy] *= (self.trace() - variances[heavy].sum()) / variances[~heavy].sum()
        return variances

    def trace(self) -> float:
        """trace V: exact where it is formed, elsewhere within a few per cent."""
        return self._sampled_trace(_TRACES) if self._covariance is None else float(self._covariance.trace())

    @cached_property
    def quick_trace(self) -> float:
        """trace V within a few per cent, good enough for weights."""
        if self.size <= _SMALL_SIZE and self._covariance is not None:
            return float(self._covariance.trace())
        return self._sampled_trace(max(1, _SIGNS // self.size))

    def _sampled_trace(self, number: int) -> float:
        """trace V from vᵀVv for random vectors of signs v (Hutchinson), relative to the same for the flat inverse,
        whose trace is known.
        """
        ones, zeros = self.flat.ones_solution, np.zeros(self.size)
        known = (self.flat.inverse_trace() - float(ones @ ones) / ones.sum()) / self.reports
        tolerance = _TRACE_TOLERANCE * known / self.size
        sampled = reference = 0.0
        for signs in np.random.default_rng(_SEED).choice([-1.0, 1.0], (number, self.size)):
            sampled += float(signs @ self.solve(signs, zeros, tolerance))
            reference += float(signs @ self._precondition(signs))
        return known * sampled / reference

    def own_responses(self) -> Iterator[Floats]:
        """For every block, how much f̂_i moves with its estimate of the residue that item i has there:
        (V·A_jᵀ·W_j)[i, i mod m_j].
        """
        for index, block in enumerate(self.blocks):
            if self._covariance is None:
                yield self._structured.own_response(index)
            else:
                residues = np.arange(self.size) % block.points
                folded = np.array([_folded(row, block) for row in self._covariance])
                yield np.einsum("ia,ai->i", folded, block.formed()[:, residues])

    @cached_property
    def _structured(self) -> LargeInverse:
        return LargeInverse.of(self.size, self.blocks)


def _folded(vector: Floats, block: BlockInformation) -> Floats:
    """The sums of a vector over the residues that occur."""
    return fold(vector, block.points)[: vector.size]
