"""Arrow tables of reports to what they hold, group by group; the way of every engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ParameterError
from sunzi.tables.binary import cells_of, plain
from sunzi.tables.sifting import WITHOUT_ID, Sifted, refuse, sift
from sunzi.tables.terms import Key, Terms

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS = 1 << 20
_MOST_BYTES = 1 << 26


def add(total: dict[Key, Sifted], more: Iterable[tuple[Key, Sifted]]) -> None:
    """Add what was found to what was found before, group by group.

    Keys that are equal are one group, and no others: nan is one, zero of either sign is one, and moments are told apart
    in UTC, since Python compares those of one zone by what its clocks show, which some hours of the year show twice.
    """
    for key, sifted in more:
        same = tuple(_one_of_equals(value) for value in key)
        total[same] = total[same] + sifted if same in total else sifted


def _one_of_equals(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0


def count(terms: Terms, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    """All reports of the batches, by group."""
    total: dict[Key, Sifted] = {}
    for table in large_pieces(batches):
        groups = by_group(table, terms.by, terms.report_column)
        add(total, ((key, sift(terms.plan, column)) for key, column in groups))
    return total


def without_id(terms: Terms, table: pa.Table) -> Iterator[tuple[Key, Sifted]]:
    """Rows whose id is missing: nobody could tell whether they repeat another, so all are refused."""
    for key, column in by_group(table, terms.by, terms.report_column):
        cells = cells_of(column)
        yield key, Sifted(terms.plan.empty_tally(), refuse(cells, np.full(len(cells), WITHOUT_ID, dtype=np.uint8)))


def large_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches as tables of plain columns: small ones put together, since counting has a fixed cost, and large ones cut,
    so that none has more than a million rows or, where rows are alike, 64 MiB.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece in _cut(batch):
            if waiting and (rows + piece.num_rows > _MOST_ROWS or size + piece.nbytes > _MOST_BYTES):
                yield _plain_table(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(piece)
            rows, size = rows + piece.num_rows, size + piece.nbytes
    if waiting:
        yield _plain_table(waiting)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    parts = max(-(-batch.num_rows // _MOST_ROWS), -(-batch.nbytes // _MOST_BYTES), 1)
    step = max(batch.num_rows // parts, 1)
    yield from (batch.slice(start, step) for start in range(0, batch.num_rows, step))


def _plain_table(batches: list[pa.RecordBatch]) -> pa.Table:
    import pyarrow

    table = pyarrow.Table.from_batches(batches)
    return pyarrow.Table.from_arrays([plain(column) for column in table.columns], names=table.schema.names)


def by_group(table: pa.Table, by: Sequence[str], column: str) -> Iterator[tuple[Key, Any]]:
    """The cells of one column, split by the values of the group columns."""
    if not by:
        yield from (((), chunk) for chunk in table.select([column]).combine_chunks().column(0).chunks)
        return
    numbers, keys = _numbered(table, by)
    order, ends = in_order(numbers, len(keys))
    cells = table.column(column).take(order)
    for number, key in enumerate(keys):
        group = cells.slice(int(ends[number]), int(ends[number + 1] - ends[number]))
        yield from ((key, chunk) for chunk in group.chunks)


def in_order(numbers: NDArray[np.int64], limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows sorted by a number below a limit, and where the rows of each number begin, and the last end."""
    short = numbers.astype(np.uint16) if limit <= 1 << 16 else numbers  # which numpy sorts by counting
    ends = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=limit))])
    return np.argsort(short, kind="stable"), ends


def _numbered(table: pa.Table, by: Sequence[str]) -> tuple[NDArray[np.int64], list[Key]]:
    """The number of every row's group, and the key of every number."""
    import pyarrow

    numbers, groups = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in by:
        try:
            codes, count = numbers_of(table.column(name))
        except pyarrow.ArrowNotImplementedError:
            kind = table.schema.field(name).type
            raise ParameterError(f"the column {name!r} holds {kind}, by which rows cannot be grouped") from None
        # Renumbered after every column, so that products of many columns' sizes never grow beyond the rows.
        numbers, groups = numbers_of(pyarrow.chunked_array([numbers * count + codes]))
    some_row = np.zeros(groups, dtype=np.int64)
    some_row[numbers] = np.arange(numbers.size)
    columns = [_values(table, name, some_row) for name in by]
    return numbers, list(zip(*columns, strict=True))


def numbers_of(column: Any) -> tuple[NDArray[np.int64], int]:
    """Numbers from 0 on for the values of a chunked column, the same for equal values, nulls among them; and how many
    values there are.
    """
    encoded = column.dictionary_encode(null_encoding="encode")
    numbers = [np.asarray(chunk.indices, dtype=np.int64) for chunk in encoded.chunks]
    return np.concatenate([*numbers, np.zeros(0, dtype=np.int64)]), len(encoded.chunk(0).dictionary) if numbers else 0


def _values(table: pa.Table, name: str, rows: NDArray[np.int64]) -> list[Any]:
    try:
        values: list[Any] = table.column(name).take(rows).to_pylist()
    except (ValueError, OverflowError) as error:  # a text that is none, a day after the last of Python's
        raise ParameterError(f"the column {name!r} holds a value that cannot name a group: {error}") from None
    return values
