"""The message residual and unused points, against matrices."""

import numpy as np
import pytest

import sunzi
from sunzi.analysis.residuals import (
    CountedDesign,
    _estimated_traces,
    _even_traces,
    _left_over,
    _outside,
    _unused_cumulants,
    _unused_traces,
)
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.planning import Population
from sunzi.tally import Tally


def honest_tally(plan, users, seed, population="zipf:1"):
    values = Population.parse(population).draw(plan.domain.size, users, [seed, 1])
    counters = plan.protocol.simulate(values, ReproducibleSource([seed, 2]))
    return Tally(plan.digest, plan.protocol.tally_layout, users, counters)


def counted(plan, tally, histogram):
    response = plan.protocol.response
    support = response.design.point_counts(tally.block(0), response.design.points)
    return CountedDesign(response, tally.block(0), tally.reports, support, histogram)


def incidence(design):
    messages = np.arange(design.message_count)
    columns = [design.contains(messages, np.full(messages.size, point)) for point in range(design.points)]
    return np.column_stack(columns).astype(float)


def test_the_message_residual_is_the_distance_from_the_range_of_the_incidence_matrix():
    plan = sunzi.make_plan("ss-compact", 12, 1)
    design = plan.protocol.design
    assert design.message_count > design.points
    matrix = incidence(design)
    outside = np.eye(design.message_count) - matrix @ np.linalg.pinv(matrix)
    tally = honest_tally(plan, 500, 1)
    part = counted(plan, tally, np.full(12, 1 / 12))
    assert _outside(part) == pytest.approx(np.sum((outside @ tally.counts) ** 2))
    vector = np.random.default_rng(1).normal(size=design.message_count)
    assert np.allclose(_left_over(design, vector), outside @ vector)
    # Its mean is n(1 − v/M) for every value, hence for every histogram.
    inside, missed = (float(chance) for chance in plan.protocol.response.message_probabilities())
    for value in range(design.points):
        chances = missed + (inside - missed) * matrix[:, value]
        assert np.sum(np.diagonal(outside) * chances) == pytest.approx(1 - design.points / design.message_count)
        assert np.allclose(outside @ chances, 0)


@pytest.mark.parametrize("heavy", [0.0, 0.7])
def test_traces_of_a_design(heavy):
    plan = sunzi.make_plan("ss-compact", 12, 1)
    design = plan.protocol.design
    histogram = np.full(12, (1 - heavy) / 12)
    histogram[3] += heavy
    part = counted(plan, honest_tally(plan, 500, 1), histogram)
    matrix = incidence(design)
    outside = np.eye(design.message_count) - matrix @ np.linalg.pinv(matrix)
    spread = outside @ np.diag(part.expected_counts)
    exact = np.trace(spread @ spread), np.trace(spread @ spread @ spread)
    found = (
        _even_traces(part) if part.is_even else _estimated_traces(design, part.expected_counts, design.message_count)
    )
    assert part.is_even == (heavy == 0)
    assert found[0] == pytest.approx(exact[0], rel=0.15)
    assert found[1] == pytest.approx(exact[1], rel=0.3)


def test_traces_of_unused_points():
    """The formula for equal counts agrees with probing, and both with the covariance of the support counts."""
    plan = sunzi.make_plan("pgr", 50, 1)
    design = plan.protocol.design
    number = design.points - 50
    part = counted(plan, honest_tally(plan, 500, 1), np.full(50, 1 / 50))
    matrix = incidence(design)[:, 50:]
    chances = part.expected_counts / part.reports
    covariance = part.reports * (matrix.T @ np.diag(chances) @ matrix - np.outer(chances @ matrix, chances @ matrix))
    exact = np.trace(covariance @ covariance), np.trace(covariance @ covariance @ covariance)
    rate = plan.protocol.probabilities.false
    assert np.allclose(np.diagonal(covariance), part.reports * rate * (1 - rate))
    assert _unused_traces(part, number) == pytest.approx(exact, rel=0.05)
    extra = number * part.reports * rate * (1 - rate) * (1 - 2 * rate) ** 2
    assert part.is_even
    assert _unused_cumulants(part, number).variance == pytest.approx(2 * exact[0] + extra, rel=0.02)
