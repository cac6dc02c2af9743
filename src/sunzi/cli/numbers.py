"""Numbers as text: parsing what people type (1e6, 1/3, 0.5:5:0.5, 100:100000:x10, 1,2,4), formatting what they read,
and the figures of a plan in words and in the table that compares protocols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.planning import Axes

_MOST_VALUES = 1000
_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
AXES_HEADER = ("protocol", "error", "rare", "largest", "detects", "bits", "tally", "work", "attack", "push")

AXES_LEGEND = (
    "error: root mean squared error of all frequencies, if values are equally frequent; with --histogram skewed, if "
    "they follow Zipf's law with exponent 1.1.",
    "rare: standard error of the frequency of a value that nobody holds; largest: the expected maximum over all "
    "values.",
    "detects: the smallest frequency distinguished from 0 at 95 % confidence with 80 % power.",
    "bits: mean report size (and the maximum). tally: memory for the counters. work: operations to decode.",
    "attack: how often the best attacker guesses a value from its report. push: how much 1 % fake clients can add to "
    "a value.",
)


def parse_number(text: str, name: str) -> Fraction:
    """Parse a number exactly; ``name`` is the option that an error message mentions."""
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise ParameterError(f"{name} must be a number such as 2, 0.5, 1/3 or 1e6, got {text!r}") from None


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


def counted(number: int, noun: str) -> str:
    """``1 report``, ``2,000 reports``; the plural adds an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def byte_size(size: int) -> str:
    """``357 bytes``, ``75,104 bytes (75.1 kB)``."""
    exact = counted(size, "byte")
    for unit, prefix in _PREFIXES:
        if size >= 10 * unit or (size >= unit and prefix == "T"):
            return f"{exact} ({size / unit:,.1f} {prefix}B)"
    return exact


def with_prefix(value: float) -> str:
    """Two digits and a prefix for the unit that follows: ``1.5 k``, ``34 M``."""
    for unit, prefix in _PREFIXES:
        if value >= 0.9995 * unit:
            scaled = value / unit
            return f"{scaled:.1f} {prefix}" if scaled < 9.95 else f"{scaled:,.0f} {prefix}"
    return f"{value:.0f} "


def percent(fraction: float, decimals: int | None = None) -> str:
    """A percentage with this number of decimals, by default enough to show two significant digits."""
    percentage = 100 * fraction
    if decimals is None:
        decimals = _decimals(percentage)
    return f"{percentage:.{decimals}f} %"


def percent_of_three_digits(fraction: float) -> str:
    """A percentage with three significant digits, in fixed-point notation down to 0.001 %."""
    percentage = 100 * fraction
    if percentage >= 99.95:
        return f"{percentage:,.0f} %"
    return f"{percentage:#.3g} %" if percentage >= 0.001 else f"{percentage:.2g} %"


def decimals_for(standard_errors: Iterable[float]) -> int:
    """Decimals for a column of percentages that show two digits of the median standard error."""
    errors = sorted(standard_errors)
    return _decimals(100 * errors[len(errors) // 2]) if errors else 2


def _decimals(percentage: float) -> int:
    return 2 if percentage == 0 else min(12, max(0, 1 - math.floor(math.log10(abs(percentage)))))


def privacy_bound(epsilon: Fraction) -> str:
    """Return what ε guarantees, in one sentence."""
    bound = f"at most {_factor(epsilon)} times as likely under one value as under any other"
    return f"epsilon = {epsilon}: any report is {bound}"


def _factor(epsilon: Fraction) -> str:
    try:
        return f"{math.exp(epsilon):,.3g}"
    except OverflowError:
        return f"e^{float(epsilon):.4g}"


def attacker_success(attackability: float, domain_size: int) -> str:
    """Return what one report reveals: how often the best guess is right with the report and without it."""
    informed = "over 99.9" if attackability > 0.999 else f"{100 * attackability:.3g}"
    return (
        f"someone who sees a report guesses the value correctly {informed} % of the time, compared with "
        f"{100 / domain_size:.3g} % without it, if all values are equally likely"
    )


def axes_cells(axes: Axes) -> list[str]:
    """Return the cells of one row, in the order of ``AXES_HEADER``."""
    mean = f"{axes.bits:,.6g}" if axes.bits < 1e6 else f"{axes.bits:,.0f}"
    return [
        axes.protocol,
        percent_of_three_digits(axes.mean_error),
        percent_of_three_digits(axes.standard_error),
        percent_of_three_digits(axes.largest_error),
        percent_of_three_digits(axes.detectable_share) if axes.detectable_share < math.inf else "none",
        mean if axes.max_bits == axes.bits else f"{axes.bits:,.0f} ({axes.max_bits:,})",
        f"{with_prefix(axes.tally_bytes)}B",
        "-" if axes.work is None else with_prefix(axes.work).strip(),
        percent_of_three_digits(axes.attackability),
        "-" if axes.push is None else percent_of_three_digits(axes.push),
    ]
