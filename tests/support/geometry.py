"""Small projective spaces and their incidence matrices by enumeration."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sunzi.numerics.finite_fields import FiniteField, find_irreducible, prime_power
from sunzi.numerics.projective import ProjectiveSpace

ORDERS = (2, 3, 4, 5, 7, 8, 9, 16)
SMALL = [(q, t) for q, t in product(ORDERS, range(2, 9)) if q**t <= 5000 or t == 2] + [(2, 11), (16, 3)]


def field_of(order: int) -> FiniteField:
    """The field with ``order`` elements, a prime power."""
    factors = prime_power(order)
    assert factors is not None
    return FiniteField(*factors, find_irreducible(*factors))


@cache
def space_of(order: int, dimension: int) -> ProjectiveSpace:
    """PG(dimension - 1, order)."""
    return ProjectiveSpace(field_of(order), dimension)


@cache
def incidence(order: int, dimension: int) -> NDArray[np.bool_]:
    """incidence[y, x]: whether point x is on hyperplane y, from inner products of enumerated vectors."""
    space = space_of(order, dimension)
    vectors = np.array(canonical_vectors(order, dimension))
    total = np.zeros((len(vectors), len(vectors)), dtype=np.int64)
    for column in vectors.T:
        total = space.field.add(total, space.field.multiply(column[:, np.newaxis], column))
    return np.asarray(total == 0)


def canonical_vectors(order: int, dimension: int) -> list[tuple[int, ...]]:
    """The vectors of all points in numerical order."""
    return [
        (0,) * (dimension - 1 - free) + (1,) + coordinates
        for free in range(dimension)
        for coordinates in product(range(order), repeat=free)
    ]
