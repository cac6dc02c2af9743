"""Numbers as people write them on a command line: 1e6, 1_000_000, 1/3, 0.5:5:0.5, 100:100000:x10, 1,2,4."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sunzi.errors import ParameterError

_MOST_VALUES = 1000


def number(text: str, name: str) -> Fraction:
    """A number, exactly."""
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"{name} must be a number such as 2, 0.5, 1/3 or 1e6, got {text!r}") from None


def whole_number(text: str, name: str) -> int:
    """A number without a fraction; 1e6 is one."""
    found = number(text, name)
    if found.denominator != 1:
        raise ParameterError(f"{name} must be a whole number, got {text!r}")
    return int(found)


def several(text: str, name: str) -> list[Fraction]:
    """``1,2,4`` lists; ``FIRST:LAST:STEP`` adds the step and ``FIRST:LAST:xFACTOR`` multiplies, up to LAST."""
    found: list[Fraction] = []
    for part in text.split(","):
        pieces = part.split(":")
        if len(pieces) == 1:
            found.append(number(part, name))
        elif len(pieces) == 3:
            found += _range(number(pieces[0], name), number(pieces[1], name), pieces[2], name)
        else:
            raise ParameterError(f"{name} must be a number, a list 1,2,4 or a range FIRST:LAST:STEP, got {text!r}")
    if len(found) > _MOST_VALUES:
        raise ParameterError(f"{name} names {len(found):,} values, more than {_MOST_VALUES:,}; take a larger step")
    return list(dict.fromkeys(found))


def several_whole(text: str, name: str) -> list[int]:
    """Like :func:`several`, without fractions."""
    found = several(text, name)
    broken = next((value for value in found if value.denominator != 1), None)
    if broken is not None:
        raise ParameterError(f"{name} must be whole numbers, got {float(broken):g} in {text!r}")
    return [int(value) for value in found]


def _range(first: Fraction, last: Fraction, step: str, name: str) -> list[Fraction]:
    grows, following = _step(step, first, name)
    if not grows or last < first:
        raise ParameterError(
            f"{name} must go up: in FIRST:LAST:STEP the step must be positive, or a factor x2, and LAST not below FIRST"
        )
    found: list[Fraction] = []
    value = first
    while value <= last and len(found) <= _MOST_VALUES:
        found.append(value)
        value = following(value)
    return found


def _step(step: str, first: Fraction, name: str) -> tuple[bool, Callable[[Fraction], Fraction]]:
    """Whether it leads upwards, and the next value."""
    if step.startswith("x"):
        factor = number(step.removeprefix("x"), name)
        return factor > 1 and first > 0, lambda value: value * factor
    added = number(step, name)
    return added > 0, lambda value: value + added
