"""One column of CSV in UTF-8: by pyarrow if it is installed, by Python's own reader otherwise, with the same result.

Fields may be quoted, and hold line breaks then; quotation marks within are doubled. Every row must have as many fields
as the line of column names. A blank line is an empty value in a table of one column, and nothing in a wider one.
The one difference: pyarrow refuses a row of more than 1 MiB, Python's reader a field of more than 131,072 characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from sunzi.errors import ParameterError
from sunzi.tables import arrow_reader
from sunzi.tables.rows import ROWS_AT_ONCE, Column, Rows, choose_column

_BUFFER_BYTES = 1 << 18
# Also the longest row that pyarrow can read. It reads up to 32 blocks ahead, so larger ones would fill the memory.
_BLOCK_BYTES = 1 << 20


class _CountingStream(io.RawIOBase):
    """Passes bytes on, counting them and the quotation marks among them."""

    def __init__(self, stream: BinaryIO | io.RawIOBase) -> None:
        self._stream = stream
        self.count = self.quotes = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        data = self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        self.count += len(data)
        self.quotes += data.count(b'"')
        return len(data)


def csv_column(
    stream: BinaryIO | io.RawIOBase, size: int | None, column: str | None, delimiter: str = ",", *, plain: bool = False
) -> Column:
    """The column of a stream of ``size`` bytes, if that is known; ``plain`` does without pyarrow."""
    counting = _CountingStream(stream)
    buffered = io.BufferedReader(counting, buffer_size=_BUFFER_BYTES)
    names = _header(buffered, delimiter)
    position, name = choose_column(names, column)
    read = _read_by_python if plain or arrow_reader.find_pyarrow() is None else _read_by_arrow
    pieces = _closed_quotes(read(buffered, names, position, delimiter), counting)
    return Column(name, pieces, lambda: counting.count / size if size else None)


def _header(stream: io.BufferedReader[_CountingStream], delimiter: str) -> list[str]:
    lines = (line.decode("utf-8" if number else "utf-8-sig") for number, line in enumerate(stream))
    try:
        names = next(csv.reader(lines, delimiter=delimiter), None)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"the line of column names is not CSV in UTF-8: {error}") from None
    if not names:
        raise ParameterError("the table is empty: CSV begins with a line of column names")
    return names


def _closed_quotes(pieces: Iterator[Rows], counting: _CountingStream) -> Iterator[Rows]:
    """Both readers let a quotation that is never closed swallow the rest of the file without a word."""
    yield from pieces
    if counting.quotes % 2:
        raise ParameterError(
            "the table has an odd number of quotation marks, so one of them is never closed; a mark inside a value "
            "must be doubled, and the value quoted"
        )


def _read_by_python(
    stream: io.BufferedReader[_CountingStream], names: list[str], position: int, delimiter: str
) -> Iterator[Rows]:
    # Other columns may hold what they like; whether this one is UTF-8 is checked on its distinct texts.
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
    rows = _whole_rows(csv.reader(text, delimiter=delimiter), len(names))
    try:
        while values := [row[position] for row in islice(rows, ROWS_AT_ONCE)]:
            codes: dict[str, int] = {}
            array = np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)
            _check_utf8(codes)
            yield Rows(array, list(codes))
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
            raise ParameterError(f"row {number} has {len(fields)} fields, the line of column names has {width}")
        yield fields


def _check_utf8(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ParameterError(f"value {text!r} is not UTF-8; convert the table first") from None


def _read_by_arrow(
    stream: io.BufferedReader[_CountingStream], names: list[str], position: int, delimiter: str
) -> Iterator[Rows]:
    from pyarrow import csv as arrow_csv
    from pyarrow import dictionary, int32, string

    if not stream.peek(1):
        return  # pyarrow refuses a table without rows
    # Names may occur twice, as long as the chosen one does not, so columns go by number.
    numbers = [str(number) for number in range(len(names))]
    texts = {numbers[position]: dictionary(int32(), string())}
    with arrow_reader.arrow_errors():
        batches = arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(column_names=numbers, block_size=_BLOCK_BYTES, use_threads=False),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1),
            arrow_csv.ConvertOptions(include_columns=[numbers[position]], column_types=texts),
        )
        yield from arrow_reader.pieces_of(batch.column(0) for batch in batches)
