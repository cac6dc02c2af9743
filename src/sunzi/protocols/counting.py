"""Reports counted from their bytes: single ones, batches, and streams of batches."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeGuard

from sunzi import wire
from sunzi.client.errors import ReportError, shown
from sunzi.client.reports import is_batch
from sunzi.numerics.counters import Counters
from sunzi.protocols.base import Protocol

Reports = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]
"""One report, one batch, a binary stream of batches, or an iterable of reports and batches."""

_REPORTS_AT_ONCE = 1 << 14


def count_reports(protocol: Protocol, fingerprint: bytes, reports: Reports) -> tuple[int, Counters]:
    """The number of reports and their counts; if one is malformed, a ReportError names it.

    Parameters
    ----------
    protocol, fingerprint: of the plan; batches carry its fingerprint.
    reports: the bytes.
    """
    if _is_stream(reports):
        pieces = wire.read_batches(reports, protocol.report_layout, fingerprint)
    elif isinstance(reports, (bytes, bytearray, memoryview)):
        pieces = _decode(protocol, fingerprint, [bytes(reports)])
    elif isinstance(reports, Iterable):
        pieces = _decode(protocol, fingerprint, reports)
    else:
        raise ReportError(
            f"reports are bytes, a file opened for reading bytes, or an iterable of bytes, got {shown(reports)}"
        )
    count, counters = 0, Counters.zeros(protocol.tally_layout.length)
    for encoded in pieces:
        count += len(encoded)
        counters += protocol.count_reports(encoded)
    return count, counters


def _is_stream(reports: object) -> TypeGuard[BinaryIO]:
    return hasattr(reports, "read") and not isinstance(reports, io.TextIOBase)


def _decode(protocol: Protocol, fingerprint: bytes, reports: Iterable[bytes]) -> Iterator[wire.EncodedReports]:
    """Batches one by one; single reports in groups, so that numpy does the work."""
    single: list[bytes] = []
    for report in reports:
        if not isinstance(report, (bytes, bytearray, memoryview)):
            raise ReportError(f"a report is bytes, got {type(report).__name__}")
        data = bytes(report)
        if is_batch(data):
            yield from wire.read_batches(io.BytesIO(data), protocol.report_layout, fingerprint)
        else:
            single.append(data)
        if len(single) == _REPORTS_AT_ONCE:
            yield wire.decode_reports(protocol.report_layout, single)
            single = []
    if single:
        yield wire.decode_reports(protocol.report_layout, single)
