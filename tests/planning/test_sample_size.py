"""The number of users, or the ε, that a target error needs."""

from fractions import Fraction

import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.planning import epsilon_needed, evaluate, recommend, sample_size, users_needed
from sunzi.planning.recommendation import at_users
from sunzi.planning.sample_size import recommend_epsilon, recommend_users


@pytest.mark.parametrize("name", ["grr", "ss-compact", "oue", "mss"])
def test_users_needed_are_just_enough(name):
    users = users_needed(name, 50, 1, 0.02)
    plan = sunzi.make_plan(name, 50, 1)
    assert evaluate(plan, users).standard_error <= 0.02 < evaluate(plan, users - 1).standard_error


def test_options_reach_the_plan():
    assert users_needed("ss", 50, 1, 0.02, block_size=1) == users_needed("grr", 50, 1, 0.02)
    assert epsilon_needed("ss", 50, 5000, 0.02, block_size=1) == epsilon_needed("grr", 50, 5000, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), [("grr", 0.02), ("pgr", 0.005), ("rappor", 0.1), ("mss-compact", 0.01)])
def test_epsilon_needed_is_just_enough(name, target):
    epsilon = epsilon_needed(name, 40, 5000, target)
    digits = f"{float(epsilon):.3g}"
    assert Fraction(digits) == epsilon
    step = Fraction(10) ** (len(str(int(epsilon))) - 3) if epsilon >= 1 else Fraction(1, 1000)
    error, before = (evaluate(sunzi.make_plan(name, 40, e), 5000).standard_error for e in (epsilon, epsilon - step))
    assert error <= target < before


def test_epsilon_at_the_ends():
    assert epsilon_needed("grr", 2, 10**12, 0.5) == Fraction(1, 1000)
    assert sample_size._epsilon(sample_size._LAST) == 32
    grid = [sample_size._epsilon(index) for index in range(sample_size._LAST + 1)]
    assert grid == sorted(grid)
    with pytest.raises(ParameterError, match="no epsilon gives rappor a standard error of 1e-12 with 100 users"):
        epsilon_needed("rappor", 10, 100, 1e-12)


def test_recommendations_for_a_target():
    by_users = recommend_users(50, 1, 0.01)
    assert by_users.axes.standard_error <= 0.01
    assert by_users.axes.users == users_needed(by_users.protocol, 50, 1, 0.01)
    by_epsilon = recommend_epsilon(50, 20_000, 0.005)
    assert by_epsilon.axes.standard_error <= 0.005
    assert by_epsilon.plan.epsilon == epsilon_needed(by_epsilon.protocol, 50, 20_000, 0.005)
    assert recommend_epsilon(50, 20_000, 0.005, protocols=["oue"]).protocol == "oue"
    assert at_users(by_users, 7).axes.users == 7


def test_alternating_recommendations_end(monkeypatch):
    """Two protocols that recommend each other: after some rounds the last one is kept."""
    turns = iter(["grr", "oue", "grr", "oue"])

    def restless(domain, epsilon, users, protocols=None, **wishes):
        return recommend(domain, epsilon, users, protocols=protocols or [next(turns)])

    monkeypatch.setattr(sample_size, "recommend", restless)
    found = recommend_epsilon(20, 5000, 0.01)
    assert found.protocol == "oue"
    assert found.plan.epsilon == epsilon_needed("oue", 20, 5000, 0.01)


def test_limits_that_miss_the_target_are_named(monkeypatch):
    worse = recommend(20, 1, 10, protocols=["ss-compact"])
    monkeypatch.setattr(sample_size, "recommend", lambda *_, **__: worse)
    with pytest.raises(ParameterError, match=r"does not reach a standard error of 0\.01"):
        recommend_epsilon(20, 5000, 0.01)


@pytest.mark.parametrize("target", [0, -1, float("inf"), float("nan")])
def test_wrong_targets_are_named(target):
    with pytest.raises(ParameterError, match="target error must be a positive share"):
        users_needed("grr", 10, 1, target)
