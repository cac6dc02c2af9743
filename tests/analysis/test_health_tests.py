"""The distributions that health tests compare with, against enumerations and exact tails."""

import numpy as np
import pytest
from scipy import stats

from sunzi.analysis.health_tests import expected_counts, lowest_counts, uniform_counts
from sunzi.analysis.statistics import Cumulants, largest_count, smallest_count


def test_pearsons_statistic_has_the_stated_moments():
    """Over all ways to put 4 reports into 3 cells."""
    tables = np.array(np.meshgrid(*[np.arange(3)] * 4)).reshape(4, -1)
    values = [uniform_counts(np.bincount(column, minlength=3))[0] for column in tables.T]
    cumulants = uniform_counts(np.array([2, 1, 1]))[1]
    assert np.mean(values) == pytest.approx(cumulants.mean)
    assert np.var(values) == pytest.approx(cumulants.variance)


def test_pearsons_statistic_has_the_stated_moments_for_unequal_shares():
    """Over all ways to put 4 reports into 3 cells, by their probabilities."""
    shares = np.array([0.5, 0.3, 0.2])
    tables = np.array(np.meshgrid(*[np.arange(3)] * 4)).reshape(4, -1)
    chances = shares[tables].prod(axis=0)
    values = np.array([expected_counts(np.bincount(column, minlength=3), shares)[0] for column in tables.T])
    cumulants = expected_counts(np.array([2, 1, 1]), shares)[1]
    assert chances @ values == pytest.approx(cumulants.mean)
    assert chances @ (values - cumulants.mean) ** 2 == pytest.approx(cumulants.variance)


def test_tails():
    chi_square = Cumulants.of_traces(7, 7, 7)
    for value in (1.0, 7.0, 30.0):
        assert chi_square.upper_tail(value) == pytest.approx(stats.chi2.sf(value, 7))
    assert chi_square.upper_tail(-5.0) == 1
    # The number of coincidences is Poisson, which is skewed: the gamma curve fits it far into the tail.
    poisson = Cumulants(30, 30, 0, 30)
    assert poisson.upper_tail(59.5) == pytest.approx(stats.poisson.sf(59, 30), rel=0.3)
    assert not poisson.has_too_few_reports
    assert Cumulants(0.5, 0.5, 0, 0.5).has_too_few_reports
    assert smallest_count(3, 20, 0.5, 10) == pytest.approx(10 * stats.binom.cdf(3, 20, 0.5))
    assert largest_count(17, 20, 0.5, 10) == pytest.approx(10 * stats.binom.cdf(3, 20, 0.5))
    assert lowest_counts(np.array([9, 5, 7]), 10, 0.5)[0] == pytest.approx(0)
