"""Numbers that people type: 1e6, 1/3, 0.5:5:0.5, 100:100000:x10, 1,2,4."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from sunzi.client.errors import ParameterError
from sunzi.formatting import shortened

_MOST_VALUES = 1000
_LARGEST = 1 << 64
_EXPONENT = re.compile(r"[eE]([+-]?\d+)\s*$")
_LARGEST_EXPONENT = 99
_MOST_CHARACTERS = 60


def parse_number(text: str, name: str) -> Fraction:
    """Parse a number exactly; ``name`` is the option that an error message mentions."""
    exponent = _EXPONENT.search(text)
    is_long = len(text) > _MOST_CHARACTERS or (exponent is not None and abs(int(exponent[1])) > _LARGEST_EXPONENT)
    try:
        found = Fraction(0) if is_long else Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"{name} must be a number such as 2, 0.5, 1/3 or 1e6, got {text!r}") from None
    if is_long or abs(found) > _LARGEST:
        raise ParameterError(f"{name} must be a number of at most 2^64, got {shortened(text, _MOST_CHARACTERS)!r}")
    return found


def parse_integer(text: str, name: str) -> int:
    """Parse an integer; 1e6 is one."""
    found = parse_number(text, name)
    if found.denominator != 1:
        raise ParameterError(f"{name} must be a whole number, got {text!r}")
    return int(found)


def parse_numbers(text: str, name: str) -> list[Fraction]:
    """Parse a list ``1,2,4`` of numbers and of ranges: ``FIRST:LAST:STEP`` adds, ``FIRST:LAST:xFACTOR`` multiplies."""
    found: list[Fraction] = []
    for part in text.split(","):
        pieces = part.split(":")
        if len(pieces) == 1:
            found.append(parse_number(part, name))
        elif len(pieces) == 3:
            found += _range(parse_number(pieces[0], name), parse_number(pieces[1], name), pieces[2], name)
        else:
            raise ParameterError(f"{name} must be a number, a list 1,2,4 or a range FIRST:LAST:STEP, got {text!r}")
    if len(found) > _MOST_VALUES:
        raise ParameterError(f"{name} has {len(found):,} values, more than {_MOST_VALUES:,}; use a larger step")
    return list(dict.fromkeys(found))


def parse_integers(text: str, name: str) -> list[int]:
    """Like :func:`parse_numbers`, for integers."""
    found = parse_numbers(text, name)
    fraction = next((value for value in found if value.denominator != 1), None)
    if fraction is not None:
        raise ParameterError(f"{name} must be whole numbers, got {float(fraction):g} in {text!r}")
    return [int(value) for value in found]


def _range(first: Fraction, last: Fraction, step: str, name: str) -> list[Fraction]:
    grows, following = _step(step, first, name)
    if not grows or last < first:
        raise ParameterError(
            f"{name} must increase: in FIRST:LAST:STEP, LAST must not be below FIRST and STEP must be positive or a "
            "factor such as x2"
        )
    found: list[Fraction] = []
    value = first
    while value <= last and len(found) <= _MOST_VALUES:
        found.append(value)
        value = following(value)
    return found


def _step(step: str, first: Fraction, name: str) -> tuple[bool, Callable[[Fraction], Fraction]]:
    """Return whether the values increase, and a function from one value to the next."""
    if step.startswith("x"):
        factor = parse_number(step.removeprefix("x"), name)
        return factor > 1 and first > 0, lambda value: value * factor
    added = parse_number(step, name)
    return added > 0, lambda value: value + added
