"""What reports say about values, read from their bytes.

A report *supports* some values (their point is in its block, their bit is 1). P(y|x) is larger by one factor, the odds,
for the values that y supports, and otherwise the same for all values. So which values a report supports, and the odds,
are all that an attacker can use.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi._typing import Floats, Integers
from sunzi.errors import ParameterError, ReportError
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel

Booleans = NDArray[np.bool_]
Reports = bytes | Sequence[bytes]
Selection = slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Decoded reports. Report i came through channel ``selectors[i]`` and is message ``places[i]`` of its part."""

    channels: tuple[Channel, ...]
    selectors: Integers
    places: Integers
    parts: tuple[Any, ...]

    @classmethod
    def of(cls, protocol: Protocol, messages: Any) -> Evidence:
        """The evidence in messages that the protocol decoded."""
        if not protocol.channels:
            raise ParameterError(f"{protocol.name} defines no channels, so it cannot be analysed")
        selectors, parts = protocol.split(messages)
        places = np.empty(selectors.size, dtype=np.int64)
        for index, part in enumerate(parts):
            places[selectors == index] = np.arange(len(part))
        return cls(protocol.channels, selectors, places, parts)

    @cached_property
    def log_odds(self) -> Floats:
        """For each report, log P(y|x)/P(y|x') for a value x that it supports and a value x' that it does not."""
        odds = np.log([float(channel.likelihood_ratio) for channel in self.channels])
        return np.asarray(odds[self.selectors])

    def __len__(self) -> int:
        """The number of reports."""
        return int(self.selectors.size)

    def _groups(self) -> Iterator[tuple[Selection, Channel, Any]]:
        """The rows and the messages of every channel."""
        if len(self.channels) == 1:
            yield slice(None), self.channels[0], self.parts[0]
            return
        for index, (channel, part) in enumerate(zip(self.channels, self.parts, strict=True)):
            rows = np.flatnonzero(self.selectors == index)
            if rows.size:
                yield rows, channel, part[self.places[rows]]

    def supports(self, values: Integers) -> Booleans:
        """Whether each report supports the value in the same row."""
        found = np.empty(len(self), dtype=np.bool_)
        for rows, channel, messages in self._groups():
            found[rows] = channel.supports(messages, values[rows] % channel.points)
        return found

    def take(self, rows: Integers) -> Evidence:
        """Some of the reports."""
        if len(self.channels) == 1:  # without the others, so that supports need not select
            return Evidence(self.channels, self.selectors[rows], np.arange(rows.size), (self.parts[0][rows],))
        return Evidence(self.channels, self.selectors[rows], self.places[rows], self.parts)

    def table(self, domain_size: int) -> Booleans:
        """Whether each report (row) supports each value (column)."""
        found = np.empty((len(self), domain_size), dtype=np.bool_)
        for rows, channel, messages in self._groups():
            found[rows] = channel.support_table(messages)[:, np.arange(domain_size) % channel.points]
        return found


def first_supports(evidence: Evidence, order: Integers) -> Integers:
    """For each report the place in ``order`` of the first value that it supports, or −1."""
    found = np.full(len(evidence), -1, dtype=np.int64)
    rows = np.arange(len(evidence))
    rest = evidence
    for place, value in enumerate(order.tolist()):
        supported = rest.supports(np.full(rows.size, value, dtype=np.int64))
        found[rows[supported]] = place
        open_rows = np.flatnonzero(~supported)
        rows, rest = rows[open_rows], rest.take(open_rows)
        if not rows.size:
            break
    return found


def decode(plan: Plan, reports: Reports) -> wire.EncodedReports:
    """One batch, or single reports, as integers; raises ReportError for what the plan's server would refuse."""
    if not isinstance(reports, (bytes, bytearray, memoryview)):
        return wire.decode_reports(plan.protocol.report_layout, [bytes(report) for report in reports])
    pieces = list(wire.read_batches(io.BytesIO(reports), plan.protocol.report_layout, plan.contract.fingerprint))
    if not pieces:
        raise ReportError("a batch of reports was expected, got no bytes")
    if len(pieces) == 1:
        return pieces[0]
    selectors = np.concatenate([piece.selectors for piece in pieces])
    return wire.EncodedReports(
        selectors, tuple(np.concatenate(parts) for parts in zip(*(p.payloads for p in pieces), strict=True))
    )


def read_reports(plan: Plan, reports: Reports) -> Evidence:
    """The evidence in these bytes, as a server or an attacker reads them."""
    return Evidence.of(plan.protocol, plan.protocol.decode(decode(plan, reports)))
