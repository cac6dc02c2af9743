"""Verdicts about single values agree with the intervals shown beside them."""

import numpy as np
import pytest

from sunzi.plan import make_plan
from sunzi.results.certainty import MEANINGS, certainties


@pytest.mark.slow
@pytest.mark.parametrize("target", ["reporters", "population"])
def test_no_verdict_contradicts_the_interval(target):
    """Among 500 values that a few users hold, all three certainties occur."""
    plan = make_plan("ss-compact", 500, 2)
    estimate = plan.estimate(plan.simulate(np.arange(20_000) % 400 // (1 + np.arange(20_000) % 30), seed=1))
    own, _ = estimate.interval(target=target)
    together, _ = estimate.interval(target=target, simultaneous=True)
    found = np.array(certainties(estimate, 0.95, target))
    assert np.array_equal(found == "clear", together > 0)
    assert np.array_equal(found == "unclear", own <= 0)
    assert set(found) == set(MEANINGS)
