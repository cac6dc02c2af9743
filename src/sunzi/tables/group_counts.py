"""Counting Arrow tables of reports by group, for all engines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError, PlanError
from sunzi.plan import Plan
from sunzi.tables.arrow import cells_of, plain
from sunzi.tables.report_cells import WITHOUT_ID, Sifted, refuse, sift_array

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[Any, ...]
"""The values of the group columns; empty if there are none."""

PLAN_KEY = "sunzi_plan"
"""The key of a column's metadata under which it may name the fingerprint of its plan; other plans are then refused."""

OWN_PREFIX = "sunzi_"
"""Columns that engines add for themselves begin with this, so no column of the table may."""

_MOST_ROWS = 1 << 20
_MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class TallyRequest:
    """What to count: the plan and the columns of reports, ids and groups."""

    plan: Plan
    report_column: str
    id_column: str | None = None
    by: tuple[str, ...] = ()

    @classmethod
    def checked(
        cls, plan: Plan, by: Sequence[str], report_column: str, id_column: str | None, columns: Iterable[str]
    ) -> TallyRequest:
        """The request, if every column exists in ``columns`` and serves one purpose."""
        if isinstance(by, str):
            raise ParameterError(f"the group columns must be a list of names, got {by!r}; write [{by!r}]")
        request, known = cls(plan, report_column, id_column, tuple(by)), list(columns)
        for name in request.columns:
            if name not in known:
                raise ParameterError(f"there is no column {name!r}; the columns are {', '.join(map(repr, known))}")
            if known.count(name) > 1:
                raise ParameterError(f"there are {known.count(name)} columns {name!r}; rename all but one")
            if name.startswith(OWN_PREFIX):
                raise ParameterError(f"names that begin with {OWN_PREFIX!r} are reserved; rename the column {name!r}")
            if request.columns.count(name) > 1:
                raise ParameterError(f"the column {name!r} is named twice; reports, ids and groups need different ones")
        return request

    @property
    def columns(self) -> list[str]:
        """All columns to read."""
        return [*self.by, self.report_column, *([] if self.id_column is None else [self.id_column])]

    def check_plan(self, metadata: Mapping[Any, Any] | None) -> None:
        """Refuse a column whose metadata names another plan."""
        fingerprint = dict(metadata or {}).get(PLAN_KEY)
        if fingerprint is not None and fingerprint != self.plan.fingerprint:
            raise PlanError(
                f"the column {self.report_column!r} holds reports of the plan {str(fingerprint)[:16]}…, not of "
                f"{self.plan.fingerprint[:16]}…"
            )


def add_groups(total: dict[Key, Sifted], more: Iterable[tuple[Key, Sifted]]) -> None:
    """Add counts to ``total`` group by group.

    All NaN are one group, zeros of either sign are one, and times are compared in UTC: Python compares times of one
    time zone by the clock, which shows some hours of the year twice.
    """
    for key, sifted in more:
        same = tuple(_canonical(value) for value in key)
        total[same] = total[same] + sifted if same in total else sifted


def _canonical(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if not isinstance(value, float):
        return value
    return math.nan if math.isnan(value) else value + 0.0


def count_groups(request: TallyRequest, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    """Count all reports of the batches by group."""
    total: dict[Key, Sifted] = {}
    for table in bounded_tables(batches):
        groups = split_by_group(table, request.by, request.report_column)
        add_groups(total, ((key, sift_array(array, request.plan)) for key, array in groups))
    return total


def refuse_without_id(request: TallyRequest, table: pa.Table) -> Iterator[tuple[Key, Sifted]]:
    """Refuse all rows of a table without ids, since they might repeat others."""
    for key, array in split_by_group(table, request.by, request.report_column):
        cells = cells_of(array)
        yield key, Sifted(request.plan.empty_tally(), refuse(cells, np.full(len(cells), WITHOUT_ID, dtype=np.uint8)))


def bounded_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches as tables of plain columns. Small batches are joined, since counting has a fixed cost, and large ones cut
    to at most a million rows and, if rows are of similar size, 64 MiB.
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


def split_by_group(table: pa.Table, by: Sequence[str], column: str) -> Iterator[tuple[Key, Any]]:
    """The arrays of one column, split by the values of the group columns."""
    if not by:
        yield from (((), chunk) for chunk in table.select([column]).combine_chunks().column(0).chunks)
        return
    numbers, keys = _number_groups(table, by)
    order, ends = sort_by_number(numbers, len(keys))
    cells = table.column(column).take(order)
    for number, key in enumerate(keys):
        group = cells.slice(int(ends[number]), int(ends[number + 1] - ends[number]))
        yield from ((key, chunk) for chunk in group.chunks)


def sort_by_number(numbers: Integers, limit: int) -> tuple[Integers, Integers]:
    """The rows sorted by a number below ``limit``; and for each number where its rows begin, with a last end."""
    short = numbers.astype(np.uint16) if limit <= 1 << 16 else numbers  # numpy sorts these by counting
    ends = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=limit))])
    return np.argsort(short, kind="stable"), ends


def _number_groups(table: pa.Table, by: Sequence[str]) -> tuple[Integers, list[Key]]:
    """The number of each row's group, and the key of each number."""
    import pyarrow

    numbers, groups = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in by:
        try:
            codes, count = number_values(table.column(name))
        except pyarrow.ArrowNotImplementedError:
            kind = table.schema.field(name).type
            raise ParameterError(f"the column {name!r} holds {kind}, by which rows cannot be grouped") from None
        # Renumbered after every column, so that the numbers stay below the number of rows squared.
        numbers, groups = number_values(pyarrow.chunked_array([numbers * count + codes]))
    some_row = np.zeros(groups, dtype=np.int64)
    some_row[numbers] = np.arange(numbers.size)
    columns = [_values(table, name, some_row) for name in by]
    return numbers, list(zip(*columns, strict=True))


def number_values(column: Any) -> tuple[Integers, int]:
    """A number from 0 on for each cell of a chunked column, equal for equal values (nulls are one); and how many values
    there are.
    """
    encoded = column.dictionary_encode(null_encoding="encode")
    numbers = [np.asarray(chunk.indices, dtype=np.int64) for chunk in encoded.chunks]
    return np.concatenate([*numbers, np.zeros(0, dtype=np.int64)]), len(encoded.chunk(0).dictionary) if numbers else 0


def _values(table: pa.Table, name: str, rows: Integers) -> list[Any]:
    try:
        values: list[Any] = table.column(name).take(rows).to_pylist()
    except (ValueError, OverflowError) as error:  # invalid UTF-8, or a date beyond Python's range
        raise ParameterError(f"the column {name!r} holds a value that cannot name a group: {error}") from None
    return values
