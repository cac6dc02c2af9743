"""Rows of one column, and the domain's index of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.domain import Domain
from sunzi.errors import DomainError, ParameterError

ROWS_AT_ONCE = 1 << 17

_UNKNOWN, _MISSING = -1, -2
_MOST_DIGITS = 18
_MOST_LISTED = 20


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of one column: integers, or positions in a list of texts, where None is missing."""

    codes: NDArray[Any]
    texts: Sequence[str | None] | None = None
    missing: NDArray[np.bool_] | None = None
    """Which rows have no value, for integers only."""

    def value(self, row: int) -> object:
        """What stands in a row, counted from 0."""
        code = int(self.codes[row])
        return code if self.texts is None else self.texts[code]


@dataclass(frozen=True)
class Column:
    """One column of a table, to be gone through once."""

    name: str
    pieces: Iterator[Rows]
    fraction: Callable[[], float | None]
    """How much has been read, if the whole is known."""


def choose_column(names: Sequence[str], column: str | None) -> tuple[int, str]:
    """The position of the column asked for, or of the only one."""
    if column is None:
        if len(names) != 1:
            raise ParameterError(f"the table has {len(names)} columns; name one of them: {_listed(names)}")
        return 0, names[0]
    found = [position for position, name in enumerate(names) if name == column]
    if len(found) != 1:
        amount = "no column" if not found else f"{len(found)} columns"
        raise ParameterError(f"there is {amount} named {column!r}; the columns are {_listed(names)}")
    return found[0], column


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(repr(name) for name in names[:_MOST_LISTED]) + rest


class Lookup:
    """Finds the domain's index of every row. Rows are numbered from 1, a line of column names not counted.

    A missing value (null, or empty text that is no label) counts as the domain's ``other``. Without one it is an error,
    unless ``skip_missing`` leaves such rows out: whoever sees who reported then learns who had no value, which no
    epsilon covers.
    """

    def __init__(self, domain: Domain, *, skip_missing: bool = False) -> None:
        self._domain, self._skip = domain, skip_missing
        self._positions = {label: index for index, label in enumerate(domain.labels or ())}
        other = None if domain.other is None else self._positions[domain.other]
        self._unknown = _UNKNOWN if other is None else other
        self._missing = _MISSING if other is None or skip_missing else other
        self._known: tuple[Sequence[str | None], NDArray[np.int64]] = ((), np.empty(0, dtype=np.int64))
        self.rows = 0
        """Rows looked at."""
        self.skipped = 0
        """Rows left out."""

    def indices(self, rows: Rows) -> NDArray[np.int64]:
        """The index of every row that is not left out; a DomainError names the first that has none."""
        found = self._integers(rows) if rows.texts is None else self._texts(rows.texts)[rows.codes]
        if found.size and found.min() < 0:
            found = self._settle(rows, found)
        self.rows += rows.codes.size
        return found

    def _integers(self, rows: Rows) -> NDArray[np.int64]:
        if self._domain.has_labels:
            raise DomainError("the column holds integers, but the plan's values are labels: cast the column to text")
        codes, size = rows.codes, self._domain.size
        found = codes.astype(np.int64, copy=False)
        if rows.missing is None and (not codes.size or (codes.min() >= 0 and codes.max() < size)):
            return found
        found = np.where((codes >= 0) & (codes < size), found, _UNKNOWN)
        return found if rows.missing is None else np.where(rows.missing, self._missing, found)

    def _texts(self, texts: Sequence[str | None]) -> NDArray[np.int64]:
        """The index of each text. Neighbouring pieces often share their list, which is then gone through once."""
        if texts is not self._known[0]:
            find = self._label if self._domain.has_labels else self._number
            found = [self._missing if text is None else find(text) for text in texts]
            self._known = texts, np.array(found, dtype=np.int64)
        return self._known[1]

    def _label(self, text: str) -> int:
        return self._positions.get(text, self._unknown if text else self._missing)

    def _number(self, text: str) -> int:
        if not text:
            return self._missing
        is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        return int(text) if is_number and int(text) < self._domain.size else _UNKNOWN

    def _settle(self, rows: Rows, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Refuse the first row without an index, or leave out those without a value."""
        wrong = np.flatnonzero(found == _UNKNOWN if self._skip else found < 0)
        if not wrong.size:
            kept = found[found != _MISSING]
            self.skipped += found.size - kept.size
            return kept
        first = int(wrong[0])
        place = f"row {self.rows + first + 1}"
        if found[first] == _MISSING:
            raise DomainError(f"{place} has no value; {self._remedy()}")
        raise DomainError(f"{place}: {self._complaint(rows.value(first))}")

    def _remedy(self) -> str:
        report = "give the domain an 'other' to report" if self._domain.has_labels else "fill it in"
        return f"{report}, or leave such rows out (--skip-missing), which tells whose value is missing"

    def _complaint(self, value: object) -> str:
        if self._domain.has_labels:
            return f"label {value!r} is not in the domain; add it, or give the domain an 'other'"
        last = self._domain.size - 1
        if isinstance(value, int):
            return f"value {value} is not in the domain 0 … {last}"
        return f"value {value!r} is not one of the integers 0 … {last}"
