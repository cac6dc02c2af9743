"""Means of numbers: unbiased rounding to a few points, then randomised response (docs/mathematics.md §15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from ..designs.response import BlockResponse
from ..domains.labels import Domain
from ..domains.ranges import OrderedDomain
from ..errors import PlanError
from ..randomness import WordSource, uniform_integers
from ..reports import Report, ReportLayout
from ..strict_json import only_parameters
from .protocol import Protocol

MOST_GRID_POINTS = 256


@dataclass(frozen=True)
class RoundedNumbers(Protocol):
    """The number is rounded at random to one of the two nearest of K equally spaced points, without bias; the point is
    reported by randomised response.

    Draw order of a batch: one word per report for its rounding, then the words of the block response. Rounding comes
    before the ε-LDP response, so it need not be private itself.
    """

    name = "number"

    domain_size: int
    response: BlockResponse

    def __post_init__(self) -> None:
        if self.response.design.kind != "singletons":
            raise PlanError(f"{self.name} uses the design singletons, got {self.response.design.kind!r}")
        if not 2 <= self.grid_points <= min(MOST_GRID_POINTS, self.domain_size):
            raise PlanError(f"numbers are rounded to 2 to {MOST_GRID_POINTS} points, got {self.grid_points}")

    @property
    def grid_points(self) -> int:
        """K."""
        return self.response.points

    @property
    def epsilon(self) -> Fraction:
        """The response's."""
        return self.response.epsilon

    @property
    def report_layout(self) -> ReportLayout:
        """One point."""
        return ReportLayout((self.response.design.payload_bits,), (self.grid_points,))

    def round_indices(self, indices: Sequence[Any], source: WordSource) -> list[int]:
        """The points of values: x·(K−1)/(D−1), rounded up with a probability equal to its fraction."""
        steps, count = self.domain_size - 1, len(indices)
        drawn = uniform_integers(source.words(count), [steps] * count, source)
        places = (divmod(index * (self.grid_points - 1), steps) for index in indices)
        return [point + (other < rest) for (point, rest), other in zip(places, drawn, strict=True)]

    def make_reports(self, indices: Sequence[Any], source: WordSource) -> list[Report]:
        """Round, then respond."""
        points = self.round_indices(indices, source)
        return [(0, payload) for payload in self.response.make_payloads(points, source)]

    def draw_cell(self, index: Any, source: WordSource) -> tuple[int, int]:
        """The point that a number is rounded to; monotone in the number for the same words."""
        return 0, self.round_indices([index], source)[0]

    def answer(self, question: int, cell: int, source: WordSource) -> Report:  # noqa: ARG002 - there is one
        """The response of a point."""
        return 0, self.response.make_payloads([cell], source)[0]

    @property
    def work(self) -> int:
        """The rounding and the response."""
        return 1 + self.response.work

    @classmethod
    def check_domain(cls, domain: Domain) -> None:
        """Only a range has a mean."""
        if not isinstance(domain, OrderedDomain):
            raise PlanError(f"a plan of a number needs a range, got {domain!r}")

    def parameters(self) -> dict[str, Any]:
        """The parameters of the response."""
        return {"response": self.response.parameters()}

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the response from a plan."""
        only_parameters(parameters, ["response"])
        return cls(domain_size, cls.response_kind.from_parameters(parameters["response"], epsilon))
