"""Projections onto the simplex, checked by the conditions that characterise the nearest point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sunzi.numerics.simplex import project, project_weighted

VECTORS = arrays.arrays(np.float64, st.integers(1, 30), elements=st.floats(-3, 3))


def check_nearest(values, projected, variances):
    """Karush–Kuhn–Tucker: (x − v)/σ² is constant where x > 0, and at least that constant where x = 0."""
    assert projected.shape == values.shape
    assert np.all(projected >= 0)
    assert projected.sum() == pytest.approx(1, abs=1e-9)
    slope = (projected - values) / variances
    inside = projected > 1e-12
    assert np.ptp(slope[inside]) <= 1e-6 * (1 + np.abs(slope).max())
    assert np.all(slope[~inside] >= slope[inside].min() - 1e-6 * (1 + np.abs(slope).max()))


@given(VECTORS)
def test_the_projection_is_the_nearest_point(values):
    check_nearest(values, project(values), np.ones(values.size))


@given(VECTORS, st.data())
def test_the_weighted_projection_is_the_nearest_point(values, data):
    variances = data.draw(arrays.arrays(np.float64, values.size, elements=st.floats(0.01, 10)))
    check_nearest(values, project_weighted(values, variances), variances)


@given(VECTORS)
def test_equal_weights_change_nothing(values):
    assert np.allclose(project_weighted(values, np.full(values.size, 0.37)), project(values), atol=1e-9)


def test_known_projections():
    assert project(np.array([0.2, 0.3, 0.5])).tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert project(np.array([2.0, 0.0])).tolist() == [1.0, 0.0]
    assert project(np.array([-5.0])).tolist() == [1.0]
    assert project(np.array([0.0, 0.0, 0.0, 0.0])).tolist() == [0.25] * 4
    assert project(np.array([0.9, 0.3, -1.0])).tolist() == pytest.approx([0.8, 0.2, 0.0])
    weighted = project_weighted(np.array([0.9, 0.3]), np.array([1.0, 0.1]))
    assert weighted.tolist() == pytest.approx([0.9 - 0.2 / 1.1, 0.3 - 0.02 / 1.1])


def test_against_a_search_over_thresholds():
    """Finds the threshold by bisection instead of sorting."""
    generator = np.random.default_rng(51)
    for _ in range(50):
        values = generator.normal(0, generator.uniform(0.01, 2), 200)
        variances = generator.uniform(0.1, 3, 200)
        low, high = values.min() / 0.1 - 10, (values / variances).max()
        low = min(low, ((values - 1) / variances).min())
        for _ in range(200):
            middle = (low + high) / 2
            if np.maximum(values - middle * variances, 0).sum() > 1:
                low = middle
            else:
                high = middle
        assert np.allclose(project_weighted(values, variances), np.maximum(values - low * variances, 0), atol=1e-9)


def test_the_sum_of_many_noisy_frequencies_is_brought_back_to_one():
    noisy = np.random.default_rng(52).normal(1 / 22_000, 0.01, 22_000)
    assert np.maximum(noisy, 0).sum() > 50
    projected = project(noisy)
    assert projected.sum() == pytest.approx(1, abs=1e-9)
    assert np.count_nonzero(projected) < 2000
