"""Every id counted once, exactly: rows are shared out by their id, and each share is looked at by itself.

Of the rows with one id the first in this order counts: good before bad, then by the report's bytes, then by the group
columns with nulls first. So every run, and every engine, counts the same row, and a damaged copy never displaces a good
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi.numerics.bits import byte_length
from sunzi.plan import Plan
from sunzi.tables import counting
from sunzi.tables.binary import cells_of, spread
from sunzi.tables.sifting import GOOD, Sifted, judge
from sunzi.tables.terms import Key, Terms

if TYPE_CHECKING:
    import pyarrow as pa

BAD = "sunzi_bad"
"""The column that says whether a row is no report, for sorting."""

COPIES = "sunzi_copies"
"""The column that says how many rows had the id."""

_BYTES_A_SHARE = 1 << 27
_BYTES_BESIDES = 160
_MOST_SHARES = 512


def number_of_shares(plan: Plan, rows: int) -> int:
    """So many that a share fits in memory, and not so many that files become tiny or too many are open."""
    size = rows * (byte_length(plan.max_report_bits) + _BYTES_BESIDES)  # the id, and what sorting takes
    return max(1, min(_MOST_SHARES, -(-size // _BYTES_A_SHARE)))


def judged(terms: Terms, table: pa.Table) -> pa.Table:
    """The table with a column that says which rows are no reports."""
    import pyarrow

    verdicts = [judge(terms.plan, chunk) != GOOD for chunk in table.column(terms.report_column).chunks]
    bad = np.concatenate([*verdicts, np.zeros(0, dtype=np.bool_)])
    return table.append_column(BAD, pyarrow.array(bad))


def share_out(terms: Terms, batches: Iterable[pa.RecordBatch], shares: Sequence[Path], place: int) -> dict[Key, Sifted]:
    """Write rows to a file in the folder of their id's share; what has no id is told of at once."""
    import pyarrow
    from pyarrow import ipc

    refused: dict[Key, Sifted] = {}
    writers: dict[int, Any] = {}
    try:
        for table in counting.large_pieces(batches):
            lost, named = by_id(terms, table)
            counting.add(refused, counting.without_id(terms, lost))
            rows = judged(terms, named)
            owners = (_hashes(rows.column(terms.id_column)) % np.uint64(len(shares))).astype(np.int64)
            order, ends = counting.in_order(owners, len(shares))
            for share in np.flatnonzero(np.diff(ends)).tolist():
                if share not in writers:
                    writers[share] = ipc.new_stream(str(shares[share] / f"{place}.arrow"), rows.schema)
                writers[share].write_table(rows.take(pyarrow.array(order[ends[share] : ends[share + 1]])))
    finally:
        for writer in writers.values():
            writer.close()
    return refused


def by_id(terms: Terms, table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows without an id, and those with one."""
    from pyarrow import compute

    identifiers = table.column(terms.id_column)
    if not identifiers.null_count:
        return table.slice(0, 0), table
    return table.filter(compute.is_null(identifiers)), table.filter(compute.is_valid(identifiers))


def count_share(terms: Terms, share: Path) -> dict[Key, Sifted]:
    """All rows of one share, each id once."""
    import pyarrow
    from pyarrow import ipc

    tables = []
    for path in sorted(share.glob("*.arrow")):
        with ipc.open_stream(str(path)) as reader:
            tables.append(reader.read_all())
    if not tables:
        return {}
    return count_kept(terms, _kept(terms, pyarrow.concat_tables(tables)))


def _kept(terms: Terms, table: pa.Table) -> pa.Table:
    """The first row of every id, and the number of its copies. Only rows that share an id, as few do, are sorted."""
    import pyarrow

    numbers, _ = counting.numbers_of(table.column(terms.id_column))
    copies = np.bincount(numbers)[numbers]
    several = np.flatnonzero(copies > 1)
    several = several[_order(numbers[several], table.select([BAD, terms.report_column, *terms.by]).take(several))]
    first = several[np.diff(numbers[several], prepend=-1) != 0]
    rows = np.concatenate([np.flatnonzero(copies == 1), first])
    return table.take(rows).append_column(COPIES, pyarrow.array(copies[rows]))


def _order(numbers: NDArray[np.int64], table: pa.Table) -> NDArray[np.int64]:
    """The order of rows by number, then by every column of the table, nulls first."""
    import pyarrow
    from pyarrow import compute

    keys: list[Any] = [pyarrow.array(numbers)]
    for column in table.columns:
        keys += [compute.is_valid(column), column]
    names = [str(place) for place in range(len(keys))]  # the columns' own might be taken for paths
    sorted_rows = compute.sort_indices(pyarrow.table(keys, names), [(name, "ascending") for name in names])
    return np.asarray(sorted_rows, dtype=np.int64)


def count_kept(terms: Terms, kept: pa.Table) -> dict[Key, Sifted]:
    """One row an id, with the number of its copies; those beyond the first are told of the group whose row counts."""
    found = counting.count(terms, kept.to_batches())
    nothing = terms.plan.empty_tally()
    for key, copies in counting.by_group(kept, terms.by, COPIES):
        repeated = int(np.sum(copies.to_numpy(zero_copy_only=False) - 1))
        counting.add(found, [(key, Sifted(nothing, repeated=repeated))])
    return found


def _hashes(column: Any) -> NDArray[np.uint64]:
    """64 bits of every id."""
    from pyarrow import types

    if types.is_integer(column.type):
        return spread(column.to_numpy().astype(np.int64, copy=False).view(np.uint64))
    return np.concatenate([*(cells_of(chunk).hashes() for chunk in column.chunks), np.zeros(0, dtype=np.uint64)])
