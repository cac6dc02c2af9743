"""Protocols that report one block of one design on the whole domain: GRR, SubsetSelection, its compact form, and
PGR.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError
from sunzi.client.protocols import block as client
from sunzi.client.randomness import WordSource
from sunzi.designs.attack_limits import AttackLimit, compact_within, projective_within, subsets_within
from sunzi.designs.base import DecodingCost, Design
from sunzi.designs.choice import choose_compact, compact_of_size, cyclotomic_with, optimal_block_size
from sunzi.designs.projective import projective_or_singletons
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.counters import Counters
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.protocols.base import check_options
from sunzi.protocols.efficient import reweighting_work
from sunzi.protocols.likelihood import LARGEST_DENSE, CountedBlocks
from sunzi.protocols.modular_variance import BlockMoments
from sunzi.protocols.support import SupportProtocol
from sunzi.tally import Tally, TallyLayout
from sunzi.wire import EncodedReports


@dataclass(frozen=True)
class BlockProtocol(client.BlockProtocol, SupportProtocol):
    """One block response on v ≥ k points; a value is its own point.

    >>> import sunzi
    >>> protocol = sunzi.make_plan("ss", 10, epsilon=1, block_size=3).protocol
    >>> isinstance(protocol, BlockProtocol), protocol.response.design.block_size
    (True, 3)
    """

    response: BlockResponse

    def blanket(self) -> Blanket:
        """The blanket of the response, on the first three values."""
        points = (0, 1, 2) if self.domain_size > 2 else None
        return self.response.blanket(float(self.response.likelihood_ratio), points)

    @property
    def design(self) -> Design:
        """The response's design."""
        return self.response.design

    @property
    def responses(self) -> tuple[BlockResponse, ...]:
        """The one response."""
        return (self.response,)

    @property
    def probabilities(self) -> SupportProbabilities:
        """The response's probabilities."""
        return self.response.probabilities

    @cached_property
    def moments(self) -> BlockMoments:
        """The response's."""
        return BlockMoments.of(self.response)

    @cached_property
    def tally_layout(self) -> TallyLayout:
        """One block of counters."""
        return TallyLayout(((self.design.counter_count, self.design.counter_weight),))

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self | None:
        """On the smallest design of this kind if ``smallest``."""
        designs = self.design.smallest() if smallest else (self.design,)
        if not designs:
            return None
        response = type(self.response)(designs[0], epsilon, word_bits=word_bits)
        return type(self)(min(self.domain_size, designs[0].points), response)

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction, *args: Any, **options: Any) -> Self:
        """The design of :meth:`choose_design` with its certified threshold."""
        check_options(cls.name, cls.choose_design, options)
        return cls(domain_size, BlockResponse(cls.choose_design(domain_size, epsilon, *args, **options), epsilon))

    @classmethod
    @abstractmethod
    def choose_design(cls, domain_size: int, epsilon: Fraction, *args: Any, **options: Any) -> Design:
        """Which design suits this setting."""

    @property
    def words_per_report(self) -> float:
        """The truth word and one per bound."""
        return self.response.words_per_report

    def randomize(self, values: Integers, source: WordSource) -> Integers:
        """Randomise with the block response."""
        return self.response.randomize(values, source)

    def sample(self, values: Integers, source: WordSource) -> Counters:
        """The block response, counted on the way."""
        return self.response.sample(values, source)

    def encode(self, messages: Integers) -> EncodedReports:
        """Encode with the design's code."""
        return EncodedReports.single(self.design.encode(messages))

    def decode(self, encoded: EncodedReports) -> Integers:
        """Decode with the design's code."""
        return self.design.decode(encoded.payloads[0])

    def count(self, messages: Integers) -> Counters:
        """Count with the design's counters."""
        return self.design.count(messages)

    def support_counts(self, tally: Tally) -> Integers:
        """How many reported blocks contain each item."""
        return self.design.point_counts(tally.block(0), self.domain_size)

    def decoding_cost(self, reports: int) -> DecodingCost | None:
        """The design's cost of counting points, and two passes over whole blocks where they carry more information."""
        linear = self.design.point_counts_cost(reports, self.domain_size)
        work = reweighting_work(self.responses, self.domain_size)
        return None if linear is None else DecodingCost(linear.operations + work, linear.route)

    @property
    def reading_work(self) -> float:
        """The design's."""
        return self.design.reading_work

    def counted_blocks(self, tally: Tally) -> list[CountedBlocks]:
        """The counted messages, where the design counts them and their likelihoods fit in memory."""
        if not self.design.counts_blocks or self.design.counter_count > LARGEST_DENSE:
            return []
        return [CountedBlocks(self.design, tally.block(0), self.response.odds)]

    @property
    def attackability(self) -> float:
        """(1/k)·Σ_y max_x P(y|x), blocks that miss the domain included."""
        return self.response.best_guess_sum(self.domain_size) / self.domain_size


@dataclass(frozen=True)
class GeneralizedRandomizedResponse(client.GeneralizedRandomizedResponse, BlockProtocol):
    """GRR: the value, or another one. The shortest message and, on large domains, by far the largest error."""

    @classmethod
    def choose_design(cls, domain_size: int, epsilon: Fraction) -> Design:  # noqa: ARG003 - one design for every ε
        """Singletons on the domain."""
        return Singletons(domain_size)


@dataclass(frozen=True)
class SubsetSelection(client.SubsetSelection, BlockProtocol):
    """SS: a subset of about k/(e^ε+1) values. Optimal error, long messages."""

    response: BlockResponse

    @classmethod
    def choose_design(
        cls,
        domain_size: int,
        epsilon: Fraction,
        block_size: int | None = None,
        code: str | None = None,
        max_attack: float | None = None,
    ) -> Design:
        """Subsets of the optimal size, of the given one, or of the smallest that keeps a limit on attackability; of one
        point, singletons.
        """
        if max_attack is not None:
            _refuse_both("max_attack", block_size=block_size)
            return subsets_within(AttackLimit(domain_size, epsilon, max_attack), code)
        size = optimal_block_size(domain_size, epsilon) if block_size is None else block_size
        return Singletons(domain_size) if size == 1 and code is None else Subsets(domain_size, size, code or "")

    def randomize_reports(self, values: Integers, source: WordSource) -> EncodedReports:
        """The block response, encoded on the way."""
        return EncodedReports.single(self.response.payloads(values, source))

    def count_reports(self, encoded: EncodedReports) -> Counters:
        """Count with the design's own way."""
        return self.design.count_payloads(encoded.payloads[0])


@dataclass(frozen=True)
class CompactSubsetSelection(client.CompactSubsetSelection, BlockProtocol):
    """Compact SS: the error of SS in about log2(k) + 1.44·ε bits, by a cyclotomic design."""

    @classmethod
    def choose_design(
        cls,
        domain_size: int,
        epsilon: Fraction,
        classes: int | None = None,
        points: int | None = None,
        block_size: int | None = None,
        max_attack: float | None = None,
    ) -> Design:
        """The shortest message within 1 % of the best error, or the given number of classes, or blocks of about the
        given size, or the smallest that keep a limit on attackability.
        """
        if max_attack is not None:
            _refuse_both("max_attack", block_size=block_size, classes=classes, points=points)
            return compact_within(AttackLimit(domain_size, epsilon, max_attack))
        if block_size is not None:
            _refuse_both("block_size", classes=classes, points=points)
            return compact_of_size(domain_size, epsilon, block_size)
        if classes is None:
            if points is not None:
                raise ParameterError(f"points={points} needs classes too: give the number of cyclotomic classes")
            return choose_compact(domain_size, epsilon)
        return cyclotomic_with(domain_size, epsilon, classes, points)


@dataclass(frozen=True)
class ProjectiveGeometryResponse(client.ProjectiveGeometryResponse, BlockProtocol):
    """PGR: a hyperplane of a projective geometry over the field nearest to e^ε+1."""

    @classmethod
    def choose_design(
        cls, domain_size: int, epsilon: Fraction, order: int | None = None, max_attack: float | None = None
    ) -> Design:
        """The smallest geometry that holds the domain, over the usual field, the given one, or one that keeps a limit
        on attackability; hyperplanes of one point are singletons.
        """
        if max_attack is not None:
            _refuse_both("max_attack", order=order)
            return projective_within(AttackLimit(domain_size, epsilon, max_attack))
        return projective_or_singletons(domain_size, epsilon, order)


def _refuse_both(option: str, **others: object) -> None:
    """Raise ParameterError if one of the other options is given too."""
    name = next((name for name, value in others.items() if value is not None), None)
    if name is not None:
        raise ParameterError(f"{option} determines the design, so {name} cannot be given too; leave one of them out")
