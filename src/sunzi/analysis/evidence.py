"""What reports say about values, read from their bytes.

A report *supports* some values (their point is in its block, their bit is 1). P(y|x) is larger by one factor, the odds,
for the values that y supports, and otherwise the same for all values. So which values a report supports, and the odds,
are all that an attacker can use. A protocol that rounds by chance is analysed at the values that it never rounds.
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
from sunzi.client.errors import ParameterError, ReportError
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel

Booleans = NDArray[np.bool_]
Reports = bytes | Sequence[bytes]
Selection = slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Decoded reports. Report i came through channel ``selectors[i]`` and is message ``places[i]`` of its part."""

    protocol: Protocol
    selectors: Integers
    places: Integers
    parts: tuple[Any, ...]

    @classmethod
    def of(cls, protocol: Protocol, messages: Any) -> Evidence:
        """The evidence in messages that the protocol decoded."""
        check_channels(protocol)
        selectors, parts = protocol.split(messages)
        places = np.empty(selectors.size, dtype=np.int64)
        for index, part in enumerate(parts):
            places[selectors == index] = np.arange(len(part))
        return cls(protocol, selectors, places, parts)

    @cached_property
    def log_odds(self) -> Floats:
        """For each report, log P(y|x)/P(y|x') for a value x that it supports and a value x' that it does not."""
        odds = np.log([float(channel.likelihood_ratio) for channel in self.protocol.channels])
        return np.asarray(odds[self.selectors])

    def __len__(self) -> int:
        """The number of reports."""
        return int(self.selectors.size)

    def groups(self) -> Iterator[tuple[Selection, int, Any]]:
        """The rows, number and messages of every channel in use."""
        if len(self.parts) == 1:
            yield slice(None), 0, self.parts[0]
            return
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(self.selectors == index)
            if rows.size:
                yield rows, index, part[self.places[rows]]

    def supports(self, values: Integers) -> Booleans:
        """Whether each report supports the value in the same row."""
        found = np.empty(len(self), dtype=np.bool_)
        for rows, index, messages in self.groups():
            points = self.protocol.points_of(index, values[rows])
            found[rows] = self.protocol.channels[index].supports(messages, points)
        return found

    def take(self, rows: Integers) -> Evidence:
        """Some of the reports."""
        if len(self.parts) == 1:  # without the others, so that supports need not select
            return Evidence(self.protocol, self.selectors[rows], np.arange(rows.size), (self.parts[0][rows],))
        return Evidence(self.protocol, self.selectors[rows], self.places[rows], self.parts)

    def table(self, values: Integers) -> Booleans:
        """Whether each report (row) supports each of these values (column)."""
        found = np.empty((len(self), values.size), dtype=np.bool_)
        for rows, index, messages in self.groups():
            table = self.protocol.channels[index].support_table(messages)
            found[rows] = table[:, self.protocol.points_of(index, values)]
        return found


def first_supports(channel: Channel, messages: Any, points: Integers) -> Integers:
    """For each message the place of the first of these points that it supports, or −1."""
    found = np.full(len(messages), -1, dtype=np.int64)
    rows = np.arange(len(messages))
    for place, point in enumerate(points.tolist()):
        supported = channel.supports(messages, np.full(rows.size, point, dtype=np.int64))
        found[rows[supported]] = place
        rows, messages = rows[~supported], messages[~supported]
        if not rows.size:
            break
    return found


def check_channels(protocol: Protocol) -> None:
    """Raise ParameterError unless the protocol says how its reports are distributed."""
    if not protocol.channels:
        raise ParameterError(f"{protocol.name} defines no channels, so it cannot be analysed")


def decode(plan: Plan, reports: Reports) -> wire.EncodedReports:
    """One batch, or single reports, as integers; raises ReportError for what the plan's server would refuse."""
    if not isinstance(reports, (bytes, bytearray, memoryview)):
        return wire.decode_reports(plan.protocol.report_layout, [bytes(report) for report in reports])
    pieces = list(wire.read_batches(io.BytesIO(reports), plan.protocol.report_layout, plan.digest))
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
