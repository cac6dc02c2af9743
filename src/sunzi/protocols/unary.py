"""Unary encodings: one bit per value, each flipped independently. RAPPOR (symmetric, SUE) and OUE."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.client.protocols import unary as client
from sunzi.client.randomness import WordSource
from sunzi.client.reports import WIDEST_NARROW, byte_length
from sunzi.designs.base import DecodingCost
from sunzi.numerics.bit_sums import BitSums
from sunzi.numerics.bits import as_integers, as_rows
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource, word_array
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.protocols.channel import Channel
from sunzi.protocols.modular_variance import BlockMoments
from sunzi.protocols.support import SupportProtocol
from sunzi.tally import Tally, TallyLayout
from sunzi.wire import EncodedReports

PackedBits = NDArray[np.uint8]

_ROWS_OF_WORDS = 1 << 21


@dataclass(frozen=True)
class UnaryProtocol(client.UnaryProtocol, SupportProtocol):
    """k bits: the value's own bit is sent as 1 with probability p, every other bit with probability q.

    Draw order of one report: one word per bit, in the order of the values; the bit is 1 if its word is below its
    threshold. Messages are rows of packed bits, least significant first.
    """

    @cached_property
    def probabilities(self) -> SupportProbabilities:
        """How often the value's own bit, and any other bit, is 1."""
        return SupportProbabilities.of_unary(self.true_threshold, self.false_threshold, self.word_bits)

    @cached_property
    def moments(self) -> BlockMoments:
        """Bits are independent given the value: d0 = q(1−q)/Δ², d1 = 1 + (p(1−p) − q(1−q))/Δ²."""
        light = self.probabilities.variance(0.0)
        return BlockMoments(self.domain_size, light, 1 + self.probabilities.variance(1.0) - light, 0.0, 0.0)

    @cached_property
    def tally_layout(self) -> TallyLayout:
        """One counter per value."""
        return TallyLayout(((self.domain_size, 0),))

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction) -> Self:
        """The protocol; it has no options."""
        return cls(domain_size, epsilon)

    @property
    def words_per_report(self) -> float:
        """One word per value."""
        return self.domain_size

    def randomize(self, values: Integers, source: WordSource) -> PackedBits:
        """Compare every word with both thresholds and keep, for the value's own bit, the true one's result."""
        if source.word_bits != self.word_bits:
            raise ParameterError(
                f"this protocol needs {self.word_bits}-bit words, the source returns {source.word_bits}-bit words"
            )
        packed = np.empty((values.size, byte_length(self.domain_size)), dtype=np.uint8)
        step = max(1, _ROWS_OF_WORDS // self.domain_size)
        for start in range(0, values.size, step):
            part = values[start : start + step]
            words = word_array(source, part.size * self.domain_size).reshape(part.size, self.domain_size)
            own = np.arange(self.domain_size)[None, :] == part[:, None]
            bits = np.where(own, words < np.uint64(self.true_threshold), words < np.uint64(self.false_threshold))
            packed[start : start + step] = np.packbits(bits, axis=1, bitorder="little")
        return packed

    def encode(self, messages: PackedBits) -> EncodedReports:
        """Rows of bits as they are; as integers if they are short."""
        return EncodedReports.single(as_integers(messages) if self.domain_size <= WIDEST_NARROW else messages)

    def decode(self, encoded: EncodedReports) -> PackedBits:
        """The inverse of :meth:`encode`."""
        return as_rows(encoded.payloads[0], self.domain_size)

    def count(self, messages: PackedBits) -> Counters:
        """How often each bit is 1."""
        total = np.zeros(self.domain_size, dtype=np.int64)
        step = max(1, _ROWS_OF_WORDS // self.domain_size)
        for start in range(0, messages.shape[0], step):
            bits = np.unpackbits(messages[start : start + step], axis=1, count=self.domain_size, bitorder="little")
            total += bits.sum(axis=0, dtype=np.int64)
        return Counters(self.domain_size, None, total)

    def simulate(self, values: Integers, source: ReproducibleSource) -> Counters:
        """Bits are independent, so each count is a sum of two binomials: Binomial(h, p) + Binomial(n − h, q)."""
        holders = np.bincount(values, minlength=self.domain_size)
        true = source.generator.binomial(holders, self.probabilities.true)
        false = source.generator.binomial(values.size - holders, self.probabilities.false)
        return Counters(self.domain_size, None, (true + false).astype(np.int64))

    def support_counts(self, tally: Tally) -> Integers:
        """The counters themselves."""
        return tally.counts

    def decoding_cost(self, reports: int) -> DecodingCost:  # noqa: ARG002 - the same for any number
        """One read per value."""
        return DecodingCost(self.domain_size, "counters")

    @property
    def reading_work(self) -> float:
        """One operation per bit."""
        return float(self.domain_size)

    @property
    def attackability(self) -> float:
        """(1/k)[(p/q)(1−(1−q)^k) + (1−p)(1−q)^{k−1}]: the attacker guesses among the bits that are 1."""
        true, false, size = self.probabilities.true, self.probabilities.false, self.domain_size
        some_bit = true / false * (1 - (1 - false) ** size)
        return (some_bit + (1 - true) * (1 - false) ** (size - 1)) / size

    def blanket(self) -> Blanket:
        """The blanket of reports, in which all bits are seen together."""
        return Blanket.of_bits(self.probabilities.true, self.probabilities.false, self.domain_size)

    def counts_blanket(self) -> BitSums:
        """The blanket of the sums of bits."""
        return BitSums(self.probabilities.true, self.probabilities.false, self.domain_size)

    # --- as a channel (see sunzi.protocols.channel)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """All bits together."""
        return (self,)

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self:
        """On two values if ``smallest``."""
        return type(self)(2 if smallest else self.domain_size, epsilon, word_bits)

    @property
    def points(self) -> int:
        """One point per value."""
        return self.domain_size

    @property
    def has_independent_bits(self) -> bool:
        """True: every bit is drawn independently."""
        return True

    @property
    def word_bounds(self) -> tuple[int, ...]:
        """Every word is compared with a threshold."""
        return (0,) * self.domain_size

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The thresholds of the value's own bit and of any other bit."""
        return self.true_threshold, self.false_threshold

    @property
    def likelihood_ratio(self) -> Fraction:
        """The largest ratio, p(1−q)/(q(1−p))."""
        words = 1 << self.word_bits
        gain = self.true_threshold * (words - self.false_threshold)
        return Fraction(gain, self.false_threshold * (words - self.true_threshold))

    @property
    def unsupported_factor(self) -> float:
        """(1−p)/(1−q), relative to all bits being 1 with probability q."""
        return (1 - self.probabilities.true) / (1 - self.probabilities.false)

    def first_support_shares(self, points: Integers) -> Floats:
        """q(1−q)^i for the i-th point."""
        false = self.probabilities.false
        return np.asarray(false * (1 - false) ** np.arange(points.size))

    @property
    def discordance(self) -> tuple[float, float]:
        """The probabilities p(1−q) and q(1−p)."""
        true, false = self.probabilities.true, self.probabilities.false
        return true * (1 - false), false * (1 - true)

    def other_rate(self, supported: bool) -> float:  # noqa: ARG002 - bits are independent
        """q, whether or not the value is supported: bits are independent."""
        return self.probabilities.false

    @property
    def collision_probability(self) -> float:
        """The probability that all bits of two reports agree."""
        true, false = self.probabilities.true, self.probabilities.false
        rest = (false**2 + (1 - false) ** 2) ** (self.domain_size - 1)
        return float((true**2 + (1 - true) ** 2) * rest)

    def payload_probabilities(self, point: int) -> dict[int, Fraction]:
        """The probability of each payload: a product over all bits."""
        words = 1 << self.word_bits
        rates = [Fraction(self.false_threshold, words)] * self.domain_size
        rates[point] = Fraction(self.true_threshold, words)
        found = {}
        for bits in product((0, 1), repeat=self.domain_size):
            chance = prod((rate if bit else 1 - rate for rate, bit in zip(rates, bits, strict=True)), start=Fraction(1))
            found[sum(bit << place for place, bit in enumerate(bits))] = chance
        return found

    def largest_gain(self, values: Floats) -> float:
        """The gain of the report whose bits are 1 where a value is positive."""
        rates = self.probabilities
        return float(np.maximum(values, 0.0).sum() - rates.false * values.sum()) / rates.gap

    def supports(self, messages: PackedBits, points: Integers) -> NDArray[np.bool_]:
        """Whether the point's bit is 1."""
        chosen = messages[np.arange(len(points)), points >> 3]
        return (chosen >> (points & 7).astype(np.uint8) & 1).astype(np.bool_)

    def support_table(self, messages: PackedBits) -> NDArray[np.bool_]:
        """The bits themselves."""
        return np.unpackbits(messages, axis=1, count=self.domain_size, bitorder="little").astype(np.bool_)

    def point_counts(self, counters: Counters) -> Integers:
        """The counters themselves."""
        return counters.dense()


@dataclass(frozen=True)
class Rappor(client.Rappor, UnaryProtocol):
    """Basic one-time RAPPOR: symmetric unary encoding, error e^{ε/2}/(n(e^{ε/2}−1)²)."""


@dataclass(frozen=True)
class OptimalUnaryEncoding(client.OptimalUnaryEncoding, UnaryProtocol):
    """OUE: p = 1/2, error 4e^ε/(n(e^ε−1)²) for light items."""
