"""Checks of arguments: each returns the value as a plain Python number, or raises an error that names the value and
what was expected.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

import numpy as np

from sunzi.errors import ParameterError

_LONGEST_SHOWN = 200
_MOST_DIGITS = 50


def shown(value: object) -> str:
    """The representation of a value for an error message, truncated if it is long."""
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return f"a number of very many digits ({type(value).__name__})"
    if len(text) > _MOST_DIGITS and isinstance(value, (int, Fraction)):
        return f"a number of {len(text):,} digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number in the given range; 2.0 and True are refused."""
    if not isinstance(value, bool) and isinstance(value, (int, np.integer)):
        number = int(value)
        if least <= number and (most is None or number <= most):
            return number
    bounds = f"of at least {least}" if most is None else f"between {least} and {most}"
    raise ParameterError(f"{name} must be a whole number {bounds}, got {shown(value)}")


def real_number(name: str, value: object) -> float:
    """A finite number."""
    if not isinstance(value, bool) and isinstance(value, (int, float, Fraction, np.integer, np.floating)):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if isfinite(number):
            return number
    raise ParameterError(f"{name} must be a number, got {shown(value)}")
