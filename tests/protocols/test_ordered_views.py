"""Plans of ordered values: the error of ranges, planned and measured, and sizes that are refused."""

import numpy as np
import pytest
from benchmarks.record_references import four_ary_plan

import sunzi
from sunzi.client.errors import ParameterError


@pytest.fixture(scope="module")
def ordered():
    return sunzi.make_ordered(0, 64, 64, epsilon=1)


def values_of(plan, number):
    return np.random.default_rng(number).integers(0, plan.domain.size, number)


@pytest.mark.slow
def test_planned_errors_are_those_of_estimates(ordered):
    """Mean squared errors of bins and ranges over 400 runs, within 6 standard errors: a false alarm in 1e-8."""
    users, runs = 2000, 400
    values = values_of(ordered, users)
    truth = np.bincount(values, minlength=64) / users
    errors, ranges = [], []
    for seed in range(runs):
        found = ordered.estimate(ordered.simulate(values, seed=seed)).frequencies - truth
        errors.append((found**2).mean())
        ranges.append((np.cumsum(found) ** 2).mean())
    for measured, planned in ((errors, ordered.expected_mse(users)),):
        assert abs(np.mean(measured) - planned) <= 6 * np.std(measured) / runs**0.5 + 0.01 * planned
    assert ordered.expected_mse(users) <= ordered.worst_mse(users)
    assert 0.3 < np.mean(ranges) / ordered.protocol.range_variance(users) < 1


def test_ranges_are_better_than_from_a_flat_histogram(ordered):
    flat = sunzi.make_plan("ss-compact", 64, epsilon=1)
    # A range of half of the bins adds up the errors of 32, less what is known of the sum.
    assert ordered.protocol.range_variance(1) < 0.5 * flat.expected_mse(1) * 64 / 6
    assert ordered.expected_mse(1) > flat.expected_mse(1)


def least_range_variance(size, epsilon):
    """No ε-LDP mechanism has a smaller mean variance of ranges and prefixes at the flat histogram (docs/mathematics.md
    §13): (tr W^½)²·(we^ε + D − w)²/(w(D − w)D(e^ε − 1)²) at the best w, W the mean of the queries' centred aaᵀ.
    """
    bins = np.arange(size)
    first, last = np.minimum.outer(bins, bins), np.maximum.outer(bins, bins)
    both = ((first + 1) * (size - last) / (size * (size + 1) / 2) + (size - last) / size) / 2
    centred = both - both.mean(axis=0) - both.mean(axis=0)[:, np.newaxis] + both.mean()
    trace = np.sqrt(np.maximum(np.linalg.eigvalsh(centred), 0)).sum()
    odds, blocks = np.exp(epsilon), np.arange(1, size)
    factors = (blocks * odds + size - blocks) ** 2 / (blocks * (size - blocks) * size * (odds - 1) ** 2)
    return trace**2 * factors.min()


@pytest.mark.parametrize(("size", "epsilon"), [(16, 0.5), (256, 1), (1024, 1), (1024, 2)])
def test_ranges_are_near_the_bound_for_any_mechanism(size, epsilon):
    planned = sunzi.make_ordered(0, size, size, epsilon).protocol.range_variance(1)
    assert 1 < planned / least_range_variance(size, epsilon) <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon"), [(256, 1), (256, 2), (1024, 2), (4096, 1)])
def test_ranges_are_better_than_from_a_four_ary_tree_with_uniform_levels(size, epsilon):
    planned = sunzi.make_ordered(0, size, size, epsilon).protocol.range_variance(1)
    assert planned <= 0.87 * four_ary_plan(size, epsilon).protocol.range_variance(1)


def test_a_power_of_two_is_needed():
    with pytest.raises(ParameterError, match="got 100; use 64 or 128"):
        sunzi.make_ordered(0, 1, 100, epsilon=1)


def test_bins_beyond_all_designs_are_refused_before_any_work():
    with pytest.raises(ParameterError, match="at most 2\\^24 bins, got 1,073,741,824; use fewer"):
        sunzi.make_ordered(0, 1, 1 << 30, epsilon=1)
