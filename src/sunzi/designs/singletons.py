"""Singletons: every block is one point. The design of randomised response (GRR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs import singletons as client
from sunzi.designs.base import DecodingCost, Design, subset_first_support_shares
from sunzi.numerics.counters import Counters


@dataclass(frozen=True)
class Singletons(client.Singletons, Design):
    """v blocks of one point each; the message is the point.

    >>> design = Singletons(points=10)
    >>> design.block_size, design.message_count
    (1, 10)
    """

    @property
    def message_count(self) -> int:
        """One message per point."""
        return self.points

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
