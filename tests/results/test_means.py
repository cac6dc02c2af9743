"""Means, and how often their intervals cover."""

from datetime import date

import numpy as np
import pytest

import sunzi


def test_the_mean_of_dates_is_that_of_the_days():
    """It was half a day late; the bound is 6 standard errors, a false alarm in 1e-8."""
    plan = sunzi.make_ordered(date(2026, 1, 1), date(2026, 1, 9), 8, epsilon=6)
    days = np.repeat(np.array(["2026-01-02", "2026-01-08"], dtype="datetime64[D]"), 20_000)
    mean = plan.estimate(plan.simulate(days, seed=1)).mean()
    truth = (date(2026, 1, 5) - date(1970, 1, 1)).days
    assert mean.standard_error < 0.05
    assert abs(mean.value - truth) <= 6 * mean.standard_error


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
def test_intervals_of_means_cover(epsilon):
    """At least 84 % of 150 runs: less by chance once in 1e-7."""
    plan, generator = sunzi.make_number(0, 1, epsilon), np.random.default_rng(6)
    values = generator.beta(2, 5, 1000)
    found = [plan.estimate(plan.simulate(values, seed=seed)).mean() for seed in range(150)]
    assert np.mean([each.low <= values.mean() <= each.high for each in found]) >= 0.84


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
@pytest.mark.parametrize("kind", ["number", "ordered"])
def test_means_are_covered_over_many_runs(kind, epsilon):
    """94–98.5 % of 12,000 runs: a rate of 95 % leaves these bounds with probability 1e-6."""
    plan = sunzi.make_number(0, 1, epsilon) if kind == "number" else sunzi.make_ordered(0, 1, 64, epsilon)
    values = np.random.default_rng(6).beta(2, 5, 1000)
    truth = values.mean() if kind == "number" else plan.domain.centres[plan.domain.indices(values)].mean()
    found = [plan.estimate(plan.simulate(values, seed=seed)).mean() for seed in range(12_000)]
    assert 0.94 <= np.mean([each.low <= truth <= each.high for each in found]) <= 0.985


@pytest.mark.parametrize("epsilon", [1, 4])
def test_few_reports_are_not_certain(epsilon):
    """Of 5 reports, ranges and means, 100 times each: at least 80 % are covered, less by chance once in 1e-6 where 91 %
    are. None has an error of 0, though the estimate is far from a histogram.
    """
    numbers, ordered = sunzi.make_number(0, 64, epsilon), sunzi.make_ordered(0, 64, 4, epsilon)
    generator = np.random.default_rng(8)
    errors, inside = [], []
    for seed in range(100):
        values = 64 * generator.beta(2, 5, 5)
        asked = [
            (numbers.estimate(numbers.simulate(values, seed=seed)).mean(), values.mean()),
            (ordered.estimate(ordered.simulate(values, seed=seed)).range(0, 16), (values < 16).mean()),
        ]
        errors += [answer.standard_error for answer, _ in asked]
        inside += [answer.low <= truth <= answer.high for answer, truth in asked]
    assert min(errors) > 0
    assert np.mean(inside) >= 0.8


@pytest.mark.parametrize("target", ["reporters", "population"])
def test_one_report_of_a_mean_knows_that_it_was_rounded(target):
    """At ε = 32 there is no noise, only rounding to one of 256 points. With the spread of one report, 0, none of these
    200 intervals covered; by chance less than 150 of those that cover 90 % do once in 1e-9.
    """
    plan = sunzi.make_number(0, 16, 32)
    found = [plan.estimate(plan.simulate([3], seed=seed)).mean(target=target) for seed in range(200)]
    assert np.mean([each.low <= 3 <= each.high for each in found]) >= 0.75


def test_a_plan_of_a_number_says_which_plan_has_quantiles():
    plan = sunzi.make_number(0, 16, 4)
    estimate = plan.estimate(plan.simulate([3] * 20, seed=1))
    for name in ("quantile", "range", "cdf"):
        with pytest.raises(AttributeError, match="a plan of a number knows only the mean, plan with make_ordered"):
            getattr(estimate, name)
    with pytest.raises(AttributeError, match=r"has no 'shape'$"):
        estimate.shape  # noqa: B018


def test_the_error_of_a_mean_is_that_of_all_reports():
    """By enumeration: rounding and response of numbers at a quarter and at the middle of the range."""
    plan = sunzi.make_number(0, 64, epsilon=2)
    grid = np.linspace(0, 64, plan.protocol.grid_points)
    rates = plan.protocol.response.probabilities
    outcomes = (grid - rates.false * grid.sum()) / rates.gap  # a report's estimate of its number
    users, variance = 200_000, 0.0
    for number in (16, 32):
        rounded = np.array([np.interp(number, grid, row) for row in np.eye(grid.size)])
        reported = rates.false + rates.gap * rounded
        variance += 0.5 * float(reported @ outcomes**2 - (reported @ outcomes) ** 2)
    found = plan.estimate(plan.simulate([16, 32] * (users // 2), seed=1))
    # The rounding of reporters is bounded from above; a population adds the spread of its numbers, which is 8 ** 2.
    assert variance / users <= found.mean().standard_error ** 2 * 1.01
    about_all = found.mean(target="population").standard_error ** 2
    assert about_all == pytest.approx((variance + 64) / users, rel=0.01)


def test_a_mean_about_a_population_is_less_certain():
    plan = sunzi.make_number(0, 1, epsilon=4)
    estimate = plan.estimate(plan.simulate(np.random.default_rng(7).random(2000), seed=1))
    assert estimate.mean(target="population").standard_error > estimate.mean().standard_error
    assert "points" in repr(estimate)


def test_pages_of_a_number_begin_with_the_mean():
    plan = sunzi.make_number(0, 6000, epsilon=3, unit="ms")
    estimate = plan.estimate(plan.simulate([1500] * 2000, seed=1))
    mean = estimate.mean()
    said = f"The mean is {mean.value:.5g} ms (interval {mean.low:.5g} ms to {mean.high:.5g} ms)."
    assert said in estimate.to_html(postprocess="clip")
    assert said in estimate._repr_html_()
    assert [row.label for row in estimate] == ["0 ms", "2000 ms", "4000 ms", "6000 ms"]


def test_numbers_of_many_digits_have_a_mean():
    plan = sunzi.make_number(1_700_000_000_000, 1_700_000_000_100, epsilon=4)
    mean = plan.estimate(plan.simulate([1_700_000_000_050] * 2000, seed=1)).mean()
    assert mean.low < 1_700_000_000_050 < mean.high
