"""Projective geometry, enumerated on small spaces."""

from __future__ import annotations

import numpy as np
import pytest
from geometry import SMALL, canonical_vectors, field_of, incidence, space_of

from sunzi.client.errors import ParameterError
from sunzi.numerics.projective import ProjectiveSpace

ENUMERABLE = [(q, t) for q, t in SMALL if q**t <= 1100]


@pytest.mark.parametrize(("order", "dimension"), ENUMERABLE)
def test_numbering(order: int, dimension: int) -> None:
    space = space_of(order, dimension)
    everything = np.arange(space.point_count)
    vectors = space.vectors(everything)
    assert [tuple(vector) for vector in vectors.tolist()] == canonical_vectors(order, dimension)
    for scalar in range(1, order):
        np.testing.assert_array_equal(space.indices(space.field.multiply(vectors, scalar)), everything)


def test_numbering_by_hand() -> None:
    space = space_of(5, 3)
    assert space.point_count == 31
    assert space.hyperplane_size == 6
    assert space.vectors(np.array([0, 1, 5, 6, 6 + 2 * 5 + 3])).tolist() == [
        [0, 0, 1],
        [0, 1, 0],
        [0, 1, 4],
        [1, 0, 0],
        [1, 2, 3],
    ]


@pytest.mark.parametrize(("order", "dimension"), ENUMERABLE)
def test_hyperplanes_are_a_2_design(order: int, dimension: int) -> None:
    matrix = incidence(order, dimension).astype(np.int64)
    pairs = matrix.T @ matrix
    lines = (order ** (dimension - 2) - 1) // (order - 1)
    expected = np.full_like(pairs, lines)
    np.fill_diagonal(expected, space_of(order, dimension).hyperplane_size)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(matrix.sum(axis=1), matrix.sum(axis=0))


@pytest.mark.parametrize(("order", "dimension"), ENUMERABLE)
def test_contains(order: int, dimension: int) -> None:
    space = space_of(order, dimension)
    y, x = (grid.ravel() for grid in np.indices((space.point_count,) * 2))
    np.testing.assert_array_equal(space.contains(y, x), incidence(order, dimension).ravel())


@pytest.mark.slow
@pytest.mark.parametrize(("order", "dimension"), ENUMERABLE)
def test_selectors_reach_each_hyperplane_once(order: int, dimension: int) -> None:
    """For every point, "through" maps onto the hyperplanes with it and "avoiding" onto the others, each once."""
    space, matrix = space_of(order, dimension), incidence(order, dimension)
    selectors_through = np.arange(space.hyperplane_size)
    selectors_avoiding = np.arange(order ** (dimension - 1))
    for x in range(space.point_count):
        through = space.hyperplane_through(np.full(selectors_through.size, x), selectors_through)
        avoiding = space.hyperplane_avoiding(np.full(selectors_avoiding.size, x), selectors_avoiding)
        np.testing.assert_array_equal(np.sort(through), np.flatnonzero(matrix[:, x]))
        np.testing.assert_array_equal(np.sort(avoiding), np.flatnonzero(~matrix[:, x]))


def test_selectors_by_hand() -> None:
    """x = (0, 1, 2) over five elements has its pivot in the middle; y's other coordinates are the first and third."""
    space = space_of(5, 3)
    x = space.indices(np.array([[0, 1, 2]]))
    third_of_line = np.array([3])  # the points of PG(1, 5) are (0, 1), (1, 0), (1, 1), (1, 2), ...
    y = space.vectors(space.hyperplane_through(x, third_of_line))
    assert y.tolist() == [[1, 1, 2]]  # 0*1 + 1*1 + 2*2 = 5 = 0
    y = space.vectors(space.hyperplane_avoiding(x, np.array([2 * 5 + 4])))
    assert y.tolist() == [[1, 4, 2]]  # (2, 3, 4) has 3 + 2*4 = 11 = 1; halved, that is, times 3, it is (1, 4, 2)


def test_refusals() -> None:
    space = space_of(3, 3)
    for points, selector in (([13], [0]), ([-1], [0]), ([0], [4]), ([0], [-1])):
        with pytest.raises(ParameterError):
            space.hyperplane_through(np.array(points), np.array(selector))
    with pytest.raises(ParameterError, match=r"selector must be 0\.\.8"):
        space.hyperplane_avoiding(np.array([0]), np.array([9]))
    with pytest.raises(ParameterError, match="zero vector"):
        space.indices(np.array([[0, 1, 0], [0, 0, 0]]))
    for dimension in (1, 64):
        with pytest.raises(ParameterError, match="coordinates"):
            ProjectiveSpace(field_of(2), dimension)
