"""Unary encodings: one bit per value, each flipped independently. RAPPOR (symmetric, SUE) and OUE."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from ..errors import ParameterError, PlanError, PrivacyError
from ..randomness import WordSource
from ..reports import WIDEST_NARROW, Report, ReportLayout
from ..strict_json import only_parameters
from ..thresholds import (
    FULL_BITS,
    check_unary_thresholds,
    optimal_unary_thresholds,
    parse_decimal,
    symmetric_unary_thresholds,
)
from .protocol import Protocol

MOST_VALUES = 1 << 24
_DIGITS = bytes([*b"01"]) + bytes(254)


@dataclass(frozen=True)
class UnaryProtocol(Protocol):
    """k bits: the value's own bit is sent as 1 with probability p, every other bit with probability q.

    Draw order of one report: one word per bit, in the order of the values; the bit is 1 if its word is below its
    threshold.
    """

    domain_size: int
    epsilon: Fraction
    word_bits: int = FULL_BITS
    true_threshold: int = field(init=False)
    false_threshold: int = field(init=False)

    def __post_init__(self) -> None:
        if not 2 <= self.domain_size <= MOST_VALUES:
            raise ParameterError(
                f"{self.name} sends one bit per value and supports at most 2^24 values, got {self.domain_size}; "
                "use a compact protocol"
            )
        thresholds = self.derive_thresholds(self.epsilon, self.word_bits)
        check_unary_thresholds(*thresholds, self.epsilon, self.word_bits)
        object.__setattr__(self, "true_threshold", thresholds[0])
        object.__setattr__(self, "false_threshold", thresholds[1])

    @staticmethod
    @abstractmethod
    def derive_thresholds(epsilon: Fraction, word_bits: int) -> tuple[int, int]:
        """The certified thresholds of a true and of a false bit."""

    @cached_property
    def report_layout(self) -> ReportLayout:
        """One bit per value."""
        limit = 1 << self.domain_size if self.domain_size <= WIDEST_NARROW else None
        return ReportLayout((self.domain_size,), (limit,))

    def make_reports(self, indices: Sequence[Any], source: WordSource) -> list[Report]:
        """Compare every word with the threshold of false bits, and that of the value with its own."""
        if source.word_bits != self.word_bits:
            raise ParameterError(
                f"this protocol needs {self.word_bits}-bit words, the source returns {source.word_bits}-bit words"
            )
        return [(0, self._payload(index, source.words(self.domain_size))) for index in indices]

    def _payload(self, index: int, words: Sequence[int]) -> int:
        false = self.false_threshold
        bits = bytearray(word < false for word in words)
        bits[index] = words[index] < self.true_threshold
        return int(bits[::-1].translate(_DIGITS), 2)

    @property
    def work(self) -> int:
        """One integer per value."""
        return self.domain_size

    def is_supported(self, report: Report, index: Any) -> bool:
        """Whether the value's bit is 1."""
        return bool(report[1] >> index & 1)

    def naming_rates(self, report: Report) -> tuple[float, float]:  # noqa: ARG002 - all reports are alike
        """How often the value's own bit, and any other bit, is 1."""
        return self.true_threshold / (1 << self.word_bits), self.false_threshold / (1 << self.word_bits)

    def parameters(self) -> dict[str, Any]:
        """Both thresholds, as decimal strings because they need 64 bits."""
        return {"true_threshold": str(self.true_threshold), "false_threshold": str(self.false_threshold)}

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """From a plan; the thresholds must be the ones derived here."""
        only_parameters(parameters, ["true_threshold", "false_threshold"])
        given = tuple(parse_decimal(parameters[name], name) for name in ("true_threshold", "false_threshold"))
        try:
            protocol = cls(domain_size, epsilon)
        except ParameterError as error:
            raise PlanError(str(error)) from None
        derived = (protocol.true_threshold, protocol.false_threshold)
        if given != derived:
            raise PrivacyError(f"thresholds must be {derived} for epsilon {epsilon}, got {given}")
        return protocol


@dataclass(frozen=True)
class Rappor(UnaryProtocol):
    """Basic one-time RAPPOR: symmetric unary encoding, error e^{ε/2}/(n(e^{ε/2}−1)²)."""

    name = "rappor"

    @staticmethod
    def derive_thresholds(epsilon: Fraction, word_bits: int) -> tuple[int, int]:
        """The threshold T at ε/2, and 2^b − T."""
        return symmetric_unary_thresholds(epsilon, word_bits)


@dataclass(frozen=True)
class OptimalUnaryEncoding(UnaryProtocol):
    """OUE: p = 1/2, error 4e^ε/(n(e^ε−1)²) for light items."""

    name = "oue"

    @staticmethod
    def derive_thresholds(epsilon: Fraction, word_bits: int) -> tuple[int, int]:
        """One half, and 1/(e^ε+1) rounded up."""
        return optimal_unary_thresholds(epsilon, word_bits)
