"""Rows of a column of values with its public columns, and Arrow arrays as such rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.client.errors import ParameterError
from sunzi.tables.arrow import arrow_errors

ROWS_AT_ONCE = 1 << 17

_MOST_LISTED = 20


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of one column: integers, or positions in a list of texts, where None is a missing value.

    JSON Lines may hold numbers among the texts.
    """

    codes: NDArray[Any]
    texts: Sequence[str | float | None] | None = None
    missing: NDArray[np.bool_] | None = None
    """Which rows have no value; for integers only."""
    public: tuple[Rows, ...] = ()
    """The same rows of the public columns."""

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


def choose_columns(names: Sequence[str], column: str | None, public: Sequence[str] = ()) -> list[int]:
    """The positions of the requested column, or of the only one, and of the public columns."""
    if column in public:
        raise ParameterError(f"the column {column!r} holds the values to protect, so it cannot be public as well")
    others = [name for name in names if name not in public]
    if column is None and len(others) != 1:
        raise ParameterError(f"the table has {len(others)} columns; name one of them: {_listed(others)}")
    return [_position(names, name) for name in (others[0] if column is None else column, *public)]


def _position(names: Sequence[str], column: str) -> int:
    found = [position for position, name in enumerate(names) if name == column]
    if len(found) != 1:
        number = "is no column" if not found else f"are {len(found)} columns"
        raise ParameterError(f"there {number} named {column!r}; the columns are {_listed(names)}")
    return found[0]


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(repr(name) for name in names[:_MOST_LISTED]) + rest


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_text_or_integer(kind: Any) -> bool:
    from pyarrow import types

    values = kind.value_type if types.is_dictionary(kind) else kind
    return bool(is_text(values) or types.is_integer(values))


def check_type(field: Any, *, numbers: bool) -> None:
    """Refuse an Arrow column of values that are neither texts nor integers, nor, with ``numbers``, numbers or dates."""
    from pyarrow import types

    kind = field.type
    is_date = types.is_date(kind) or types.is_timestamp(kind)
    is_number = types.is_floating(kind) or types.is_decimal(kind) or is_date
    if not _is_text_or_integer(kind) and not (numbers and is_number):
        wanted = "to numbers in the plan's unit" if numbers else "to text or to integers"
        raise ParameterError(f"the column {field.name!r} holds {kind}; cast it {wanted}")


def rows_of(batches: Iterable[Sequence[Any]]) -> Iterator[Rows]:
    """Batches of Arrow arrays as rows: the first array holds the values, and the others are public columns.

    Texts are positions in a dictionary, the file's own where it has one, so that each distinct text is looked up once;
    consecutive arrays with equal dictionaries share one list of texts.
    """
    readers: list[_ArrayReader] = []
    with arrow_errors():
        for batch in batches:
            arrays = [_simplified(array) for array in batch]
            readers = readers or [_ArrayReader() for _ in arrays]
            for start in range(0, len(arrays[0]), ROWS_AT_ONCE):
                first, *others = [
                    reader.rows(array.slice(start, ROWS_AT_ONCE)) for reader, array in zip(readers, arrays, strict=True)
                ]
                yield replace(first, public=tuple(others))


class _ArrayReader:
    """Turns the arrays of one column into rows."""

    def __init__(self) -> None:
        self._dictionary: Any = None
        self._texts: list[str | None] = []

    def rows(self, array: Any) -> Rows:
        if not hasattr(array, "dictionary"):
            return _integer_rows(array)
        if self._dictionary is None or not array.dictionary.equals(self._dictionary):
            self._dictionary = array.dictionary
            self._texts = [*array.dictionary.to_pylist(), None]
        return Rows(_codes(array.indices, len(self._texts) - 1), self._texts)


def _simplified(array: Any) -> Any:
    """Integers, or a dictionary of texts; other types, such as dates in a public column, become text."""
    from pyarrow import string, types

    if types.is_dictionary(array.type) and is_text(array.type.value_type):
        return array
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_string_view(array.type) or not _is_text_or_integer(array.type):
        array = array.cast(string())
    return array.dictionary_encode() if is_text(array.type) else array


def _integer_rows(array: Any) -> Rows:
    if not array.null_count:
        return Rows(array.to_numpy(zero_copy_only=False))
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return Rows(array.fill_null(0).to_numpy(zero_copy_only=False), None, missing)


def _codes(indices: Any, missing: int) -> Any:
    """Positions in the dictionary; nulls become ``missing``."""
    from pyarrow import int64

    filled = indices.cast(int64()).fill_null(missing) if indices.null_count else indices
    return filled.to_numpy(zero_copy_only=False)
