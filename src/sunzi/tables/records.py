"""Records with the same columns as CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sunzi.errors import ParameterError
from sunzi.tables.arrow_reader import need_pyarrow

Records = Sequence[Mapping[str, Any]]

FORMATS = ("csv", "json", "parquet")


def records_as(form: str, records: Records) -> bytes:
    """The bytes of a file of this format; missing values are empty in CSV and null elsewhere."""
    if form not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}; got {form!r}")
    if form == "parquet":
        return _parquet(records)
    return (_csv(records) if form == "csv" else _json(records)).encode()


def _csv(records: Records) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _json(records: Records) -> str:
    lines = ",\n ".join(json.dumps(dict(record), ensure_ascii=False, allow_nan=False) for record in records)
    return f"[\n {lines}\n]\n" if records else "[]\n"


def _parquet(records: Records) -> bytes:
    pyarrow = need_pyarrow("writing Parquet")
    from pyarrow import parquet

    columns = {name: [record[name] for record in records] for name in (records[0] if records else ())}
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()
