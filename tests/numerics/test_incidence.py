"""The three counting routes, against the incidence matrix."""

from __future__ import annotations

import numpy as np
import pytest
from geometry import SMALL, incidence, space_of

from sunzi.client.errors import ParameterError
from sunzi.numerics import incidence as routes
from sunzi.numerics.finite_fields import FiniteField
from sunzi.numerics.incidence import Route, cheapest_route, hyperplane_sums, incidence_counts
from sunzi.numerics.projective import ProjectiveSpace

ROUTES: tuple[Route, ...] = ("fourier", "dynamic", "direct")
OTHER = [(25, 3), (27, 3), (32, 3), (37, 3), (49, 2), (64, 2), (97, 2), (128, 2)]


def limits(point_count: int, order: int) -> list[int]:
    candidates = {1, 2, order, order + 1, order + 2, point_count // 3, point_count - 1, point_count}
    return sorted(limit for limit in candidates if 1 <= limit <= point_count)


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("order", "dimension"), SMALL + OTHER)
def test_routes_agree_with_the_incidence_matrix(order: int, dimension: int, route: Route) -> None:
    space, matrix = space_of(order, dimension), incidence(order, dimension)
    generator = np.random.default_rng([order, dimension])
    messages = generator.integers(0, space.point_count, 60)
    whole = generator.integers(0, 9, 60)
    real = generator.normal(size=60)
    for limit in limits(space.point_count, order):
        columns = matrix[messages, :limit].astype(np.int64)
        counts = incidence_counts(space, messages, whole, limit, route)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, whole @ columns)
        np.testing.assert_array_equal(
            incidence_counts(space, messages, np.full(60, 2), limit, route), 2 * columns.sum(0)
        )
        sums = incidence_counts(space, messages, real, limit, route)
        assert sums.dtype == np.float64
        np.testing.assert_allclose(sums, real @ columns, atol=1e-12)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("order", "dimension"), [(2, 5), (3, 4), (4, 3), (8, 3), (9, 3), (7, 2), (41, 2)])
def test_each_hyperplane_alone(order: int, dimension: int, route: Route) -> None:
    space, matrix = space_of(order, dimension), incidence(order, dimension)
    for y in range(space.point_count):
        counts = incidence_counts(space, np.array([y]), np.array([1]), space.point_count, route)
        np.testing.assert_array_equal(counts, matrix[y])


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("order", "dimension"), [(2, 6), (4, 4), (9, 3), (7, 3), (5, 2)])
def test_hyperplane_sums(order: int, dimension: int, route: Route) -> None:
    space, matrix = space_of(order, dimension), incidence(order, dimension)
    for length in limits(space.point_count, order):
        values = np.random.default_rng(length).random(length)
        np.testing.assert_allclose(hyperplane_sums(space, values, route), matrix[:, :length] @ values, atol=1e-12)


@pytest.mark.parametrize("route", ROUTES)
def test_another_polynomial_of_the_same_field(route: Route) -> None:
    """The trace matrix depends on the polynomial; x**3 + x**2 + 1 is not the default."""
    space = ProjectiveSpace(FiniteField(2, 3, (1, 0, 1, 1)), 3)
    everything = np.arange(space.point_count)
    messages = np.array([5, 17, 40, 72])
    expected = sum(space.contains(np.full_like(everything, y), everything).astype(np.int64) for y in messages)
    counts = incidence_counts(space, messages, np.ones(4, dtype=np.int64), space.point_count, route)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("order", "dimension"), [(3, 5), (4, 4), (37, 2)])
def test_exact_up_to_the_largest_total(order: int, dimension: int, route: Route) -> None:
    space, matrix = space_of(order, dimension), incidence(order, dimension)
    weights = np.random.default_rng(3).multinomial(routes.LARGEST_EXACT_TOTAL - 1, np.full(8, 1 / 8))
    messages = np.arange(8)
    counts = incidence_counts(space, messages, weights, space.point_count, route)
    np.testing.assert_array_equal(counts, weights @ matrix[messages].astype(np.int64))


def test_totals_beyond_exactness_are_refused() -> None:
    weights = np.array([routes.LARGEST_EXACT_TOTAL, 1])
    with pytest.raises(ParameterError, match="add up"):
        incidence_counts(space_of(3, 3), np.array([0, 1]), weights, 13)


@pytest.mark.parametrize("route", [*ROUTES, None])
def test_no_messages_and_more_messages_than_hyperplanes(route: Route | None) -> None:
    space, matrix = space_of(4, 3), incidence(4, 3)
    nothing = np.zeros(0, dtype=np.int64)
    np.testing.assert_array_equal(incidence_counts(space, nothing, nothing, 10, route), np.zeros(10))
    messages = np.random.default_rng(5).integers(0, 21, 300)
    counts = incidence_counts(space, messages, np.ones(300, dtype=np.int64), 21, route)
    np.testing.assert_array_equal(counts, matrix[messages].sum(axis=0))


@pytest.mark.parametrize(
    ("order", "dimension", "reports", "limit", "route"),
    [
        (7, 6, 3, 19608, "direct"),  # few reports
        (7, 6, 10_000, 19608, "fourier"),
        (149, 3, 10_000, 22_000, "fourier"),
        (89, 4, 100_000, 22_000, "dynamic"),  # a small part of a large space
        (1009, 3, 1000, 22_000, "direct"),
        (3, 39, 10, 1000, "direct"),  # too large for a table
    ],
)
def test_the_route_suits_the_size(order: int, dimension: int, reports: int, limit: int, route: Route) -> None:
    assert cheapest_route(space_of(order, dimension), reports, limit) == route


@pytest.mark.parametrize(("order", "dimension", "limit"), [(7, 6, 19_608), (9, 6, 20_000), (89, 4, 22_000)])
def test_routes_agree_at_full_size(order: int, dimension: int, limit: int) -> None:
    space, generator = space_of(order, dimension), np.random.default_rng(order)
    messages, weights = generator.integers(0, space.point_count, 500), generator.integers(1, 5, 500)
    fourier, dynamic, direct = (incidence_counts(space, messages, weights, limit, route) for route in ROUTES)
    np.testing.assert_array_equal(fourier, dynamic)
    np.testing.assert_array_equal(direct, dynamic)
    for x in (0, 1, limit // 2, limit - 1):
        assert direct[x] == weights[space.contains(messages, np.full(500, x))].sum()


@pytest.mark.parametrize("route", ["fourier", "dynamic"])
def test_spaces_too_large_for_tables(route: Route) -> None:
    space = space_of(3, 30)
    message, weight = np.array([space.point_count - 1]), np.array([1])
    with pytest.raises(ParameterError, match="direct"):
        incidence_counts(space, message, weight, 5, route)
    points = np.arange(5)
    expected = space.contains(np.full(5, message[0]), points)
    np.testing.assert_array_equal(incidence_counts(space, message, weight, 5), expected)


def test_refusals() -> None:
    space = space_of(3, 3)
    one = np.array([1])
    with pytest.raises(ParameterError, match="message"):
        incidence_counts(space, np.array([13]), one, 13)
    for limit in (0, 14):
        with pytest.raises(ParameterError, match="limit"):
            incidence_counts(space, one, one, limit)
    with pytest.raises(ParameterError, match="route"):
        incidence_counts(space, one, one, 13, "scenic")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="multiplicities"):
        incidence_counts(space, one, np.array([1, 2]), 13)
    with pytest.raises(ParameterError, match="13 points"):
        hyperplane_sums(space, np.ones(14))
