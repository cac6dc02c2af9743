"""Hyperplanes of projective geometries: counting by every route, and parameters that are refused."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, PlanError
from sunzi.designs import projective
from sunzi.designs.projective import Projective, choose_projective
from sunzi.numerics.counters import Counters


@pytest.mark.parametrize(
    "changes",
    [
        {"order": 6},
        {"order": 1},
        {"order": 1 << 21},
        {"polynomial": [1, 0, 1]},
        {"polynomial": [1, 1]},
        {"polynomial": [1, 1, 2]},
        {"polynomial": [1, 1, 0]},
        {"polynomial": [True, 1, 1]},
        {"polynomial": "1,1,1"},
        {"dimension": 1},
        {"dimension": 40},
        {"dimension": 2.0},
    ],
)
def test_an_invalid_projective_design_is_refused(changes):
    """x² + 1 = (x + 1)² over GF(2): not a field, so not a geometry."""
    good = Projective(4, 3).parameters()
    assert good["polynomial"] == [1, 1, 1]
    with pytest.raises((PlanError, ParameterError)):
        Projective.from_parameters({**good, **changes})


def test_the_chosen_geometry_holds_the_domain_and_is_the_smallest():
    for size in (2, 7, 8, 100, 10_000):
        for epsilon in ("1/10", "1", "3"):
            design = choose_projective(size, Fraction(epsilon))
            smaller = (design.order ** (design.dimension - 1) - 1) // (design.order - 1)
            assert smaller < size <= design.points or design.dimension == 2


@pytest.mark.parametrize("route", ["fourier", "dynamic", "direct"])
def test_hyperplanes_are_counted_the_same_by_every_route(route, monkeypatch):
    design = Projective(3, 4)
    counters = Counters.of_cells(design.points, np.random.default_rng(3).integers(design.points, size=200))
    taken, way = [], projective.incidence_counts
    monkeypatch.setattr(projective, "incidence_counts", lambda *given: taken.append(given[-1]) or way(*given))
    np.testing.assert_array_equal(design.point_counts(counters, 30, route), design.point_counts(counters, 30))
    assert taken == [route, None]


def test_an_unknown_route_is_refused():
    with pytest.raises(ParameterError, match="fourier, dynamic, direct, got sideways"):
        Projective(3, 3).point_counts(Counters.of_cells(13, np.arange(5)), 13, "sideways")
