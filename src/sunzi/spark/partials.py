"""Partial tallies as rows of a data frame: written by the tasks of one stage, added up by those of the next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sunzi.columns.sifting import Refused, Sifted
from sunzi.columns.terms import Key
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

BUCKET = "sunzi_bucket"
"""Partial tallies of one group and one bucket are added by one task."""

_TALLY, _REFUSED, _REPEATED = "sunzi_tally", "sunzi_refused", "sunzi_repeated"


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


def write(fields: Sequence[pa.Field], bucket: int, found: Mapping[Key, Sifted]) -> pa.RecordBatch:
    """One row a group; ``fields`` are the group columns."""
    import pyarrow

    keys, values = list(found), list(found.values())
    columns = [pyarrow.array([key[place] for key in keys], field.type) for place, field in enumerate(fields)]
    own = {
        BUCKET: pyarrow.array([bucket] * len(keys), pyarrow.int64()),
        _TALLY: pyarrow.array([sifted.tally.to_bytes() for sifted in values], pyarrow.binary()),
        _REFUSED: pyarrow.array([_to_json(sifted.refused) for sifted in values], pyarrow.string()),
        _REPEATED: pyarrow.array([sifted.repeated for sifted in values], pyarrow.int64()),
    }
    names = [*(field.name for field in fields), *own]
    return pyarrow.RecordBatch.from_arrays([*columns, *own.values()], names=names)


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
