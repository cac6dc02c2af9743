"""The probabilities that integer thresholds give, as floats, for estimators and planning."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1

from sunzi.client.thresholds import FULL_BITS


@dataclass(frozen=True, slots=True)
class SupportProbabilities:
    """The probabilities that a report supports the true point (p) or another given point (q), and Δ = p − q.

    >>> probabilities = SupportProbabilities.planned(points=10, block_size=1, epsilon=Fraction(1))
    >>> round(probabilities.true / probabilities.false, 3)
    2.718
    """

    true: float
    false: float
    gap: float

    @classmethod
    def planned(cls, points: int, block_size: int, epsilon: Fraction) -> SupportProbabilities:
        """For a block response of these sizes, before its thresholds are known.

        Δ is computed as w(v−w)(e^ε−1)/((v−1)(w·e^ε+v−w)), since p − q would be mostly rounding error at small ε.
        """
        odds, rest = exp(epsilon), points - block_size
        total = block_size * odds + rest
        true = block_size * odds / total
        gap = block_size * rest * expm1(epsilon) / ((points - 1) * total)
        return cls(true, (block_size - true) / (points - 1), gap)

    @classmethod
    def of_block_response(
        cls, threshold: int, block_size: int, points: int, word_bits: int = FULL_BITS
    ) -> SupportProbabilities:
        """p = T/2^b, q = (w − p)/(v − 1), Δ = (T·v − w·2^b)/(2^b(v − 1)), each within one rounding of the exact
        fraction.
        """
        words = 1 << word_bits
        return cls(
            true=float(Fraction(threshold, words)),
            false=float(Fraction(block_size * words - threshold, words * (points - 1))),
            gap=float(Fraction(threshold * points - block_size * words, words * (points - 1))),
        )

    @classmethod
    def of_unary(cls, true_threshold: int, false_threshold: int, word_bits: int = FULL_BITS) -> SupportProbabilities:
        """p and q of one bit, from its integer thresholds."""
        words = 1 << word_bits
        return cls(
            true=float(Fraction(true_threshold, words)),
            false=float(Fraction(false_threshold, words)),
            gap=float(Fraction(true_threshold - false_threshold, words)),
        )

    def variance(self, frequency: float = 0.0) -> float:
        """Variance of one debiased report, about the reporting users: [f·p(1−p) + (1−f)·q(1−q)]/Δ²."""
        true, false = self.true * (1 - self.true), self.false * (1 - self.false)
        return (frequency * true + (1 - frequency) * false) / self.gap**2
