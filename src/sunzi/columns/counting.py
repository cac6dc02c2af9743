"""Arrow tables of reports to what they hold, group by group; the way of every engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi.columns.binary import cells_of
from sunzi.columns.sifting import WITHOUT_ID, Sifted, refuse, sift
from sunzi.columns.terms import Key
from sunzi.errors import ParameterError
from sunzi.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS = 1 << 20
_MOST_BYTES = 1 << 26


def nothing(plan: Plan) -> Sifted:
    """What an empty column holds."""
    return Sifted(plan.empty_tally())


def add(total: dict[Key, Sifted], more: Iterable[tuple[Key, Sifted]]) -> None:
    """Add what was found to what was found before, group by group."""
    for key, sifted in more:
        total[key] = total[key] + sifted if key in total else sifted


def count(plan: Plan, by: Sequence[str], report_column: str, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    """All reports of the batches, by group."""
    total: dict[Key, Sifted] = {}
    for table in large_pieces(batches):
        add(total, ((key, sift(plan, column)) for key, column in by_group(table, by, report_column)))
    return total


def without_id(plan: Plan, by: Sequence[str], report_column: str, table: pa.Table) -> Iterator[tuple[Key, Sifted]]:
    """Rows whose id is missing: nobody could tell whether they repeat another, so all are refused."""
    for key, column in by_group(table, by, report_column):
        cells = cells_of(column)
        yield key, Sifted(plan.empty_tally(), refuse(cells, np.full(len(cells), WITHOUT_ID, dtype=np.uint8)))


def large_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Small batches put together, since counting has a fixed cost, but never more than memory bears."""
    import pyarrow

    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _MOST_ROWS or size >= _MOST_BYTES:
            yield pyarrow.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def by_group(table: pa.Table, by: Sequence[str], column: str) -> Iterator[tuple[Key, Any]]:
    """The cells of one column, split by the values of the group columns."""
    if not by:
        yield from (((), chunk) for chunk in table.column(column).chunks)
        return
    numbers, keys = _numbered(table, by)
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(keys) + 1))
    cells = table.column(column).take(order)
    for number, key in enumerate(keys):
        group = cells.slice(int(ends[number]), int(ends[number + 1] - ends[number]))
        yield from ((key, chunk) for chunk in group.chunks)


def _numbered(table: pa.Table, by: Sequence[str]) -> tuple[NDArray[np.int64], list[Key]]:
    """The number of every row's group, and the key of every number."""
    import pyarrow

    numbers, first = np.zeros(table.num_rows, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for name in by:
        try:
            codes, count = _codes(table.column(name).combine_chunks())
        except pyarrow.ArrowNotImplementedError:
            kind = table.schema.field(name).type
            raise ParameterError(f"the column {name!r} holds {kind}, by which rows cannot be grouped") from None
        # Renumbered after every column, so that products of many columns' sizes never grow beyond the rows.
        _, first, numbers = np.unique(numbers * count + codes, return_index=True, return_inverse=True)
    columns = [table.column(name).take(first).to_pylist() for name in by]
    return numbers.reshape(-1).astype(np.int64, copy=False), list(zip(*columns, strict=True))


def _codes(column: Any) -> tuple[NDArray[np.int64], int]:
    """Equal values, nulls among them, have equal codes."""
    import pyarrow

    whole = pyarrow.concat_arrays(column.chunks) if isinstance(column, pyarrow.ChunkedArray) else column
    encoded = whole.dictionary_decode() if hasattr(whole, "dictionary") else whole
    encoded = encoded.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(len(encoded.dictionary), 1)
