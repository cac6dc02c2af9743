"""Slopes, smoothing, change points and alarms of series whose variances are known.

The tests with random series use fixed seeds; their bounds fail by chance at most once in a million, unless a test says
otherwise.
"""

import numpy as np
import pytest
from scipy import stats

from sunzi.client.errors import ParameterError
from sunzi.numerics import series

FALSE_ALARM = 1e-6


def _noise(seed, epochs, items, spread=3.0):
    """Series of constant items with uneven, known variances."""
    generator = np.random.default_rng(seed)
    variances = generator.uniform(1.0, spread, (epochs, items)) ** 2 * 1e-6
    return 0.1 + np.sqrt(variances) * generator.standard_normal((epochs, items)), variances


def _residuals(values, variances, sources=None):
    """How far each epoch but the first is from the mean of all before it, in standard errors."""
    sources, baseline = sources or series.Sources.separate(len(values)), series._Baseline(values.shape[1])
    return [baseline.add(*epoch) for epoch in zip(values, variances, sources.reports, sources.plans, strict=True)][1:]


def test_slopes_are_those_of_weighted_least_squares():
    values, variances = _noise(1, 7, 3)
    times = np.array([0.0, 1.0, 2.5, 4.0, 5.0, 9.0, 10.0])
    found = series.slopes(times, values, variances)
    for item in range(3):
        weights = np.diag(1 / variances[:, item])
        design = np.column_stack([np.ones(7), times])
        covariance = np.linalg.inv(design.T @ weights @ design)
        fitted = covariance @ design.T @ weights @ values[:, item]
        misfit = values[:, item] - design @ fitted
        assert found.slopes[item] == pytest.approx(fitted[1], rel=1e-9)
        assert found.standard_errors[item] == pytest.approx(covariance[1, 1] ** 0.5, rel=1e-9)
        assert found.lack_of_fit[item] == pytest.approx(stats.chi2.sf(misfit @ weights @ misfit, 5), rel=1e-9)


def test_a_line_through_two_epochs_always_fits():
    found = series.slopes(np.array([1.0, 3.0]), np.array([[0.1], [0.3]]), np.full((2, 1), 0.01))
    assert found.slopes[0] == pytest.approx(0.1)
    assert found.standard_errors[0] == pytest.approx((2 * 0.01) ** 0.5 / 2)
    assert np.isnan(found.lack_of_fit[0])


def test_slopes_and_their_tests_hold_their_levels():
    values, variances = _noise(2, 20, 4000)
    found = series.slopes(np.arange(20.0), values + 0.001 * np.arange(20.0)[:, None], variances)
    covered = np.abs(found.slopes - 0.001) < 1.96 * found.standard_errors
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 4000, 0.95)
    assert low <= covered.sum() <= high
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 4000, 0.05)
    assert low <= (found.lack_of_fit < 0.05).sum() <= high


def test_smoothing():
    values, variances = np.array([[0.0], [1.0], [1.0]]), np.full((3, 1), 0.01)
    means, errors = series.smooth(values, variances, 0.25)
    assert means[:, 0].tolist() == [0.0, 0.25, 0.4375]
    assert errors[:, 0] == pytest.approx([0.01, 0.01 * (1 / 16 + 9 / 16), 0.01 * (1 / 16 + 9 / 16 * 10 / 16)])
    values, variances = _noise(3, 30, 4000)
    means, errors = series.smooth(values, variances, 0.2)
    covered = np.abs(means[-1] - 0.1) < 1.96 * np.sqrt(errors[-1])
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 4000, 0.95)
    assert low <= covered.sum() <= high


def test_recursive_residuals_are_independent_and_standard_normal():
    values, variances = _noise(4, 50, 1000)
    residuals = np.array(_residuals(values, variances))
    assert residuals.shape == (49, 1000)
    assert abs(residuals.std() - 1) < 0.02  # five standard errors are .016
    assert abs(residuals.mean()) < 5 / 49_000**0.5
    assert abs((residuals[1:] * residuals[:-1]).mean()) < 5 / 48_000**0.5


def test_epochs_of_one_plan_share_the_variance_of_a_report():
    variances = np.array([[0.01], [0.04], [0.5], [0.01]])
    sources = series.Sources((100, 300, 10, 200), ("a", "a", "b", "a"))
    shared = (100 * 1 + 300 * 12 + 200 * 2) / 600
    assert sources.pooled(variances)[:, 0] == pytest.approx([shared / 100, shared / 300, 0.5, shared / 200])
    residuals = _residuals(np.array([[0.1], [0.2], [0.4], [0.3]]), variances, sources)
    early = (100 * 1 + 300 * 12) / 400
    assert residuals[0][0] == pytest.approx(0.1 / (early / 100 + early / 300) ** 0.5)
    assert residuals[1][0] == pytest.approx((0.4 - 0.175) / (early / 400 + 0.5) ** 0.5)
    weights = np.array([400 / shared, 2])
    mean = (weights * [0.175, 0.4]).sum() / weights.sum()
    assert residuals[2][0] == pytest.approx((0.3 - mean) / (shared / 200 + 1 / weights.sum()) ** 0.5)


@pytest.mark.parametrize("one_in", [100, 500, 2_000, 52_000, 8_000_000])
def test_false_alarms_are_as_rare_as_stated(one_in):
    """The exact mean time to an alarm of one side solves an integral equation; two sides take half of it (Kemp)."""
    threshold = series.alarm_threshold(one_in)
    nodes, weights = np.polynomial.legendre.leggauss(120)
    nodes, weights = threshold * (nodes + 1) / 2, threshold * weights / 2
    points = np.concatenate([[0.0], nodes])
    kernel = np.column_stack(
        [stats.norm.cdf(0.5 - points), stats.norm.pdf(nodes[None, :] - points[:, None] + 0.5) * weights]
    )
    times = np.linalg.solve(np.eye(points.size) - kernel, np.ones(points.size))
    assert times[0] / 2 == pytest.approx(one_in, rel=0.05)


@pytest.mark.slow
def test_false_alarms_in_simulated_series():
    values, variances = _noise(5, 200, 8000)
    found = series.find_alarms(values, variances, series.alarm_threshold(500))
    # An item's first epoch, and the first after each of its alarms, raise none. Five standard errors are 9 %.
    assert found.items.size == pytest.approx((199 * 8000 - found.items.size) / 500, rel=0.12)
    assert found.is_rise.mean() == pytest.approx(0.5, abs=5 * 0.5 / 3100**0.5)


def test_a_change_is_found_where_it_happened():
    values, variances = _noise(6, 60, 4, spread=1.0)
    values[30:, 0] += 0.005
    values[40:, 1] -= 0.005
    values[20:40, 2] += 0.005  # and back
    found = series.find_alarms(values, variances, series.alarm_threshold(100_000))
    assert found.items.tolist() == [2, 0, 1, 2]
    assert found.is_rise.tolist() == [True, True, False, False]
    assert found.since.tolist() == [20, 30, 40, 40]
    assert np.all((found.rows > found.since) & (found.rows <= found.since + 5))
    assert found.before == pytest.approx([0.1, 0.1, 0.1, 0.105], abs=0.002)


def test_an_alarm_starts_the_baseline_again():
    values = np.concatenate([np.zeros(10), np.ones(30)])[:, None]
    found = series.find_alarms(values, np.full((40, 1), 0.01), 5.0)
    assert found.rows.tolist() == [10]
    assert found.since.tolist() == [10]
    assert found.before.tolist() == [0.0]


def test_quiet_series_raise_no_alarm():
    found = series.find_alarms(np.full((5, 2), 0.5), np.full((5, 2), 0.01), 5.0)
    assert found.items.size == found.rows.size == found.before.size == 0


def test_change_points_are_the_best_splits():
    values, variances = _noise(7, 12, 5)
    values[5:, 1] += 0.02
    found = series.change_points(values, variances)
    for item in range(5):
        scores = []
        for split in range(1, 12):
            parts = [(values[part, item], 1 / variances[part, item]) for part in (slice(split), slice(split, None))]
            means = [np.average(value, weights=weight) for value, weight in parts]
            scores.append((means[1] - means[0]) / sum(1 / weight.sum() for _, weight in parts) ** 0.5)
        best = int(np.abs(scores).argmax())
        assert found.rows[item] == best + 1
        assert found.changes[item] / found.standard_errors[item] == pytest.approx(scores[best])
        assert found.p_values[item] == pytest.approx(min(1.0, 11 * 2 * stats.norm.sf(abs(scores[best]))))
    assert found.rows[1] == 5
    assert found.p_values[1] < 1e-6


def test_change_points_of_constant_series_are_rarely_significant():
    for epochs in (2, 10, 60):
        found = series.change_points(*_noise(epochs, epochs, 4000))
        assert (found.p_values < 0.05).sum() <= stats.binom.ppf(1 - FALSE_ALARM, 4000, 0.05)


def test_series_in_single_precision():
    values, variances = _noise(8, 30, 20)
    values[15:, 3] += 0.02
    single = values.astype(np.float32), variances.astype(np.float32)
    np.testing.assert_allclose(
        series.change_points(*single).changes, series.change_points(values, variances).changes, rtol=1e-3, atol=1e-7
    )
    assert series.find_alarms(*single, 8.0).rows.tolist() == series.find_alarms(values, variances, 8.0).rows.tolist()


def test_discoveries():
    assert series.discoveries(np.array([0.01, 0.02, 0.03, 0.5]), 0.05).tolist() == [True, True, True, False]
    assert series.discoveries(np.array([0.04, 0.04]), 0.05).tolist() == [True, True]
    assert not series.discoveries(np.array([0.06, 0.9]), 0.05).any()


@pytest.mark.parametrize("one_in", [0, -5, 99, 1e16, float("nan")])
def test_a_false_alarm_rate_out_of_range(one_in):
    with pytest.raises(ParameterError, match="one_in must be a number from 100"):
        series.alarm_threshold(one_in)
