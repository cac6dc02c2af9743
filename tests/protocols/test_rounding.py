"""Means of numbers: rounding, the number of points, and errors beside those of other mechanisms."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError, PlanError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols.rounding import worst_variance


def duchi(epsilon):
    return ((exp(epsilon) + 1) / (exp(epsilon) - 1)) ** 2


def piecewise(epsilon, number):
    half = exp(epsilon / 2)
    return number**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)


def hybrid(epsilon):
    """The worst variance of the hybrid mechanism (Wang et al. 2019): piecewise with share 1 − e^(−ε/2)."""
    if epsilon <= 0.61:
        return duchi(epsilon)
    share = 1 - exp(-epsilon / 2)
    numbers = np.linspace(0, 1, 101)
    return (share * piecewise(epsilon, numbers) + (1 - share) * (duchi(epsilon) - numbers**2)).max()


@pytest.mark.parametrize("epsilon", [*range(10, 300, 2), 109, *range(300, 801, 50)])
def test_the_worst_case_is_near_the_best_known(epsilon):
    """As docs/mathematics.md §15 states it, at ε in hundredths."""
    epsilon = Fraction(epsilon, 100)
    plan = sunzi.make_number(-1, 1, epsilon)
    worst, best = worst_variance(plan.protocol.grid_points, epsilon), hybrid(float(epsilon))
    assert worst == pytest.approx(4 * plan.worst_mse(1))
    assert worst <= 1.13 * best
    if not 1.02 < epsilon < 1.2:
        assert worst <= 1.10 * best
    if epsilon >= 2:
        assert worst <= best


def test_two_points_are_the_mechanism_of_duchi():
    assert worst_variance(2, Fraction(1)) == pytest.approx(duchi(1), rel=1e-4)


def test_rounding_is_unbiased_and_to_neighbours():
    plan = sunzi.make_number(0, 1, epsilon=4)
    protocol, source = plan.protocol, ReproducibleSource(1)
    for value in (0, 1, 200_000, (1 << 20) - 1):
        points = protocol.round(np.full(50_000, value), source)
        exact = value * (protocol.grid_points - 1) / ((1 << 20) - 1)
        assert set(points.tolist()) <= {int(exact), min(int(exact) + 1, protocol.grid_points - 1)}
        # 6 standard errors of a coin: a false alarm in 1e-8.
        assert abs(points.mean() - exact) <= 6 * 0.5 / 50_000**0.5


@pytest.mark.slow
def test_the_mean_has_the_planned_error():
    plan, runs, users = sunzi.make_number(-1, 1, epsilon=1), 200, 500
    values = np.linspace(-1, 1, users)
    errors = [plan.estimate(plan.simulate(values, seed=seed)).mean().value for seed in range(runs)]
    planned = 4 * plan.expected_mse(users)
    # The variance of a sample variance of normal errors, times 6: a false alarm in 1e-8.
    assert abs(np.mean(np.square(errors)) / planned - 1) <= 6 * (2 / runs) ** 0.5
    assert abs(np.mean(errors)) <= 6 * (planned / runs) ** 0.5
    assert plan.expected_mse(users) <= plan.worst_mse(users)


def test_wrong_plans_are_refused():
    with pytest.raises(PlanError, match="needs a range"):
        sunzi.Plan.from_json(sunzi.make_number(0, 1, 1).canonical.replace(b'"range":{"high":"1","low":"0"},', b""))
    with pytest.raises(ParameterError, match="omit histogram="):
        sunzi.make_number(0, 1, 1).expected_mse(1, np.ones(2) / 2)


def test_reports_take_the_bits_that_the_docs_tell():
    bits = {epsilon: sunzi.make_number(0, 1, epsilon).max_report_bits for epsilon in ("1", "11/10", 4, 8, 16, 32)}
    assert bits == {"1": 1, "11/10": 2, 4: 3, 8: 5, 16: 8, 32: 8}


def test_reports_take_a_few_bits():
    plan = sunzi.make_number(0, 100, epsilon=4)
    assert plan.max_report_bits == 3
    assert plan.tally(plan.client().reports([0, 50.5, 100])).reports == 3
    assert plan.attackability == pytest.approx(np.exp(4) / (np.exp(4) + 4))  # of a number at one of 5 points
    assert plan.protocol.support_probabilities()[0][0] > 0.5


def test_numbers_at_points_are_hardly_ever_rounded():
    for epsilon in (1, 2, 4):
        protocol = sunzi.make_number(0, 1, epsilon).protocol
        values = np.array(protocol.attacked_values)
        assert protocol.points_of(0, values).tolist() == list(range(protocol.grid_points))
        assert (values[0], values[-1]) == (0, protocol.domain_size - 1)
        rests = values * (protocol.grid_points - 1) % (protocol.domain_size - 1)
        assert np.minimum(rests, protocol.domain_size - 1 - rests).max() <= protocol.grid_points


def test_a_place_is_where_the_word_rounds_to():
    """Over all words of a small domain: the chances of the points are exactly those of unbiased rounding."""
    protocol = sunzi.make_number(0, 1, 4).protocol.narrowed(Fraction(4), 4, smallest=False)
    for value in range(protocol.domain_size):
        placed = [protocol.place(drawn, value)[1] for drawn in range(protocol.first_word.outcomes)]
        assert sum(placed) == value * (protocol.grid_points - 1)


def test_what_a_plan_of_a_number_says_about_itself():
    facts = dict(sunzi.make_number(0, 5000, 1, clamp=True, unit="ms").facts())
    assert facts["values"] == "0 to 5000 ms rounded to 2 points; numbers outside count as the nearest end"
    assert facts["attacker"].startswith("someone who sees a report guesses a number at one of the 2 rounding points")
    assert "73.1 % of the time, compared with 50 % without it" in facts["attacker"]
