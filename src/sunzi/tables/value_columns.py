"""Rows of one column of values, and the domain's index of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.domain import MISSING, Domain
from sunzi.errors import DomainError, ParameterError

_MOST_DIGITS = 18
_MOST_LISTED = 20


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of one column: integers, or positions in a list of texts, where None is a missing value."""

    codes: NDArray[Any]
    texts: Sequence[str | None] | None = None
    missing: NDArray[np.bool_] | None = None
    """Which rows have no value; for integers only."""

    def value(self, row: int) -> object:
        """The value of a row, counted from 0."""
        code = int(self.codes[row])
        return code if self.texts is None else self.texts[code]


@dataclass(frozen=True)
class Column:
    """One column of a table, which can be iterated over once."""

    name: str
    pieces: Iterator[Rows]
    fraction: Callable[[], float | None]
    """The fraction read so far, or None if the size is unknown."""


def choose_column(names: Sequence[str], column: str | None) -> tuple[int, str]:
    """The position and name of the requested column, or of the only one."""
    if column is None:
        if len(names) != 1:
            raise ParameterError(f"the table has {len(names)} columns; name one of them: {_listed(names)}")
        return 0, names[0]
    found = [position for position, name in enumerate(names) if name == column]
    if len(found) != 1:
        number = "no column" if not found else f"{len(found)} columns"
        raise ParameterError(f"there is {number} named {column!r}; the columns are {_listed(names)}")
    return found[0], column


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(repr(name) for name in names[:_MOST_LISTED]) + rest


class IndexLookup:
    """Finds the domain's index of every row, by the rules of :class:`~sunzi.Domain`.

    In addition, text may spell the integers of a domain without labels. Errors name the row, counted from 1 without the
    line of column names. ``skip_missing`` leaves rows without a value out, which reveals to anyone who sees who
    reported whose value is missing; epsilon does not cover that.
    """

    def __init__(self, domain: Domain, *, skip_missing: bool = False) -> None:
        self._domain, self._skip = domain, skip_missing
        self._known: tuple[Sequence[str | None], Integers] = ((), np.empty(0, dtype=np.int64))
        self.rows = 0
        """The number of rows read."""
        self.skipped = 0
        """The number of rows left out."""

    def indices(self, rows: Rows) -> Integers:
        """The index of every row that is not left out; a DomainError names the first row without one."""
        located = self._locate(rows)
        found = self._settle(rows, located) if located.size and located.min() < 0 else located
        self.rows += rows.codes.size
        return found

    def _locate(self, rows: Rows) -> Integers:
        if rows.texts is None:
            located = self._domain.locate(rows.codes)
            return located if rows.missing is None else np.where(rows.missing, MISSING, located)
        if rows.texts is not self._known[0]:  # neighbouring pieces often share their list of texts
            self._known = rows.texts, self._domain.locate([self._meaning(text) for text in rows.texts])
        return self._known[1][rows.codes]

    def _meaning(self, value: object) -> object:
        """Digits are a number where the domain is one of integers."""
        if self._domain.has_labels or not isinstance(value, str):
            return value
        return int(value) if value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS else value

    def _settle(self, rows: Rows, located: Integers) -> Integers:
        """Apply ``other``, leave rows out if requested, and refuse the first that still has no index."""
        skipped = np.logical_and(located == MISSING, self._skip)
        found = self._domain.replace_by_other(located)
        wrong = np.flatnonzero((found < 0) & ~skipped)
        if wrong.size:
            raise self._refusal(rows, int(wrong[0]), is_missing=located[wrong[0]] == MISSING)
        self.skipped += int(np.count_nonzero(skipped))
        return found[~skipped]

    def _refusal(self, rows: Rows, row: int, *, is_missing: bool) -> DomainError:
        place = f"row {self.rows + row + 1}"
        if not is_missing:
            return DomainError(f"{place}: {self._domain.refusal(self._meaning(rows.value(row)))}")
        remedy = "give the domain an 'other' to report" if self._domain.has_labels else "fill it in"
        return DomainError(
            f"{place} has no value; {remedy}, or leave such rows out (--skip-missing), which reveals whose value is "
            "missing"
        )
