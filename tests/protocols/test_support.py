"""Estimates from support counts: the formula, and the errors it has by theory."""

from math import exp

import numpy as np
import pytest

from sunzi.errors import EstimateError
from sunzi.plan import make_plan

NAMES = ["grr", "ss", "ss-compact", "pgr", "rappor", "oue"]


@pytest.mark.parametrize("name", NAMES)
def test_the_estimate_is_the_debiased_share_of_supports(name):
    plan = make_plan(name, 20, 1)
    tally = plan.simulate(np.arange(1000) % 20, seed=1)
    rates, counts = plan.protocol.probabilities, plan.protocol.support_counts(tally)
    expected = (counts / 1000 - rates.false) / (rates.true - rates.false)
    np.testing.assert_allclose(plan.estimate(tally, weights="planned").frequencies, expected, rtol=1e-9)


def test_errors_of_the_literature():
    """Of one report, at a value that nobody holds."""
    for epsilon in (0.5, 1, 4):
        grr, oue, rappor = (
            make_plan(name, 20, epsilon).protocol.probabilities.variance() for name in ("grr", "oue", "rappor")
        )
        odds, root = exp(epsilon), exp(epsilon / 2)
        assert grr == pytest.approx((odds + 18) / (odds - 1) ** 2)
        assert oue == pytest.approx(4 * odds / (odds - 1) ** 2)
        assert rappor == pytest.approx(root / (root - 1) ** 2)


@pytest.mark.parametrize("name", ["grr", "ss", "rappor", "oue"])
def test_no_histogram_matters_to_the_mean_error(name):
    """Frequencies add up to 1, and the error is linear in them: every histogram has the worst error."""
    plan = make_plan(name, 20, 2)
    spike, flat = np.eye(20)[3], np.full(20, 1 / 20)
    assert plan.expected_mse(50, spike) == pytest.approx(plan.expected_mse(50, flat))
    assert plan.worst_mse(50) == pytest.approx(plan.expected_mse(50, flat))
    assert plan.expected_mse(50) == pytest.approx(2 * plan.expected_mse(100))


def test_an_empty_tally_determines_nothing():
    plan = make_plan("grr", 20, 1)
    with pytest.raises(EstimateError):
        plan.estimate(plan.empty_tally())
