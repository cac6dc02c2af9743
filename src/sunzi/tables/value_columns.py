"""One column of values from a file in CSV, JSON Lines, plain text, Parquet or Arrow, read with bounded memory; public
columns may be read beside it.

Text is UTF-8 and may be compressed by gzip. CSV may have commas, semicolons or tabs; which, its line of column names
says. A plain text file holds one value per line.

CSV is read by pyarrow if it is installed (the extra ``frames``) and by Python's own reader otherwise, with the same
result. Fields may be quoted and then hold line breaks; quotation marks within are doubled. Every row must have as many
fields as the line of column names. A blank line is an empty value in a table of one column, and ignored in a wider one.
The one difference: pyarrow refuses a row of more than 1 MiB, Python's reader a field of more than 131,072 characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sunzi.client.errors import ParameterError
from sunzi.formatting import counted
from sunzi.tables import arrow, column_rows
from sunzi.tables.arrow import arrow_errors, need_pyarrow
from sunzi.tables.column_rows import Column, Rows, check_type, choose_columns, is_text, rows_of
from sunzi.tables.text_files import (
    GzipStream,
    check_delimiter,
    find_delimiter,
    format_of,
    json_value,
    read_json_lines,
    read_lines,
)

_BUFFER_BYTES = 1 << 18
# Also the longest row that pyarrow can read. It reads up to 32 blocks ahead, so larger ones would fill the memory.
_BLOCK_BYTES = 1 << 20
_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")


@contextmanager
def open_column(
    source: str | Path | BinaryIO,
    column: str | None = None,
    delimiter: str | None = None,
    public: Sequence[str] = (),
    *,
    numbers: bool = False,
) -> Iterator[Column]:
    """Open one column of a file, or of CSV from a binary stream, with public columns.

    Parameters
    ----------
    source: a file, whose suffix says its format, or a stream of CSV; text may be compressed (``.csv.gz``).
    column: the column's name, or the key in JSON Lines; may be omitted if there is only one.
    delimiter: what separates the columns of CSV; by default the comma, semicolon or tab in its line of column names,
        and a tab in ``.tsv``.
    public: the names of further columns, whose rows come in :attr:`Rows.public`.
    numbers: accept columns of numbers and dates, in Arrow and Parquet as texts, and in JSON Lines any number.
    """
    sign = None if delimiter is None else check_delimiter(delimiter)
    if not isinstance(source, (str, Path)):
        yield csv_column(source, None, column, sign, public)
        return
    path = Path(source)
    suffix = format_of(path.name, SUFFIXES)
    if suffix is None:
        raise ParameterError(
            f"a table's name must end in one of {', '.join(SUFFIXES)}, and text may end in .gz; got {path.name!r}"
        )
    if sign is not None and suffix not in (".csv", ".tsv"):
        raise ParameterError(f"a {suffix} file has no delimiter; leave it out")
    with path.open("rb", buffering=0) as stream:  # also for Arrow, so that the system's own error comes first
        size = path.stat().st_size
        if suffix in (".csv", ".tsv"):
            yield csv_column(stream, size, column, sign or ("\t" if suffix == ".tsv" else None), public)
        elif suffix in _ARROW_READERS:
            yield _ARROW_READERS[suffix](path, column, public, numbers)
        elif suffix == ".txt":
            yield _text_column(stream, size, column, public)
        else:
            yield _json_column(stream, size, column, public, numbers)


def read_labels(path: str | Path, column: str | None = None, delimiter: str | None = None) -> list[str]:
    """The labels of a domain from one column of a table, one per row; parameters as in :func:`open_column`."""
    labels: list[str] = []
    with open_column(path, column, delimiter) as found:
        for rows in found.pieces:
            for row in range(rows.codes.size):
                label = None if rows.missing is not None and rows.missing[row] else rows.value(row)
                if label is None or label == "":
                    raise ParameterError(f"row {len(labels) + 1} has no label")
                labels.append(str(label))
    return labels


def has_columns(path: str | Path) -> bool:
    """Whether a file's name says that it is a table with named columns."""
    return format_of(Path(path).name, SUFFIXES) not in (None, ".txt")


class _CountingStream(GzipStream):
    """Counts the quotation marks among the bytes that it passes on."""

    def __init__(self, stream: BinaryIO | io.RawIOBase) -> None:
        super().__init__(stream)
        self._source = stream
        self.quotes = 0

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        number = super().readinto(buffer)
        self.quotes += bytes(buffer[:number]).count(b'"')
        return number

    def fraction(self, size: int | None) -> float | None:
        """The fraction of the file's ``size`` bytes, compressed or not, that was read."""
        return min(self._source.tell() / size, 1) if size else None


def _opened(stream: BinaryIO | io.RawIOBase) -> tuple[_CountingStream, io.BufferedReader[_CountingStream]]:
    counting = _CountingStream(stream)
    return counting, io.BufferedReader(counting, buffer_size=_BUFFER_BYTES)


def csv_column(
    stream: BinaryIO | io.RawIOBase,
    size: int | None,
    column: str | None,
    delimiter: str | None = None,
    public: Sequence[str] = (),
    *,
    plain: bool = False,
) -> Column:
    """One column of a stream of CSV of ``size`` bytes, if that is known; ``plain`` does without pyarrow."""
    counting, buffered = _opened(stream)
    names, delimiter = _header(buffered, delimiter, column)
    positions = choose_columns(names, column, public)
    read = _read_by_python if plain or arrow.find_pyarrow() is None else _read_by_arrow
    pieces = _check_quotes(read(buffered, names, positions, delimiter), counting)
    return Column(names[positions[0]], pieces, lambda: counting.fraction(size))


def _json_column(stream: io.RawIOBase, size: int, column: str | None, public: Sequence[str], numbers: bool) -> Column:
    """The values under one key of JSON Lines; an absent key is a missing value."""
    counting, buffered = _opened(stream)
    records = read_json_lines(buffered)
    first = next(records, None)
    if first is None:
        raise ParameterError("the file is empty: JSON Lines hold an object per line")
    keys = list(first[1])
    names = [keys[position] for position in choose_columns(keys, column, public)]
    values = (
        tuple(json_value(number, record, name, numbers=numbers) for name in names)
        for number, record in chain([first], records)
    )
    return Column(names[0], _coded_rows(values), lambda: counting.fraction(size))


def _text_column(stream: io.RawIOBase, size: int, column: str | None, public: Sequence[str]) -> Column:
    """The lines of plain text."""
    for name in public if column is None else [column]:
        raise ParameterError(f"a .txt file holds one value per line and no column {name!r}; rename it if it is CSV")
    counting, buffered = _opened(stream)
    return Column("line", _coded_rows((text,) for _, text in read_lines(buffered)), lambda: counting.fraction(size))


def _coded_rows(values: Iterator[tuple[str | float | None, ...]]) -> Iterator[Rows]:
    """The values of one or more columns as rows: positions in the list of distinct ones."""
    while piece := list(islice(values, column_rows.ROWS_AT_ONCE)):
        first, *others = [_coded(column) for column in zip(*piece, strict=True)]
        yield replace(first, public=tuple(others))


def _coded(values: Iterable[str | float | None]) -> Rows:
    codes: dict[str | float | None, int] = {}
    array = np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)
    _check_utf8(text for text in codes if isinstance(text, str))
    return Rows(array, list(codes))


def _header(
    stream: io.BufferedReader[_CountingStream], delimiter: str | None, column: str | None
) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter."""
    lines = (line.decode("utf-8" if number else "utf-8-sig") for number, line in enumerate(stream))
    try:
        opening = next(lines, "")
        delimiter = delimiter or find_delimiter(opening, column)
        names = next(csv.reader(chain([opening], lines), delimiter=delimiter), None)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"the line of column names is not CSV in UTF-8: {error}") from None
    if not names:
        raise ParameterError("the table is empty: CSV begins with a line of column names")
    return names, delimiter


def _check_quotes(pieces: Iterator[Rows], counting: _CountingStream) -> Iterator[Rows]:
    """Refuse a quotation that is never closed: both readers would silently take the rest of the file for its text."""
    yield from pieces
    if counting.quotes % 2:
        raise ParameterError(
            "the table has an odd number of quotation marks, so one of them is never closed; a mark inside a value "
            "must be doubled, and the value quoted"
        )


def _read_by_python(
    stream: io.BufferedReader[_CountingStream], names: list[str], positions: list[int], delimiter: str
) -> Iterator[Rows]:
    # Other columns may have any encoding; the distinct texts of these are checked to be UTF-8.
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
    rows = _whole_rows(csv.reader(text, delimiter=delimiter), len(names))
    try:
        yield from _coded_rows(tuple(row[position] for position in positions) for row in rows)
    except csv.Error as error:
        raise ParameterError(f"the table cannot be read: {error}") from None


def _whole_rows(reader: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    number = 0
    for row in reader:
        if not row and width > 1:
            continue
        number += 1
        fields = row or [""]
        if len(fields) != width:
            found = counted(len(fields), "field")
            raise ParameterError(f"row {number} has {found}, the line of column names has {width}")
        yield fields


def _check_utf8(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ParameterError(f"value {text!r} is not UTF-8; convert the table first") from None


def _read_by_arrow(
    stream: io.BufferedReader[_CountingStream], names: list[str], positions: list[int], delimiter: str
) -> Iterator[Rows]:
    from pyarrow import csv as arrow_csv
    from pyarrow import dictionary, int32, string

    if not stream.peek(1):
        return  # pyarrow refuses a table without rows
    # Names may occur twice, as long as the chosen ones do not, so columns go by number.
    numbers = [str(number) for number in range(len(names))]
    texts = {numbers[position]: dictionary(int32(), string()) for position in positions}
    with arrow_errors():
        batches = arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(column_names=numbers, block_size=_BLOCK_BYTES, use_threads=False),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1),
            arrow_csv.ConvertOptions(include_columns=list(texts), column_types=texts),
        )
        yield from rows_of(batch.columns for batch in batches)


def _parquet_column(path: Path, column: str | None, public: Sequence[str], numbers: bool) -> Column:
    need_pyarrow("reading Parquet")
    from pyarrow import parquet

    with arrow_errors():
        schema = parquet.read_schema(path)
        fields = [schema.field(position) for position in choose_columns(schema.names, column, public)]
        check_type(fields[0], numbers=numbers)
        names, texts = [field.name for field in fields], [field.name for field in fields if is_text(field.type)]
        # With the last two, memory holds a few pages at a time instead of a row group's whole column.
        file = parquet.ParquetFile(path, read_dictionary=texts, buffer_size=1 << 20, pre_buffer=False)
    total = file.metadata.num_rows
    done = 0

    def arrays() -> Iterator[Any]:
        nonlocal done
        with file:
            for batch in file.iter_batches(batch_size=column_rows.ROWS_AT_ONCE, columns=names, use_threads=False):
                yield [batch.column(name) for name in names]
                done += len(batch)

    return Column(names[0], rows_of(arrays()), lambda: done / total if total else None)


def _arrow_column(path: Path, column: str | None, public: Sequence[str], numbers: bool) -> Column:
    """One column of an Arrow file, of the random-access or the streaming kind."""
    pyarrow = need_pyarrow("reading Arrow files")
    from pyarrow import ipc

    def open_reader(options: Any) -> Any:
        try:
            return ipc.open_file(pyarrow.memory_map(str(path)), options=options)
        except pyarrow.ArrowInvalid:
            return ipc.open_stream(pyarrow.memory_map(str(path)), options=options)

    with arrow_errors():
        schema = open_reader(None).schema
        positions = choose_columns(schema.names, column, public)
        check_type(schema.field(positions[0]), numbers=numbers)
        names = [schema.names[position] for position in positions]
        reader = open_reader(ipc.IpcReadOptions(included_fields=positions, use_threads=False))
    total = getattr(reader, "num_record_batches", None)
    done = 0

    def arrays() -> Iterator[Any]:
        nonlocal done
        for batch in reader if total is None else map(reader.get_batch, range(total)):
            yield [batch.column(name) for name in names]
            done += 1

    return Column(names[0], rows_of(arrays()), lambda: done / total if total else None)


_ARROW_READERS: dict[str, Callable[[Path, str | None, Sequence[str], bool], Column]] = {
    ".parquet": _parquet_column,
    ".arrow": _arrow_column,
    ".feather": _arrow_column,
}
SUFFIXES = (*_TEXTS, *_ARROW_READERS)
