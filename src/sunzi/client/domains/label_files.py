"""Files of labels, one per line."""

from __future__ import annotations

import gzip
import zlib
from hashlib import sha256
from pathlib import Path

from ..errors import DomainError, shown


def read_labels(path: str | Path, digest: str) -> list[str]:
    """The labels of a file with this SHA-256, or of what is left of it once it is tidied."""
    data = read_bytes(path)
    if sha256(data).hexdigest() == digest:
        return utf8_text(path, data).removesuffix("\n").split("\n")
    return tidy_labels(path, data)


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file, decompressed if they are gzip; UTF-8 text never starts with gzip's magic number."""
    data = Path(path).read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise DomainError(f"{path}: the gzip file is damaged or truncated: {error}") from None


def utf8_text(path: str | Path, data: bytes) -> str:
    """The text of a label file."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DomainError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None


def tidy_labels(path: str | Path, data: bytes) -> list[str]:
    """The labels of a file as people write them; ambiguous lines are refused by number."""
    text = utf8_text(path, data).removeprefix("\ufeff").replace("\r\n", "\n")
    labels = [line.rstrip(" \t") for line in text.split("\n")]
    while labels and not labels[-1]:
        labels.pop()
    if not labels:
        raise DomainError(f"{path} is empty; a label file has one label per line")
    lines: dict[str, int] = {}
    for number, label in enumerate(labels, start=1):
        if not label:
            raise DomainError(f"{path}: line {number} is blank; remove it, or pass a list of labels if '' is one")
        if "\r" in label:
            raise DomainError(f"{path}: line {number} has a carriage return; end lines with LF or CR LF")
        if label in lines:
            raise DomainError(f"{path}: label {shown(label)} occurs twice, in lines {lines[label]} and {number}")
        lines[label] = number
    return labels
