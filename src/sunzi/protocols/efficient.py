"""The efficient estimate: weights from the reports themselves, in two passes (docs/mathematics.md §10).

The first pass takes its pilot from the linear estimate, the second from the first. A pilot is shrunk towards the flat
histogram as far as it is noise (James and Stein), so that no weight follows what the reports do not show; items far
above all noise stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, log2, sqrt
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.designs.response import BlockResponse
from sunzi.numerics import intervals, simplex
from sunzi.numerics.counters import Counters
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.numerics.toeplitz import ToeplitzGram, tile
from sunzi.protocols.base import check_histogram
from sunzi.protocols.information import BlockInformation, Information, MessageInformation, block_information
from sunzi.protocols.modular_variance import BlockMoments, ModularVariance, own_count
from sunzi.results.estimate import Errors, Estimate, Weights
from sunzi.results.uncertainty import CombinedUncertainty, QueryErrors
from sunzi.tally import Tally

if TYPE_CHECKING:
    from sunzi.protocols.base import Protocol

Pilot = Floats | Sequence[float] | Estimate | Tally

FEWEST_REPORTS = 50
"""With fewer reports per block a pilot is mostly noise, and the linear estimate does as well."""

# e^ε below which whole blocks carry at most 0.3 % more information than point counts, and rounding would spoil it.
_LEAST_ODDS = 1.1
# So many messages of all designs fit in memory a dozen times, and an estimate takes a few seconds.
_MOST_MESSAGES = 1 << 23
# Products with the information for two passes and a trace, up to ε of about 5.
_PRODUCTS = 12


def is_linear(weights: Weights, ridge: float | Literal["paper"], errors: Errors, pilot: Pilot | None) -> bool:
    """Whether these options ask for a linear estimate; raise ParameterError if one of them is wrong or useless."""
    if weights not in get_args(Weights):
        raise ParameterError(f"weights must be efficient, planned or paper, got {weights!r}")
    if errors not in get_args(Errors):
        raise ParameterError(f"errors must be full or quick, got {errors!r}")
    if pilot is not None and weights != "efficient":
        raise ParameterError(f"weights={weights!r} take no pilot; leave one of them out")
    if pilot is not None and (ridge != 0 or errors == "quick"):
        raise ParameterError("ridge and errors='quick' take no pilot; omit it")
    return weights != "efficient" or ridge != 0 or errors == "quick"


def whole_blocks(responses: Sequence[BlockResponse]) -> list[bool]:
    """For each response, whether its tally is more informative than its point counts; False for all if that would take
    too long to find out.
    """
    found = [
        response.design.counts_blocks and response.design.block_size > 1 and response.odds > _LEAST_ODDS
        for response in responses
    ]
    messages = sum(response.design.message_count for response, whole in zip(responses, found, strict=True) if whole)
    return found if messages <= _MOST_MESSAGES else [False] * len(found)


def reweighting_work(responses: Sequence[BlockResponse], domain_size: int) -> float:
    """Operations, beyond those of a linear estimate, that both passes take at moderate ε: products with the
    information, each with one linear solve.
    """
    pairs = zip(responses, whole_blocks(responses), strict=True)
    messages = sum(response.design.message_count * log2(response.points) for response, whole in pairs if whole)
    if not messages and len(responses) == 1:
        return 0.0
    return _PRODUCTS * (2 * messages + 2 * len(responses) * domain_size + 4 * domain_size * log2(max(domain_size, 2)))


def information_at(
    pilot: Floats, responses: Sequence[BlockResponse], reports: Sequence[float], flat: ToeplitzGram
) -> Information:
    """The information, at a pilot, of some number of reports of every block."""
    blocks = [
        block_information(response, number, pilot, whole)
        for response, number, whole in zip(responses, reports, whole_blocks(responses), strict=True)
    ]
    return Information(pilot.size, blocks, flat, sum(reports))


def reporter_variances(information: Information, histogram: Floats) -> Floats:
    """The variances of n = ``information.reports`` reports about their senders' own histogram: V_ii − f(1−f)/n.

    On large domains V is approximate, and where lies are rare the difference is small. There no item gets less than
    nine in ten others: errors of frequent items are larger than those of rare ones.
    """
    variances = information.variances - histogram * (1 - histogram) / information.reports
    if information.is_formed:
        return variances
    return np.maximum(variances, np.quantile(variances, 0.1))


def expected_error(histogram: Floats, responses: Sequence[BlockResponse], flat: ToeplitzGram) -> float:
    """n times the mean squared error per item, about the users' own histogram, that the efficient estimate approaches
    as their number n grows: no unbiased estimate from the same tally has less.
    """
    shares = [1 / len(responses)] * len(responses)
    return float(np.mean(reporter_variances(information_at(histogram, responses, shares, flat), histogram)))


@dataclass(frozen=True)
class ReportedBlock:
    """One block's part of a tally."""

    response: BlockResponse
    reports: int
    counters: Counters
    whole: bool

    @cached_property
    def statistic(self) -> Floats:
        """What the information's score takes: the counts of all messages, or unbiased residue estimates."""
        if self.whole:
            return self.counters.dense().astype(np.float64)
        rates = self.response.probabilities
        return (self.response.point_counts(self.counters) / self.reports - rates.false) / rates.gap


@dataclass(frozen=True, eq=False)
class EfficientFit:
    """An estimate and the information that weighted it."""

    frequencies: Floats
    pilot: Floats
    information: Information


def efficient_fit(
    blocks: Sequence[ReportedBlock], flat: ToeplitzGram, linear: Floats, pilot: Floats | None
) -> EfficientFit:
    """The efficient estimate from the linear one, whose Gram matrix is ``flat``.

    Two passes; one with a given pilot, and then exactly unbiased if the pilot does not depend on these reports.
    """
    frequencies = linear + (1 - linear.sum()) / linear.size
    if pilot is not None:
        return _reweighted(blocks, flat, frequencies, pilot)
    variance = flat.inverse_trace() / sum(block.reports for block in blocks)
    first = _reweighted(blocks, flat, frequencies, _shrunk(frequencies, variance))
    return _reweighted(blocks, flat, first.frequencies, _shrunk(first.frequencies, first.information.quick_trace))


def _shrunk(frequencies: Floats, variance: float) -> Floats:
    """The estimate as a pilot: items far above all noise as they are, the others moved towards their mean by the share
    of their spread that is noise; then projected. ``variance`` is the sum over all items.
    """
    size = frequencies.size
    frequent = frequencies - 1 / size > sqrt(2 * log(size) * variance / size)
    rest = frequencies[~frequent]
    deviations = rest - rest.mean()
    spread, noise = float(deviations @ deviations), variance * rest.size / size
    shrunk = frequencies.copy()
    shrunk[~frequent] = rest.mean() + (1 - noise / spread if spread > noise else 0.0) * deviations
    return simplex.project(shrunk)


def _reweighted(blocks: Sequence[ReportedBlock], flat: ToeplitzGram, start: Floats, pilot: Floats) -> EfficientFit:
    responses, reports = [block.response for block in blocks], [block.reports for block in blocks]
    information = information_at(pilot, responses, reports, flat)
    scores = (part.score(block.statistic) for part, block in zip(information.blocks, blocks, strict=True))
    return EfficientFit(information.solve(information.adjoint(scores), start), pilot, information)


def efficient_estimate(
    protocol: Protocol, tally: Tally, linear: Estimate, flat: ToeplitzGram, pilot: Pilot | None
) -> Estimate:
    """The linear estimate of a tally, made efficient; as it is if there are too few reports to choose weights by."""
    used = [index for index, reports in enumerate(tally.block_reports) if reports]
    responses = [protocol.responses[index] for index in used]
    blocks = [
        ReportedBlock(response, tally.block_reports[index], tally.block(index), whole)
        for index, response, whole in zip(used, responses, whole_blocks(responses), strict=True)
    ]
    if pilot is None and tally.reports < FEWEST_REPORTS * len(blocks):
        return linear
    reference = None if pilot is None else read_pilot(protocol, tally, linear, pilot)
    fit = efficient_fit(blocks, flat, linear.frequencies, reference)
    plausible = fit.pilot if pilot is None else simplex.project(fit.frequencies)
    uncertainty = EfficientUncertainty(fit.frequencies, plausible, tally.reports, fit.information, blocks, fit.pilot)
    return replace(linear, frequencies=fit.frequencies, _uncertainty=uncertainty, weights="efficient")


def read_pilot(protocol: Protocol, tally: Tally, linear: Estimate, pilot: Pilot) -> Floats:
    """A histogram, another tally of the plan, or the projection of an estimate of any plan with the same domain."""
    if isinstance(pilot, Tally):
        if pilot.fingerprint != tally.fingerprint:
            raise ParameterError("the pilot is a tally of another plan; pass an estimate of it instead")
        pilot = protocol.estimate(linear.domain, pilot)
    if not isinstance(pilot, Estimate):
        return check_histogram(np.asarray(pilot), linear.domain.size)
    if pilot.domain.size != linear.domain.size:
        raise ParameterError(f"the pilot has {pilot.domain.size} values, this plan {linear.domain.size}")
    return simplex.project(pilot.frequencies)


@dataclass(frozen=True)
class EfficientUncertainty(CombinedUncertainty):
    """Errors of an efficient estimate, at its pilot."""

    information: Information
    blocks: Sequence[ReportedBlock]

    pilot: Floats
    """The histogram that the weights are best for: the plausible one, unless it was given."""

    @cached_property
    def population(self) -> Floats:
        """The diagonal of V; of the sandwich around it if the weights are from a pilot that may be wrong."""
        if self.pilot is not self.plausible:
            return self.information.sandwich(self.plausible).diagonal().copy()
        sampling = self.plausible * (1 - self.plausible) / self.reports
        return reporter_variances(self.information, self.plausible) + sampling

    @cached_property
    def _own(self) -> list[Floats]:
        return list(self.information.own_responses())

    @cached_property
    def slopes(self) -> Floats:
        """Σ_j (d1_j/n_j)·H_j[i, i mod m_j]², H_j the response of the estimate to block j."""
        pairs = zip(self.blocks, self._own, strict=True)
        slopes = (BlockMoments.of(block.response).heavy / block.reports * own**2 for block, own in pairs)
        return np.sum(list(slopes), axis=0)

    def query(self, rows: Floats) -> QueryErrors:
        """V as for single values, with one solve for each query where it is not formed."""
        solved = self.information.solve_rows(rows)
        excess = np.zeros(rows.shape)
        for block, part in zip(self.blocks, self.information.blocks, strict=True):
            share = BlockMoments.of(block.response).heavy / block.reports
            excess += share * np.array([tile(part.response(row), row.size) ** 2 for row in solved])
        if self.pilot is self.plausible:
            covariance = rows @ solved.T
        else:
            covariance = rows @ self.information.sandwich(self.plausible) @ rows.T
        return QueryErrors(rows, covariance, excess, self.plausible, self.reports)

    def jumps(self, at_hand: bool) -> intervals.Jumps:
        """From the counts of the item's own residues, or of the messages that name them; what else moves an estimate
        does so as in the linear one.
        """
        rates = [block.response.probabilities for block in self.blocks]
        counts = [
            self._own_count(*parts)
            for parts in zip(self.blocks, self.information.blocks, rates, self._own, strict=True)
        ]
        flat, reports = self.information.flat, [block.reports for block in self.blocks]
        moments = [BlockMoments.of(block.response) for block in self.blocks]
        step = ModularVariance(flat, moments, flat.weights, reports).typical_step(rates)
        return intervals.Jumps.of_counts(counts, step, at_hand)

    def _own_count(
        self, block: ReportedBlock, information: BlockInformation, rates: SupportProbabilities, own: Floats
    ) -> intervals.OwnCount:
        if not isinstance(information, MessageInformation):
            return own_count(own, self.plausible, rates, block.reports, block.response.points)
        rate, gap = (tile(values, own.size) for values in information.jump_rates())
        return intervals.OwnCount(own, np.clip(rate - gap * self.plausible, 0.0, 1.0), gap, rates, block.reports)
