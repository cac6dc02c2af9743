"""Confidence limits of proportions cover as stated."""

from itertools import product

import numpy as np
import pytest

import sunzi
from sunzi.analysis.statistics import Proportion, lower_limits, outside, upper_limits


def test_limits_of_proportions_cover_exactly():
    """Clopper–Pearson limits by summing the binomial distribution."""
    from scipy import stats

    for trials, alarm in product((1, 5, 40), (0.05, 1e-4)):
        hits = np.arange(trials + 1)
        low, high = lower_limits(hits, trials, alarm), upper_limits(hits, trials, alarm)
        assert low[0] == 0
        assert high[-1] == 1
        np.testing.assert_allclose(stats.binom.sf(hits[1:] - 1, trials, low[1:]), alarm, rtol=1e-8)
        np.testing.assert_allclose(stats.binom.cdf(hits[:-1], trials, high[:-1]), alarm, rtol=1e-8)
    found = Proportion(3, 10, 0.9)
    assert found.low < found.rate == 0.3 < found.high
    assert outside(np.array([0, 500, 1000]), 1000, 0.5, 1e-3).tolist() == [True, False, True]
    for successes, trials in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(sunzi.ParameterError):
            Proportion(successes, trials)
