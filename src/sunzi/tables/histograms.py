"""Histograms as tables: CSV, JSON and Parquet.

The unbiased estimate and its interval are always there; what post-processing made of it stands in a column of its own.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sunzi.estimate import Estimate, PostprocessedHistogram, Target
from sunzi.tables.arrow_reader import need_pyarrow

Note = str | int | float


@dataclass(frozen=True)
class HistogramTable:
    """Columns of equal length, and notes about all of them, for formats that can carry notes."""

    indices: NDArray[np.int64]
    """The values' places in the domain."""
    columns: Mapping[str, list[Any]]
    notes: Mapping[str, Note]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.columns["label"])

    def write_csv(self, stream: BinaryIO) -> None:
        """UTF-8, a line of column names, numbers in full."""
        writer = csv.writer(_Encoded(stream), lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))

    def write_json(self, stream: BinaryIO) -> None:
        """The notes, and under ``histogram`` one object a row."""
        text = _Encoded(stream)
        notes = json.dumps(dict(self.notes), ensure_ascii=False, indent=1)
        text.write(notes.removesuffix("\n}") + ',\n "histogram": [')
        for number, row in enumerate(zip(*self.columns.values(), strict=True)):
            record = dict(zip(self.columns, row, strict=True))
            text.write((",\n  " if number else "\n  ") + json.dumps(record, ensure_ascii=False))
        text.write("\n ]\n}\n")

    def write_parquet(self, stream: BinaryIO) -> None:
        """The notes are the schema's metadata."""
        pyarrow = need_pyarrow("writing Parquet")
        from pyarrow import parquet

        notes = {key: str(value) for key, value in self.notes.items()}
        parquet.write_table(pyarrow.table(dict(self.columns)).replace_schema_metadata(notes), stream)


class _Encoded:
    """Text written to a binary stream as UTF-8, whatever the locale."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write all of it."""
        return self._stream.write(text.encode())


def histogram_table(
    estimate: Estimate,
    *,
    confidence: float = 0.95,
    target: Target = "reporters",
    top: int | None = None,
    among: NDArray[np.int64] | None = None,
    processed: PostprocessedHistogram | None = None,
    notes: Mapping[str, Note] | None = None,
) -> HistogramTable:
    """All values in the domain's order, or the ``top`` most frequent ones, most frequent first; of all values, or
    ``among`` those at these places of the domain.
    """
    order = np.arange(estimate.domain.size) if among is None else among
    if top is not None:
        order = order[np.argsort(-estimate.frequencies[order], kind="stable")]
    chosen = order[:top]
    low, high = estimate.interval(confidence, target=target)
    labels = [estimate.domain.shown(index) for index in chosen.tolist()]
    columns: dict[str, list[Any]] = {
        "label": labels if estimate.domain.has_labels else chosen.tolist(),
        "frequency": estimate.frequencies[chosen].tolist(),
        "low": low[chosen].tolist(),
        "high": high[chosen].tolist(),
        "standard_error": estimate.standard_errors(target)[chosen].tolist(),
        "count": estimate.counts[chosen].tolist(),
    }
    about: dict[str, Note] = {"reports": estimate.reports, "confidence": confidence, "target": target}
    if processed is not None:
        columns[f"frequency_{processed.method}"] = processed.frequencies[chosen].tolist()
        about |= {"postprocess": processed.method, "postprocess_effect": processed.effect}
    return HistogramTable(chosen, columns, {**(notes or {}), **about})
