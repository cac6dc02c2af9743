"""Singletons: every block is one point. The design of randomised response (GRR)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.designs.base import (
    DecodingCost,
    Design,
    draw_bounds_array,
    integer_parameter,
    only_parameters,
    subset_first_support_shares,
)
from sunzi.errors import ParameterError
from sunzi.numerics.counters import Counters

MOST_POINTS = 1 << 31


@dataclass(frozen=True)
class Singletons(Design):
    """v blocks of one point each; the message is the point.

    >>> design = Singletons(points=10)
    >>> design.block_size, design.message_count
    (1, 10)
    """

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
    def message_count(self) -> int:
        """One message per point."""
        return self.points

    @cached_property
    def draw_bounds(self) -> NDArray[np.uint64]:
        """Which of the other points to name."""
        return draw_bounds_array(self.points - 1)

    @classmethod
    def smallest(cls) -> tuple[Self, ...]:
        """The designs on 3 and 5 points."""
        return cls(3), cls(5)

    def third_share(self, points: tuple[int, int, int]) -> float:  # noqa: ARG002 - the same for any points
        """0: a block is one point."""
        return 0.0

    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """The value, or the variate-th of the other points in ascending order."""
        other = variates[:, 0].astype(np.int64)
        other += other >= values
        return np.where(truth, values, other)

    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether message and point are equal."""
        return messages == points

    def first_support_shares(self, points: Integers) -> Floats:
        """As for subsets of one point."""
        return subset_first_support_shares(self.points, 1, points.size)

    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """The counters themselves."""
        return counters.part(0, limit).dense()

    def point_counts_cost(self, reports: float, limit: int) -> DecodingCost:  # noqa: ARG002 - the same for any number
        """One read per point."""
        return DecodingCost(limit, "counters")

    def block_sums(self, values: Floats) -> Floats:
        """The values themselves, padded with zeros."""
        return np.concatenate([values, np.zeros(self.points - values.size)])

    def spread(self, weights: Floats, limit: int) -> Floats:
        """The weights themselves."""
        return weights[:limit]

    def parameters(self) -> dict[str, Any]:
        """The number of points."""
        return {"points": self.points}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Read the number of points from a plan."""
        only_parameters(parameters, ["points"])
        return cls(integer_parameter(parameters, "points", 2, MOST_POINTS))
