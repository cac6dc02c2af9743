"""Protocols in which every item has its own support count: (c[x]/n − q)/Δ is unbiased, and its error is known
exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.domains.labels import Domain
from sunzi.numerics import simplex
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.protocols.base import Protocol, check_histogram, check_reports, check_users, padded
from sunzi.protocols.decoder_rows import DecoderRow, SupportRow
from sunzi.protocols.efficient import Pilot, efficient_estimate, expected_error, is_linear, read_pilot, whole_blocks
from sunzi.protocols.likelihood import CountedBlocks, maximum_likelihood
from sunzi.protocols.modular_variance import BlockMoments
from sunzi.results.estimate import Errors, Estimate, Weights
from sunzi.results.uncertainty import JointErrors, SupportUncertainty
from sunzi.tally import Tally

LIKELIHOOD_EFFECT = "maximum likelihood over all histograms; rare items pulled to 0, bias vanishes as reports grow"
LEAST_SQUARES_EFFECT = (
    "weighted least squares over all histograms; rare items pulled to 0, frequent ones slightly downwards"
)

# Up to this many points per value, points beyond the domain carry almost no information.
_FEW_SPARE_POINTS = 1.05


@dataclass(frozen=True)
class SupportProtocol(Protocol):
    """A report supports the true item with probability p and any other given item with probability q.

    >>> import sunzi
    >>> isinstance(sunzi.make_plan("oue", 10, epsilon=1).protocol, SupportProtocol)
    True
    """

    @property
    @abstractmethod
    def probabilities(self) -> SupportProbabilities:
        """The probabilities p and q that a report supports its own value and another value."""

    @abstractmethod
    def support_counts(self, tally: Tally) -> Integers:
        """How many reports support each item."""

    @property
    @abstractmethod
    def moments(self) -> BlockMoments:
        """The moments of blocks, which give the covariances between items."""

    def counted_blocks(self, tally: Tally) -> list[CountedBlocks]:  # noqa: ARG002 - for protocols that count blocks
        """The tally as a sufficient statistic, where it is one."""
        return []

    def estimate(
        self,
        domain: Domain,
        tally: Tally,
        weights: Weights = "efficient",
        ridge: float | Literal["paper"] = 0.0,
        errors: Errors = "full",
        pilot: Pilot | None = None,
    ) -> Estimate:
        """(c[x]/n − q)/Δ for every item; unbiased. Point counts carry no further information, so all weights give the
        same result; where the tally counts whole blocks, ``weights`` "efficient" uses them (and a ``pilot``).
        ``errors`` "quick" means planned weights, whose errors need no computation. ``ridge`` must be 0.
        """
        linear_only = is_linear(weights, ridge, errors, pilot)
        if ridge != 0:
            raise ParameterError(f"a ridge is for modular protocols, such as mss; {self.name} needs none: omit it")
        linear = self.linear_estimate(domain, tally)
        if linear_only or not any(whole_blocks(self.responses)):
            if pilot is not None:
                read_pilot(self, tally, linear, pilot)  # refuses a wrong one, though a right one changes nothing
            return linear
        return efficient_estimate(self, tally, linear, self._flat, pilot)

    def linear_estimate(self, domain: Domain, tally: Tally) -> Estimate:
        """(c[x]/n − q)/Δ for every item."""
        check_reports(tally)
        support = self.support_counts(tally)
        frequencies = (support / tally.reports - self.probabilities.false) / self.probabilities.gap
        blocks = self.counted_blocks(tally)
        joint: JointErrors = _CountedErrors(blocks[0], self.probabilities, self.moments) if blocks else self.moments
        uncertainty = SupportUncertainty(support, tally.reports, self.probabilities, frequencies, joint)
        effect = LIKELIHOOD_EFFECT if blocks else LEAST_SQUARES_EFFECT
        return Estimate(domain, tally.reports, frequencies, uncertainty, partial(_refit, uncertainty, blocks), effect)

    @cached_property
    def _flat(self) -> ToeplitzGram:
        """The information of one report at the flat histogram, nearly: a multiple of the identity."""
        points = (response.design.points for response in self.responses)
        return ToeplitzGram(
            self.domain_size, tuple(points), np.array([1 / self.probabilities.variance(1 / self.domain_size)])
        )

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """[p(1−p) + (k−1)q(1−q)]/(knΔ²) for every histogram, from counts of points: frequencies add up to 1. From whole
        blocks it is less where values are unequally frequent, or where the design has many points beyond the domain.
        """
        check_users(users)
        frequencies = None if histogram is None else check_histogram(histogram, self.domain_size)
        if not any(whole_blocks(self.responses)):
            return self.worst_mse(users)
        return (self._flat_error if frequencies is None else self._error_at(frequencies)) / users

    @cached_property
    def _flat_error(self) -> float:
        """n times the error at the flat histogram."""
        if self._flat.moduli[0] <= _FEW_SPARE_POINTS * self.domain_size:
            return self.worst_mse(1)
        return self._error_at(np.full(self.domain_size, 1 / self.domain_size))

    def _error_at(self, histogram: Floats) -> float:
        """From whole blocks; on large domains it is sampled, and might come out above the error from points."""
        return min(expected_error(histogram, self.responses, self._flat), self.worst_mse(1))

    def worst_mse(self, users: int) -> float:
        """From counts of points, the same for every histogram."""
        check_users(users)
        return self.probabilities.variance(1 / self.domain_size) / users

    def target_parts(self, targets: Sequence[int]) -> tuple[Floats, ...]:
        """A vector that is 1 at each target and 0 elsewhere."""
        return (padded(self.target_row(targets), self.channels[0].points),)

    def decoder_rows(self, items: Iterable[int]) -> Iterator[DecoderRow]:
        """Every item has its own support count, so all rows are alike."""
        for item in items:
            yield SupportRow(item, self.domain_size, self.probabilities)

    def support_probabilities(self) -> list[tuple[float, float]]:
        """p and q, the same for all items."""
        return [(self.probabilities.true, self.probabilities.false)]


@dataclass(frozen=True)
class _CountedErrors:
    """Covariances between items, computed from the counted blocks without a model of the design."""

    blocks: CountedBlocks
    probabilities: SupportProbabilities
    moments: BlockMoments

    def query(self, rows: Floats, frequencies: Floats, reports: int) -> tuple[Floats, Floats]:
        """The sample covariance of h(B)/Δ over all reported blocks B, with h(B) the sum of a row over the block."""
        messages, counts = self.blocks.counters.nonzero()
        sums = np.array([self.blocks.design.block_sums(row)[messages] for row in rows])
        means = sums @ counts / reports
        covariance = ((sums * counts) @ sums.T / reports - np.outer(means, means)) / self.probabilities.gap**2
        _, excess = self.moments.query(rows, frequencies, reports)
        return covariance / max(reports - 1, 1), excess


def _refit(uncertainty: SupportUncertainty, blocks: list[CountedBlocks]) -> Floats:
    """The constrained fit; a function of the module, so that an estimate can be pickled."""
    start = simplex.project_weighted(uncertainty.frequencies, uncertainty.variances("reporters"))
    return maximum_likelihood(blocks, start) if blocks else start
