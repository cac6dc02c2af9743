"""What reports say about values, read from their bytes.

Every protocol here has reports of two kinds for a value: those that *support* it (its point is in the block, its bit is
1) and those that do not. P(y|x) is larger by one and the same factor, the odds, for the values that y supports; what
else it depends on is the same for all values. So the supports, and the odds, are all that an attacker can use.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi._typing import Floats, Integers
from sunzi.designs.response import BlockResponse
from sunzi.errors import ParameterError, ReportError
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularMessages, ModularProtocol
from sunzi.protocols.unary import UnaryProtocol

Booleans = NDArray[np.bool_]
Reports = bytes | Sequence[bytes]

_CELLS_AT_ONCE = 1 << 20


class Evidence(ABC):
    """Some reports, decoded."""

    log_odds: Floats
    """For each report, log P(y|x)/P(y|x') for a value x that it supports and a value x' that it does not."""

    def __len__(self) -> int:
        """The number of reports."""
        return int(self.log_odds.size)

    @abstractmethod
    def supports(self, values: Integers) -> Booleans:
        """Whether each report supports the value beside it."""

    @abstractmethod
    def take(self, rows: Integers) -> Evidence:
        """Some of the reports."""

    def table(self, domain_size: int) -> Booleans:
        """Whether each report, a row, supports each value, a column."""
        found = np.empty((len(self), domain_size), dtype=np.bool_)
        step = max(1, _CELLS_AT_ONCE // domain_size)
        values = np.arange(domain_size)
        for start in range(0, len(self), step):
            rows = np.arange(start, min(start + step, len(self)))
            part = self.take(np.repeat(rows, domain_size))
            found[rows] = part.supports(np.tile(values, rows.size)).reshape(rows.size, domain_size)
        return found


class BlockEvidence(Evidence):
    """Messages of one block response; a value stands for the point value mod v."""

    def __init__(self, response: BlockResponse, messages: Integers) -> None:
        self._response, self._messages = response, messages
        self.log_odds = np.full(len(messages), np.log(block_odds(response)))

    def supports(self, values: Integers) -> Booleans:
        """Whether the block contains the value's point."""
        design = self._response.design
        return design.contains(self._messages, values % design.points)

    def take(self, rows: Integers) -> BlockEvidence:
        """Some of the messages."""
        return BlockEvidence(self._response, self._messages[rows])

    def table(self, domain_size: int) -> Booleans:
        """Subsets list their points, which is quicker than asking for each value."""
        design = self._response.design
        if self._messages.ndim == 1:
            return super().table(domain_size)
        found = np.zeros((len(self), design.points), dtype=np.bool_)
        np.put_along_axis(found, self._messages, True, axis=1)
        return found[:, np.arange(domain_size) % design.points]


class UnaryEvidence(Evidence):
    """Rows of bits, one a value."""

    def __init__(self, odds: float, packed: NDArray[np.uint8]) -> None:
        self._odds, self._packed = odds, packed
        self.log_odds = np.full(len(packed), np.log(odds))

    def supports(self, values: Integers) -> Booleans:
        """Whether the value's bit is 1."""
        chosen = self._packed[np.arange(len(values)), values >> 3]
        return (chosen >> (values & 7).astype(np.uint8) & 1).astype(np.bool_)

    def take(self, rows: Integers) -> UnaryEvidence:
        """Some of the rows."""
        return UnaryEvidence(self._odds, self._packed[rows])

    def table(self, domain_size: int) -> Booleans:
        """The bits themselves."""
        return np.unpackbits(self._packed, axis=1, count=domain_size, bitorder="little").astype(np.bool_)


class ModularEvidence(Evidence):
    """Messages of several block responses; each report belongs to the one that its selector names."""

    def __init__(self, selectors: Integers, places: Integers, parts: Sequence[BlockEvidence]) -> None:
        self.selectors, self._places, self._parts = selectors, places, parts
        self.log_odds = np.empty(selectors.size)
        for index, part in enumerate(parts):
            mine = selectors == index
            self.log_odds[mine] = part.log_odds[places[mine]]

    def _divided(self) -> Iterator[tuple[Integers, BlockEvidence]]:
        """The reports of every selector, and where they stand."""
        for index, part in enumerate(self._parts):
            mine = np.flatnonzero(self.selectors == index)
            if mine.size:
                yield mine, part.take(self._places[mine])

    def supports(self, values: Integers) -> Booleans:
        """Whether the block contains the value's residue."""
        found = np.empty(len(self), dtype=np.bool_)
        for mine, part in self._divided():
            found[mine] = part.supports(values[mine])
        return found

    def take(self, rows: Integers) -> ModularEvidence:
        """Some of the reports."""
        return ModularEvidence(self.selectors[rows], self._places[rows], self._parts)

    def table(self, domain_size: int) -> Booleans:
        """Block by block."""
        found = np.empty((len(self), domain_size), dtype=np.bool_)
        for mine, part in self._divided():
            found[mine] = part.table(domain_size)
        return found


def block_odds(response: BlockResponse) -> float:
    """P(y|x)/P(y|x') for a block that contains x and misses x', as the shipped integers give it."""
    truth, design = response.inclusion, response.design
    return float(truth * (design.points - design.block_size) / ((1 - truth) * design.block_size))


def unary_odds(protocol: UnaryProtocol) -> float:
    """p(1−q)/(q(1−p)), as the shipped integers give it."""
    words = 1 << protocol.word_bits
    true, false = Fraction(protocol.true_threshold, words), Fraction(protocol.false_threshold, words)
    return float(true * (1 - false) / (false * (1 - true)))


def evidence_of(protocol: Protocol, messages: Any) -> Evidence:
    """The evidence of messages that the protocol decoded."""
    if isinstance(protocol, BlockProtocol):
        return BlockEvidence(protocol.response, messages)
    if isinstance(protocol, UnaryProtocol):
        return UnaryEvidence(unary_odds(protocol), messages)
    if isinstance(protocol, ModularProtocol):
        return _modular_evidence(protocol, messages)
    raise ParameterError(
        f"it is not known what reports of {protocol.name} support: "
        "only block responses, unary and modular protocols can be analysed"
    )


def _modular_evidence(protocol: ModularProtocol, messages: Any) -> ModularEvidence:
    if isinstance(messages, ModularMessages):
        selectors, own = messages.selectors, messages.parts
    else:
        starts = np.cumsum([0, *(response.design.message_count for response in protocol.responses)])
        selectors = np.searchsorted(starts, messages, side="right").astype(np.int64) - 1
        own = tuple(messages[selectors == index] - start for index, start in enumerate(starts[:-1].tolist()))
    places = np.empty(selectors.size, dtype=np.int64)
    for index, part in enumerate(own):
        places[selectors == index] = np.arange(len(part))
    parts = [BlockEvidence(*pair) for pair in zip(protocol.responses, own, strict=True)]
    return ModularEvidence(selectors, places, parts)


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
        selectors, tuple(_joined(parts) for parts in zip(*(p.payloads for p in pieces), strict=True))
    )


def _joined(parts: Sequence[wire.Payloads]) -> wire.Payloads:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    return [int(payload) for part in parts for payload in part]


def read_reports(plan: Plan, reports: Reports) -> Evidence:
    """What a server, or an attacker, reads in these bytes."""
    return evidence_of(plan.protocol, plan.protocol.decode(decode(plan, reports)))
