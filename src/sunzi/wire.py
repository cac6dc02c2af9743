"""The bytes of one report and of a batch of reports, as docs/format.md specifies them.

A report is a *selector* (the block of a modular protocol; absent elsewhere) and a *payload* below a public limit, in
exactly the bits that its layout states, padded with zero bits to whole bytes. Guarantees: accepted bytes re-encode to
themselves; the length of a report depends on its selector alone, never on the value.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.errors import ReportError
from sunzi.numerics.bits import WIDEST_NARROW, byte_length, index_bits, pack, pack_wide, unpack, unpack_wide

Payloads = NDArray[np.uint64] | list[int]

BATCH_MAGIC = b"SUNZIRB\x01"
_HEADER = struct.Struct("<8s32sQ")
_CHECKSUM = struct.Struct("<I")
_CHUNK_BYTES = 1 << 23
_MOST_REPORTS = 1 << 48


@dataclass(frozen=True)
class ReportLayout:
    """For every selector, the payload's width in bits and the limit that it must stay below."""

    payload_bits: tuple[int, ...]
    payload_limits: tuple[int, ...]

    @property
    def selector_bits(self) -> int:
        """Bits that name the selector; none if there is only one."""
        return index_bits(len(self.payload_bits))

    @property
    def mean_bits(self) -> float:
        """Mean bits of a report; selectors are equally likely."""
        return self.selector_bits + sum(self.payload_bits) / len(self.payload_bits)

    @property
    def max_bits(self) -> int:
        """Bits of the longest report."""
        return self.selector_bits + max(self.payload_bits)

    @property
    def is_narrow(self) -> bool:
        """Whether every report is one small integer, which numpy can process in bulk."""
        return len(self.payload_bits) == 1 and self.payload_bits[0] <= WIDEST_NARROW


@dataclass(frozen=True)
class EncodedReports:
    """Reports as integers: the selector of each, and for every selector its payloads in order of appearance."""

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
        """All payloads in the order of the reports."""
        parts = [iter(part.tolist() if isinstance(part, np.ndarray) else part) for part in self.payloads]
        return [next(parts[selector]) for selector in self.selectors.tolist()]


def _split(layout: ReportLayout, selectors: Integers, payloads: Sequence[int]) -> EncodedReports:
    """Sort payloads by selector, refusing any at or above its limit."""
    parts: list[list[int]] = [[] for _ in layout.payload_bits]
    for selector, payload in zip(selectors.tolist(), payloads, strict=True):
        _check_payload(payload, layout.payload_limits[selector])
        parts[selector].append(payload)
    narrow = [width <= WIDEST_NARROW for width in layout.payload_bits]
    return EncodedReports(
        selectors,
        tuple(np.array(part, dtype=np.uint64) if small else part for part, small in zip(parts, narrow, strict=True)),
    )


def _check_payload(payload: int, limit: int) -> None:
    if payload >= limit:
        raise ReportError(f"a report's value must be below {_short(limit)}, got {_short(payload)}")


def _short(number: int) -> str:
    return str(number) if number < 1 << 64 else f"a number of {number.bit_length()} bits"


def encode_report(layout: ReportLayout, encoded: EncodedReports) -> bytes:
    """The bytes of exactly one report."""
    selector = int(encoded.selectors[0])
    payload = int(encoded.payloads[selector][0])
    bits = layout.selector_bits + layout.payload_bits[selector]
    return (selector | payload << layout.selector_bits).to_bytes(byte_length(bits), "little")


def encode_each(layout: ReportLayout, encoded: EncodedReports) -> list[bytes]:
    """The bytes of each report."""
    offset = layout.selector_bits
    lengths = [byte_length(offset + width) for width in layout.payload_bits]
    return [
        (selector | payload << offset).to_bytes(lengths[selector], "little")
        for selector, payload in zip(encoded.selectors.tolist(), encoded.in_order(), strict=True)
    ]


def decode_reports(layout: ReportLayout, reports: Sequence[bytes]) -> EncodedReports:
    """Decode single reports; refuse a wrong length, non-zero padding and values out of range."""
    if layout.is_narrow:
        return EncodedReports.single(_decode_narrow(layout, reports))
    selectors, payloads = [], []
    for report in reports:
        value = int.from_bytes(report, "little")
        selector = value & ((1 << layout.selector_bits) - 1)
        if selector >= len(layout.payload_bits):
            raise ReportError(f"a report's selector must be below {len(layout.payload_bits)}, got {selector}")
        needed = byte_length(layout.selector_bits + layout.payload_bits[selector])
        if len(report) != needed:
            raise ReportError(f"a report with selector {selector} takes {needed} bytes, got {len(report)}")
        selectors.append(selector)
        payloads.append(value >> layout.selector_bits)
    return _split(layout, np.array(selectors, dtype=np.int64), payloads)


def _decode_narrow(layout: ReportLayout, reports: Sequence[bytes]) -> NDArray[np.uint64]:
    length = byte_length(layout.payload_bits[0])
    wrong = next((report for report in reports if len(report) != length), None)
    if wrong is not None:
        raise ReportError(f"a report of this plan takes {length} bytes, got {len(wrong)}")
    padded = np.zeros((len(reports), 8), dtype=np.uint8)
    padded[:, :length] = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), length)
    values = padded.view("<u8").reshape(-1).astype(np.uint64, copy=False)
    if values.size:
        _check_payload(int(values.max()), layout.payload_limits[0])
    return values


def is_batch(data: bytes) -> bool:
    """Whether the bytes begin like a batch; a single report does so with probability at most 2^−61."""
    return data[: len(BATCH_MAGIC)] == BATCH_MAGIC


def encode_batch(layout: ReportLayout, fingerprint: bytes, encoded: EncodedReports) -> bytes:
    """Header, packed selectors, packed payloads, CRC-32 of all that precedes it."""
    parts = [_HEADER.pack(BATCH_MAGIC, fingerprint, len(encoded))]
    if layout.is_narrow:
        parts.append(pack(np.asarray(encoded.payloads[0], dtype=np.uint64), layout.payload_bits[0]))
    else:
        widths = np.array(layout.payload_bits)[encoded.selectors].tolist()
        parts.append(pack(encoded.selectors.astype(np.uint64), layout.selector_bits))
        parts.append(pack_wide(encoded.in_order(), widths))
    body = b"".join(parts)
    return body + _CHECKSUM.pack(zlib.crc32(body))


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
    magic, found, count = _HEADER.unpack(first + reader.take(_HEADER.size - 1))
    if magic != BATCH_MAGIC:
        raise ReportError(f"this is not a batch of reports: it begins with {magic!r}")
    if found != fingerprint:
        raise ReportError(f"these reports belong to the plan {found.hex()[:16]}…, not to {fingerprint.hex()[:16]}…")
    if count >= _MOST_REPORTS:
        raise ReportError(f"{count} reports exceed the maximum of {_MOST_REPORTS - 1} in a batch")
    yield from _read_narrow(reader, layout, count) if layout.is_narrow else _read_wide(reader, layout, count)
    expected = reader.checksum
    if _CHECKSUM.unpack(reader.take(_CHECKSUM.size))[0] != expected:
        raise ReportError("the batch is corrupted: its checksum does not match")


def _pieces(bits: int, count: int) -> Iterator[int]:
    """Numbers of reports that fill about 8 MiB, each but the last a multiple of 8, hence of whole bytes."""
    step = max(8, _CHUNK_BYTES * 8 // max(bits, 1) // 8 * 8)
    for start in range(0, count, step):
        yield min(step, count - start)


def _read_narrow(reader: _Reader, layout: ReportLayout, count: int) -> Iterator[EncodedReports]:
    width, limit = layout.payload_bits[0], layout.payload_limits[0]
    for number in _pieces(width, count):
        values = unpack(reader.take(byte_length(number * width)), number, width)
        _check_payload(int(values.max()), limit)
        yield EncodedReports.single(values)


def _read_selectors(reader: _Reader, layout: ReportLayout, count: int) -> Integers:
    pieces = [
        unpack(reader.take(byte_length(number * layout.selector_bits)), number, layout.selector_bits)
        for number in _pieces(layout.selector_bits, count)
    ]
    selectors = np.concatenate(pieces or [np.empty(0, dtype=np.uint64)]).astype(np.int64)
    if selectors.size and int(selectors.max()) >= len(layout.payload_bits):
        raise ReportError(f"a report's selector must be below {len(layout.payload_bits)}, got {int(selectors.max())}")
    return selectors


def _read_wide(reader: _Reader, layout: ReportLayout, count: int) -> Iterator[EncodedReports]:
    selectors = _read_selectors(reader, layout, count) if layout.selector_bits else None
    start, spare, spare_bits = 0, 0, 0
    for number in _pieces(layout.max_bits, count):
        chosen = np.zeros(number, dtype=np.int64) if selectors is None else selectors[start : start + number]
        widths = np.array(layout.payload_bits)[chosen].tolist()
        total = sum(widths)
        fresh = reader.take(byte_length(total - spare_bits))
        data = int.from_bytes(fresh, "little") << spare_bits | spare
        # Pieces end inside a byte in general; the rest of that byte opens the next piece.
        spare, spare_bits = data >> total, len(fresh) * 8 + spare_bits - total
        piece = (data & ((1 << total) - 1)).to_bytes(byte_length(total), "little")
        yield _split(layout, chosen, unpack_wide(piece, widths))
        start += number
    if spare:
        raise ReportError("the padding bits after the last value are not zero")
