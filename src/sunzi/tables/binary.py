"""Arrow's columns of bytes as numpy arrays, without a copy and without importing Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ReportError

_WORD = 8
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)
_HASHED_BYTES = 1 << 10
_FACTOR = 0x9E3779B97F4A7C15
_VIEWED = {"binary_view": "large_binary", "string_view": "large_string"}
_SPREADERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@dataclass(frozen=True)
class Cells:
    """All bytes of a column, where each cell begins, how long it is, and which cells are there at all."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    present: NDArray[np.bool_]

    def __len__(self) -> int:
        """The number of cells, missing ones included."""
        return int(self.starts.size)

    def cell(self, row: int) -> bytes:
        """The bytes of one cell; none if it is missing."""
        if not self.present[row]:
            return b""
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])].tobytes()

    def integers(self, rows: NDArray[np.int64], width: int) -> NDArray[np.uint64]:
        """Cells of exactly ``width`` ≤ 8 bytes as little-endian integers."""
        starts = self.starts[rows] if rows.size < len(self) else self.starts
        if not starts.size or not bool((np.diff(starts) == width).all()):
            return self.words(rows)
        first = int(starts[0])  # back to back, as a writer leaves them
        padded = np.zeros((rows.size, _WORD), dtype=np.uint8)
        padded[:, :width] = self.data[first : first + starts.size * width].reshape(-1, width)
        return padded.view("<u8").reshape(-1).astype(np.uint64, copy=False)

    def words(self, rows: NDArray[np.int64], place: int = 0) -> NDArray[np.uint64]:
        """Eight bytes of cells, from a place on, as little-endian integers: zeros where a cell has ended."""
        data = self.data if self.data.size >= _WORD else np.pad(self.data, (0, _WORD - self.data.size))
        windows = np.ndarray(data.size - _WORD + 1, "<u8", data, strides=(1,))  # one at every byte
        starts = self.starts[rows] + place
        found = np.minimum(starts, windows.size - 1)
        shifts = np.minimum(starts - found, _WORD - 1).astype(np.uint64) * np.uint64(8)
        there = np.clip(self.lengths[rows] - place, 0, _WORD)
        return (windows[found].astype(np.uint64, copy=False) >> shifts) & _MASKS[there]

    def hashes(self) -> NDArray[np.uint64]:
        """64 bits of every cell, from its length and its first KiB, to share rows out by.

        Not keyed: whoever chooses ids can make the shares uneven.
        """
        hashes = spread(self.lengths.astype(np.uint64))
        for place in range(0, min(int(self.lengths.max(initial=0)), _HASHED_BYTES), _WORD):
            rows = np.flatnonzero(self.lengths > place)
            hashes[rows] = spread((hashes[rows] + np.uint64(_FACTOR)) ^ self.words(rows, place))
        return hashes


def spread(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit numbers that makes every bit depend on all of them (the finaliser of SplitMix64)."""
    for shift, factor in _SPREADERS:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def plain(column: Any) -> Any:
    """The same values in a type that Arrow can take and sort: no dictionary, no view, no extension."""
    kind = column.type
    if hasattr(kind, "storage_type"):
        return plain(column.cast(kind.storage_type))
    if str(kind).startswith("dictionary"):
        return plain(column.cast(kind.value_type))
    return column.cast(_VIEWED[str(kind)]) if str(kind) in _VIEWED else column


def cells_of(column: Any) -> Cells:
    """The cells of an Arrow array of binary values: variable or fixed length, viewed or with a dictionary."""
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
        raise ReportError(f"a column of reports holds binary values, this one holds {kind}")
    _, places, data = column.buffers()
    width_of_ends = "<i8" if kind.startswith("large") else "<i4"
    ends = np.zeros(count + 1, dtype=np.int64)
    if places is not None and count:
        ends = np.frombuffer(places, dtype=width_of_ends)[offset : offset + count + 1].astype(np.int64)
    return Cells(_bytes(data), ends[:-1], np.where(present, np.diff(ends), 0), present)


def _bytes(buffer: Any) -> NDArray[np.uint8]:
    return np.frombuffer(b"" if buffer is None else buffer, dtype=np.uint8)
