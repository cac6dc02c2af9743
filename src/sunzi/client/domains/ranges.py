"""Domains of numbers and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import floor, inf, isfinite, isnan
from numbers import Real
from typing import Any, Self

from ..errors import DomainError, PlanError, shown, whole_number
from ..strict_json import integer_parameter, keys_of
from .labels import MOST_VALUES, SILENCE, Domain, is_missing

DAYS = "days since 1970-01-01"
EPOCH = date(1970, 1, 1)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Doubles preserve 15 significant digits of a decimal number, so that each has exactly one text.
MOST_DIGITS = 15
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{0,14}[1-9])?")
_LONGEST_UNIT = 32


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OrderedDomain(Domain):
    """Numbers or dates from ``low`` to ``high``, in bins of equal width. Immutable.

    The bin of x is ⌊(x − low)·bins/(high − low)⌋, computed in double precision in this order, so that all clients
    agree; ``high`` itself is in the last bin, unless it is a date.

    Parameters
    ----------
    low, high: the ends, as numbers, or as dates: the first day and the day after the last.
    bins: how many bins.
    clamp: report numbers below ``low`` as ``low``, and above ``high`` as ``high``, instead of refusing them; dates as
        the first or the last day.
    unit: shown after numbers, such as "ms".

    >>> from sunzi.client import OrderedDomain
    >>> OrderedDomain(0, 5000, 100, unit="ms").index(120)
    2
    """

    low: float
    high: float
    clamp: bool
    unit: str

    def __init__(self, low: object, high: object, bins: int, *, clamp: bool = False, unit: str = "") -> None:
        if isinstance(low, datetime) or isinstance(high, datetime):
            raise DomainError(f"ends must be numbers, or dates without a time, got {shown(low)} and {shown(high)}")
        given = f"{shown(low)} and {shown(high)}"
        if isinstance(low, date) and isinstance(high, date):
            given = f"{low} and {high}"
            if unit:
                raise DomainError(f"dates have no unit, got {unit!r}; omit it")
            low, high, unit = (low - EPOCH).days, (high - EPOCH).days, DAYS
        least, most = _checked_end("low", low), _checked_end("high", high)
        if not least < most:
            raise DomainError(f"low must be below high, got {given}")
        if type(clamp).__name__ not in ("bool", "bool_"):  # numpy's, too
            raise DomainError(f"clamp must be true or false, got {shown(clamp)}")
        if type(unit) is not str or len(unit) > _LONGEST_UNIT or CONTROL.search(unit):
            raise DomainError(f"a unit must be printable text of at most {_LONGEST_UNIT} characters, got {shown(unit)}")
        size = whole_number("bins", bins, 2, MOST_VALUES)
        self._set(size, low=least, high=most, clamp=bool(clamp), unit=unit)

    @property
    def is_dates(self) -> bool:
        """Whether values are dates."""
        return self.unit == DAYS

    @property
    def last(self) -> float:
        """The greatest number that is not outside; of dates the last day, one before ``high``."""
        return max(self.low, self.high - 1) if self.is_dates else self.high

    def index(self, value: object) -> int:
        """The bin of one value; DomainError if it has none."""
        number = self.number(value)
        if number is None:
            raise self.refusal(value)
        if not self.low <= number <= self.high or (self.is_dates and number == self.high):
            if not self.clamp:
                raise self.refusal(value)
            number = self.low if number < self.low else self.last
        return min(floor((number - self.low) * self.size / (self.high - self.low)), self.size - 1)

    def number(self, value: object) -> float | None:
        """A value as a number; None if it is missing or of the wrong type."""
        if isinstance(value, str):
            value = self._parsed(value)
        if type(value).__name__ == "datetime64":  # numpy's, which is not imported
            value = value.astype("datetime64[D]").item()  # type: ignore[attr-defined]
        if isinstance(value, Decimal):  # as databases and Parquet have them
            value = None if value.is_nan() else float(value)
        if isinstance(value, datetime) and not is_missing(value):
            try:
                value = value.astimezone(UTC).date() if value.tzinfo else value.date()
            except OverflowError:  # before the year 1 or after 9999 in UTC
                return -inf if value.year == 1 else inf
        if isinstance(value, date) and not is_missing(value):
            return float((value - EPOCH).days) if self.is_dates else None
        if isinstance(value, bool) or not isinstance(value, Real) or type(value).__name__ == "timedelta64":
            return None
        try:
            found = float(value)
        except OverflowError:  # an integer beyond the floats
            return inf if value > 0 else -inf  # type: ignore[operator]  # integers compare
        return None if isnan(found) else found

    def _parsed(self, text: str) -> object:
        """A number or date from text, as in the cells of a table."""
        try:
            return datetime.fromisoformat(text) if self.is_dates else float(text)
        except ValueError:
            return None

    def refusal(self, value: object) -> DomainError:
        """The error that says why a value has no bin."""
        if is_missing(value):
            return DomainError(f"a value is missing (null, NaN or empty text); fill it in {SILENCE}")
        if self.number(value) is None:
            is_duration = type(value).__name__ in ("timedelta", "timedelta64")
            hint = "; divide it by the unit, as in value / timedelta(milliseconds=1)" if is_duration else ""
            return DomainError(f"value {shown(value)} is not a {'date' if self.is_dates else 'number'}{hint}")
        return DomainError(
            f"value {shown(value)} is outside {self.shown_end(self.low)} to {self.shown_end(self.last)}; plan with a "
            "wider range or with clamp, or send a background report: silence would reveal that it is outside"
        )

    def shown_end(self, number: float) -> str:
        """A number of the range, or a date, for display."""
        if not self.is_dates:
            return f"{number:.10g}"
        try:
            return str(EPOCH + timedelta(days=number))
        except OverflowError:  # beyond the year 9999, in a plan by hand
            return f"day {number:.10g}"

    def shown(self, index: int) -> str:
        """The bin as a text, such as "100 to 150 ms"."""
        ends = (self.low + (self.high - self.low) / self.size * place for place in (index, index + 1))
        unit = "" if self.is_dates or not self.unit else f" {self.unit}"
        return f"{' to '.join(map(self.shown_end, ends))}{unit}"

    def to_json(self) -> dict[str, Any]:
        """The domain as a plan file records it."""
        bounds: dict[str, Any] = {"low": decimal_text(self.low), "high": decimal_text(self.high)}
        if self.clamp:
            bounds["clamp"] = True
        if self.unit:
            bounds["unit"] = self.unit
        return {"size": self.size, "range": bounds}

    @classmethod
    def from_json(cls, record: object) -> Self:
        """The inverse of :meth:`to_json`."""
        fields = keys_of("a domain of numbers", record, ["size", "range"])
        bounds = keys_of("a range", fields["range"], ["low", "high"], ["clamp", "unit"])
        size = integer_parameter(fields, "size", 2, MOST_VALUES)
        if bounds.get("clamp", True) is not True:
            raise PlanError(f"clamp must be true, or omitted, got {shown(bounds['clamp'])}")
        ends = [bounds[name] for name in ("low", "high")]
        for end in ends:
            if not isinstance(end, str) or not _is_decimal(end):
                raise PlanError(f'an end of a range must be a decimal number as text, such as "0.5", got {shown(end)}')
        unit = bounds.get("unit", "")
        if not isinstance(unit, str) or (not unit and "unit" in bounds):
            raise PlanError(f"a unit must be a text, got {shown(unit)}")
        return cls(float(ends[0]), float(ends[1]), size, clamp="clamp" in bounds, unit=unit)

    def __repr__(self) -> str:
        """The range and the number of bins."""
        return f"OrderedDomain({self.shown_end(self.low)} to {self.shown_end(self.high)}, {self.size} bins)"


def _checked_end(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DomainError(f"{name} must be a number or a date, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number) or not _is_decimal(decimal_text(number)):
        raise DomainError(
            f"{name} must be a number of at most {MOST_DIGITS} significant digits and {MOST_DIGITS} decimals, got "
            f"{shown(value)}"
        )
    return number


def _is_decimal(text: str) -> bool:
    digits = text.lstrip("-0.").replace(".", "")
    return bool(_NUMBER.fullmatch(text)) and text != "-0" and len(digits) <= MOST_DIGITS


def decimal_text(number: float) -> str:
    """The shortest decimal form of a number, without an exponent."""
    text = format(Decimal(repr(number)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
