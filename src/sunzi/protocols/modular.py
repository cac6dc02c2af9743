"""ModularSubsetSelection: one random residue of the value, through a block response (docs/mathematics.md §3).

``mss`` is the paper's protocol, with all subsets as blocks; ``mss-compact`` uses cyclotomic blocks and sends one short
integer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import exp, inf
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError, shown, whole_number
from sunzi.client.protocols import modular as client
from sunzi.client.randomness import WordSource
from sunzi.designs.base import DecodingCost, Design
from sunzi.designs.choice import best_cyclotomic, optimal_block_size, subset_error
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets, quickly_read
from sunzi.domains.labels import Domain
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import uniform_below, word_array
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.protocols.base import check_histogram, check_users
from sunzi.protocols.channel import FirstWord
from sunzi.protocols.decoder_rows import ModularRow, modular_rows
from sunzi.protocols.efficient import Pilot, efficient_estimate, expected_error, is_linear, reweighting_work
from sunzi.protocols.modular_estimation import ModularDecoder, solving_cost
from sunzi.protocols.modular_variance import BlockMoments, flat_error, worst_error
from sunzi.protocols.moduli import default_moduli, residues_pay, warn_if_poor
from sunzi.protocols.selection import JointMessages, SelectingProtocol
from sunzi.results.estimate import Errors, Estimate, Weights
from sunzi.tally import Tally
from sunzi.wire import EncodedReports


@dataclass(frozen=True)
class ModularMessages:
    """For every report its selector j, and for every j the messages of its reports in order of appearance."""

    selectors: Integers
    parts: tuple[Integers, ...]

    def __len__(self) -> int:
        """The number of reports."""
        return int(self.selectors.size)


@dataclass(frozen=True)
class ModularProtocol(client.ModularProtocol, SelectingProtocol):
    """ℓ block responses, one per modulus; a report uses one of them, drawn uniformly, on the value's residue, with the
    whole ε. The order of draws is that of :class:`~sunzi.protocols.selection.SelectingProtocol`.
    """

    responses: tuple[BlockResponse, ...] = field()

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self | None:
        """If ``smallest``, with one small design of every kind in use, or two of the only kind."""
        responses, size = self._narrowed_responses(epsilon, word_bits, smallest), self.domain_size
        if smallest:
            size = min(size, 1 + sum(response.points - 1 for response in responses))
        return type(self)(size, tuple(responses)) if responses else None

    def joint_fit(self, tally: Tally) -> ModularDecoder:
        """The decoding of :meth:`estimate`, with quick errors."""
        return ModularDecoder(self, tally, "planned", 0.0, "quick")

    @classmethod
    def choose(
        cls, domain_size: int, epsilon: Fraction, moduli: Iterable[int] | None = None, count: int | None = None
    ) -> Self:
        """The given moduli, with a warning if they are poor, or a spread of primes of small exact error."""
        return cls._choose(domain_size, epsilon, moduli, count)

    @classmethod
    def _choose(cls, domain_size: int, epsilon: Fraction, moduli: Iterable[int] | None, count: int | None) -> Self:
        is_default = moduli is None
        if moduli is None:
            aim = _WANTED_ERROR * subset_error(domain_size, epsilon) if residues_pay(domain_size, epsilon) else inf
            variance = partial(cls.block_variance, domain_size, epsilon)
            moduli = default_moduli(domain_size, variance, count, aim)
        elif count is not None:
            raise ParameterError("the option count cannot be combined with moduli")
        elif not isinstance(moduli, Iterable):
            raise ParameterError(f"moduli must be a list of primes, got {shown(moduli)}")
        primes = [whole_number("a modulus", modulus, 2) for modulus in moduli]
        for modulus in primes:
            if not is_prime(modulus):
                raise ParameterError(f"moduli must be prime, got {modulus}")
        made = cls(domain_size, tuple(BlockResponse(cls.block_design(modulus, epsilon), epsilon) for modulus in primes))
        if not is_default:
            error = made.expected_mse(1)
            warn_if_poor(primes, domain_size, epsilon, error, lambda: cls.choose(domain_size, epsilon).expected_mse(1))
        return made

    @staticmethod
    @abstractmethod
    def block_design(modulus: int, epsilon: Fraction) -> Design:
        """The design used on Z_modulus."""

    @staticmethod
    @abstractmethod
    def block_variance(domain_size: int, epsilon: Fraction, modulus: int) -> float | None:
        """The variance of one report in that block at the flat histogram (:meth:`BlockMoments.flat`), or None if the
        modulus is unsuitable.
        """

    @property
    def words_per_report(self) -> float:
        """The selector and a block response."""
        return 1 + sum(response.words_per_report for response in self.responses) / len(self.responses)

    def draw_selectors(self, count: int, source: WordSource) -> NDArray[np.uint16]:
        """Each modulus is equally likely."""
        words = word_array(source, count).reshape(-1, 1)
        bound = np.array([len(self.responses)], dtype=np.uint64)
        return uniform_below(words, bound, source)[:, 0].astype(np.uint16)

    @property
    def first_word(self) -> FirstWord:
        """A modulus."""
        return FirstWord(len(self.responses))

    def points_of(self, channel: int, values: Integers) -> Integers:
        """The residues."""
        return values % self.moduli[channel]

    @cached_property
    def moments(self) -> tuple[BlockMoments, ...]:
        """Second moments of one debiased report of every block (docs/mathematics.md §3.3)."""
        return tuple(BlockMoments.of(response) for response in self.responses)

    @cached_property
    def planned_weights(self) -> Floats:
        """w_j = 1/(ℓ(d0 + d1·Σ_a g_a²)), g the residues of the flat histogram: the inverse variance of a block that
        gets its expected share of one report (docs/mathematics.md §3.3).
        """
        return np.array([1 / (len(self.responses) * moments.flat(self.domain_size)) for moments in self.moments])

    @cached_property
    def gram(self) -> ToeplitzGram:
        """The Gram matrix of the planned weights."""
        return ToeplitzGram(self.domain_size, self.moduli, self.planned_weights)

    def estimate(
        self,
        domain: Domain,
        tally: Tally,
        weights: Weights = "efficient",
        ridge: float | Literal["paper"] = 0.0,
        errors: Errors = "full",
        pilot: Pilot | None = None,
    ) -> Estimate:
        """Weighted least squares for all residues at once.

        ``weights`` "efficient" (from the reports, or from a ``pilot``), "planned" (one fixed linear map) or "paper"
        (actual block sizes). ``ridge`` λ > 0, or "paper" for 1/ε², biases the estimate, which then has no intervals.
        ``errors`` "quick" replaces standard errors by an upper bound. Both imply "planned" weights unless "paper" is
        given.
        """
        linear_only = is_linear(weights, ridge, errors, pilot)
        decoder = ModularDecoder(self, tally, "planned" if weights == "efficient" else weights, ridge, errors)
        linear = decoder.estimate(domain)
        return linear if linear_only else efficient_estimate(self, tally, linear, decoder.gram, pilot)

    def linear_estimate(self, domain: Domain, tally: Tally) -> Estimate:
        """The estimate with planned weights."""
        return self.estimate(domain, tally, "planned")

    def decoding_cost(self, reports: int) -> DecodingCost | None:
        """The linear estimate, and two passes that reweight it."""
        linear = self.linear_cost(reports)
        work = reweighting_work(self.responses, self.domain_size)
        return None if linear is None else DecodingCost(linear.operations + work, linear.route)

    def linear_cost(self, reports: int) -> DecodingCost | None:
        """Every block by its own route, then one solve."""
        each = reports / len(self.responses)
        costs = [response.design.point_counts_cost(each, response.points) for response in self.responses]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        total = sum(cost.operations for cost in known) + solving_cost(self.domain_size, len(known))
        return DecodingCost(total, f"{' or '.join(dict.fromkeys(cost.route for cost in known))}, then a solve")

    @property
    def reading_work(self) -> float:
        """The mean over the moduli, and the selector."""
        return 1 + sum(response.design.reading_work for response in self.responses) / len(self.responses)

    def target_parts(self, targets: Sequence[int]) -> tuple[Floats, ...]:
        """The sums of the targets' decoder rows."""
        rows = zip(*(row.parts for row in self.decoder_rows(targets)), strict=True)
        return tuple(np.sum(parts, axis=0) for parts in rows)

    def decoder_rows(self, items: Iterable[int]) -> Iterator[ModularRow]:
        """One solve per item; each row is as large as all moduli together."""
        return modular_rows(self.gram, self.responses, self.moments, items)

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """At the flat histogram from one solve (:func:`~sunzi.protocols.modular_variance.flat_error`); at another one
        the error of the efficient estimate.
        """
        check_users(users)
        if histogram is None:
            return flat_error(self.gram, self.domain_size) / users
        return expected_error(check_histogram(histogram, self.domain_size), self.responses, self.gram) / users

    def worst_mse(self, users: int) -> float:
        """An upper bound: the error of residues that nobody holds plus what one value held by everyone can add, by the
        smallest eigenvalue of T.
        """
        check_users(users)
        return worst_error(self.gram, self.moments) / users

    @property
    def attackability(self) -> float:
        """(1/(ℓk))·Σ_j of each block's best guesses; a modulus above k is truncated."""
        sums = [response.best_guess_sum(min(self.domain_size, response.design.points)) for response in self.responses]
        return sum(sums) / (len(self.responses) * self.domain_size)


@dataclass(frozen=True)
class ModularSubsetSelection(client.ModularSubsetSelection, ModularProtocol):
    """MSS as in the paper: subsets of residues. The selector and about log2 C(m_j,w_j) bits."""

    responses: tuple[BlockResponse, ...] = field()

    @classmethod
    def choose(
        cls,
        domain_size: int,
        epsilon: Fraction,
        moduli: Iterable[int] | None = None,
        count: int | None = None,
        code: str | None = None,
    ) -> Self:
        """As for all modular protocols. ``code`` names the code of all subsets, "arithmetic" for the shortest reports
        or "bitmap" for the fastest server; by default :func:`~sunzi.designs.subsets.quickly_read` chooses.
        """
        made = cls._choose(domain_size, epsilon, moduli, count)
        if code is None:
            return made
        designs = (response.design for response in made.responses)
        coded = (replace(design, code=code) if isinstance(design, Subsets) else design for design in designs)
        return cls(domain_size, tuple(BlockResponse(design, epsilon) for design in coded))

    @staticmethod
    def block_design(modulus: int, epsilon: Fraction) -> Design:
        """Subsets of the optimal size; of one point, singletons."""
        size = optimal_block_size(modulus, epsilon)
        return Singletons(modulus) if size == 1 else quickly_read(modulus, size)

    @staticmethod
    def block_variance(domain_size: int, epsilon: Fraction, modulus: int) -> float | None:
        """With the optimal block size; every prime is suitable."""
        return BlockMoments.at(modulus, optimal_block_size(modulus, epsilon), epsilon).flat(domain_size)

    def randomize(self, values: Integers, source: WordSource) -> ModularMessages:
        """A selector and a subset per value."""
        selectors, parts = self._respond(values, source, lambda response, points: response.randomize(points, source))
        return ModularMessages(selectors, tuple(parts))

    def randomize_reports(self, values: Integers, source: WordSource) -> EncodedReports:
        """The block responses, encoded directly."""
        selectors, made = self._respond(values, source, lambda response, points: response.payloads(points, source))
        return EncodedReports(selectors, tuple(made))

    def sample(self, values: Integers, source: WordSource) -> Counters:
        """The block responses, counted directly."""
        _, counted = self._respond(values, source, lambda response, points: response.sample(points, source))
        return self._join(counted)

    def split(self, messages: ModularMessages) -> tuple[Integers, tuple[Integers, ...]]:
        """The selectors and parts of the messages."""
        return messages.selectors, messages.parts

    def join(self, parts: Sequence[Integers]) -> ModularMessages:
        """Selectors, and the parts as they are."""
        return ModularMessages(np.repeat(np.arange(len(parts)), [len(part) for part in parts]), tuple(parts))

    def encode(self, messages: ModularMessages) -> EncodedReports:
        """Encode subsets with the codes of their designs."""
        parts = zip(self.responses, messages.parts, strict=True)
        return EncodedReports(messages.selectors, tuple(response.design.encode(part) for response, part in parts))

    def decode(self, encoded: EncodedReports) -> ModularMessages:
        """Decode with the same codes."""
        parts = zip(self.responses, encoded.payloads, strict=True)
        return ModularMessages(encoded.selectors, tuple(response.design.decode(part) for response, part in parts))

    def count(self, messages: ModularMessages) -> Counters:
        """The concatenated counters of all blocks."""
        parts = zip(self.responses, messages.parts, strict=True)
        return self._join([response.design.count(part) for response, part in parts])

    def count_reports(self, encoded: EncodedReports) -> Counters:
        """Every modulus counts in its design's own way."""
        parts = zip(self.responses, encoded.payloads, strict=True)
        return self._join([response.design.count_payloads(part) for response, part in parts])

    def _join(self, blocks: Sequence[Counters]) -> Counters:
        return Counters(self.tally_layout.length, None, np.concatenate([block.dense() for block in blocks]))


@dataclass(frozen=True)
class CompactModularSubsetSelection(client.CompactModularSubsetSelection, JointMessages, ModularProtocol):
    """Compact MSS: cyclotomic blocks. A message is one integer below Σ_j e_j·m_j."""

    @staticmethod
    def block_design(modulus: int, epsilon: Fraction) -> Design:
        """The best union of cyclotomic classes."""
        return best_cyclotomic(modulus, epsilon)[0]

    @staticmethod
    def block_variance(domain_size: int, epsilon: Fraction, modulus: int) -> float | None:
        """Only primes that come within a few per cent of the optimal error with few classes, hence few messages."""
        design = best_cyclotomic(modulus, epsilon)[0]
        if design.message_count > _most_classes(epsilon) * modulus:
            return None
        sizes = design.block_size, optimal_block_size(modulus, epsilon)
        reached, best = (BlockMoments.at(modulus, size, epsilon).flat(domain_size) for size in sizes)
        return reached if reached <= _COMPACT_TOLERANCE * best else None


_WANTED_ERROR = 1.25
_COMPACT_TOLERANCE = 1.02


def _most_classes(epsilon: Fraction) -> float:
    """The most messages per point. From ε = 0.22 to 0.47 the best share of points lies between one half and one third,
    more than 1.2 % in error off both, and two of five classes come nearer.
    """
    return 5 if 0.22 < epsilon < 0.47 else 1.5 * (exp(epsilon) + 1)
