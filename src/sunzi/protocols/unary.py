"""Unary encodings: one bit a value, each flipped by itself. RAPPOR (symmetric, SUE) and OUE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.designs.base import only_parameters
from sunzi.designs.response import parse_decimal
from sunzi.errors import ParameterError, PlanError, PrivacyError
from sunzi.numerics.bits import WIDEST_NARROW, byte_length
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import FULL_BITS, ReproducibleSource, WordSource
from sunzi.numerics.thresholds import (
    SupportProbabilities,
    check_unary_thresholds,
    optimal_unary_thresholds,
    symmetric_unary_thresholds,
)
from sunzi.protocols.support import SupportProtocol
from sunzi.tally import Tally, TallyLayout
from sunzi.wire import EncodedReports, ReportLayout

PackedBits = NDArray[np.uint8]

MOST_VALUES = 1 << 24
_ROWS_OF_WORDS = 1 << 21


class UnaryProtocol(SupportProtocol):
    """k bits: the value's own bit is sent as 1 with probability p, every other bit with probability q.

    Draw order of one report: one word a bit, in the order of the values; the bit is 1 if its word is below its
    threshold. Messages are rows of packed bits, least significant first.
    """

    def __init__(
        self, domain_size: int, epsilon: Fraction, thresholds: tuple[int, int] | None = None, word_bits: int = FULL_BITS
    ) -> None:
        if not 2 <= domain_size <= MOST_VALUES:
            raise ParameterError(
                f"{self.name} sends one bit a value and stops at 2^24 values, got {domain_size}; use a compact protocol"
            )
        derived = self.derive_thresholds(epsilon, word_bits)
        self.domain_size, self.epsilon, self.word_bits = domain_size, epsilon, word_bits
        self.true_threshold, self.false_threshold = derived if thresholds is None else thresholds
        check_unary_thresholds(self.true_threshold, self.false_threshold, epsilon, word_bits)
        if (self.true_threshold, self.false_threshold) != derived:
            raise PrivacyError(f"thresholds must be {derived} for epsilon {epsilon}, got {thresholds}")
        self.probabilities = SupportProbabilities.of_unary(self.true_threshold, self.false_threshold, word_bits)
        self.report_layout = ReportLayout((domain_size,), (1 << domain_size,))
        self.tally_layout = TallyLayout(((domain_size, 0),))

    @staticmethod
    @abstractmethod
    def derive_thresholds(epsilon: Fraction, word_bits: int) -> tuple[int, int]:
        """The certified thresholds of a true and of a false bit."""

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction) -> Self:
        """There is nothing to choose."""
        return cls(domain_size, epsilon)

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """From a plan; the thresholds must be the ones derived here."""
        only_parameters(parameters, ["true_threshold", "false_threshold"])
        true = parse_decimal(parameters["true_threshold"], "true_threshold")
        false = parse_decimal(parameters["false_threshold"], "false_threshold")
        try:
            return cls(domain_size, epsilon, (true, false))
        except ParameterError as error:
            raise PlanError(str(error)) from None

    def parameters(self) -> dict[str, Any]:
        """Both thresholds, as decimal strings because they need 64 bits."""
        return {"true_threshold": str(self.true_threshold), "false_threshold": str(self.false_threshold)}

    @property
    def words_per_report(self) -> float:
        """One a value."""
        return self.domain_size

    def randomize(self, values: Integers, source: WordSource) -> PackedBits:
        """Compare every word with both thresholds and keep, for the value's own bit, the true one's result."""
        if source.word_bits != self.word_bits:
            raise ParameterError(
                f"this protocol needs words of {self.word_bits} bits, the source gives {source.word_bits}"
            )
        packed = np.empty((values.size, byte_length(self.domain_size)), dtype=np.uint8)
        step = max(1, _ROWS_OF_WORDS // self.domain_size)
        for start in range(0, values.size, step):
            part = values[start : start + step]
            words = source.words(part.size * self.domain_size).reshape(part.size, self.domain_size)
            own = np.arange(self.domain_size)[None, :] == part[:, None]
            bits = np.where(own, words < np.uint64(self.true_threshold), words < np.uint64(self.false_threshold))
            packed[start : start + step] = np.packbits(bits, axis=1, bitorder="little")
        return packed

    def encode(self, messages: PackedBits) -> EncodedReports:
        """Rows of bits read as integers."""
        numbers = [int.from_bytes(row.tobytes(), "little") for row in messages]
        narrow = self.domain_size <= WIDEST_NARROW
        return EncodedReports.single(np.array(numbers, dtype=np.uint64) if narrow else numbers)

    def decode(self, encoded: EncodedReports) -> PackedBits:
        """Integers as rows of bits."""
        length = byte_length(self.domain_size)
        data = b"".join(int(number).to_bytes(length, "little") for number in encoded.payloads[0])
        return np.frombuffer(data, dtype=np.uint8).reshape(len(encoded), length)

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

    @property
    def attackability(self) -> float:
        """(1/k)[(p/q)(1−(1−q)^k) + (1−p)(1−q)^{k−1}]: the attacker guesses among the bits that are 1."""
        true, false, size = self.probabilities.true, self.probabilities.false, self.domain_size
        some_bit = true / false * (1 - (1 - false) ** size)
        return (some_bit + (1 - true) * (1 - false) ** (size - 1)) / size


class Rappor(UnaryProtocol):
    """Basic one-time RAPPOR: symmetric unary encoding, error e^{ε/2}/(n(e^{ε/2}−1)²)."""

    name = "rappor"

    @staticmethod
    def derive_thresholds(epsilon: Fraction, word_bits: int) -> tuple[int, int]:
        """T at ε/2, and 2^b − T."""
        return symmetric_unary_thresholds(epsilon, word_bits)


class OptimalUnaryEncoding(UnaryProtocol):
    """OUE: p = 1/2, error 4e^ε/(n(e^ε−1)²) for light items."""

    name = "oue"

    @staticmethod
    def derive_thresholds(epsilon: Fraction, word_bits: int) -> tuple[int, int]:
        """One half, and 1/(e^ε+1) rounded up."""
        return optimal_unary_thresholds(epsilon, word_bits)
