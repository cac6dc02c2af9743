"""Projective designs: the hyperplanes of PG(t−1, q), as ProjectiveGeometryResponse uses them (docs/mathematics.md §5).

A point is a non-zero vector of t elements up to scaling; its canonical vector has leading zeros, then a 1, then s free
coordinates. Its number is (q^s − 1)/(q − 1) plus the value of the free coordinates read as a base-q number, most
significant first. Hyperplanes are numbered alike: hyperplane y contains the points x with ⟨x, y⟩ = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from ..errors import ParameterError
from ..strict_json import integer_list, integer_parameter, only_parameters
from .design import Design, index_bits
from .finite_fields import LARGEST_ORDER, FiniteField, digits

MOST_POINTS = (1 << 31) - 1


@dataclass(frozen=True)
class Projective(Design):
    """K = (q^t−1)/(q−1) points and as many hyperplanes; the payload is the number of a hyperplane, its block the points
    on it. ``polynomial`` is irreducible and defines the field of ``order`` elements.
    """

    kind = "projective"

    order: int
    """q, a prime power."""
    dimension: int
    """t; the points are the lines through 0 of a space of this dimension."""
    polynomial: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "polynomial", tuple(self.polynomial))
        FiniteField(self.order, self.polynomial)
        if self.dimension < 2 or self.points > MOST_POINTS:
            raise ParameterError(f"dimension must be at least 2 and give fewer than 2^31 points, got {self.dimension}")

    @cached_property
    def field(self) -> FiniteField:
        """The field of the coordinates."""
        return FiniteField(self.order, self.polynomial)

    @property
    def points(self) -> int:
        """K, the number of points of the space."""
        return points_of(self.order, self.dimension)

    @property
    def block_size(self) -> int:
        """The number of points of a hyperplane."""
        return points_of(self.order, self.dimension - 1)

    @property
    def bounds(self) -> tuple[int, ...]:
        """A hyperplane through the point, a hyperplane that misses it."""
        return (self.block_size, self.order ** (self.dimension - 1))

    @property
    def payload_bits(self) -> int:
        """The bits of the number of a hyperplane."""
        return index_bits(self.points)

    @property
    def payload_limit(self) -> int:
        """As many hyperplanes as points."""
        return self.points

    def payload(self, value: int, truth: bool, variates: Sequence[int]) -> int:
        """A uniform hyperplane through the point, or one that misses it.

        With z the place of the point's leading 1, the other coordinates of y are a canonical vector (truth) or any
        vector of one dimension less, and y_z makes the inner product 0 (truth) or 1.
        """
        point = self._vector(value, self.dimension)
        through = self._vector(variates[0], self.dimension - 1)
        avoiding = digits(variates[1], self.order, self.dimension - 1)[::-1]
        hyperplane = list((avoiding, through)[truth])
        pivot = point.index(1)
        hyperplane.insert(pivot, 0)
        product = self._product(point, hyperplane)
        hyperplane[pivot] = self.field.add(1 - truth, self.field.negate(product))
        return self._number(hyperplane)

    def _vector(self, number: int, length: int) -> list[int]:
        """The canonical vector of a point."""
        free = 0
        while points_of(self.order, free + 1) <= number:
            free += 1
        rest = digits(number - points_of(self.order, free), self.order, free)
        return [0] * (length - 1 - free) + [1] + rest[::-1]

    def _number(self, vector: Sequence[int]) -> int:
        """The number of the point of a non-zero vector, canonical or not."""
        place = next(place for place, coordinate in enumerate(vector) if coordinate)
        scale, value = self.field.inverse(vector[place]), 0
        for coordinate in vector[place + 1 :]:
            value = value * self.order + self.field.multiply(scale, coordinate)
        return points_of(self.order, len(vector) - 1 - place) + value

    def _product(self, left: Sequence[int], right: Sequence[int]) -> int:
        """The inner product."""
        total = 0
        for one, two in zip(left, right, strict=True):
            total = self.field.add(total, self.field.multiply(one, two))
        return total

    def is_member(self, payload: int, point: int) -> bool:
        """Whether ⟨x, y⟩ = 0."""
        return self._product(self._vector(payload, self.dimension), self._vector(point, self.dimension)) == 0

    def parameters(self) -> dict[str, Any]:
        """The field and the dimension."""
        return {"order": self.order, "dimension": self.dimension, "polynomial": list(self.polynomial)}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """From a plan: q must be a prime power and the polynomial irreducible."""
        only_parameters(parameters, ["order", "dimension", "polynomial"])
        order = integer_parameter(parameters, "order", 2, LARGEST_ORDER)
        dimension = integer_parameter(parameters, "dimension", 2, 64)
        polynomial = integer_list("polynomial", parameters["polynomial"], order.bit_length())
        return cls(order, dimension, tuple(polynomial))


def points_of(order: int, coordinates: int) -> int:
    """The number of points of PG(coordinates − 1, order); 0 without coordinates."""
    return (order**coordinates - 1) // (order - 1)
