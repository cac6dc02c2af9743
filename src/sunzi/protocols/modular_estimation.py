"""From a modular tally to frequencies: debias every block, then solve one structured least-squares problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import log2
from typing import TYPE_CHECKING, Literal

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.designs.response import BlockResponse
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError
from sunzi.numerics import intervals, simplex
from sunzi.numerics.checks import real_number
from sunzi.numerics.primes import next_prime
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.numerics.toeplitz import ToeplitzGram, adjoint, fold, tile
from sunzi.protocols.base import check_reports
from sunzi.protocols.likelihood import LARGEST_DENSE, CountedBlocks, maximum_likelihood
from sunzi.protocols.modular_variance import ModularVariance
from sunzi.protocols.support import LEAST_SQUARES_EFFECT, LIKELIHOOD_EFFECT
from sunzi.results.estimate import Errors, Estimate
from sunzi.results.uncertainty import CombinedUncertainty, QueryErrors
from sunzi.tally import Tally

if TYPE_CHECKING:
    from sunzi.protocols.modular import ModularProtocol


_FITTING_STEPS = 500
_FITTING_TOLERANCE = 1e-9


class ModularDecoder:
    """One decoding: the tally of a plan, the weights, and the Gram matrix they make."""

    def __init__(
        self,
        protocol: ModularProtocol,
        tally: Tally,
        weights: Literal["planned", "paper"],
        ridge: float | Literal["paper"],
        errors: Errors,
    ) -> None:
        check_reports(tally)
        self.protocol, self.tally, self.errors = protocol, tally, errors
        self.used = np.array([reports > 0 for reports in tally.block_reports])
        self.moduli = tuple(modulus for modulus, used in zip(protocol.moduli, self.used, strict=True) if used)
        self.moments = [moments for moments, used in zip(protocol.moments, self.used, strict=True) if used]
        self.reports = [reports for reports in tally.block_reports if reports]
        self.ridge = float(1 / protocol.epsilon**2) if ridge == "paper" else real_number("ridge", ridge)
        if self.ridge < 0:
            raise ParameterError(f"ridge must be at least 0, or 'paper', got {ridge!r}")
        self._check_determined()
        self.rule = weights
        self.weights = self._weights(weights)
        self.gram = self._gram(planned=weights == "planned")

    def _check_determined(self) -> None:
        """All moduli of a plan distinguish all values; without a ridge, the moduli that have reports must do so too."""
        reached = sum(self.moduli) - len(self.moduli)
        if not self.ridge and reached < self.protocol.domain_size - 1:
            raise EstimateError(
                f"only {len(self.moduli)} of {len(self.protocol.moduli)} moduli have reports yet, too few to tell "
                f"{self.protocol.domain_size} values apart; collect more"
            )

    def _weights(self, rule: Literal["planned", "paper"]) -> Floats:
        if rule == "planned":
            planned = self.protocol.planned_weights[self.used]
            # A ridge is meant for weights at the scale of the reports.
            return planned * self.tally.reports if self.ridge else planned
        return np.array(
            [
                reports / _paper_variance(response.probabilities, response.design.points)
                for response, reports in zip(self.responses, self.reports, strict=True)
            ]
        )

    @property
    def responses(self) -> list[BlockResponse]:
        """The block responses that have reports."""
        return [response for response, used in zip(self.protocol.responses, self.used, strict=True) if used]

    def _gram(self, planned: bool) -> ToeplitzGram:
        if self.ridge:
            # A modulus of k or more makes AᵀA the identity, so that a ridge is one more block.
            identity = next_prime(max(self.protocol.domain_size, *self.moduli) + 1)
            return ToeplitzGram(
                self.protocol.domain_size, (*self.moduli, identity), np.append(self.weights, self.ridge)
            )
        if planned and self.used.all():
            return self.protocol.gram
        return ToeplitzGram(self.protocol.domain_size, self.moduli, self.weights)

    def _support_counts(self) -> Iterator[Integers]:
        """c_j of every block that has reports, one at a time: how many of them support each residue."""
        for index, response in enumerate(self.protocol.responses):
            if self.tally.block_reports[index]:
                yield response.design.point_counts(self.tally.block(index), response.design.points)

    def residue_estimates(self) -> list[Floats]:
        """s_j = (c_j/n_j − q_j)/Δ_j of every block that has reports; each sums to 1."""
        blocks = zip(self._support_counts(), self.responses, self.reports, strict=True)
        return [
            (support / reports - response.probabilities.false) / response.probabilities.gap
            for support, response, reports in blocks
        ]

    @property
    def rates(self) -> list[SupportProbabilities]:
        """The support probabilities of every block that has reports."""
        return [response.probabilities for response in self.responses]

    @cached_property
    def _right_side(self) -> Floats:
        """Σ_j w_j A_jᵀ s_j, from the counts themselves: debiasing block after block would take longer than the sum."""
        rates = self.rates
        slopes = self.weights / [rate.gap for rate in rates]
        total = adjoint(self._support_counts(), self.moduli, slopes / self.reports, self.protocol.domain_size)
        total -= slopes @ [rate.false for rate in rates]
        return total

    @cached_property
    def frequencies(self) -> Floats:
        """The f̂ of :meth:`estimate`."""
        return self.gram.solve(self._right_side, total=None if self.ridge else 1.0)

    def estimate(self, domain: Domain) -> Estimate:
        """f̂ = T⁻¹Σ_j w_j A_jᵀ s_j, moved along T⁻¹1 so that it sums to 1; a ridge estimate stays as it is."""
        goal, frequencies = self._right_side, self.frequencies
        uncertainty = None
        if not self.ridge:
            uncertainty = ModularUncertainty(frequencies, simplex.project(frequencies), self.tally.reports, self)
        likelihood = all(response.design.counts_blocks for response in self.protocol.responses)
        likelihood = likelihood and self.protocol.tally_layout.length <= LARGEST_DENSE
        # Methods and not functions of this one, so that an estimate can be pickled.
        refit = partial(self._likeliest, frequencies) if likelihood else partial(self._closest, goal, frequencies)
        effect = LIKELIHOOD_EFFECT if likelihood else LEAST_SQUARES_EFFECT
        return Estimate(domain, self.tally.reports, frequencies, uncertainty, refit, effect, self.rule)

    # --- as a joint fit (see sunzi.protocols.joint_fit)

    @cached_property
    def estimates(self) -> list[Floats]:
        """The residue estimates."""
        return self.residue_estimates()

    @property
    def fitted(self) -> list[Floats]:
        """The residues of f̂."""
        return [fold(self.frequencies, modulus) for modulus in self.moduli]

    @cached_property
    def histograms(self) -> list[Floats]:
        """The residues of f̂, projected onto the simplex."""
        projected = simplex.project(self.frequencies)
        return [fold(projected, modulus) for modulus in self.moduli]

    @property
    def degrees_of_freedom(self) -> int:
        """The degrees of freedom, Σ(m_j − 1) − (k − 1)."""
        return sum(modulus - 1 for modulus in self.moduli) - self.gram.size + 1

    @property
    def item_scores(self) -> Floats:
        """The estimate divided by quick standard errors, which are upper bounds."""
        found = self.estimate(Domain(self.protocol.domain_size))
        return found.frequencies / np.maximum(found.standard_errors(), np.finfo(np.float64).tiny)

    def image(self, parts: list[Floats]) -> list[Floats]:
        """One solve."""
        solved = self.gram.solve(adjoint(parts, self.moduli, self.weights, self.gram.size), total=0.0)
        return [fold(solved, modulus) for modulus in self.moduli]

    def own_shares(self, place: int) -> Floats:
        """From the diagonal of the product."""
        gram, modulus, ones = self.gram, self.moduli[place], self.gram.ones_solution
        return fold(gram.product_diagonal(modulus), modulus) - fold(ones, modulus) ** 2 / float(ones.sum())

    def explained(self, place: int, block: Floats) -> float:  # noqa: ARG002 - the block's size says it
        """One solve."""
        tiled, ones = tile(block, self.gram.size), self.gram.ones_solution
        return float(tiled @ self.gram.apply_inverse(tiled)) - float(ones @ tiled) ** 2 / float(ones.sum())

    def _likeliest(self, frequencies: Floats) -> Floats:
        blocks = [
            CountedBlocks(response.design, self.tally.block(index), response.odds)
            for index, response in enumerate(self.protocol.responses)
            if self.tally.block_reports[index]
        ]
        return maximum_likelihood(blocks, simplex.project(frequencies))

    def _closest(self, goal: Floats, frequencies: Floats) -> Floats:
        """min Σ_j w_j|A_j f − s_j|² over the simplex, without the ridge, by accelerated projected gradients (FISTA)."""
        start = simplex.project(frequencies)
        size = self.protocol.domain_size
        # A_jᵀA_j has norm ⌈k/m_j⌉, so this bounds the largest eigenvalue of T.
        bound = sum(w * -(-size // m) for w, m in zip(self.weights, self.moduli, strict=True))
        current, ahead, momentum = start, start, 1.0
        for _ in range(_FITTING_STEPS):
            slope = self.gram.multiply(ahead) - self.ridge * ahead - goal  # the ridge is a part of the Gram matrix
            following = simplex.project(ahead - slope / bound)
            grown = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            ahead = following + (momentum - 1) / grown * (following - current)
            moved = float(np.abs(following - current).sum())
            current, momentum = following, grown
            if moved < _FITTING_TOLERANCE:
                break
        return current


@dataclass(frozen=True)
class ModularUncertainty(CombinedUncertainty):
    """Errors of one modular estimate by a fixed linear map."""

    decoder: ModularDecoder

    @cached_property
    def _variance(self) -> ModularVariance:
        return ModularVariance(self.decoder.gram, self.decoder.moments, self.decoder.weights, self.decoder.reports)

    @cached_property
    def population(self) -> Floats:
        """The variances about a population, in full or as their quick bound."""
        return (self._variance.full if self.decoder.errors == "full" else self._variance.quick)(self.plausible)

    @cached_property
    def slopes(self) -> Floats:
        """The slopes, from the item's own residues."""
        return self._variance.own_slopes()

    def query(self, rows: Floats) -> QueryErrors:
        """One solve for each query."""
        covariance, excess = self._variance.query(rows, self.frequencies)
        return QueryErrors(rows, covariance, excess, self.frequencies, self.reports)

    def jumps(self, at_hand: bool) -> intervals.Jumps:
        """The jumps, from the counts of the item's own residues."""
        return self._variance.jumps(self.plausible, self.decoder.rates, at_hand)


def _paper_variance(probabilities: SupportProbabilities, points: int) -> float:
    """π(1−π)/Δ² with π = q + Δ/m, as the paper weights its rows."""
    rate = probabilities.false + probabilities.gap / points
    return rate * (1 - rate) / probabilities.gap**2


def solving_cost(domain_size: int, moduli: int) -> float:
    """Operations from residue estimates to frequencies: one tiling of the domain per modulus for the right side and one
    for the residual, and Fourier transforms worth four complex ones of the domain's size.
    """
    return 2 * moduli * domain_size + 4 * domain_size * log2(max(domain_size, 2))
