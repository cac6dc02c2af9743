"""Finite projective geometry: points, hyperplanes, and which contains which.

PG(t-1, q) has K = (q**t - 1)/(q - 1) points, the non-zero vectors of t coordinates up to scaling. A point's canonical
vector has leading zeros, then a 1, then free coordinates. Points are numbered by the number s of free coordinates, then
by those coordinates read as a base-q number, most significant first: index = (q**s - 1)/(q - 1) + value. Hyperplanes
are numbered alike: hyperplane y contains the points x with <x, y> = 0, so points and hyperplanes are interchangeable.
The numbering is part of the wire format and never changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.designs.projective import points_of
from sunzi.client.errors import ParameterError
from sunzi.numerics.finite_fields import FiniteField


@dataclass(frozen=True)
class ProjectiveSpace:
    """The points and hyperplanes of PG(t-1, q), where t = ``dimension`` counts coordinates.

    For each point, :meth:`hyperplane_through` and :meth:`hyperplane_avoiding` are bijections from selectors to the
    hyperplanes that contain, or miss, the point; so a uniform selector gives a uniform hyperplane.
    """

    field: FiniteField
    dimension: int

    def __post_init__(self) -> None:
        if self.dimension < 2 or self.dimension * math.log2(self.field.order) > 62:
            raise ParameterError(
                f"need t >= 2 coordinates and q**t <= 2**62, got t = {self.dimension}, q = {self.field.order}"
            )

    @property
    def point_count(self) -> int:
        """K, the number of points, and of hyperplanes."""
        return points_of(self.field.order, self.dimension)

    @property
    def hyperplane_size(self) -> int:
        """The number of points on a hyperplane, and of hyperplanes through a point."""
        return points_of(self.field.order, self.dimension - 1)

    def vectors(self, indices: Integers) -> Integers:
        """The canonical vectors, shape (n, t), of points or hyperplanes."""
        return self._columns(indices).T

    def indices(self, vectors: Integers) -> Integers:
        """The numbers of the points of non-zero vectors, shape (n, t), canonical or not."""
        order, columns = self.field.order, vectors.T
        leading = np.zeros(len(vectors), dtype=np.int64)
        start = np.zeros(len(vectors), dtype=np.int64)
        for free, column in enumerate(columns[::-1]):
            leading = np.where(column, column, leading)
            start = np.where(column, points_of(order, free) - order**free, start)
        if not leading.all():
            raise ParameterError("the zero vector is not a point")
        scale = self.field.inverse(leading)
        value = np.zeros(len(vectors), dtype=np.int64)
        for column in columns:
            value = value * order + self.field.multiply(column, scale)
        return value + start

    def contains(self, hyperplanes: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether each hyperplane contains the corresponding point."""
        return np.asarray(self._inner_products(self._columns(hyperplanes), self._columns(points)) == 0)

    def hyperplane_through(self, points: Integers, selector: Integers) -> Integers:
        """For each point, hyperplane number ``selector`` of the ``hyperplane_size`` ones that contain it.

        With s the position of the point's leading 1, the other coordinates of y are canonical vector number
        ``selector`` of one dimension less, and y_s = -sum of x_i * y_i over i != s.
        """
        check_range("selector", selector, self.hyperplane_size)
        others = _canonical_columns(self.field.order, self.dimension - 1, np.asarray(selector, dtype=np.int64))
        return self._complete(points, others, 0)

    def hyperplane_avoiding(self, points: Integers, selector: Integers) -> Integers:
        """For each point, hyperplane number ``selector`` of the q**(t-1) ones that miss it.

        The other coordinates of y are the base-q digits of ``selector``, most significant first, and y_s makes the
        inner product 1.
        """
        check_range("selector", selector, self.field.order ** (self.dimension - 1))
        others = _digit_columns(self.field.order, self.dimension - 1, np.asarray(selector, dtype=np.int64))
        return self._complete(points, others, 1)

    def _columns(self, indices: Integers) -> Integers:
        """The canonical vectors as columns, so that each coordinate is contiguous in memory."""
        check_range("index", indices, self.point_count)
        return _canonical_columns(self.field.order, self.dimension, np.asarray(indices, dtype=np.int64))

    def _inner_products(self, left: Integers, right: Integers) -> Integers:
        """The inner product of each column on the left with the same column on the right."""
        total = np.zeros(left.shape[1], dtype=np.int64)
        for first, second in zip(left, right, strict=True):
            total = self.field.add(total, self.field.multiply(first, second))
        return total

    def _complete(self, points: Integers, others: Integers, inner_product: int) -> Integers:
        """The hyperplanes y with coordinates ``others``, plus one at x's pivot such that <x, y> = ``inner_product``."""
        x = self._columns(points)
        pivot = (x != 0).argmax(axis=0)
        y = np.zeros_like(x)
        for position in range(self.dimension - 1):  # coordinates from the pivot on move up by one
            y[position] += np.where(position < pivot, others[position], 0)
            y[position + 1] += np.where(position < pivot, 0, others[position])
        missing = self.field.subtract(inner_product, self._inner_products(x, y))
        for position in range(self.dimension):
            y[position] = np.where(position == pivot, missing, y[position])
        return self.indices(y.T)


def _digit_columns(order: int, length: int, numbers: Integers) -> Integers:
    """The base-q digits of each number, one column per number, most significant first."""
    digits = np.empty((length, numbers.size), dtype=np.int64)
    for position in range(length - 1, -1, -1):
        quotient = numbers // order  # numpy turns division by a scalar into a multiplication, but not divmod and %
        digits[position] = numbers - quotient * order
        numbers = quotient
    return digits


def _canonical_columns(order: int, coordinates: int, indices: Integers) -> Integers:
    """The canonical vectors as columns: adding q**s to the value of s free coordinates sets the leading 1."""
    leading_ones = np.zeros(indices.size, dtype=np.int64)
    for free in range(coordinates):
        leading_ones[indices >= points_of(order, free)] = order**free - points_of(order, free)
    return _digit_columns(order, coordinates, indices + leading_ones)


def check_range(what: str, numbers: Integers, stop: int) -> None:
    """Raise ParameterError for numbers outside 0 .. stop - 1."""
    if np.size(numbers) and not (np.min(numbers) >= 0 and np.max(numbers) < stop):
        raise ParameterError(f"{what} must be 0..{stop - 1}, got {np.min(numbers)} to {np.max(numbers)}")
