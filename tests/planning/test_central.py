"""Plans of least error for a central guarantee."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from sunzi.client.errors import ParameterError
from sunzi.errors import PlanWarning
from sunzi.numerics.blanket import Blanket
from sunzi.planning import gaussian_error, laplace_error, plan_for_batch
from sunzi.planning.central import CENTRAL_HEADER, _Search


@cache
def usual():
    return plan_for_batch(100, 10_000, 1, 1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sunzi.PlanWarning")
@pytest.mark.parametrize(
    ("size", "users", "epsilon", "most", "name", "local", "error"),
    [
        (100, 10**4, 1, None, "grr", 5.51, 9.8),
        (100, 10**8, 1, None, "grr", 14.29, 11.1),
        (22_000, 10**6, 1, None, "grr", 10.36, 9.2),
        (1024, 10**6, 1, 4, "ss-compact", 4, 274),
        (22_000, 10**4, 1, None, "ss", 7.49, 6.8),
        (22_000, 10**4, 0.1, 4, "ss-compact", 3.65, 67.6),
    ],
)
def test_known_optima(size, users, epsilon, most, name, local, error):
    found = plan_for_batch(size, users, epsilon, 1e-8, max_epsilon=most)
    assert found.plan.protocol.name == name
    assert float(found.plan.epsilon) == pytest.approx(local, abs=0.0101)
    assert found.count_error == pytest.approx(error, rel=0.01)
    assert found.guarantee.epsilon <= epsilon
    assert found.guarantee == found.plan.batch_guarantee(users, 1e-8)
    assert found.plan.epsilon * 100 == int(found.plan.epsilon * 100)


def test_a_limit_never_lowers_the_error_and_the_error_is_that_of_collections():
    found = usual()
    assert plan_for_batch(100, 10_000, 1, 1e-8, max_epsilon=5).count_error > found.count_error
    values = np.arange(10_000) % 100
    estimates = [found.plan.estimate(found.plan.simulate(values, seed=seed)).frequencies for seed in range(40)]
    assert 10_000 * np.sqrt(np.mean((np.array(estimates) - 0.01) ** 2)) == pytest.approx(found.count_error, rel=0.03)


def test_no_block_size_is_better(monkeypatch):
    """The error has many local minima. With a bound that takes a tenth of a millisecond, all sizes can be tried."""
    monkeypatch.setattr(Blanket, "largest_delta", Blanket.chernoff_delta)
    search = _Search(22_000, 5_000, Fraction(1, 10), 1e-8, Fraction(32))
    found = search.best()
    assert found.block_size > 50
    assert found.error == min(search._at(size).error for size in range(20, 2 * found.block_size))
    assert replace(search, most=Fraction(29, 10)).best().error >= found.error


def test_the_guarantee_is_not_a_hair_above_the_target():
    """Where the bound meets the target, the ε of the guarantee may be rounded up to one above it."""
    search = _Search(265, 1516, Fraction("0.034"), 1e-8, Fraction(4))
    largest = search._at(10)
    assert not search.is_met(search._blanket(10, largest.epsilon))
    found = search.best()
    assert found.block_size == 10
    assert found.epsilon == largest.epsilon - Fraction(1, 100)
    assert search.is_met(search._blanket(10, found.epsilon))


def test_methods_beside_it():
    found = usual()
    names = ["this plan, grr", "local epsilon at most 4", "local epsilon 1", "Gaussian noise", "discrete Laplace noise"]
    assert [method.name for method in found.methods] == names
    assert [method.trusted for method in found.methods] == ["collector", "collector", "nobody", "server", "server"]
    errors = [method.count_error for method in found.methods]
    assert errors == pytest.approx([9.8, 25.5, 190, 7.21, 2.80], rel=0.01)
    assert [len(row) for row in found.rows()] == [len(CENTRAL_HEADER)] * 5
    assert found.rows()[0] == ["this plan, grr", "collector", "5.51", "9.84", "0.0984 %", "1.36"]
    assert found.to_dict()["methods"][3]["local_epsilon"] is None
    assert len(plan_for_batch(100, 10_000, 1, 1e-8, max_epsilon=4).methods) == 4


def test_noise_of_a_trusted_server():
    assert gaussian_error(0.1, 1e-8) == pytest.approx(65.0, rel=1e-3)
    assert gaussian_error(1, 0.5) < 1
    assert laplace_error(0.1) == pytest.approx(28.28, rel=1e-3)


def test_a_small_batch_needs_the_target_as_local_epsilon():
    found = plan_for_batch(["a", "b"], 1, "1/3", 1e-8)
    assert str(found.plan.epsilon) == "1/3"
    assert found.guarantee.epsilon == pytest.approx(1 / 3)
    assert str(plan_for_batch(5, 100, 2, 1e-8, max_epsilon="0.5").plan.epsilon) == "1/2"


def test_fewer_honest_clients_need_a_smaller_local_epsilon():
    half = plan_for_batch(100, 10_000, 1, 1e-8, honest=0.5)
    assert half.plan.epsilon == plan_for_batch(100, 5000, 1, 1e-8).plan.epsilon
    assert half.guarantee.honest_reports == 5000


def test_a_large_delta_causes_one_warning():
    with pytest.warns(PlanWarning, match="even publishing one person's report") as caught:
        plan_for_batch(2, 10, 1, 0.1)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.slow
def test_the_warning_tells_what_the_collector_can_guess():
    found = usual()
    rate = f"{100 * found.plan.attackability:.3g} % of the time"
    assert f"guesses the value correctly {rate}" in found.warning
    assert "only the local epsilon of 5.51 holds. That is no meaningful protection." in found.warning
    assert "no meaningful protection" not in plan_for_batch(100, 10_000, 1, 1e-8, max_epsilon=2).warning


def test_groups_are_declared_in_the_plan():
    found = usual()
    assert found.with_groups({}) is found
    grouped = found.with_groups({"country": ["DE", "FR"]})
    assert grouped.plan.groups
    assert grouped.guarantee.plan == grouped.plan.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": 0}, "users must be a whole number between 1 and"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"delta": 2}, "delta must lie between 1e-15 and 1, got 2"),
        ({"honest": 0}, "honest must be a share above 0"),
        ({"max_epsilon": -1}, "epsilon must be positive"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ParameterError, match=message):
        plan_for_batch(**{"domain": 10, "users": 100, "epsilon": 1, "delta": 1e-8} | options)
