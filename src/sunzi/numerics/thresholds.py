"""Integer thresholds that certify ε-local differential privacy: no privacy decision uses floating point.

ε is a rational a/b. E is an integer with E ≤ 2^96·e^ε, so every inequality proved with E holds with e^ε. A client tells
the truth if a uniform word of ``word_bits`` bits is below a threshold; thresholds are rounded towards more privacy
(docs/mathematics.md §7).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import exp, expm1
from numbers import Rational

import numpy as np

from sunzi.errors import ParameterError, PrivacyError
from sunzi.numerics.checks import shown
from sunzi.numerics.randomness import FULL_BITS

SCALE_BITS = 96
SCALE = 1 << SCALE_BITS
LARGEST_EPSILON = 32
_LARGEST_TERM = 10**18
# A decimal with a larger exponent would become a fraction that takes hours to compute.
_MOST_PLACES = 1000


def parse_epsilon(epsilon: int | float | str | Decimal | Fraction) -> Fraction:
    """ε as an exact fraction; a float means the fraction of its shortest decimal form (0.1 is 1/10)."""
    try:
        fraction = _exact(epsilon)
    except (ValueError, TypeError, ArithmeticError):
        raise ParameterError(
            f"epsilon must be a positive number such as 2, 0.5 or '1/3', got {shown(epsilon)}"
        ) from None
    if fraction <= 0:
        raise ParameterError(f"epsilon must be positive, got {shown(fraction)}")
    if fraction > LARGEST_EPSILON:
        raise ParameterError(
            f"epsilon must be at most {LARGEST_EPSILON} (beyond it there is no privacy), got {shown(epsilon)}"
        )
    if max(fraction.numerator, fraction.denominator) > _LARGEST_TERM:
        raise ParameterError(f"epsilon must be a fraction of integers up to 10^18, got {shown(epsilon)}; round it")
    return fraction


def _exact(number: object) -> Fraction:
    if isinstance(number, (float, np.floating)):
        number = str(number)
    if isinstance(number, str) and "/" not in number:
        number = Decimal(number)
    if isinstance(number, Decimal):
        if not number.is_finite() or abs(int(number.as_tuple().exponent)) > _MOST_PLACES:
            raise ValueError
        return Fraction(number)
    if isinstance(number, str):
        return Fraction(number)
    if isinstance(number, bool) or not isinstance(number, Rational):
        raise TypeError
    return Fraction(int(number.numerator), int(number.denominator))  # numpy's integers would overflow later


def exponential_below(epsilon: Fraction) -> int:
    """E = Σ t_i with t_0 = 2^96, t_{i+1} = ⌊t_i·a/(b(i+1))⌋: an integer with E ≤ 2^96·e^ε, too small by less than one
    part in 2^60.
    """
    term, total, index = SCALE, 0, 0
    while term:
        total += term
        index += 1
        term = term * epsilon.numerator // (epsilon.denominator * index)
    return total


def truth_threshold(block_size: int, points: int, epsilon: Fraction, word_bits: int = FULL_BITS) -> int:
    """The largest certified threshold T for a block response: truth ⇔ word < T. Raises PrivacyError if no
    threshold is both private and informative.
    """
    scaled = block_size * exponential_below(epsilon)
    threshold = (scaled << word_bits) // (scaled + (points - block_size) * SCALE)
    check_truth_threshold(threshold, block_size, points, epsilon, word_bits)
    return threshold


def check_truth_threshold(
    threshold: int, block_size: int, points: int, epsilon: Fraction, word_bits: int = FULL_BITS
) -> None:
    """Raise PrivacyError unless 1 ≤ w < v; p/w ≤ e^ε·(1−p)/(v−w), proved in integers; and p > w/v, without which
    reports carry no information about the value.
    """
    if not 1 <= block_size < points:
        raise PrivacyError(f"block size must be at least 1 and below the number of points {points}, got {block_size}")
    words = 1 << word_bits
    if not 0 < threshold < words:
        raise PrivacyError(f"threshold must lie between 0 and 2^{word_bits}, got {threshold}")
    if threshold * (points - block_size) * SCALE > block_size * exponential_below(epsilon) * (words - threshold):
        raise PrivacyError(
            f"threshold {threshold} is too large: blocks of {block_size} among {points} points "
            f"would leak more than epsilon {epsilon}"
        )
    if threshold * points <= block_size * words:
        raise PrivacyError(
            f"threshold {threshold} is too small: reports would carry no information about the value "
            f"(blocks of {block_size} among {points} points at epsilon {epsilon}); increase epsilon"
        )


def optimal_unary_thresholds(epsilon: Fraction, word_bits: int = FULL_BITS) -> tuple[int, int]:
    """OUE: a true bit is sent as 1 with probability 1/2, a false one with q ≥ 1/(e^ε+1), rounded up."""
    denominator = exponential_below(epsilon) + SCALE
    false_threshold = -((-SCALE << word_bits) // denominator)
    return 1 << (word_bits - 1), false_threshold


def symmetric_unary_thresholds(epsilon: Fraction, word_bits: int = FULL_BITS) -> tuple[int, int]:
    """SUE (basic RAPPOR): p = T/2^b at half the budget, rounded down, and q exactly 1 − p."""
    scaled = exponential_below(epsilon / 2)
    true_threshold = (scaled << word_bits) // (scaled + SCALE)
    return true_threshold, (1 << word_bits) - true_threshold


def check_unary_thresholds(
    true_threshold: int, false_threshold: int, epsilon: Fraction, word_bits: int = FULL_BITS
) -> None:
    """Raise PrivacyError unless p(1−q) ≤ e^ε·q(1−p), proved in integers, and p > q."""
    words = 1 << word_bits
    if not 0 < false_threshold < true_threshold < words:
        raise PrivacyError(
            f"thresholds must satisfy 0 < false < true < 2^{word_bits}, "
            f"got true {true_threshold}, false {false_threshold}"
        )
    if false_threshold == words - true_threshold:
        # The ratio is a square; comparing its root with e^{ε/2} avoids a second rounding of e^ε.
        certified = true_threshold * SCALE <= exponential_below(epsilon / 2) * false_threshold
    else:
        gain = true_threshold * (words - false_threshold)
        loss = false_threshold * (words - true_threshold)
        certified = gain * SCALE <= exponential_below(epsilon) * loss
    if not certified:
        raise PrivacyError(f"thresholds {true_threshold} and {false_threshold} would leak more than epsilon {epsilon}")


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
