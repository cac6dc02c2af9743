"""Many reports at once: their bytes, and those of batches, as arrays (docs/format.md).

A report is a *selector* (the block of a modular protocol; absent elsewhere) and a *payload* in exactly the bits that
its layout states, padded with zero bits to whole bytes. Short payloads are integers below a public limit, long ones
bytes, which the protocol checks. Guarantee: accepted bytes re-encode to themselves.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.errors import ReportError
from sunzi.client.reports import (
    BATCH_CHECKSUM,
    BATCH_HEADER,
    BATCH_MAGIC,
    ReportLayout,
    byte_length,
    frame_batch,
    is_batch,
)
from sunzi.formatting import counted
from sunzi.numerics.bits import Rows, as_integers, as_rows, pack, place_rows, take_rows, unpack

# Integers, one per report; or rows of bytes, the lowest bits first.
Payloads = NDArray[np.uint64] | Rows

_NARROW_REPORTS, _WIDE_REPORTS, _WIDE_CHUNK_BYTES = 1 << 19, 1 << 16, 1 << 25
"""The most reports, and bytes of long reports, that are decoded together: fewer are slower, more take memory."""
_MOST_REPORTS = 1 << 48


def byte_lengths(layout: ReportLayout) -> Integers:
    """The bytes of a report, for every selector."""
    return np.array([byte_length(layout.selector_bits + width) for width in layout.payload_bits])


def mean_bits(layout: ReportLayout) -> float:
    """Mean bits of a report; selectors are equally likely."""
    return layout.selector_bits + sum(layout.payload_bits) / len(layout.payload_bits)


def is_narrow(layout: ReportLayout) -> bool:
    """Whether every report is one integer and nothing else."""
    return len(layout.payload_bits) == 1 and layout.payload_limits[0] is not None


@dataclass(frozen=True)
class EncodedReports:
    """The selector of each report, and for every selector its payloads in order of appearance.

    >>> encoded = EncodedReports.single(np.array([3, 1, 4]))
    >>> encoded.selectors.tolist(), encoded.in_order()
    ([0, 0, 0], [3, 1, 4])
    """

    selectors: Integers
    payloads: tuple[Payloads, ...]

    def __len__(self) -> int:
        """The number of reports."""
        return int(self.selectors.size)

    @classmethod
    def single(cls, payloads: Payloads) -> EncodedReports:
        """Reports of a layout with one selector."""
        return cls(np.zeros(len(payloads), dtype=np.int64), (payloads,))

    def in_order(self) -> list[int]:
        """All payloads as integers, in the order of the reports."""
        if len(self.payloads) == 1:
            return payload_integers(self.payloads[0])
        parts = [iter(payload_integers(part)) for part in self.payloads]
        return [next(parts[selector]) for selector in self.selectors.tolist()]


def payload_integers(payloads: Payloads) -> list[int]:
    """Payloads as Python's integers, for analyses and proofs.

    >>> payload_integers(np.array([[1, 2]], dtype=np.uint8))
    [513]
    """
    if payloads.ndim == 1:
        integers: list[int] = payloads.tolist()
        return integers
    data, length = payloads.tobytes(), payloads.shape[1]
    return [int.from_bytes(data[start : start + length], "little") for start in range(0, len(data), length)]


def _placed(layout: ReportLayout, encoded: EncodedReports, starts: Integers, total: int) -> Rows:
    """A buffer of ``total`` bits with every payload from its start on, and a byte of zeros after it."""
    buffer = np.zeros(byte_length(total) + 1, dtype=np.uint8)
    for selector, (payloads, width) in enumerate(zip(encoded.payloads, layout.payload_bits, strict=True)):
        place_rows(buffer, starts[encoded.selectors == selector], as_rows(payloads, width), width)
    return buffer


def _taken(layout: ReportLayout, selectors: Integers, starts: Integers, buffer: Rows) -> EncodedReports:
    """The payloads in a buffer; refuses integers at or above their limit."""
    parts: list[Payloads] = []
    for selector, (width, limit) in enumerate(zip(layout.payload_bits, layout.payload_limits, strict=True)):
        rows = take_rows(buffer, starts[selectors == selector], width)
        parts.append(rows if limit is None else _checked(as_integers(rows), limit))
    return EncodedReports(selectors, tuple(parts))


def _checked(payloads: NDArray[np.uint64], limit: int | None) -> NDArray[np.uint64]:
    if limit is not None and payloads.size and int(payloads.max()) >= limit:
        raise ReportError(f"a report's value must be below {limit}, got {int(payloads.max())}")
    return payloads


def encode_each(layout: ReportLayout, encoded: EncodedReports) -> list[bytes]:
    """The bytes of each report."""
    lengths = byte_lengths(layout)[encoded.selectors]
    ends = np.cumsum(lengths)
    starts = 8 * (ends - lengths)
    buffer = _placed(layout, encoded, starts + layout.selector_bits, 8 * int(lengths.sum()))
    selectors = as_rows(encoded.selectors.astype(np.uint64), layout.selector_bits)
    place_rows(buffer, starts, selectors, layout.selector_bits)
    data = buffer.tobytes()
    return [data[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]


def decode_reports(layout: ReportLayout, reports: Sequence[bytes]) -> EncodedReports:
    """Decode single reports; refuse a wrong length, non-zero padding and values out of range."""
    if is_narrow(layout):
        return EncodedReports.single(_decode_narrow(layout, reports))
    mask = (1 << layout.selector_bits) - 1
    selectors = np.array([int.from_bytes(report[:8], "little") & mask for report in reports], dtype=np.int64)
    _check_selectors(layout, selectors)
    lengths = np.array([len(report) for report in reports], dtype=np.int64)
    needed = byte_lengths(layout)[selectors]
    wrong = np.flatnonzero(lengths != needed)
    if wrong.size:
        selector, due, got = selectors[wrong[0]], needed[wrong[0]], lengths[wrong[0]]
        raise ReportError(f"a report with selector {selector} takes {counted(int(due), 'byte')}, got {got}")
    buffer = np.frombuffer(b"".join([*reports, bytes(1)]), dtype=np.uint8)
    ends = np.cumsum(lengths)
    used = layout.selector_bits + np.array(layout.payload_bits)[selectors]
    if (buffer[ends - 1] >> (used - 8 * (lengths - 1)).astype(np.uint8)).any():
        raise ReportError("the padding bits after a report's value are not zero")
    return _taken(layout, selectors, 8 * (ends - lengths) + layout.selector_bits, buffer)


def _check_selectors(layout: ReportLayout, selectors: Integers | NDArray[np.uint64]) -> None:
    if selectors.size and int(selectors.max()) >= len(layout.payload_bits):
        raise ReportError(f"a report's selector must be below {len(layout.payload_bits)}, got {int(selectors.max())}")


def _decode_narrow(layout: ReportLayout, reports: Sequence[bytes]) -> NDArray[np.uint64]:
    length = byte_length(layout.payload_bits[0])
    wrong = next((report for report in reports if len(report) != length), None)
    if wrong is not None:
        raise ReportError(f"a report of this plan takes {counted(length, 'byte')}, got {len(wrong)}")
    values = as_integers(np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), length))
    return _checked(values, layout.payload_limits[0])


def declared_reports(data: bytes) -> int:
    """The number of reports by the header of a batch, which may lie; 1 for anything else.

    >>> declared_reports(b"a report")
    1
    """
    if len(data) < BATCH_HEADER.size or not is_batch(data):
        return 1
    return int(BATCH_HEADER.unpack_from(data)[2])


def encode_batch(layout: ReportLayout, fingerprint: bytes, encoded: EncodedReports) -> bytes:
    """Header, packed selectors, packed payloads, checksum."""
    if is_narrow(layout):
        packed = pack(np.asarray(encoded.payloads[0], dtype=np.uint64), layout.payload_bits[0])
    else:
        widths = np.array(layout.payload_bits)[encoded.selectors]
        packed = pack(encoded.selectors.astype(np.uint64), layout.selector_bits)
        packed += _placed(layout, encoded, np.cumsum(widths) - widths, int(widths.sum()))[:-1].tobytes()
    return frame_batch(fingerprint, len(encoded), packed)


class _Reader:
    """Reads from a stream, insisting on every byte and keeping the running checksum."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.checksum = 0

    def take(self, count: int) -> bytes:
        parts, missing = [], count
        while missing and (part := self._stream.read(missing)):  # a pipe may return less than requested
            parts.append(part)
            missing -= len(part)
        data = b"".join(parts)
        if missing:
            raise ReportError(f"the batch is truncated: {count} more bytes expected, got {len(data)}")
        self.checksum = zlib.crc32(data, self.checksum)
        return data


def read_batches(stream: BinaryIO, layout: ReportLayout, fingerprint: bytes) -> Iterator[EncodedReports]:
    """The reports of one or more batches, back to back, in pieces of bounded size.

    A batch is valid only once the generator has gone past it without an error: drop what was counted if it raises.
    """
    while first := stream.read(1):
        yield from _read_batch(_Reader(stream), first, layout, fingerprint)


def _read_batch(reader: _Reader, first: bytes, layout: ReportLayout, fingerprint: bytes) -> Iterator[EncodedReports]:
    reader.checksum = zlib.crc32(first)
    magic, found, count = BATCH_HEADER.unpack(first + reader.take(BATCH_HEADER.size - 1))
    if magic != BATCH_MAGIC:
        raise ReportError(f"this is not a batch of reports: it begins with {magic!r}")
    if found != fingerprint:
        raise ReportError(f"these reports belong to the plan {found.hex()[:16]}…, not to {fingerprint.hex()[:16]}…")
    if count >= _MOST_REPORTS:
        raise ReportError(f"{count} reports exceed the maximum of {_MOST_REPORTS - 1} in a batch")
    yield from _read_narrow(reader, layout, count) if is_narrow(layout) else _read_wide(reader, layout, count)
    expected = reader.checksum
    if BATCH_CHECKSUM.unpack(reader.take(BATCH_CHECKSUM.size))[0] != expected:
        raise ReportError("the batch is corrupted: its checksum does not match")


def _pieces(count: int) -> Iterator[int]:
    """Bounded numbers of reports, each but the last a multiple of 8, hence of whole bytes."""
    for start in range(0, count, _NARROW_REPORTS):
        yield min(_NARROW_REPORTS, count - start)


def _read_narrow(reader: _Reader, layout: ReportLayout, count: int) -> Iterator[EncodedReports]:
    width, limit = layout.payload_bits[0], layout.payload_limits[0]
    for number in _pieces(count):
        values = unpack(reader.take(byte_length(number * width)), number, width)
        yield EncodedReports.single(_checked(values, limit))


def _read_selectors(reader: _Reader, layout: ReportLayout, count: int) -> NDArray[np.unsignedinteger[Any]]:
    """All selectors of a batch, as small integers: they precede the payloads, so memory grows with their number."""
    small = np.min_scalar_type(len(layout.payload_bits))
    pieces = [np.empty(0, dtype=small)]
    for number in _pieces(count):
        selectors = unpack(reader.take(byte_length(number * layout.selector_bits)), number, layout.selector_bits)
        _check_selectors(layout, selectors)
        pieces.append(selectors.astype(small))
    return np.concatenate(pieces)


def _read_wide(reader: _Reader, layout: ReportLayout, count: int) -> Iterator[EncodedReports]:
    selectors = _read_selectors(reader, layout, count) if layout.selector_bits else None
    start, spare, spare_bits = 0, b"", 0
    step = max(1, min(_WIDE_REPORTS, 8 * _WIDE_CHUNK_BYTES // max(1, layout.max_bits)))
    while start < count:
        number = min(step, count - start)
        chosen = np.zeros(number, dtype=np.int64)
        if selectors is not None:
            chosen[:] = selectors[start : start + number]
        ends = spare_bits + np.cumsum(np.array(layout.payload_bits)[chosen])
        data = spare + reader.take(byte_length(int(ends[-1])) - len(spare))
        starts = np.concatenate([[spare_bits], ends[:-1]])
        yield _taken(layout, chosen, starts, np.frombuffer(data + bytes(1), dtype=np.uint8))
        # Pieces end inside a byte in general; the rest of that byte opens the next piece.
        spare_bits = int(ends[-1]) % 8
        spare = data[-1:] if spare_bits else b""
        start += number
    if spare and spare[0] >> spare_bits:
        raise ReportError("the padding bits after the last value are not zero")
