"""The bytes of one report and of a batch of reports, as docs/format.md specifies them.

A report is a *selector* (the block of a modular protocol; absent elsewhere) and a *payload* in exactly the bits that
its layout states, padded with zero bits to whole bytes. The length of a report depends on its selector alone, never on
the value.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from .designs.design import index_bits

BATCH_MAGIC = b"SUNZIRB\x01"
BATCH_HEADER = struct.Struct("<8s32sQ")
BATCH_CHECKSUM = struct.Struct("<I")

WIDEST_NARROW = 56
"""The most bits of a payload that is read as an integer: at any bit offset it lies within 8 bytes."""

Report = tuple[int, int]
"""A selector and a payload."""


@dataclass(frozen=True)
class ReportLayout:
    """For every selector, the payload's width in bits and the limit that it must stay below; None if it is bytes.

    >>> layout = ReportLayout(payload_bits=(4,), payload_limits=(10,))
    >>> layout.selector_bits, layout.max_bits
    (0, 4)
    """

    payload_bits: tuple[int, ...]
    payload_limits: tuple[int | None, ...]

    @property
    def selector_bits(self) -> int:
        """Bits that name the selector; none if there is only one."""
        return index_bits(len(self.payload_bits))

    @property
    def max_bits(self) -> int:
        """Bits of the longest report."""
        return self.selector_bits + max(self.payload_bits)


def byte_length(bits: int) -> int:
    """The number of bytes that ``bits`` bits need."""
    return (bits + 7) // 8


def encode_report(layout: ReportLayout, report: Report) -> bytes:
    """The bytes of one report."""
    selector, payload = report
    bits = layout.selector_bits + layout.payload_bits[selector]
    return (selector | payload << layout.selector_bits).to_bytes(byte_length(bits), "little")


def decode_report(layout: ReportLayout, data: bytes) -> Report:
    """The report of these bytes, which this program has made: nothing is checked."""
    number = int.from_bytes(data, "little")
    return number & (1 << layout.selector_bits) - 1, number >> layout.selector_bits


def encode_batch(layout: ReportLayout, fingerprint: bytes, reports: Sequence[Report]) -> bytes:
    """The bytes of a batch: header, packed selectors, packed payloads, checksum."""
    selectors = pack([(selector, layout.selector_bits) for selector, _ in reports])
    payloads = pack([(payload, layout.payload_bits[selector]) for selector, payload in reports])
    return frame_batch(fingerprint, len(reports), selectors + payloads)


def frame_batch(fingerprint: bytes, count: int, packed: bytes) -> bytes:
    """A batch of packed reports: the header before them, and the CRC-32 of all that precedes it."""
    body = BATCH_HEADER.pack(BATCH_MAGIC, fingerprint, count) + packed
    return body + BATCH_CHECKSUM.pack(zlib.crc32(body))


def pack(values: Sequence[tuple[int, int]]) -> bytes:
    """Values, each with its width in bits, back to back, the lowest bits first."""
    buffer, used, data = 0, 0, bytearray()
    for value, width in values:
        buffer |= value << used
        used += width
        whole = used // 8
        data += (buffer & (1 << 8 * whole) - 1).to_bytes(whole, "little")
        buffer >>= 8 * whole
        used -= 8 * whole
    return bytes(data) + buffer.to_bytes(byte_length(used), "little")


def is_batch(data: bytes) -> bool:
    """Whether the bytes begin like a batch; a single report does so with probability at most 2^−61."""
    return data[: len(BATCH_MAGIC)] == BATCH_MAGIC
