"""Projective designs: the hyperplanes of PG(t−1, q), as ProjectiveGeometryResponse uses them.

See docs/mathematics.md §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, log2
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.designs.base import DecodingCost, Design, draw_bounds_array, integer_parameter, only_parameters
from sunzi.designs.singletons import Singletons
from sunzi.errors import ParameterError, PlanError
from sunzi.numerics.checks import whole_number
from sunzi.numerics.counters import Counters, expected_filled
from sunzi.numerics.finite_fields import LARGEST_ORDER, FiniteField, find_irreducible, nearest_prime_power, prime_power
from sunzi.numerics.incidence import Route, cheapest_route, hyperplane_sums, incidence_counts
from sunzi.numerics.projective import ProjectiveSpace, points_of

MOST_POINTS = (1 << 31) - 1


@dataclass(frozen=True)
class Projective(Design):
    """K = (q^t−1)/(q−1) points and as many hyperplanes; the message is the index of a hyperplane, its block the points
    on it.

    ``polynomial`` is irreducible and defines the field of ``order`` elements; if empty, the first such one is taken.

    >>> design = Projective(order=2, dimension=3)
    >>> design.points, design.block_size
    (7, 3)
    """

    kind = "projective"

    order: int
    """q, a prime power."""
    dimension: int
    """t; the points are the lines through 0 of a space of this dimension."""
    polynomial: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        parts = prime_power(self.order) if 2 <= self.order <= LARGEST_ORDER else None
        if parts is None:
            raise ParameterError(f"order must be a prime power up to 2^20, got {self.order}")
        field = FiniteField(*parts, tuple(self.polynomial) or find_irreducible(*parts))
        object.__setattr__(self, "polynomial", field.polynomial)
        if self.dimension < 2 or self.points > MOST_POINTS:
            raise ParameterError(f"dimension must be at least 2 and give fewer than 2^31 points, got {self.dimension}")

    @cached_property
    def space(self) -> ProjectiveSpace:
        """The projective space of this order and dimension."""
        parts = prime_power(self.order)
        assert parts is not None, "checked in __post_init__"
        return ProjectiveSpace(FiniteField(*parts, self.polynomial), self.dimension)

    @property
    def points(self) -> int:
        """K, the number of points of the space."""
        return points_of(self.order, self.dimension)

    @property
    def block_size(self) -> int:
        """The number of points of a hyperplane."""
        return points_of(self.order, self.dimension - 1)

    @property
    def message_count(self) -> int:
        """As many hyperplanes as points."""
        return self.points

    @cached_property
    def draw_bounds(self) -> NDArray[np.uint64]:
        """A hyperplane through the point, a hyperplane that misses it."""
        return draw_bounds_array(self.block_size, self.order ** (self.dimension - 1))

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

    def parameters(self) -> dict[str, Any]:
        """The field and the dimension."""
        return {"order": self.order, "dimension": self.dimension, "polynomial": list(self.polynomial)}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """From a plan: q must be a prime power and the polynomial irreducible."""
        only_parameters(parameters, ["order", "dimension", "polynomial"])
        order = integer_parameter(parameters, "order", 2, LARGEST_ORDER)
        dimension = integer_parameter(parameters, "dimension", 2, 64)
        polynomial = parameters["polynomial"]
        if not isinstance(polynomial, list) or not polynomial or not all(type(term) is int for term in polynomial):
            raise PlanError(f"polynomial must be a list of whole numbers, got {polynomial!r}")
        try:
            return cls(order, dimension, tuple(polynomial))
        except ParameterError as error:
            raise PlanError(str(error)) from None


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
