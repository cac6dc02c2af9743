"""Protocols that report one block of one design on the whole domain: GRR, SubsetSelection, its compact form, and
PGR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

from ..designs.response import BlockResponse
from ..errors import PlanError
from ..randomness import WordSource
from ..reports import Report, ReportLayout
from ..strict_json import only_parameters
from .protocol import Protocol


@dataclass(frozen=True)
class BlockProtocol(Protocol):
    """One block response on v ≥ k points; a value is its own point."""

    designs: ClassVar[frozenset[str]]
    """The designs that a plan of this protocol may name."""

    domain_size: int
    response: BlockResponse

    def __post_init__(self) -> None:
        design = self.response.design
        if design.kind not in self.designs:
            raise PlanError(f"{self.name} uses one of the designs {sorted(self.designs)}, got {design.kind!r}")
        if design.points < self.domain_size:
            raise PlanError(f"a design of {design.points} points cannot hold a domain of {self.domain_size} values")

    @property
    def epsilon(self) -> Fraction:
        """The response's ε."""
        return self.response.epsilon

    @cached_property
    def report_layout(self) -> ReportLayout:
        """A single payload, without a selector."""
        design = self.response.design
        return ReportLayout((design.payload_bits,), (design.payload_limit,))

    def make_reports(self, indices: Sequence[Any], source: WordSource) -> list[Report]:
        """The block response."""
        return [(0, payload) for payload in self.response.make_payloads(indices, source)]

    @property
    def work(self) -> int:
        """The response's."""
        return self.response.work

    def is_supported(self, report: Report, index: Any) -> bool:
        """Whether the block contains the value."""
        return self.response.design.is_member(report[1], index)

    def naming_rates(self, report: Report) -> tuple[float, float]:  # noqa: ARG002 - all reports are alike
        """The response's."""
        return self.response.naming_rates

    def parameters(self) -> dict[str, Any]:
        """The parameters of the response."""
        return {"response": self.response.parameters()}

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the response from a plan."""
        only_parameters(parameters, ["response"])
        return cls(domain_size, cls.response_kind.from_parameters(parameters["response"], epsilon))


@dataclass(frozen=True)
class GeneralizedRandomizedResponse(BlockProtocol):
    """GRR: the value, or another one. The shortest message and, on large domains, by far the largest error."""

    name = "grr"
    designs = frozenset({"singletons"})


@dataclass(frozen=True)
class SubsetSelection(BlockProtocol):
    """SS: a subset of about k/(e^ε+1) values. Optimal error, long messages."""

    name = "ss"
    designs = frozenset({"subsets", "singletons"})


@dataclass(frozen=True)
class CompactSubsetSelection(BlockProtocol):
    """Compact SS: the error of SS in about log2(k) + 1.44·ε bits, by a cyclotomic design."""

    name = "ss-compact"
    designs = frozenset({"cyclotomic", "singletons"})


@dataclass(frozen=True)
class ProjectiveGeometryResponse(BlockProtocol):
    """PGR: a hyperplane of a projective geometry over the field nearest to e^ε+1."""

    name = "pgr"
    designs = frozenset({"projective", "singletons"})
