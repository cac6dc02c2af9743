"""Domains of numbers and dates, for ordered plans and plans of numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import ceil, floor, inf, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.domains.columns import as_array, is_missing
from sunzi.domains.labels import MISSING, UNKNOWN, UNUSABLE, Domain
from sunzi.errors import DomainError, PlanError
from sunzi.numerics.checks import shown, whole_number

MOST_BINS = 1 << 30
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{0,14}[1-9])?")
# Doubles preserve 15 significant digits of a decimal number, so that each has exactly one text.
_MOST_DIGITS = 15
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST_UNIT = 32
# A number within this share of a bin's width from an edge counts as that edge.
_EDGE_TOLERANCE = 1e-6
_EPOCH = date(1970, 1, 1)
_DAYS = "days since 1970-01-01"


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

    >>> OrderedDomain(0, 5000, 100, unit="ms").shown(2)
    '100 to 150 ms'
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
            low, high, unit = (low - _EPOCH).days, (high - _EPOCH).days, _DAYS
        least, most = _checked_number("low", low), _checked_number("high", high)
        if not least < most:
            raise DomainError(f"low must be below high, got {given}")
        if not isinstance(clamp, (bool, np.bool_)):
            raise DomainError(f"clamp must be true or false, got {shown(clamp)}")
        if type(unit) is not str or len(unit) > _LONGEST_UNIT or CONTROL.search(unit):
            raise DomainError(f"a unit must be printable text of at most {_LONGEST_UNIT} characters, got {shown(unit)}")
        size = whole_number("bins", bins, 2, MOST_BINS)
        self._set(size, low=least, high=most, clamp=bool(clamp), unit=unit)

    @property
    def is_indices(self) -> bool:
        """Always False."""
        return False

    @property
    def is_dates(self) -> bool:
        """Whether values are dates."""
        return self.unit == _DAYS

    @property
    def width(self) -> float:
        """The width of a bin."""
        return (self.high - self.low) / self.size

    @property
    def edges(self) -> Floats:
        """The ends of all bins: one more than there are bins."""
        return self.low + self.width * np.arange(self.size + 1, dtype=np.float64)

    @property
    def centres(self) -> Floats:
        """The middles of all bins; of dates, the means of their days."""
        middles = self.low + self.width * np.arange(0.5, self.size)
        if not self.is_dates:
            return middles
        first, after = np.ceil(self.edges[:-1]), np.ceil(self.edges[1:])
        return np.where(first < after, (first + after - 1) / 2, middles)  # bins narrower than a day may have none

    @property
    def last(self) -> float:
        """The greatest number that is not outside; of dates the last day, one before ``high``."""
        return max(self.low, self.high - 1) if self.is_dates else self.high

    def position(self, value: object) -> int:
        """The index of an edge, given as a number or date: 0 for ``low``, the number of bins for ``high``."""
        place = self._place(value)
        if not self.is_edge(value):
            raise DomainError(
                f"{shown(value)} is not the edge of a bin; the nearest are {self.shown_edge(floor(place))} and "
                f"{self.shown_edge(ceil(place))}"
            )
        return int(place)

    def enclosing(self, low: object, high: object) -> tuple[int, int]:
        """The edges of the narrowest range of whole bins around two numbers or dates, the first below the second."""
        start, stop = self._place(low), self._place(high)
        if not start < stop:
            raise DomainError(f"low must be below high, got {shown(low)} and {shown(high)}")
        return floor(start), ceil(stop)

    def is_edge(self, value: object) -> bool:
        """Whether a number or date is the edge of a bin."""
        return self._place(value).is_integer()

    def _place(self, value: object) -> float:
        """The position of a number or date, in units of bins: edges are integers."""
        number = self._number(value)
        if number is None:
            raise DomainError(
                f"the end of a range must be a {'date' if self.is_dates else 'number'}, got {shown(value)}"
            )
        place = (number - self.low) / self.width
        nearest = round(place) if isfinite(place) else -1
        if abs(place - nearest) <= _EDGE_TOLERANCE:
            place = nearest
        if not 0 <= place <= self.size:
            raise DomainError(f"{shown(value)} is outside {self.shown_range(0, self.size)}; give an end within it")
        return float(place)

    def is_outside(self, values: object) -> NDArray[np.bool_]:
        """Which of these numbers lie outside; with ``clamp`` they are reported as the nearest end."""
        return self._are_outside(self._numbers(as_array(values)))

    def _are_outside(self, numbers: Floats) -> NDArray[np.bool_]:
        return (numbers < self.low) | (numbers >= self.high if self.is_dates else numbers > self.high)

    def count_outside(self, values: object) -> int:
        """How many of these numbers lie outside."""
        return int(np.count_nonzero(self.is_outside(values)))

    def index(self, value: object) -> int:
        """The bin of one value."""
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and (self.low <= value < self.high or (value == self.high and not self.is_dates))
        ):
            return min(int((float(value) - self.low) * self.size / (self.high - self.low)), self.size - 1)
        return super().index(value)

    def locate(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        """The bin of each value, or UNKNOWN, UNUSABLE or MISSING if it has none."""
        numbers = self._numbers(as_array(values))
        bad, outside = np.isnan(numbers), self._are_outside(numbers)
        if self.clamp:
            numbers = np.where(outside, np.where(numbers < self.low, self.low, self.last), numbers)
            outside = np.zeros_like(bad)
        scaled = np.where(bad | outside, self.low, numbers)
        found = np.floor((scaled - self.low) * self.size / (self.high - self.low)).astype(np.int64)
        found = np.minimum(found, self.size - 1)
        found[outside] = UNKNOWN
        for place in np.flatnonzero(bad).tolist():
            found[place] = MISSING if is_missing(values[place]) else UNUSABLE
        return found

    def _numbers(self, values: NDArray[Any]) -> Floats:
        """Values as numbers, NaN for those that are not numbers."""
        if values.dtype.kind in "iuf":
            return values.astype(np.float64)
        if values.dtype.kind == "m":  # a duration says nothing of the unit that the plan means
            return np.full(values.shape, np.nan)
        if values.dtype.kind == "M":
            days = values.astype("datetime64[D]")
            is_none = np.isnat(days) | (not self.is_dates)
            return np.where(is_none, np.nan, days.astype(np.int64).astype(np.float64))
        found = (self._number(value) for value in values.tolist())
        return np.array([np.nan if number is None else number for number in found], dtype=np.float64)

    def _number(self, value: object) -> float | None:
        if isinstance(value, str):
            value = self._parsed(value)
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[D]").item()
        if isinstance(value, Decimal):  # as databases and Parquet have them
            value = None if value.is_nan() else float(value)
        if is_missing(value):
            return None
        if isinstance(value, datetime):
            value = value.astimezone(UTC).date() if value.tzinfo else value.date()
        if isinstance(value, date):
            return float((value - _EPOCH).days) if self.is_dates else None
        if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, float, np.integer, np.floating)):
            return None
        try:
            return float(value)
        except OverflowError:  # an integer beyond the floats
            return inf if value > 0 else -inf

    def _parsed(self, text: str) -> object:
        """A number or date from text, as in the cells of a table."""
        try:
            return datetime.fromisoformat(text) if self.is_dates else float(text)
        except ValueError:
            return None

    def refusal(self, value: object) -> DomainError:
        """The error that says why a value has no bin."""
        if is_missing(value):
            return DomainError("a value is missing (null, NaN or empty text); fill it in or leave its row out")
        if self._number(value) is None:
            is_duration = isinstance(value, (timedelta, np.timedelta64))
            hint = "; divide it by the unit, as in value / timedelta(milliseconds=1)" if is_duration else ""
            return DomainError(f"value {shown(value)} is not a {'date' if self.is_dates else 'number'}{hint}")
        last = _shown_date(self.last) if self.is_dates else self.shown_edge(self.size)
        return DomainError(
            f"value {shown(value)} is outside {self.shown_edge(0)} to {last}; leave it out, or plan with a wider range "
            "or with clamp"
        )

    def shown_edge(self, place: int) -> str:
        """An edge of a bin, for display."""
        number = self.low + self.width * place
        if self.is_dates:
            return _shown_date(number)
        is_zero = abs(number) < _EDGE_TOLERANCE * self.width
        return _digits(0.0 if is_zero else number, self.width, 10)

    def shown_number(self, number: float) -> str:
        """A number of this range, for display: at least five digits and the unit, or a date."""
        return shown_number(number, self.unit, self.high - self.low)

    def label(self, index: int) -> str:
        """The bin as a text."""
        return self.shown(index)

    def example(self, index: int) -> float:
        """The middle of the bin."""
        return self.low + self.width * (index + 0.5)

    def shown(self, index: int) -> str:
        """The bin as a text, such as "100 to 150 ms"."""
        return self.shown_range(index, index + 1)

    def search(self, text: str, limit: int) -> list[int]:
        """The bin of a number or date; none for other texts and for numbers outside."""
        found = self.locate([text])
        return found[found >= 0].tolist()[:limit]

    def shown_range(self, start: int, stop: int) -> str:
        """The bins from one edge to another, as a text."""
        unit = "" if self.is_dates or not self.unit else f" {self.unit}"
        return f"{self.shown_edge(start)} to {self.shown_edge(stop)}{unit}"

    @property
    def size_in_words(self) -> str:
        """The range: protocols divide it into bins, or round to points."""
        return self.shown_range(0, self.size)

    def in_words(self) -> str:
        """The range and its bins."""
        return self.range_in_words(f"in {self.size:,} bins")

    def range_in_words(self, parts: str) -> str:
        """The range, a description of its parts, and what happens to numbers outside."""
        outside = "; numbers outside count as the nearest end" if self.clamp else ""
        return f"{self.shown_range(0, self.size)} {parts}{outside}"

    def to_json(self) -> dict[str, Any]:
        """The domain as a plan file records it."""
        bounds: dict[str, Any] = {"low": _decimal(self.low), "high": _decimal(self.high)}
        if self.clamp:
            bounds["clamp"] = True
        if self.unit:
            bounds["unit"] = self.unit
        return {"size": self.size, "range": bounds}

    @classmethod
    def from_json(cls, record: object) -> OrderedDomain:
        """The inverse of :meth:`to_json`."""
        if not isinstance(record, Mapping) or set(record) != {"size", "range"}:
            raise PlanError(f"a domain of numbers must have a size and a range, got {shown(record)}")
        bounds = record["range"]
        known = isinstance(bounds, Mapping) and {"low", "high"} <= set(bounds) <= {"low", "high", "clamp", "unit"}
        if not known or bounds.get("clamp", True) is not True:
            raise PlanError(f"a range must have low, high and optionally clamp: true and a unit, got {shown(bounds)}")
        ends = [bounds[name] for name in ("low", "high")]
        for end in ends:
            if not isinstance(end, str) or not _is_decimal(end):
                raise PlanError(f'an end of a range must be a decimal number as text, such as "0.5", got {shown(end)}')
        if type(record["size"]) is not int:
            raise PlanError(f"domain size must be a whole number, got {shown(record['size'])}")
        unit = bounds.get("unit", "")
        if not isinstance(unit, str) or (not unit and "unit" in bounds):
            raise PlanError(f"a unit must be a text, got {shown(unit)}")
        return cls(float(ends[0]), float(ends[1]), record["size"], clamp="clamp" in bounds, unit=unit)

    def __repr__(self) -> str:
        """The range and the number of bins."""
        return f"OrderedDomain({self.shown_edge(0)} to {self.shown_edge(self.size)}, {self.size} bins)"


def shown_number(number: float, unit: str, span: float) -> str:
    """A number with at least five digits and its unit, or a date if that is its unit.

    Parameters
    ----------
    number: the number.
    unit: its unit.
    span: a difference that the digits must resolve, such as the width of its interval.
    """
    return _shown_date(number) if unit == _DAYS else f"{_digits(number, span, 5)} {unit}".rstrip()


def _digits(number: float, span: float, least: int) -> str:
    """At least so many significant digits, three of the span, and all before the decimal point."""
    needed = ceil(log10(abs(number) / span)) + 3 if number and span > 0 else 0
    text = f"{number:.{min(max(least, needed), _MOST_DIGITS)}g}"
    return f"{number:.0f}" if "e+" in text and abs(number) < 10**_MOST_DIGITS else text


def _shown_date(days: float) -> str:
    try:
        return str(_EPOCH + timedelta(days=days))
    except OverflowError:  # beyond the year 9999, in a plan by hand
        return f"day {days:.10g}"


def _checked_number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise DomainError(f"{name} must be a number or a date, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number) or not _is_decimal(_decimal(number)):
        raise DomainError(
            f"{name} must be a number of at most {_MOST_DIGITS} significant digits and {_MOST_DIGITS} decimals, got "
            f"{shown(value)}"
        )
    return number


def _is_decimal(text: str) -> bool:
    digits = text.lstrip("-0.").replace(".", "")
    return bool(_NUMBER.fullmatch(text)) and text != "-0" and len(digits) <= _MOST_DIGITS


def _decimal(number: float) -> str:
    """The shortest decimal form of a number, without an exponent."""
    text = np.format_float_positional(number, trim="-")
    return "0" if text == "-0" else text


def numbered_labels(labels: Sequence[str]) -> list[str]:
    """The labels, numbered if some are equal, as labels of tiny bins may be.

    >>> numbered_labels(["1", "1"])
    ['1 (1)', '1 (2)']
    """
    if len(set(labels)) == len(labels):
        return list(labels)
    return [f"{label} ({number})" for number, label in enumerate(labels, start=1)]
