"""Domains of numbers and dates, for ordered plans and plans of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.domains import ranges as client
from sunzi.client.domains.labels import is_missing
from sunzi.client.domains.ranges import DAYS, EPOCH, MOST_DIGITS
from sunzi.client.errors import DomainError, shown
from sunzi.domains.columns import as_array
from sunzi.domains.labels import MISSING, UNKNOWN, UNUSABLE, Domain

# A number within this share of a bin's width from an edge counts as that edge.
_EDGE_TOLERANCE = 1e-6


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OrderedDomain(client.OrderedDomain, Domain):
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

    @property
    def is_indices(self) -> bool:
        """Always False."""
        return False

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
        number = self.number(value)
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
        found = (self.number(value) for value in values.tolist())
        return np.array([np.nan if number is None else number for number in found], dtype=np.float64)

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


def shown_number(number: float, unit: str, span: float) -> str:
    """A number with at least five digits and its unit, or a date if that is its unit.

    Parameters
    ----------
    number: the number.
    unit: its unit.
    span: a difference that the digits must resolve, such as the width of its interval.
    """
    return _shown_date(number) if unit == DAYS else f"{_digits(number, span, 5)} {unit}".rstrip()


def _digits(number: float, span: float, least: int) -> str:
    """At least so many significant digits, three of the span, and all before the decimal point."""
    needed = ceil(log10(abs(number) / span)) + 3 if number and span > 0 else 0
    text = f"{number:.{min(max(least, needed), MOST_DIGITS)}g}"
    return f"{number:.0f}" if "e+" in text and abs(number) < 10**MOST_DIGITS else text


def _shown_date(days: float) -> str:
    try:
        return str(EPOCH + timedelta(days=days))
    except OverflowError:  # beyond the year 9999, in a plan by hand
        return f"day {days:.10g}"


def numbered_labels(labels: Sequence[str]) -> list[str]:
    """The labels, numbered if some are equal, as labels of tiny bins may be.

    >>> numbered_labels(["1", "1"])
    ['1 (1)', '1 (2)']
    """
    if len(set(labels)) == len(labels):
        return list(labels)
    return [f"{label} ({number})" for number, label in enumerate(labels, start=1)]
