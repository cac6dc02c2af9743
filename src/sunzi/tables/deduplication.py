"""Deduplication: every id counts once, exactly. Rows are partitioned by their id, and each partition is counted alone.

Of the rows with one id the first in this order counts: good before bad, then by the report's bytes, then by the group
columns with nulls first. So every run and every engine counts the same row, and a damaged copy never displaces a good
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.reports import byte_length
from sunzi.numerics.bits import mix_bits
from sunzi.plan import Plan
from sunzi.tables.arrow import cells_of
from sunzi.tables.group_counts import (
    Key,
    TallyRequest,
    add_groups,
    bounded_tables,
    count_groups,
    number_values,
    refuse_without_id,
    sort_by_number,
    split_by_group,
)
from sunzi.tables.report_cells import GOOD, Sifted, judge

if TYPE_CHECKING:
    import pyarrow as pa

BAD = "sunzi_bad"
"""The column that is true for rows without a report, for sorting."""

COPIES = "sunzi_copies"
"""The column with the number of rows of an id."""

_BYTES_PER_PARTITION = 1 << 27
_BYTES_BESIDES_REPORT = 160
_MOST_PARTITIONS = 512


def number_of_partitions(plan: Plan, rows: int) -> int:
    """Enough that each partition fits in memory, but not so many that files get tiny or too many are open."""
    size = rows * (byte_length(plan.max_report_bits) + _BYTES_BESIDES_REPORT)  # the id, and what sorting takes
    return max(1, min(_MOST_PARTITIONS, -(-size // _BYTES_PER_PARTITION)))


def judge_rows(request: TallyRequest, table: pa.Table) -> pa.Table:
    """The table with the column BAD."""
    import pyarrow

    verdicts = [judge(chunk, request.plan) != GOOD for chunk in table.column(request.report_column).chunks]
    bad = np.concatenate([*verdicts, np.zeros(0, dtype=np.bool_)])
    return table.append_column(BAD, pyarrow.array(bad))


def partition_rows(
    request: TallyRequest, batches: Iterable[pa.RecordBatch], folders: Sequence[Path], number: int
) -> dict[Key, Sifted]:
    """Write rows to a file, named by ``number``, in the folder of their id's partition; return the rows without an id,
    which are refused.
    """
    import pyarrow
    from pyarrow import ipc

    refused: dict[Key, Sifted] = {}
    writers: dict[int, Any] = {}
    try:
        for table in bounded_tables(batches):
            without, with_id = split_by_presence_of_id(request, table)
            add_groups(refused, refuse_without_id(request, without))
            rows = judge_rows(request, with_id)
            partitions = (_hashes(rows.column(request.id_column)) % np.uint64(len(folders))).astype(np.int64)
            order, ends = sort_by_number(partitions, len(folders))
            for partition in np.flatnonzero(np.diff(ends)).tolist():
                if partition not in writers:
                    path = folders[partition] / f"{number}.arrow"
                    writers[partition] = ipc.new_stream(str(path), rows.schema)
                mine = order[ends[partition] : ends[partition + 1]]
                writers[partition].write_table(rows.take(pyarrow.array(mine)))
    finally:
        for writer in writers.values():
            writer.close()
    return refused


def split_by_presence_of_id(request: TallyRequest, table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows without an id, and the rows with one."""
    from pyarrow import compute

    identifiers = table.column(request.id_column)
    if not identifiers.null_count:
        return table.slice(0, 0), table
    return table.filter(compute.is_null(identifiers)), table.filter(compute.is_valid(identifiers))


def count_partition(request: TallyRequest, folder: Path) -> dict[Key, Sifted]:
    """Count the rows of one partition, each id once."""
    import pyarrow
    from pyarrow import ipc

    tables = []
    for path in sorted(folder.glob("*.arrow")):
        with ipc.open_stream(str(path)) as reader:
            tables.append(reader.read_all())
    if not tables:
        return {}
    return count_unique(request, _deduplicated(request, pyarrow.concat_tables(tables)))


def _deduplicated(request: TallyRequest, table: pa.Table) -> pa.Table:
    """The first row of every id, with the column COPIES. Only rows that share their id, usually few, are sorted."""
    import pyarrow

    numbers, _ = number_values(table.column(request.id_column))
    copies = np.bincount(numbers)[numbers]
    shared = np.flatnonzero(copies > 1)
    shared = shared[_order(numbers[shared], table.select([BAD, request.report_column, *request.by]).take(shared))]
    first = shared[np.diff(numbers[shared], prepend=-1) != 0]
    rows = np.concatenate([np.flatnonzero(copies == 1), first])
    return table.take(rows).append_column(COPIES, pyarrow.array(copies[rows]))


def _order(numbers: Integers, table: pa.Table) -> Integers:
    """The order of rows by number, then by every column of the table, nulls first."""
    import pyarrow
    from pyarrow import compute

    keys: list[Any] = [pyarrow.array(numbers)]
    for column in table.columns:
        keys += [compute.is_valid(column), column]
    names = [str(place) for place in range(len(keys))]  # pyarrow might take the columns' own for paths
    sorted_rows = compute.sort_indices(pyarrow.table(keys, names), [(name, "ascending") for name in names])
    return np.asarray(sorted_rows, dtype=np.int64)


def count_unique(request: TallyRequest, table: pa.Table) -> dict[Key, Sifted]:
    """Count a table with one row per id and the column COPIES; duplicates are attributed to the kept row's group."""
    found = count_groups(request, table.to_batches())
    nothing = request.plan.empty_tally()
    for key, copies in split_by_group(table, request.by, COPIES):
        repeated = int(np.sum(copies.to_numpy(zero_copy_only=False) - 1))
        add_groups(found, [(key, Sifted(nothing, repeated=repeated))])
    return found


def _hashes(column: Any) -> NDArray[np.uint64]:
    """A 64-bit hash of every id."""
    from pyarrow import types

    if types.is_integer(column.type):
        return mix_bits(column.to_numpy().astype(np.int64, copy=False).view(np.uint64))
    return np.concatenate([*(cells_of(chunk).hashes() for chunk in column.chunks), np.zeros(0, dtype=np.uint64)])
