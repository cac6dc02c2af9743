"""Tables of results as CSV, JSON or Parquet: records with equal keys, and histograms.

A histogram always has the unbiased estimate and its interval; post-processed frequencies have a separate column.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import PostprocessedHistogram
from sunzi.results.uncertainty import Target
from sunzi.tables.arrow import need_pyarrow

Columns = Mapping[str, list[Any]]
Note = str | int | float | Mapping[str, Any] | None

FORMATS = ("csv", "json", "parquet")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class HistogramTable:
    """Columns of equal length, and notes about all of them, for formats that can carry notes."""

    indices: Integers
    """The values' indices in the domain."""
    columns: Columns
    notes: Mapping[str, Note]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.columns["label"])

    def write(self, form: str, stream: BinaryIO) -> None:
        """Write "csv", "json" (the notes, and under ``histogram`` one object per row) or "parquet" (the notes are
        the schema's metadata).
        """
        _write(form, stream, self.columns, self.notes)


def histogram_table(
    estimate: Estimate,
    *,
    confidence: float = 0.95,
    target: Target = "reporters",
    top: int | None = None,
    among: Integers | None = None,
    processed: PostprocessedHistogram | None = None,
    notes: Mapping[str, Note] | None = None,
) -> HistogramTable:
    """The table of an estimate.

    Parameters
    ----------
    confidence, target: of the intervals.
    top: only the ``top`` most frequent values, most frequent first; by default all in the domain's order.
    among: only values with these indices.
    processed: a post-processed histogram, for a separate column.
    notes: further notes.
    """
    order = np.arange(estimate.domain.size) if among is None else among
    if top is not None:
        order = order[np.argsort(-estimate.frequencies[order], kind="stable")]
    chosen = order[:top]
    low, high = estimate.interval(confidence, target=target)
    labels = [estimate.domain.shown(index) for index in chosen.tolist()]
    columns: dict[str, list[Any]] = {
        "label": chosen.tolist() if estimate.domain.is_indices else labels,
        "frequency": estimate.frequencies[chosen].tolist(),
        "low": low[chosen].tolist(),
        "high": high[chosen].tolist(),
        "standard_error": estimate.standard_errors(target)[chosen].tolist(),
        "count": estimate.counts[chosen].tolist(),
    }
    about: dict[str, Note] = {
        "reports": estimate.reports,
        "confidence": confidence,
        "target": target,
        "weights": estimate.weights,
    }
    if processed is not None:
        columns[f"frequency_{processed.method}"] = processed.frequencies[chosen].tolist()
        about |= {"postprocess": processed.method, "postprocess_effect": processed.effect}
    return HistogramTable(chosen, columns, {**(notes or {}), **about})


def records_as(form: str, records: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> bytes:
    """Records with the keys of the first as a file of "csv", "json" or "parquet"; None is an empty field in CSV and
    null elsewhere. ``columns`` names the keys where there is no record.
    """
    stream = io.BytesIO()
    _write(form, stream, {name: [record[name] for record in records] for name in (records[0] if records else columns)})
    return stream.getvalue()


def records_of(columns: Columns) -> Iterator[dict[str, Any]]:
    """The rows of columns of equal length, as dictionaries."""
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _write(form: str, stream: BinaryIO, columns: Columns, notes: Mapping[str, Note] | None = None) -> None:
    if form == "csv":
        _write_csv(_Utf8Stream(stream), columns)
    elif form == "json":
        for text in _json(columns, notes):
            stream.write(text.encode())
    elif form == "parquet":
        _write_parquet(stream, columns, notes)
    else:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}; got {form!r}")


class _Utf8Stream:
    """Writes text to a binary stream as UTF-8, independent of the locale."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text as UTF-8."""
        return self._stream.write(text.encode())


def _write_csv(stream: _Utf8Stream, columns: Columns) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_neutral, row) for row in zip(*columns.values(), strict=True))


def _neutral(cell: object) -> object:
    """The cell, with an apostrophe before text that a spreadsheet would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell


def _json(columns: Columns, notes: Mapping[str, Note] | None) -> Iterator[str]:
    """An array with one object per row and line; with notes, an object of these and the array."""
    if notes is None:
        yield from _json_rows(columns, indent="")
        yield "\n"
        return
    yield json.dumps(dict(notes), ensure_ascii=False, indent=1).removesuffix("\n}") + ',\n "histogram": '
    yield from _json_rows(columns, indent=" ")
    yield "\n}\n"


def _json_rows(columns: Columns, indent: str) -> Iterator[str]:
    separator = "["
    for each in records_of(columns):
        record = json.dumps(each, ensure_ascii=False, allow_nan=False)
        yield f"{separator}\n{indent} {record}"
        separator = ","
    yield "[]" if separator == "[" else f"\n{indent}]"


def _write_parquet(stream: BinaryIO, columns: Columns, notes: Mapping[str, Note] | None) -> None:
    pyarrow = need_pyarrow("writing Parquet")
    from pyarrow import parquet

    table = pyarrow.table(dict(columns))
    if notes is not None:
        table = table.replace_schema_metadata({key: _note(value) for key, value in notes.items()})
    parquet.write_table(table, stream)


def _note(value: Note) -> str:
    return str(value) if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
