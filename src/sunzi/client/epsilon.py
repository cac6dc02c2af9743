"""The privacy budget ε as an exact fraction, and what it promises in words."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from .errors import ParameterError, PlanError, shown

Epsilon = int | float | str | Decimal | Fraction

LARGEST_EPSILON = 32
_LARGEST_TERM = 10**18
# A decimal with a larger exponent would become a fraction that takes hours to compute.
_MOST_PLACES = 1000
_REDUCED = re.compile("[1-9][0-9]{0,18}(/[1-9][0-9]{0,18})?")


def parse_epsilon(epsilon: Epsilon) -> Fraction:
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
    if isinstance(number, bool):
        raise TypeError
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))  # numpy's integers would overflow later
    if isinstance(number, Real):
        number = str(number)
    if isinstance(number, str):
        if "/" in number:
            return Fraction(number)
        number = Decimal(number)
    if not isinstance(number, Decimal):
        raise TypeError
    if not number.is_finite() or abs(int(number.as_tuple().exponent)) > _MOST_PLACES:
        raise ValueError
    return Fraction(number)


def read_epsilon(text: object) -> Fraction:
    """ε as a plan writes it, a reduced fraction such as "2" or "1/2": each ε has exactly one spelling."""
    # Only such text reaches the parser, which would spend hours on "1e999999999".
    if not isinstance(text, str) or not _REDUCED.fullmatch(text) or str(Fraction(text)) != text:
        raise PlanError(f'epsilon must be a reduced fraction as text, such as "2" or "1/2", got {shown(text)}')
    try:
        return parse_epsilon(text)
    except ParameterError as error:
        raise PlanError(str(error)) from None


def privacy_in_words(epsilon: Fraction) -> str:
    """Return what ε guarantees, in one sentence."""
    try:
        factor = f"{math.exp(epsilon):,.3g}"
    except OverflowError:
        factor = f"e^{float(epsilon):.4g}"
    return f"any report is at most {factor} times as likely under one value as under any other"
