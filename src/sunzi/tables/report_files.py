"""Parquet files of reports: one row per report, with its public columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sunzi._typing import Integers
from sunzi.batch_client import BatchClient
from sunzi.client.errors import ParameterError
from sunzi.domains.labels import is_located
from sunzi.tables.arrow import need_pyarrow
from sunzi.tables.column_rows import ROWS_AT_ONCE, Rows
from sunzi.tables.group_counts import OWN_PREFIX, PLAN_KEY

if TYPE_CHECKING:
    import pyarrow as pa

REPORT_COLUMN = "report"
"""The column of reports in files that Sunzi writes, and the default where it reads them."""


def check_public(names: Sequence[str]) -> None:
    """Refuse names of public columns that are repeated or reserved."""
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"the public column {name!r} is named twice")
        if name == REPORT_COLUMN or name.startswith(OWN_PREFIX):
            raise ParameterError(
                f"{REPORT_COLUMN!r} and names that begin with {OWN_PREFIX!r} are reserved; rename the column {name!r}"
            )


def write_reports(
    stream: BinaryIO, client: BatchClient, public: Sequence[str], pieces: Iterable[tuple[Integers, Rows]], size: int
) -> None:
    """Write a report for every row as Parquet.

    Parameters
    ----------
    stream: a binary stream.
    client: makes the reports. The column of reports names its plan, so that other plans are refused.
    public: the names of the public columns; their values are written as text.
    pieces: rows with the index of each, negative for rows that are left out.
    size: how many reports to make at once.
    """
    pyarrow = need_pyarrow("writing reports as Parquet")
    from pyarrow import parquet

    schema = _schema(client, public)
    with parquet.ParquetWriter(stream, schema) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in _batches(client, schema, pieces, size):
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= ROWS_AT_ONCE:
                writer.write_table(pyarrow.Table.from_batches(waiting))
                waiting = []
        writer.write_table(pyarrow.Table.from_batches(waiting, schema))


def _batches(
    client: BatchClient, schema: pa.Schema, pieces: Iterable[tuple[Integers, Rows]], size: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow

    for indices, rows in pieces:
        kept = np.flatnonzero(is_located(indices))
        for start in range(0, kept.size, size):
            chosen = kept[start : start + size]
            reports = pyarrow.array(client.reports_of_indices(indices[chosen]), pyarrow.binary())
            columns = [*(_texts(column, chosen) for column in rows.public), reports]
            yield pyarrow.record_batch(columns, schema=schema)


def _schema(client: BatchClient, public: Sequence[str]) -> pa.Schema:
    """Public columns of text, then the column of reports, which names its plan."""
    import pyarrow

    fields = [pyarrow.field(name, pyarrow.string()) for name in public]
    plan = {PLAN_KEY: client.plan.fingerprint}
    return pyarrow.schema([*fields, pyarrow.field(REPORT_COLUMN, pyarrow.binary(), metadata=plan)])


def _texts(column: Rows, chosen: Integers) -> Any:
    """The values of these rows as an Arrow array of texts; a missing value is null."""
    import pyarrow

    codes = column.codes[chosen]
    if column.texts is not None:
        texts = [None if text is None else str(text) for text in column.texts]
        return pyarrow.array(texts, pyarrow.string()).take(pyarrow.array(codes))
    mask = None if column.missing is None else column.missing[chosen]
    return pyarrow.array(codes, mask=mask).cast(pyarrow.string())
