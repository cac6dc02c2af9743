"""Opening one column of a table, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sunzi.errors import ParameterError
from sunzi.tables.arrow_reader import arrow_column, parquet_column
from sunzi.tables.csv_reader import csv_column
from sunzi.tables.rows import Column

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ARROW_READERS: dict[str, Callable[[Path, str | None], Column]] = {
    ".parquet": parquet_column,
    ".arrow": arrow_column,
    ".feather": arrow_column,
}
SUFFIXES = (*_DELIMITERS, *_ARROW_READERS)


@contextmanager
def open_column(source: str | Path | BinaryIO, column: str | None = None) -> Iterator[Column]:
    """One column of a file, whose suffix says its format, or of CSV from a binary stream.

    ``column`` may be left out where there is only one. Memory does not grow with the number of rows.
    """
    if not isinstance(source, (str, Path)):
        yield csv_column(source, None, column)
        return
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ParameterError(f"a table's name must end in one of {', '.join(SUFFIXES)}; got {path.name!r}")
    with path.open("rb", buffering=0) as stream:  # also for Arrow, so that the system's own error comes first
        if suffix in _DELIMITERS:
            yield csv_column(stream, path.stat().st_size, column, _DELIMITERS[suffix])
        else:
            yield _ARROW_READERS[suffix](path, column)
