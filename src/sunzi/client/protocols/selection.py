"""Protocols whose reports choose one of several block responses: a residue of the value, or one view of a record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..designs.design import index_bits
from ..designs.response import BlockResponse
from ..randomness import WordSource
from ..reports import Report, ReportLayout
from .protocol import Protocol


@dataclass(frozen=True)
class SelectingProtocol(Protocol):
    """A report draws one of the responses, and answers it with the whole ε.

    Draw order of a batch: one word per report for its selector j; then, for j = 0, 1, …, the words of the block
    responses of the reports that drew j, in their order. The selector is independent of the value, so ε-LDP of every
    response is ε-LDP of the whole.
    """

    if TYPE_CHECKING:

        @property
        def responses(self) -> tuple[BlockResponse, ...]:
            """The block responses that a report chooses from."""

    @property
    def epsilon(self) -> Fraction:
        """The ε of every response."""
        return self.responses[0].epsilon

    @abstractmethod
    def select(self, count: int, source: WordSource) -> list[int]:
        """Which response each report answers."""

    @abstractmethod
    def point_of(self, selector: int, index: Any) -> int:
        """The point of a value in one response."""

    @cached_property
    def report_layout(self) -> ReportLayout:
        """A selector, and one payload per response."""
        designs = [response.design for response in self.responses]
        return ReportLayout(
            tuple(design.payload_bits for design in designs), tuple(design.payload_limit for design in designs)
        )

    def numbered(self, selector: int, payload: int) -> Report:
        """The report of a response's payload."""
        return selector, payload

    def make_reports(self, indices: Sequence[Any], source: WordSource) -> list[Report]:
        """Draw selectors; then respond with the points of every selector's reports."""
        selectors = self.select(len(indices), source)
        found: list[Report] = [(0, 0)] * len(selectors)
        for selector in sorted(set(selectors)):
            rows = [row for row, drawn in enumerate(selectors) if drawn == selector]
            points = [self.point_of(selector, indices[row]) for row in rows]
            payloads = self.responses[selector].make_payloads(points, source)
            for row, payload in zip(rows, payloads, strict=True):
                found[row] = self.numbered(selector, payload)
        return found

    @property
    def work(self) -> int:
        """The word that selects, and the costliest response."""
        return 1 + max(response.work for response in self.responses)

    def is_supported(self, report: Report, index: Any) -> bool:
        """Whether the block contains the value's point."""
        selector, payload = report
        return self.responses[selector].design.is_member(payload, self.point_of(selector, index))

    def naming_rates(self, report: Report) -> tuple[float, float]:
        """Those of the response that the report belongs to."""
        return self.responses[report[0]].naming_rates


@dataclass(frozen=True)
class JointMessages(SelectingProtocol):
    """Designs whose payloads are short integers. A report is one integer below Σ_j M_j: the offset of response j plus
    the payload of its own.
    """

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where the payloads of each response begin, and where those of the last one end."""
        return (0, *accumulate(response.design.payload_limit or 0 for response in self.responses))

    @cached_property
    def report_layout(self) -> ReportLayout:
        """One payload for all responses."""
        return ReportLayout((index_bits(self.offsets[-1]),), (self.offsets[-1],))

    def numbered(self, selector: int, payload: int) -> Report:
        """No selector; the payload moved by the offset of its response."""
        return 0, self.offsets[selector] + payload

    def is_supported(self, report: Report, index: Any) -> bool:
        """Of the response that the payload belongs to."""
        return super().is_supported(self._separate(report), index)

    def naming_rates(self, report: Report) -> tuple[float, float]:
        """Of the same response."""
        return super().naming_rates(self._separate(report))

    def _separate(self, report: Report) -> Report:
        """The response that a payload belongs to, and its own payload."""
        selector = sum(report[1] >= offset for offset in self.offsets[1:])
        return selector, report[1] - self.offsets[selector]
