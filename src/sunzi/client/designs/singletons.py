"""Singletons: every block is one point. The design of randomised response (GRR)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ..errors import ParameterError
from ..strict_json import integer_parameter, only_parameters
from .design import Design, index_bits

MOST_POINTS = 1 << 31


@dataclass(frozen=True)
class Singletons(Design):
    """v blocks of one point each; the payload is the point."""

    kind = "singletons"

    points: int

    def __post_init__(self) -> None:
        if not 2 <= self.points <= MOST_POINTS:
            raise ParameterError(f"a design needs between 2 and 2^31 points, got {self.points}")

    @property
    def block_size(self) -> int:
        """Always 1."""
        return 1

    @property
    def bounds(self) -> tuple[int, ...]:
        """Which of the other points to name."""
        return (self.points - 1,)

    @property
    def payload_bits(self) -> int:
        """The bits of a point."""
        return index_bits(self.points)

    @property
    def payload_limit(self) -> int:
        """One payload per point."""
        return self.points

    def payload(self, value: int, truth: bool, variates: Sequence[int]) -> int:
        """The value, or the variate-th of the other points in ascending order."""
        other = variates[0] + (variates[0] >= value)
        return (other, value)[truth]

    def is_member(self, payload: int, point: int) -> bool:
        """Whether they are equal."""
        return payload == point

    def parameters(self) -> dict[str, Any]:
        """The number of points."""
        return {"points": self.points}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Read the number of points from a plan."""
        only_parameters(parameters, ["points"])
        return cls(integer_parameter(parameters, "points", 2, MOST_POINTS))
