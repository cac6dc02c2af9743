"""Every id counted once, exactly, in bounded memory: rows are shared out by their id, then each share is sorted.

Of the rows with one id the first in this order counts: good before bad, then by the report's bytes, then by the group
columns with nulls first. So every run, and every engine, counts the same row, and a damaged copy never displaces a good
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi.columns import counting
from sunzi.columns.binary import cells_of, spread
from sunzi.columns.sifting import GOOD, Sifted, judge
from sunzi.columns.terms import Key, Terms
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

BAD = "sunzi_bad"
"""The column that says whether a row is no report, for sorting."""

COPIES = "sunzi_copies"
"""The column that says how many rows had the id."""

_ROWS_A_SHARE = 1 << 21
_MOST_SHARES = 256


def number_of_shares(rows: int) -> int:
    """So many that a share fits in memory, and not so many that files become tiny or too many are open."""
    return max(1, min(_MOST_SHARES, -(-rows // _ROWS_A_SHARE)))


def judged(terms: Terms, table: pa.Table) -> pa.Table:
    """The table with a column that says which rows are no reports."""
    import pyarrow

    verdicts = [judge(terms.plan, chunk) != GOOD for chunk in table.column(terms.report_column).chunks]
    bad = np.concatenate([*verdicts, np.zeros(0, dtype=np.bool_)])
    return table.append_column(BAD, pyarrow.array(bad))


def share_out(
    terms: Terms, batches: Iterable[pa.RecordBatch], folder: Path, place: int, shares: int
) -> dict[Key, Sifted]:
    """Write rows to the file of their id's share; what has no id is told of at once."""
    import pyarrow
    from pyarrow import compute, ipc

    refused: dict[Key, Sifted] = {}
    writers: dict[int, Any] = {}
    try:
        for table in counting.large_pieces(batches):
            missing = compute.is_null(table.column(terms.id_column))
            lost = counting.without_id(terms.plan, terms.by, terms.report_column, table.filter(missing))
            counting.add(refused, lost)
            rows = judged(terms, table.filter(compute.invert(missing)))
            owners = (_hashes(rows.column(terms.id_column)) % np.uint64(shares)).astype(np.int64)
            order = np.argsort(owners, kind="stable")
            ends = np.searchsorted(owners[order], np.arange(shares + 1))
            for share in np.flatnonzero(np.diff(ends)).tolist():
                if share not in writers:
                    writers[share] = ipc.new_stream(str(_share(folder, share) / f"{place}.arrow"), rows.schema)
                writers[share].write_table(rows.take(pyarrow.array(order[ends[share] : ends[share + 1]])))
    finally:
        for writer in writers.values():
            writer.close()
    return refused


def _share(folder: Path, share: int) -> Path:
    path = folder / str(share)
    path.mkdir(exist_ok=True)
    return path


def count_share(terms: Terms, folder: Path, share: int) -> dict[Key, Sifted]:
    """All rows of one share, each id once."""
    import pyarrow
    from pyarrow import ipc

    assert terms.id_column is not None, "only ids are shared out"
    tables = []
    for path in sorted((folder / str(share)).glob("*.arrow")):
        with ipc.open_stream(str(path)) as reader:
            tables.append(reader.read_all())
    if not tables:
        return {}
    table = pyarrow.concat_tables(tables)
    columns = (terms.id_column, BAD, terms.report_column, *terms.by)
    table = table.sort_by([(name, "ascending", "at_start") for name in columns])
    first = _first_of_run(table.column(terms.id_column))
    copies = np.diff(np.append(np.flatnonzero(first), table.num_rows))
    return count_kept(terms, table.filter(pyarrow.array(first)).append_column(COPIES, pyarrow.array(copies)))


def count_kept(terms: Terms, kept: pa.Table) -> dict[Key, Sifted]:
    """One row an id, with the number of its copies; those beyond the first are told of the group whose row counts."""
    found = counting.count(terms.plan, terms.by, terms.report_column, kept.to_batches())
    nothing = terms.plan.empty_tally()
    for key, copies in counting.by_group(kept, terms.by, COPIES):
        repeated = int(np.sum(copies.to_numpy(zero_copy_only=False) - 1))
        counting.add(found, [(key, Sifted(nothing, repeated=repeated))])
    return found


def _first_of_run(column: Any) -> NDArray[np.bool_]:
    """Of a sorted column, which rows differ from the one before."""
    from pyarrow import compute

    first = np.ones(len(column), dtype=np.bool_)
    if len(column) > 1:
        differs = compute.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        first[1:] = differs.to_numpy()
    return first


def _hashes(column: Any) -> NDArray[np.uint64]:
    """64 bits of every id."""
    from pyarrow import types

    if types.is_integer(column.type):
        return spread(column.to_numpy().astype(np.int64, copy=False).view(np.uint64))
    if not _is_bytes_or_text(column.type):
        raise ParameterError(f"ids must be bytes, texts or integers, these are {column.type}")
    return np.concatenate([*(cells_of(chunk).hashes() for chunk in column.chunks), np.zeros(0, dtype=np.uint64)])


def _is_bytes_or_text(kind: Any) -> bool:
    from pyarrow import types

    plain = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_string, types.is_large_string)
    return any(test(kind) for test in plain)
