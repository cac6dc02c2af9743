"""A check of arguments: it returns the value as a plain Python number, or raises an error that names it."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

import numpy as np

from sunzi.client.errors import ParameterError, shown


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
