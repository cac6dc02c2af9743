"""Text files of values before they become columns: compression, the delimiter of CSV, JSON Lines and plain lines."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, BinaryIO

from sunzi.client.errors import ParameterError

DELIMITERS = (",", ";", "\t")
LONGEST_LINE = 1 << 20
"""The longest line of JSON Lines and of plain text, in bytes."""

_GZIP = b"\x1f\x8b"
_QUOTED = re.compile(r'"[^"]*("|$)')
_NAMES = {"\t": "a tab", ",": "a comma", ";": "a semicolon"}


class GzipStream(io.RawIOBase):
    """The bytes of a stream, decompressed if they are gzip; damage is a ParameterError."""

    def __init__(self, stream: BinaryIO | io.RawIOBase) -> None:
        raw = io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else io.BufferedReader(_Unbuffered(stream))
        is_compressed = raw.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
        self._stream: Any = gzip.GzipFile(fileobj=raw, mode="rb") if is_compressed else raw

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        try:
            data = self._stream.read1(len(buffer))
        except EOFError:
            raise ParameterError("the gzip file is truncated") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ParameterError(f"the gzip file is damaged: {error}") from None
        buffer[: len(data)] = data
        return len(data)


class _Unbuffered(io.RawIOBase):
    """Any object with ``read`` as a raw stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        data = self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


def check_delimiter(delimiter: str) -> str:
    """Return the delimiter, where ``tab`` and ``\\t`` mean a tab."""
    found = "\t" if delimiter in ("tab", "\\t") else delimiter
    if len(found) != 1 or found in '"\r\n' or not found.isascii():
        raise ParameterError(f"the delimiter must be one character such as ',', ';' or tab, got {delimiter!r}")
    return found


def find_delimiter(header: str, column: str | None) -> str:
    """The delimiter of CSV: the one of comma, semicolon and tab that occurs in the line of column names.

    If several do, the requested column decides; if it cannot, ParameterError names the flag. A line with none of them
    has one column.
    """
    names = _QUOTED.sub("", header)
    found = [delimiter for delimiter in DELIMITERS if delimiter in names]
    if len(found) > 1 and column is not None:
        found = [delimiter for delimiter in found if column in _split(header, delimiter)] or found
    if len(found) > 1:
        listed = " and ".join(_NAMES[delimiter] for delimiter in found)
        raise ParameterError(
            f"the line of column names holds {listed}, so it is unclear which one separates columns; say so with "
            "--delimiter (delimiter= in Python)"
        )
    return found[0] if found else ","


def _split(header: str, delimiter: str) -> list[str]:
    import csv

    return next(csv.reader([header.rstrip("\r\n")], delimiter=delimiter), [])


def read_json_lines(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON Lines with their line numbers; blank lines are ignored."""
    for number, line in read_lines(stream):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"line {number} is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise ParameterError(f'line {number} must be an object such as {{"name": "value"}}, got {line[:40]!r}')
        yield number, found


def json_value(number: int, record: dict[str, Any], name: str, *, numbers: bool) -> str | float | None:
    """The value under this name: text, an integer, with ``numbers`` any number, or None if it is null or absent."""
    value = record.get(name)
    if value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if numbers and isinstance(value, float) and not isnan(value):
        return value
    wanted = "a number" if numbers else "an integer"
    raise ParameterError(f"line {number}: {name!r} must be text or {wanted}, got {json.dumps(value)[:40]}")


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """The lines of UTF-8 text with their numbers, without line ends and byte order mark."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ParameterError(f"line {number} is longer than {LONGEST_LINE:,} bytes")
        try:
            text = line.decode("utf-8" if number > 1 else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise ParameterError(f"line {number} is not UTF-8: {error}") from None
        yield number, text.removesuffix("\n").removesuffix("\r")


def format_of(name: str, known: Sequence[str]) -> str | None:
    """The suffix of a file's name that states its format, without ``.gz``; None if it is not among ``known``."""
    plain = name.lower().removesuffix(".gz")
    return next((suffix for suffix in known if plain.endswith(suffix)), None)
