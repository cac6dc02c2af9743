"""Good and bad reports in a column of a table.

A column written by a pipeline may hold nulls, truncated cells and reports of another plan. The good reports are
counted, and every other cell is counted under the reason why it is none, so that nothing is dropped silently. A cell
may also hold a whole batch of reports; it counts as one cell, good or bad.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi._typing import Integers
from sunzi.client.errors import ReportError
from sunzi.client.reports import BATCH_MAGIC, byte_length
from sunzi.numerics.counters import Counters
from sunzi.plan import Plan
from sunzi.protocols.counting import count_reports
from sunzi.tables.arrow import Cells, cells_of
from sunzi.tally import Tally

GOOD, MISSING, WRONG_LENGTH, OUT_OF_RANGE, MALFORMED, ANOTHER_PLAN, WITHOUT_ID = range(7)
REASONS = ("good", "missing", "wrong length", "out of range", "malformed", "of another plan", "without an id")

SAMPLES = 3
"""The number of bad cells kept per reason as examples, in hexadecimal: the first in sorted order."""

_SHOWN_BYTES = 32
_FINGERPRINT = slice(len(BATCH_MAGIC), len(BATCH_MAGIC) + 32)
_WIDE_AT_ONCE = 1 << 12

Verdicts = NDArray[np.uint8]
Counted = tuple[int, Counters]


@dataclass(frozen=True)
class Refused:
    """The cells that are not reports of the plan, by reason.

    >>> import pyarrow, sunzi
    >>> from sunzi.tables import sift_array
    >>> refused = sift_array(pyarrow.array([None, None, b"?"]), sunzi.make_plan("grr", 1000, epsilon=1)).refused
    >>> refused.total, str(refused)
    (3, '2 missing, 1 wrong length (such as 3f)')
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of cells for each reason."""
    samples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A few of these cells for each reason, in hexadecimal."""

    @property
    def total(self) -> int:
        """The number of all bad cells."""
        return sum(self.counts.values())

    def __add__(self, other: Refused) -> Refused:
        """The sum; it keeps the first samples in sorted order, so that the order of adding does not matter."""
        counts = Counter(self.counts) + Counter(other.counts)
        samples = {
            reason: tuple(sorted({*self.samples.get(reason, ()), *other.samples.get(reason, ())})[:SAMPLES])
            for reason in counts
        }
        return Refused(dict(sorted(counts.items())), dict(sorted(samples.items())))

    def __str__(self) -> str:
        """For example ``2 wrong length (such as 00ff, 01), 1 missing``."""
        return (
            ", ".join(f"{count:,} {reason}{self._such_as(reason)}" for reason, count in self.counts.items()) or "none"
        )

    def _such_as(self, reason: str) -> str:
        shown = ", ".join(filter(None, self.samples.get(reason, ())))
        return f" (such as {shown})" if shown else ""


@dataclass(frozen=True)
class Sifted:
    """What a column of reports holds.

    >>> import pyarrow, sunzi
    >>> from sunzi.tables import sift_array
    >>> plan = sunzi.make_plan("grr", 10, epsilon=1)
    >>> sifted = sift_array(pyarrow.array([plan.client().report(3), None]), plan)
    >>> sifted.tally.reports, sifted.refused.total
    (1, 1)
    """

    tally: Tally
    """The tally of the good reports."""
    refused: Refused = field(default_factory=Refused)
    """The cells that are not reports."""
    repeated: int = 0
    """The number of rows that repeat another row's id."""

    def __add__(self, other: Sifted) -> Sifted:
        """The content of both columns."""
        return Sifted(self.tally + other.tally, self.refused + other.refused, self.repeated + other.repeated)


def sift_array(array: Any, plan: Plan) -> Sifted:
    """Count the good reports in an Arrow array and the bad cells by reason, for engines without an adapter.

    Parameters
    ----------
    array: a pyarrow Array of binary values.
    plan: the plan of the reports.

    >>> import pyarrow
    >>> import sunzi
    >>> from sunzi.tables import sift_array
    >>> plan = sunzi.make_plan("grr", 10, epsilon=1)
    >>> sifted = sift_array(pyarrow.array([plan.client().report(3), None]), plan)
    >>> sifted.tally.reports, str(sifted.refused)
    (1, '1 missing')
    """
    cells = cells_of(array)
    total, verdicts = _nothing(plan), np.zeros(len(cells), dtype=np.uint8)
    for rows, verdict, counted in _judged(plan, cells, count=True):
        verdicts[rows] = verdict
        total = (total[0] + counted[0], total[1] + counted[1])
    tally = Tally(plan.digest, plan.protocol.tally_layout, *total)
    return Sifted(tally, refuse(cells, verdicts))


def judge(array: Any, plan: Plan) -> Verdicts:
    """For every cell of an Arrow array GOOD, or the number of the reason why it is not a report."""
    cells = cells_of(array)
    verdicts = np.zeros(len(cells), dtype=np.uint8)
    for rows, verdict, _ in _judged(plan, cells, count=False):
        verdicts[rows] = verdict
    return verdicts


def refuse(cells: Cells, verdicts: Verdicts) -> Refused:
    """The bad cells by reason."""
    counts, samples = {}, {}
    for number in np.unique(verdicts[verdicts != GOOD]).tolist():
        rows = np.flatnonzero(verdicts == number)
        counts[REASONS[number]] = int(rows.size)
        samples[REASONS[number]] = _first_in_order(cells, rows)
    return Refused(dict(sorted(counts.items())), dict(sorted(samples.items())))


def _first_in_order(cells: Cells, rows: Integers) -> tuple[str, ...]:
    """The first cells in sorted order. Arrays find those with the least first eight bytes; only these are decoded."""
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


Judged = Iterator[tuple[Integers, int, Counted]]


def _nothing(plan: Plan) -> Counted:
    return 0, Counters.zeros(plan.protocol.tally_layout.length)


def _judged(plan: Plan, cells: Cells, *, count: bool) -> Judged:
    """Every row once: rows, their verdict, and with ``count`` what the good ones add to a tally."""
    yield np.flatnonzero(~cells.present), MISSING, _nothing(plan)
    narrow = wire.is_narrow(plan.protocol.report_layout)
    yield from _judged_narrow(plan, cells, count=count) if narrow else _judged_wide(plan, cells, count=count)


def _judged_narrow(plan: Plan, cells: Cells, *, count: bool) -> Judged:
    """Reports that are one small integer each, all at once."""
    nothing = _nothing(plan)
    layout = plan.protocol.report_layout
    width, limit = byte_length(layout.payload_bits[0]), layout.payload_limits[0]
    assert limit is not None, "narrow layouts have integers"
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
    """Long reports, decoded together if all are good; bad ones are found by halving."""
    rows = np.flatnonzero(cells.present)
    batch = _open_like_batches(cells, rows)  # a batch may be just as long as a report
    yield from _judged_batches(plan, cells, rows[batch], count=count)
    rows = rows[~batch]
    due = np.isin(cells.lengths[rows], wire.byte_lengths(plan.protocol.report_layout))
    yield rows[~due], WRONG_LENGTH, _nothing(plan)
    rows = rows[due]
    for start in range(0, rows.size, _WIDE_AT_ONCE):
        yield from _halved(plan, cells, rows[start : start + _WIDE_AT_ONCE], count=count)


def _open_like_batches(cells: Cells, rows: Integers) -> NDArray[np.bool_]:
    """:func:`sunzi.wire.is_batch` for many cells."""
    found: NDArray[np.bool_] = cells.words(rows) == np.uint64(int.from_bytes(BATCH_MAGIC, "little"))
    return found


def _halved(plan: Plan, cells: Cells, rows: Integers, *, count: bool) -> Judged:
    layout = plan.protocol.report_layout
    try:
        encoded = wire.decode_reports(layout, [cells.cell(row) for row in rows.tolist()])
        counted = _count(plan, encoded)
        yield rows, GOOD, counted if count else _nothing(plan)
    except ReportError:
        if rows.size == 1:
            yield rows, MALFORMED, _nothing(plan)
            return
        middle = rows.size // 2
        yield from _halved(plan, cells, rows[:middle], count=count)
        yield from _halved(plan, cells, rows[middle:], count=count)


def _judged_batches(plan: Plan, cells: Cells, rows: Integers, *, count: bool) -> Judged:
    """Cells that hold whole batches."""
    verdicts, total = np.zeros(rows.size, dtype=np.uint8), _nothing(plan)
    for place, row in enumerate(rows.tolist()):
        cell = cells.cell(row)
        if len(cell) >= _FINGERPRINT.stop and cell[_FINGERPRINT] != plan.digest:
            verdicts[place] = ANOTHER_PLAN
            continue
        try:
            reports, counters = count_reports(plan.protocol, plan.digest, cell)
            total = (total[0] + reports, total[1] + counters) if count else total
        except ReportError:
            verdicts[place] = MALFORMED
    for number in np.unique(verdicts).tolist():
        yield rows[verdicts == number], number, total if number == GOOD else _nothing(plan)


def _count(plan: Plan, encoded: wire.EncodedReports) -> Counted:
    return len(encoded), plan.protocol.count_reports(encoded)
