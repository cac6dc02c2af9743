"""Partial tallies as rows of a data frame: written by the tasks of one stage, added up by those of the next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sunzi.tables.sifting import Refused, Sifted
from sunzi.tables.terms import Key
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

BUCKET = "sunzi_bucket"
"""Partial tallies of one group and one bucket are added by one task."""

_TALLY, _REFUSED, _REPEATED = "sunzi_tally", "sunzi_refused", "sunzi_repeated"
_BYTES_AT_ONCE = 1 << 26


def schema_of(df: DataFrame, by: Sequence[str]) -> StructType:
    """The group columns as they are, and a partial tally."""
    from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

    own = [
        StructField(BUCKET, LongType(), nullable=False),
        StructField(_TALLY, BinaryType(), nullable=False),
        StructField(_REFUSED, StringType(), nullable=False),
        StructField(_REPEATED, LongType(), nullable=False),
    ]
    return StructType([*(df.schema[name] for name in by), *own])


def write(fields: Sequence[pa.Field], bucket: int, found: Mapping[Key, Sifted]) -> Iterator[pa.RecordBatch]:
    """One row a group, in batches that Arrow can hold; ``fields`` are the group columns."""
    import pyarrow

    names = [*(field.name for field in fields), BUCKET, _TALLY, _REFUSED, _REPEATED]
    own_kinds = [pyarrow.int64(), pyarrow.binary(), pyarrow.string(), pyarrow.int64()]
    kinds = [*(_returned(field.type) for field in fields), *own_kinds]
    rows: list[tuple[Any, ...]] = []
    size = 0
    for key, sifted in found.items():
        rows.append((*key, bucket, sifted.tally.to_bytes(), _to_json(sifted.refused), sifted.repeated))
        size += len(rows[-1][len(key) + 1])
        if size >= _BYTES_AT_ONCE:
            yield _batch(names, kinds, rows)
            rows, size = [], 0
    if rows:
        yield _batch(names, kinds, rows)


def _returned(kind: pa.DataType) -> pa.DataType:
    """The type that Spark takes back: it hands moments out in the session's zone, and wants them in UTC."""
    import pyarrow

    moment = pyarrow.types.is_timestamp(kind) and kind.tz is not None
    return pyarrow.timestamp(kind.unit, "UTC") if moment else kind


def _batch(names: Sequence[str], kinds: Sequence[pa.DataType], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow

    columns = [pyarrow.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, names=list(names))


def read(table: pa.Table, by: Sequence[str]) -> Iterator[tuple[Key, Sifted]]:
    """The groups and partial tallies of all rows, one at a time."""
    for row in range(table.num_rows):
        cells = {name: table.column(name)[row].as_py() for name in (*by, _TALLY, _REFUSED, _REPEATED)}
        tally, refused = Tally.from_bytes(cells[_TALLY]), _from_json(cells[_REFUSED])
        yield tuple(cells[name] for name in by), Sifted(tally, refused, cells[_REPEATED])


def _to_json(refused: Refused) -> str:
    return json.dumps([dict(refused.counts), {reason: list(few) for reason, few in refused.samples.items()}])


def _from_json(text: str) -> Refused:
    counts, samples = json.loads(text)
    return Refused(counts, {reason: tuple(few) for reason, few in samples.items()})
