"""Protocols whose reports choose one of several block responses: a residue of the value, or one view of a record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.protocols import selection as client
from sunzi.client.randomness import WordSource
from sunzi.designs.response import BlockResponse
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.counters import Counters
from sunzi.protocols.base import Protocol
from sunzi.tally import TallyLayout
from sunzi.wire import EncodedReports

Result = TypeVar("Result")

_THIRD_VALUES = 64


@dataclass(frozen=True)
class SelectingProtocol(client.SelectingProtocol, Protocol):
    """A report draws one of the responses, and answers it with the whole ε.

    Draw order of a batch: one word per report for its selector j; then, for j = 0, 1, …, the words of the block
    responses of the reports that drew j, in their order. The selector is independent of the value, so ε-LDP of every
    response is ε-LDP of the whole.
    """

    if TYPE_CHECKING:

        @property
        def responses(self) -> tuple[BlockResponse, ...]:
            """The block responses that a report chooses from."""

    @abstractmethod
    def draw_selectors(self, count: int, source: WordSource) -> NDArray[np.uint16]:
        """Which response each report answers."""

    @property
    def different_values(self) -> tuple[int, int]:
        """Two values with different points in every response."""
        return 0, 1

    @property
    def compared_values(self) -> Integers:
        """:attr:`different_values`, and some others."""
        thirds = np.unique([2, *np.linspace(0, self.domain_size - 1, _THIRD_VALUES, dtype=np.int64).tolist()])
        return np.array([*self.different_values, *thirds[thirds < self.domain_size].tolist()])

    def blanket(self) -> Blanket:
        """The mean over the responses: the worst pair of values differs in all of them. Attackers compare it with the
        third value, among some, that differs from both in most of them.
        """
        odds = max(float(response.likelihood_ratio) for response in self.responses)
        values = self.compared_values
        points = [self.points_of(index, values).tolist() for index in range(len(self.responses))]
        apart = np.array([[len({own[0], own[1], third}) == 3 for third in own[2:]] for own in points])
        best = int(np.argmax(self.shares @ apart)) + 2
        parts = [
            response.blanket(odds, (own[0], own[1], own[best]))
            for response, own in zip(self.responses, points, strict=True)
        ]
        return Blanket.mixed(self.shares.tolist(), parts)

    @cached_property
    def tally_layout(self) -> TallyLayout:
        """One block of counters per response."""
        designs = [response.design for response in self.responses]
        return TallyLayout(tuple((design.counter_count, design.counter_weight) for design in designs))

    def _narrowed_responses(self, epsilon: Fraction, word_bits: int, smallest: bool) -> list[BlockResponse]:
        """The responses on words of ``word_bits`` bits; if ``smallest``, one with a small design of every kind in use,
        or two of the only kind.
        """
        parts = [(response, response.design) for response in self.responses]
        if smallest:
            kinds = {response.design.kind: response for response in self.responses}
            number = 2 if len(kinds) == 1 else 1
            parts = [(each, design) for each in kinds.values() for design in each.design.smallest()[:number]]
        return [type(response)(design, epsilon, word_bits=word_bits) for response, design in parts]

    def _respond(
        self, values: Integers, source: WordSource, action: Callable[[BlockResponse, Integers], Result]
    ) -> tuple[Integers, list[Result]]:
        """Draw selectors; act on the points of every selector's reports."""
        selectors = self.draw_selectors(len(values), source)
        rows, none = dict(self._rows(selectors)), np.empty(0, dtype=np.intp)
        results = [
            action(response, self.points_of(index, values[rows.get(index, none)]))
            for index, response in enumerate(self.responses)
        ]
        return selectors.astype(np.int64), results

    def _rows(self, selectors: NDArray[np.uint16]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """The responses that some rows drew, rising, and these rows, rising."""
        counts, order, start = np.bincount(selectors), np.argsort(selectors, kind="stable"), 0
        for selector in np.flatnonzero(counts).tolist():
            stop = start + int(counts[selector])
            yield selector, order[start:stop]
            start = stop

    def support_probabilities(self) -> list[tuple[float, float]]:
        """The probabilities p and q of every block."""
        return [(response.probabilities.true, response.probabilities.false) for response in self.responses]


@dataclass(frozen=True)
class JointMessages(client.JointMessages, SelectingProtocol):
    """Designs whose messages are short integers. A report is one integer below Σ_j M_j: the offset of response j plus
    the message of its own.
    """

    if TYPE_CHECKING:

        @property
        def responses(self) -> tuple[BlockResponse, ...]:
            """The block responses that a report chooses from."""

    @cached_property
    def _offsets(self) -> Integers:
        return np.array(self.offsets, dtype=np.int64)

    def randomize(self, values: Integers, source: WordSource) -> Integers:
        """The joint message of every value. Responses that no report drew cost nothing: a single report draws one."""
        selectors = self.draw_selectors(len(values), source)
        joint = np.empty(len(values), dtype=np.int64)
        for selector, rows in self._rows(selectors):
            points = self.points_of(selector, values[rows])
            joint[rows] = self.responses[selector].randomize(points, source) + self._offsets[selector]
        return joint

    def split(self, messages: Integers) -> tuple[Integers, tuple[Integers, ...]]:
        """Split the messages by the offsets of the blocks."""
        selectors = np.searchsorted(self._offsets, messages, side="right").astype(np.int64) - 1
        starts = enumerate(self._offsets[:-1].tolist())
        return selectors, tuple(messages[selectors == index] - start for index, start in starts)

    def join(self, parts: Sequence[Integers]) -> Integers:
        """Each part moved by the offset of its block."""
        return np.concatenate([part + offset for part, offset in zip(parts, self._offsets, strict=False)])

    def wire_report(self, channel: int, payload: int) -> tuple[int, int]:
        """No selector; the payload moved by the offset of its block."""
        return 0, int(self._offsets[channel]) + payload

    def encode(self, messages: Integers) -> EncodedReports:
        """The messages, which are already integers below the layout's limit."""
        return EncodedReports.single(messages.view(np.uint64))

    def decode(self, encoded: EncodedReports) -> Integers:
        """The payloads, which are already messages."""
        return np.asarray(encoded.payloads[0], dtype=np.uint64).view(np.int64)

    def count(self, messages: Integers) -> Counters:
        """The message is the counter's index."""
        return Counters.of_cells(self.tally_layout.length, messages)
