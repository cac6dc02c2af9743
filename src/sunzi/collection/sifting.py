"""Reports from a column of a table, with whatever else has got into it: what can be counted is, the rest is named.

A column that a pipeline has written holds nulls, cut rows and rows of another plan. :func:`sift` counts the reports and
says of every other row why it is none, so that nothing is dropped in silence. Works on Arrow arrays without importing
Arrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi.errors import ReportError
from sunzi.numerics.bits import byte_length
from sunzi.numerics.counters import Counters
from sunzi.plan import Plan

Rows = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]

MISSING, LENGTH, RANGE, MALFORMED = "missing", "wrong length", "out of range", "malformed"
SAMPLES = 3
"""So many rows of each kind are kept to look at, as hexadecimal digits."""

_SHOWN_BYTES = 32


@dataclass(frozen=True)
class Refused:
    """How many rows were no reports, by reason, and a few of each."""

    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def __add__(self, other: Refused) -> Refused:
        """Both; of the samples the first in order, so that any order of adding gives the same."""
        counts = Counter(self.counts) + Counter(other.counts)
        samples = {
            reason: tuple(sorted({*self.samples.get(reason, ()), *other.samples.get(reason, ())})[:SAMPLES])
            for reason in sorted(counts)
        }
        return Refused(dict(sorted(counts.items())), samples)

    def __str__(self) -> str:
        """For people."""
        listed = ", ".join(
            f"{count:,} {reason} (such as {self.samples.get(reason, ('',))[0] or 'nothing'})"
            for reason, count in self.counts.items()
        )
        return listed or "none"


@dataclass(frozen=True)
class Sifted:
    """What a column holds: the reports, counted, and what is none."""

    reports: int
    counters: Counters
    refused: Refused

    def __add__(self, other: Sifted) -> Sifted:
        """Both columns."""
        return Sifted(self.reports + other.reports, self.counters + other.counters, self.refused + other.refused)


def nothing(plan: Plan) -> Sifted:
    """An empty column."""
    return Sifted(0, Counters.zeros(plan.protocol.tally_layout.length), Refused())


def sift(plan: Plan, column: Any) -> Sifted:
    """Count the reports of a column: an Arrow array of binary values, or a list of bytes and None."""
    if plan.protocol.report_layout.is_narrow:
        found = _arrow_rows(column) if hasattr(column, "buffers") else _listed_rows(column)
        return _sift_narrow(plan, *found)
    return _sift_wide(plan, column.to_pylist() if hasattr(column, "to_pylist") else list(column))


def _arrow_rows(column: Any) -> Rows:
    """All bytes, where each row begins, how long it is, and which rows are there."""
    kind = str(column.type)
    offset, count = column.offset, len(column)
    present = np.ones(count, dtype=np.bool_)
    if column.null_count:
        present = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if kind.startswith("fixed_size_binary"):
        width = column.type.byte_width
        data = np.frombuffer(column.buffers()[1] or b"", dtype=np.uint8)
        starts = (np.arange(count, dtype=np.int64) + int(offset)) * int(width)
        return data, starts, np.full(count, width, dtype=np.int64), present
    if kind not in ("binary", "large_binary"):
        raise ReportError(f"the column of reports must hold binary values, this one holds {kind}")
    _, places, data = column.buffers()
    width_of_ends = "<i8" if kind == "large_binary" else "<i4"
    ends: NDArray[np.int64] = np.frombuffer(places, dtype=width_of_ends)[offset : offset + count + 1].astype(np.int64)
    return np.frombuffer(data or b"", dtype=np.uint8), ends[:-1], np.diff(ends), present


def _listed_rows(column: Iterable[bytes | None]) -> Rows:
    rows = list(column)
    lengths = np.array([len(row or b"") for row in rows], dtype=np.int64)
    data = np.frombuffer(b"".join(row or b"" for row in rows), dtype=np.uint8)
    starts = np.cumsum(lengths) - lengths
    return data, starts, lengths, np.array([row is not None for row in rows], dtype=np.bool_)


def _sift_narrow(
    plan: Plan,
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    present: NDArray[np.bool_],
) -> Sifted:
    layout = plan.protocol.report_layout
    due, limit = byte_length(layout.payload_bits[0]), layout.payload_limits[0]
    whole = present & (lengths == due)
    payloads = _integers(data, starts if whole.all() else starts[whole], due)
    good = payloads < np.uint64(limit) if limit < 1 << 64 else np.ones(payloads.size, dtype=np.bool_)
    reasons = {MISSING: ~present, LENGTH: present & (lengths != due)}
    refused = Refused()
    if not (whole.all() and good.all()):
        beyond = np.zeros(whole.size, dtype=np.bool_)
        beyond[np.flatnonzero(whole)[~good]] = True
        reasons[RANGE] = beyond
        refused = _refused(data, starts, lengths, reasons)
        payloads = payloads[good]
    encoded = wire.EncodedReports.single(payloads)
    return Sifted(payloads.size, plan.protocol.count(plan.protocol.decode(encoded)), refused)


def _integers(data: NDArray[np.uint8], starts: NDArray[np.int64], width: int) -> NDArray[np.uint64]:
    """Little-endian integers of so many bytes, at these places."""
    padded = np.zeros((starts.size, 8), dtype=np.uint8)
    if starts.size:
        first = int(starts[0])
        if int(starts[-1]) - first == (starts.size - 1) * width and (
            starts.size < 2 or (np.diff(starts) == width).all()
        ):
            padded[:, :width] = data[first : first + starts.size * width].reshape(starts.size, width)
        else:
            padded[:, :width] = data[starts[:, np.newaxis] + np.arange(width)]
    return padded.view("<u8").reshape(-1).astype(np.uint64, copy=False)


def _refused(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    reasons: Mapping[str, NDArray[np.bool_]],
) -> Refused:
    counts, samples = {}, {}
    for reason, mask in sorted(reasons.items()):
        rows = np.flatnonzero(mask)
        if rows.size:
            counts[reason] = int(rows.size)
            shown = {_shown(data[starts[row] : starts[row] + lengths[row]].tobytes()) for row in rows[:100].tolist()}
            samples[reason] = tuple(sorted(shown)[:SAMPLES])
    return Refused(counts, samples)


def _shown(row: bytes) -> str:
    return row[:_SHOWN_BYTES].hex() + ("…" if len(row) > _SHOWN_BYTES else "")


def _sift_wide(plan: Plan, rows: Sequence[bytes | None]) -> Sifted:
    """Long reports, decoded together where all are good; a bad one is found by halving."""
    present = [row for row in rows if row is not None]
    refused = Refused({MISSING: len(rows) - len(present)}, {MISSING: ("",)}) if len(present) < len(rows) else Refused()
    return _halved(plan, present) + Sifted(0, Counters.zeros(plan.protocol.tally_layout.length), refused)


def _halved(plan: Plan, rows: Sequence[bytes]) -> Sifted:
    if not rows:
        return nothing(plan)
    try:
        encoded = wire.decode_reports(plan.protocol.report_layout, rows)
        return Sifted(len(rows), plan.protocol.count(plan.protocol.decode(encoded)), Refused())
    except ReportError:
        if len(rows) == 1:
            return nothing(plan) + Sifted(
                0,
                Counters.zeros(plan.protocol.tally_layout.length),
                Refused({MALFORMED: 1}, {MALFORMED: (_shown(rows[0]),)}),
            )
    middle = len(rows) // 2
    return _halved(plan, rows[:middle]) + _halved(plan, rows[middle:])
