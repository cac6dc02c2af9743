"""pyarrow, its errors, and Arrow's columns of bytes as numpy arrays without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError, ReportError, SunziError
from sunzi.errors import MissingExtraError
from sunzi.numerics.bits import SPLITMIX_STEP, mix_bits

_WORD = 8
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)
_HASHED_BYTES = 1 << 10
_VIEWED = {"binary_view": "large_binary", "string_view": "large_string"}


def find_pyarrow() -> Any:
    """Return pyarrow, or None if it is not installed."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        return None
    return pyarrow


def need_pyarrow(feature: str) -> Any:
    """Return pyarrow, or raise an error that names the extra that ``feature`` needs."""
    pyarrow = find_pyarrow()
    if pyarrow is None:
        raise MissingExtraError(feature, "frames")
    return pyarrow


@contextmanager
def arrow_errors(path: str | None = None) -> Iterator[None]:
    """Turn pyarrow's errors about a file's content, of many classes and many lines, into a ParameterError of one line.

    ``path`` is put before messages that do not contain it.
    """
    import pyarrow

    try:
        yield
    except SunziError as error:
        if path is None or not isinstance(error, ParameterError):
            raise
        raise ParameterError(_with_path(str(error), path)) from None
    except (ValueError, OSError, NotImplementedError, KeyError, pyarrow.ArrowTypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ParameterError(_with_path(f"the table cannot be read: {reason}", path)) from None


def _with_path(message: str, path: str | None) -> str:
    return message if path is None or path in message else f"{path}: {message}"


@dataclass(frozen=True)
class Cells:
    """The cells of a binary column: all bytes, each cell's start and length, and which cells are not null."""

    data: NDArray[np.uint8]
    starts: Integers
    lengths: Integers
    present: NDArray[np.bool_]

    def __len__(self) -> int:
        """The number of cells, nulls included."""
        return int(self.starts.size)

    def cell(self, row: int) -> bytes:
        """The bytes of one cell; none for a null."""
        if not self.present[row]:
            return b""
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])].tobytes()

    def integers(self, rows: Integers, width: int) -> NDArray[np.uint64]:
        """Cells of exactly ``width`` ≤ 8 bytes as little-endian integers."""
        starts = self.starts[rows] if rows.size < len(self) else self.starts
        if not starts.size or not bool((np.diff(starts) == width).all()):
            return self.words(rows)
        first = int(starts[0])  # contiguous, as writers leave them
        padded = np.zeros((rows.size, _WORD), dtype=np.uint8)
        padded[:, :width] = self.data[first : first + starts.size * width].reshape(-1, width)
        return padded.view("<u8").reshape(-1).astype(np.uint64, copy=False)

    def words(self, rows: Integers, offset: int = 0) -> NDArray[np.uint64]:
        """Eight bytes of each cell from ``offset`` on, as little-endian integers, padded with zeros after its end."""
        data = self.data if self.data.size >= _WORD else np.pad(self.data, (0, _WORD - self.data.size))
        windows = np.ndarray(data.size - _WORD + 1, "<u8", data, strides=(1,))  # one at every byte
        starts = self.starts[rows] + offset
        found = np.minimum(starts, windows.size - 1)
        shifts = np.minimum(starts - found, _WORD - 1).astype(np.uint64) * np.uint64(8)
        remaining = np.clip(self.lengths[rows] - offset, 0, _WORD)
        return (windows[found].astype(np.uint64, copy=False) >> shifts) & _MASKS[remaining]

    def hashes(self) -> NDArray[np.uint64]:
        """A 64-bit hash of every cell, of its length and its first KiB, to partition rows by.

        It has no key: someone who chooses the ids can make the partitions uneven.
        """
        hashes = mix_bits(self.lengths.astype(np.uint64))
        for offset in range(0, min(int(self.lengths.max(initial=0)), _HASHED_BYTES), _WORD):
            rows = np.flatnonzero(self.lengths > offset)
            hashes[rows] = mix_bits((hashes[rows] + SPLITMIX_STEP) ^ self.words(rows, offset))
        return hashes


def plain(column: Any) -> Any:
    """The same values in a type that Arrow can take and sort: without dictionary, view or extension type."""
    kind = column.type
    if hasattr(kind, "storage_type"):
        return plain(column.cast(kind.storage_type))
    if str(kind).startswith("dictionary"):
        return plain(column.cast(kind.value_type))
    return column.cast(_VIEWED[str(kind)]) if str(kind) in _VIEWED else column


def cells_of(column: Any) -> Cells:
    """The cells of an Arrow array of binary values: of variable or fixed length, views or dictionary-encoded."""
    column = plain(column)
    kind = str(column.type)
    offset, count = int(column.offset), len(column)
    present = np.ones(count, dtype=np.bool_)
    if column.null_count:
        present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if kind.startswith("fixed_size_binary"):
        width = int(column.type.byte_width)
        starts = (np.arange(count, dtype=np.int64) + offset) * width
        return Cells(_bytes(column.buffers()[1]), starts, np.where(present, width, 0).astype(np.int64), present)
    if kind not in ("binary", "large_binary", "string", "large_string"):
        raise ReportError(f"a column of reports must hold binary values, this one holds {kind}; cast it to binary")
    _, offsets, data = column.buffers()
    offset_type = "<i8" if kind.startswith("large") else "<i4"
    ends = np.zeros(count + 1, dtype=np.int64)
    if offsets is not None and count:
        ends = np.frombuffer(offsets, dtype=offset_type)[offset : offset + count + 1].astype(np.int64)
    return Cells(_bytes(data), ends[:-1], np.where(present, np.diff(ends), 0), present)


def _bytes(buffer: Any) -> NDArray[np.uint8]:
    return np.frombuffer(b"" if buffer is None else buffer, dtype=np.uint8)
