"""Projective designs: the hyperplanes of PG(t−1, q), as ProjectiveGeometryResponse uses them.

See docs/mathematics.md §5.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, log2
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs import projective as client
from sunzi.client.designs.finite_fields import LARGEST_ORDER
from sunzi.client.designs.projective import MOST_POINTS, points_of
from sunzi.client.errors import ParameterError, whole_number
from sunzi.designs.base import DecodingCost, Design
from sunzi.designs.singletons import Singletons
from sunzi.numerics.counters import Counters, expected_filled
from sunzi.numerics.finite_fields import FiniteField, find_irreducible, nearest_prime_power, prime_power
from sunzi.numerics.incidence import Route, cheapest_route, hyperplane_sums, incidence_counts
from sunzi.numerics.projective import ProjectiveSpace


@dataclass(frozen=True)
class Projective(client.Projective, Design):
    """K = (q^t−1)/(q−1) points and as many hyperplanes; the message is the index of a hyperplane, its block the points
    on it.

    ``polynomial`` is irreducible and defines the field of ``order`` elements; if empty, the first such one is taken.

    >>> design = Projective(order=2, dimension=3)
    >>> design.points, design.block_size
    (7, 3)
    """

    def __post_init__(self) -> None:
        parts = prime_power(self.order) if 2 <= self.order <= LARGEST_ORDER else None
        if not self.polynomial and parts is not None:
            object.__setattr__(self, "polynomial", find_irreducible(*parts))
        super().__post_init__()

    @cached_property
    def space(self) -> ProjectiveSpace:
        """The projective space of this order and dimension."""
        parts = prime_power(self.order)
        assert parts is not None, "checked in __post_init__"
        return ProjectiveSpace(FiniteField(*parts, self.polynomial), self.dimension)

    @property
    def message_count(self) -> int:
        """As many hyperplanes as points."""
        return self.points

    @classmethod
    def smallest(cls) -> tuple[Self, ...]:
        """The plane of order 2 and the line of order 3."""
        return cls(2, 3), cls(3, 2)

    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """A uniform hyperplane through the point, or one that misses it; both are computed."""
        through = self.space.hyperplane_through(values, variates[:, 0].astype(np.int64))
        avoiding = self.space.hyperplane_avoiding(values, variates[:, 1].astype(np.int64))
        return np.where(truth, through, avoiding)

    def third_share(self, points: tuple[int, int, int]) -> float:
        """0 on the first line, whose q+1 points come first: a hyperplane that misses one of its points meets it in one
        point only. At most 1/q elsewhere.
        """
        return 0.0 if max(points) <= self.order else 1 / self.order

    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether ⟨x, y⟩ = 0."""
        return self.space.contains(messages, points)

    def point_counts(self, counters: Counters, limit: int, route: Route | None = None) -> Integers:
        """By Fourier transform, by the dynamic programme of PGR's authors or by adding the reported hyperplanes
        (``route`` "fourier", "dynamic" or "direct"); the cheapest by default.
        """
        counters.check_total()
        return incidence_counts(self.space, *counters.nonzero(), limit, route).astype(np.int64)

    def point_counts_cost(self, reports: float, limit: int) -> DecodingCost:
        """The cost of the cheapest route."""
        filled = expected_filled(self.counter_count, reports)
        route = cheapest_route(self.space, round(filled), limit)
        operations = {
            "fourier": self.points * log2(self.points),
            "dynamic": float(limit * self.order * self.dimension),
            "direct": filled * limit / self.order,
        }
        return DecodingCost(operations[route], route)

    def block_sums(self, values: Floats) -> Floats:
        """The values on every hyperplane, added up."""
        return np.asarray(hyperplane_sums(self.space, values), dtype=np.float64)

    def spread(self, weights: Floats, limit: int) -> Floats:
        """Weights on hyperplanes, added up at every point."""
        return np.asarray(incidence_counts(self.space, np.arange(weights.size), weights, limit), dtype=np.float64)

    def missing_messages(self, limit: int) -> int:
        """None once [limit] holds the first q+1 points: they are a line, and every hyperplane meets a line."""
        return 0 if limit > self.order else super().missing_messages(limit)


def choose_projective(domain_size: int, epsilon: Fraction, order: int | None = None) -> Projective:
    """The prime power nearest to e^ε+1 (or a given one), and the smallest geometry that holds the domain."""
    field_order = (
        nearest_prime_power(min(exp(epsilon) + 1, LARGEST_ORDER))
        if order is None
        else whole_number("order", order, 2, LARGEST_ORDER)
    )
    dimension = 2
    while points_of(field_order, dimension) < domain_size:
        dimension += 1
    if points_of(field_order, dimension) > MOST_POINTS:
        raise ParameterError(
            f"over the field of {field_order} elements no geometry of fewer than 2^31 points holds {domain_size} "
            "values; give another order, or use a compact protocol"
        )
    return Projective(field_order, dimension)


def projective_or_singletons(domain_size: int, epsilon: Fraction, order: int | None = None) -> Design:
    """That geometry, or singletons where its hyperplanes would have one point."""
    if order is None and exp(epsilon) + 1 >= domain_size:
        return Singletons(domain_size)
    design = choose_projective(domain_size, epsilon, order)
    return Singletons(domain_size) if design.block_size == 1 else design
