"""Arrow's columns of bytes as numpy arrays, without a copy and without importing Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ReportError

_FACTOR = 0x9E3779B97F4A7C15
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
        """Cells of ``width`` ≤ 8 bytes as little-endian integers."""
        padded = np.zeros((rows.size, 8), dtype=np.uint8)
        starts = self.starts[rows] if rows.size < len(self) else self.starts
        if starts.size and bool((np.diff(starts) == width).all()):  # back to back, as a writer leaves them
            first = int(starts[0])
            padded[:, :width] = self.data[first : first + starts.size * width].reshape(-1, width)
        elif starts.size:
            padded[:, :width] = self.data[starts[:, np.newaxis] + np.arange(width)]
        return padded.view("<u8").reshape(-1).astype(np.uint64, copy=False)

    def hashes(self) -> NDArray[np.uint64]:
        """64 bits of every cell, to share rows out by. Not keyed: whoever chooses ids can make the shares uneven."""
        longest = int(self.lengths.max(initial=0))
        weights = np.power(np.uint64(_FACTOR), np.arange(longest, dtype=np.uint64))
        first = int(self.starts.min(initial=0))
        last = int((self.starts + self.lengths).max(initial=0))
        owner = np.repeat(np.arange(len(self)), self.lengths)
        places = np.arange(owner.size) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        values = self.data[first:last][self.starts[owner] - first + places].astype(np.uint64) + np.uint64(1)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values * weights[places], dtype=np.uint64)])
        ends = np.cumsum(self.lengths)
        return spread(sums[ends] - sums[ends - self.lengths])


def spread(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit numbers that makes every bit depend on all of them (the finaliser of SplitMix64)."""
    for shift, factor in _SPREADERS:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def cells_of(column: Any) -> Cells:
    """The cells of an Arrow array of binary values: variable or fixed length, viewed or with a dictionary."""
    kind = str(column.type)
    if kind.startswith("dictionary"):
        return cells_of(column.dictionary_decode())
    if kind == "binary_view":
        return cells_of(column.cast("large_binary"))
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
