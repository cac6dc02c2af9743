"""Integer thresholds that certify ε-local differential privacy: no privacy decision uses floating point.

ε is a rational a/b. E is an integer with E ≤ 2^96·e^ε, so every inequality proved with E holds with e^ε. A client tells
the truth if a uniform word of ``word_bits`` bits is below a threshold; thresholds are rounded towards more privacy
(docs/mathematics.md §7).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from .errors import PlanError, PrivacyError, shown

FULL_BITS = 64
SCALE_BITS = 96
SCALE = 1 << SCALE_BITS


@lru_cache
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
    if not 1 <= block_size < points:
        raise PrivacyError(f"block size must be at least 1 and below the number of points {points}, got {block_size}")
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
    words = 1 << word_bits
    if not 1 <= block_size < points:
        raise PrivacyError(f"block size must be at least 1 and below the number of points {points}, got {block_size}")
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


def parse_decimal(text: object, name: str) -> int:
    """A large integer as a plan writes it: a string of decimal digits without leading zeros."""
    is_decimal = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 40
    if not is_decimal or str(int(str(text))) != text:
        raise PlanError(f"{name} must be a string of decimal digits, got {shown(text)}")
    return int(str(text))
