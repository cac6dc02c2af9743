"""Reports from a column of a table, with whatever else has got into it: what can be counted is, the rest is named.

A column that a pipeline has written holds nulls, cut cells and reports of another plan. :func:`sift` counts the good
reports and says of every other cell why it is none, so that nothing is dropped in silence. A cell may also hold a whole
batch of reports; it counts as one cell, good or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi.errors import ReportError
from sunzi.numerics.bits import byte_length
from sunzi.numerics.counters import Counters
from sunzi.plan import Plan
from sunzi.tables.binary import Cells, cells_of
from sunzi.tally import Tally

GOOD, MISSING, WRONG_LENGTH, OUT_OF_RANGE, MALFORMED, ANOTHER_PLAN, WITHOUT_ID = range(7)
REASONS = ("good", "missing", "wrong length", "out of range", "malformed", "of another plan", "without an id")

SAMPLES = 3
"""So many cells of each kind are kept to look at, as hexadecimal digits: the first in order."""

_SHOWN_BYTES = 32
_FINGERPRINT = slice(len(wire.BATCH_MAGIC), len(wire.BATCH_MAGIC) + 32)
_WIDE_AT_ONCE = 1 << 12

Verdicts = NDArray[np.uint8]
Counted = tuple[int, Counters]


@dataclass(frozen=True)
class Refused:
    """How many cells were no reports, by reason, and a few of each."""

    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def __add__(self, other: Refused) -> Refused:
        """Both; of the samples the first in order, so that every order of adding gives the same."""
        counts = Counter(self.counts) + Counter(other.counts)
        samples = {
            reason: tuple(sorted({*self.samples.get(reason, ()), *other.samples.get(reason, ())})[:SAMPLES])
            for reason in counts
        }
        return Refused(dict(sorted(counts.items())), dict(sorted(samples.items())))

    def __str__(self) -> str:
        """For people: ``2 wrong length (such as 00ff, 01), 1 missing``."""
        return (
            ", ".join(f"{count:,} {reason}{self._such_as(reason)}" for reason, count in self.counts.items()) or "none"
        )

    def _such_as(self, reason: str) -> str:
        shown = ", ".join(filter(None, self.samples.get(reason, ())))
        return f" (such as {shown})" if shown else ""


@dataclass(frozen=True)
class Sifted:
    """What a column holds: the good reports, counted; the cells that are none; and how many cells repeated an id."""

    tally: Tally
    refused: Refused = field(default_factory=Refused)
    repeated: int = 0

    def __add__(self, other: Sifted) -> Sifted:
        """Both columns."""
        return Sifted(self.tally + other.tally, self.refused + other.refused, self.repeated + other.repeated)


def sift(plan: Plan, column: Any) -> Sifted:
    """Count the reports of an Arrow array of binary values."""
    cells = cells_of(column)
    total, verdicts = _nothing(plan), np.zeros(len(cells), dtype=np.uint8)
    for rows, verdict, counted in _judged(plan, cells, count=True):
        verdicts[rows] = verdict
        total = (total[0] + counted[0], total[1] + counted[1])
    tally = Tally(plan.contract.fingerprint, plan.protocol.tally_layout, *total)
    return Sifted(tally, refuse(cells, verdicts))


def judge(plan: Plan, column: Any) -> Verdicts:
    """For every cell of an Arrow array whether it is good, 0, or the number of the reason why not."""
    cells = cells_of(column)
    verdicts = np.zeros(len(cells), dtype=np.uint8)
    for rows, verdict, _ in _judged(plan, cells, count=False):
        verdicts[rows] = verdict
    return verdicts


def refuse(cells: Cells, verdicts: Verdicts) -> Refused:
    """The cells that are not good, by reason."""
    counts, samples = {}, {}
    for number in np.unique(verdicts[verdicts != GOOD]).tolist():
        rows = np.flatnonzero(verdicts == number)
        counts[REASONS[number]] = int(rows.size)
        samples[REASONS[number]] = _first_in_order(cells, rows)
    return Refused(dict(sorted(counts.items())), dict(sorted(samples.items())))


def _first_in_order(cells: Cells, rows: NDArray[np.int64]) -> tuple[str, ...]:
    """A few of the cells. Those with the least first eight bytes are found by arrays, and only they are looked at."""
    shown: set[str] = set()
    while rows.size and len(shown) < SAMPLES:
        openings, lengths = cells.words(rows).byteswap(), cells.lengths[rows]
        least = openings == openings.min()
        if lengths[least].min() <= 8:  # the shortest of them, and all of its length are equal
            least &= lengths == lengths[least].min()
        few = rows[least][:1] if lengths[least].max() <= 8 else rows[least]
        shown.update(_shown(cells.cell(row)) for row in few.tolist())
        rows = rows[~least]
    return tuple(sorted(shown)[:SAMPLES])


def _shown(cell: bytes) -> str:
    return cell[:_SHOWN_BYTES].hex() + ("…" if len(cell) > _SHOWN_BYTES else "")


Judged = Iterator[tuple[NDArray[np.int64], int, Counted]]


def _nothing(plan: Plan) -> Counted:
    return 0, Counters.zeros(plan.protocol.tally_layout.length)


def _judged(plan: Plan, cells: Cells, *, count: bool) -> Judged:
    """Every row once: rows, their verdict, and what the good ones add to a tally if that is asked for."""
    yield np.flatnonzero(~cells.present), MISSING, _nothing(plan)
    narrow = plan.protocol.report_layout.is_narrow
    yield from _judged_narrow(plan, cells, count=count) if narrow else _judged_wide(plan, cells, count=count)


def _judged_narrow(plan: Plan, cells: Cells, *, count: bool) -> Judged:
    """Reports that are one small integer each, all at once."""
    nothing = _nothing(plan)
    layout = plan.protocol.report_layout
    width, limit = byte_length(layout.payload_bits[0]), layout.payload_limits[0]
    due = cells.present & (cells.lengths == width)
    rows = np.flatnonzero(due)
    payloads = cells.integers(rows, width)
    good = payloads < np.uint64(limit)
    if not good.all():
        yield rows[~good], OUT_OF_RANGE, nothing
        rows, payloads = rows[good], payloads[good]
    yield rows, GOOD, _count(plan, wire.EncodedReports.single(payloads)) if count else nothing
    rest = np.flatnonzero(cells.present & ~due)
    batch = _open_like_batches(cells, rest)
    yield rest[~batch], WRONG_LENGTH, nothing
    yield from _judged_batches(plan, cells, rest[batch], count=count)


def _judged_wide(plan: Plan, cells: Cells, *, count: bool) -> Judged:
    """Long reports, decoded together where all of them are good; a bad one is found by halving."""
    rows = np.flatnonzero(cells.present)
    batch = _open_like_batches(cells, rows)  # which may be just as long as a report
    yield from _judged_batches(plan, cells, rows[batch], count=count)
    rows = rows[~batch]
    due = np.isin(cells.lengths[rows], _lengths(plan))
    yield rows[~due], WRONG_LENGTH, _nothing(plan)
    rows = rows[due]
    for start in range(0, rows.size, _WIDE_AT_ONCE):
        yield from _halved(plan, cells, rows[start : start + _WIDE_AT_ONCE], count=count)


def _open_like_batches(cells: Cells, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """:func:`sunzi.wire.is_batch` of many cells."""
    found: NDArray[np.bool_] = cells.words(rows) == np.uint64(int.from_bytes(wire.BATCH_MAGIC, "little"))
    return found


def _halved(plan: Plan, cells: Cells, rows: NDArray[np.int64], *, count: bool) -> Judged:
    layout = plan.protocol.report_layout
    try:
        encoded = wire.decode_reports(layout, [cells.cell(row) for row in rows.tolist()])
        messages = plan.protocol.decode(encoded)
        yield rows, GOOD, (int(rows.size), plan.protocol.count(messages)) if count else _nothing(plan)
    except ReportError:
        if rows.size == 1:
            yield rows, MALFORMED, _nothing(plan)
            return
        middle = rows.size // 2
        yield from _halved(plan, cells, rows[:middle], count=count)
        yield from _halved(plan, cells, rows[middle:], count=count)


def _judged_batches(plan: Plan, cells: Cells, rows: NDArray[np.int64], *, count: bool) -> Judged:
    """Cells that hold whole batches."""
    verdicts, total = np.zeros(rows.size, dtype=np.uint8), _nothing(plan)
    for place, row in enumerate(rows.tolist()):
        cell = cells.cell(row)
        if len(cell) >= _FINGERPRINT.stop and cell[_FINGERPRINT] != plan.contract.fingerprint:
            verdicts[place] = ANOTHER_PLAN
            continue
        try:
            reports, counters = plan._count(cell)
            total = (total[0] + reports, total[1] + counters) if count else total
        except ReportError:
            verdicts[place] = MALFORMED
    for number in np.unique(verdicts).tolist():
        yield rows[verdicts == number], number, total if number == GOOD else _nothing(plan)


def _lengths(plan: Plan) -> list[int]:
    """The lengths in bytes that a report of this plan may have."""
    layout = plan.protocol.report_layout
    return sorted({byte_length(layout.selector_bits + bits) for bits in layout.payload_bits})


def _count(plan: Plan, encoded: wire.EncodedReports) -> Counted:
    return len(encoded), plan.protocol.count(plan.protocol.decode(encoded))
