"""The errors of linear queries, against the covariance of one report by enumeration of all messages."""

from itertools import product

import numpy as np
import pytest

import sunzi
from sunzi.errors import EstimateError

SIZE = 7
FREQUENCIES = np.array([0.4, 0.0, 0.25, 0.05, 0.1, 0.2, 0.0])
QUERIES = np.array(
    [
        [1, 1, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 1, 1],
        [1, 0, -1, 0, 0, 0, 0],
        [0, 1, 2, 3, 4, 5, 6],
        [0, 0, 0, 0, 0, 0, 1],
    ],
    dtype=float,
)
USERS = 400_000
TOLERANCE = 0.03
SINGLE = ["grr", "ss", "ss-compact", "pgr", "oue", "rappor"]


def one_report(plan):
    """All messages of one report, as the linear estimate that each gives, and their probabilities by value."""
    protocol = plan.protocol
    if plan.protocol.name in ("oue", "rappor"):
        patterns = np.array(list(product([0, 1], repeat=SIZE)), dtype=float)
        rates = np.where(np.eye(SIZE, dtype=bool), protocol.probabilities.true, protocol.probabilities.false)
        chances = np.array([np.prod(np.where(patterns == 1, rate, 1 - rate), axis=1) for rate in rates]).T
    else:
        design = protocol.design
        patterns = design.incidence(design.every_message(), SIZE).astype(float)
        odds = np.where(patterns == 1, protocol.response.odds, 1.0)
        chances = odds / odds.sum(axis=0)
    rates = protocol.probabilities
    return (patterns - rates.false) / rates.gap, chances


@pytest.mark.parametrize("epsilon", [0.5, 2, 5])
@pytest.mark.parametrize("name", SINGLE)
def test_covariances_are_those_of_all_messages(name, epsilon):
    plan = sunzi.make_plan(name, SIZE, epsilon)
    estimates, chances = one_report(plan)
    estimates = estimates + (1 - estimates.sum(axis=1, keepdims=True)) / SIZE
    answers, weights = estimates @ QUERIES.T, chances @ FREQUENCIES
    means = weights @ answers
    expected = (answers * weights[:, None]).T @ answers - np.outer(means, means)
    assert means == pytest.approx(QUERIES @ FREQUENCIES)
    values = np.repeat(np.arange(SIZE), np.rint(FREQUENCIES * USERS).astype(int))
    estimate = plan.estimate(plan.simulate(values, seed=5), weights="planned")
    found = estimate._query(QUERIES)
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert np.abs(found.covariance("population") * USERS - expected).max() < TOLERANCE * scale.max()
    assert found.variances("population") * USERS == pytest.approx(expected.diagonal(), rel=TOLERANCE)
    sampling = (QUERIES * FREQUENCIES) @ QUERIES.T - np.outer(QUERIES @ FREQUENCIES, QUERIES @ FREQUENCIES)
    at_hand = expected - sampling
    assert found.variances("reporters") * USERS == pytest.approx(at_hand.diagonal(), rel=2 * TOLERANCE, abs=0.01)


@pytest.mark.parametrize("name", ["mss", "mss-compact", "ss-compact", "pgr"])
def test_single_values_have_the_errors_of_the_efficient_estimate(name):
    plan = sunzi.make_plan(name, 40, 3)
    estimate = plan.estimate(plan.simulate(np.arange(40).repeat(np.arange(40) * 20), seed=1))
    covariance = estimate.covariance(range(40), "population")
    assert covariance.diagonal() == pytest.approx(estimate.standard_errors("population") ** 2)
    assert covariance.sum() == pytest.approx(0, abs=1e-9 * covariance.trace())
    assert estimate.sum(range(40)).standard_error == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", ["mss", "mss-compact"])
def test_single_values_have_the_errors_of_the_planned_estimate(name):
    plan = sunzi.make_plan(name, 40, 3)
    estimate = plan.estimate(plan.simulate(np.arange(40).repeat(np.arange(40) * 20), seed=1), weights="planned")
    variances = estimate._uncertainty._variance.full(estimate.frequencies)
    found = estimate.covariance(range(40), "population").diagonal()
    assert found == pytest.approx(variances, rel=5e-3)  # one frequency is negative, and a sum of squares is clipped


def test_solved_queries_are_those_of_the_formed_matrix():
    plan = sunzi.make_plan("mss", 300, 3)
    estimate = plan.estimate(plan.simulate(np.arange(300).repeat(30), seed=1))
    information = estimate._uncertainty.information
    rows = np.random.default_rng(1).normal(size=(3, 300))
    formed = information.solve_rows(rows)
    vars(information)["_covariance"] = None
    assert information.solve_rows(rows) == pytest.approx(formed, abs=2e-3 * np.abs(formed).max())


def crowded(plan):
    """One value has half of the users, and one that collides with it modulo the first modulus a quarter."""
    modulus = plan.protocol.responses[0].design.points if plan.protocol.name.startswith("mss") else 7
    frequencies = np.full(plan.domain.size, 0.25 / plan.domain.size)
    frequencies[[1, 1 + modulus % 20]] += [0.5, 0.25]
    return frequencies


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon", "weights", "runs"),
    [
        ("grr", 5, "planned", 400),
        ("oue", 0.5, "planned", 400),
        ("ss-compact", 3, "efficient", 300),
        ("pgr", 1, "planned", 100),
        ("mss-compact", 4, "planned", 60),
        ("mss", 2, "efficient", 40),
    ],
)
def test_intervals_cover(name, epsilon, weights, runs):
    """Sums that have heavy and colliding values, and sums that have not."""
    plan = sunzi.make_plan(name, 30, epsilon)
    generator, frequencies, users = np.random.default_rng(7), crowded(plan), 3000
    rows = (generator.random((10, 30)) < np.linspace(0.1, 0.9, 10)[:, None]).astype(float)
    covered = {"reporters": 0, "population": 0}
    for run in range(runs):
        values = generator.choice(30, users, p=frequencies)
        own = np.bincount(values, minlength=30) / users
        found = plan.estimate(plan.simulate(values, seed=run), weights=weights)._query(rows)
        for target, truth in (("reporters", own), ("population", frequencies)):
            low, high = found.interval(0.95, target, "auto")
            covered[target] += np.count_nonzero((low <= rows @ truth) & (rows @ truth <= high))
    for target, number in covered.items():
        # Measured with more runs: 94.9 to 96.1 %. The seeds are fixed, so the outcome is too.
        assert abs(number / (10 * runs) - 0.95) < 0.015, target


PLAN = sunzi.make_plan("ss-compact", ["Chrome", "Edge", "Opera", "Safari", "Firefox"], 2)
ESTIMATE = PLAN.estimate(PLAN.simulate(["Chrome"] * 900 + ["Edge"] * 300 + ["Safari"] * 600, seed=1))


def test_combinations_of_few_reports_with_little_noise_cover_the_population():
    """In at least 80 % of 200 collections of 10 users, below that with a coverage of at least 91 % less than once in
    1e-6. Most have one value only, as if there were no spread.
    """
    plan, shares, covered = sunzi.make_plan("grr", 3, epsilon=10), np.array([0.95, 0.03, 0.02]), []
    for seed in range(200):
        drawn = np.random.default_rng(seed).choice(3, 10, p=shares)
        estimate = plan.estimate(plan.simulate(drawn, seed=seed))
        mean = estimate.combine([0, 1, 2], target="population")
        change = estimate.difference(1, 2, target="population")
        covered.append([mean.low <= 0.07 <= mean.high, change.low <= 0.01 <= change.high])
    assert np.mean(covered, axis=0).min() >= 0.8


def test_sums_differences_and_combinations_agree():
    both = ESTIMATE.sum(["Chrome", "Edge"])
    assert both == ESTIMATE.combine({"Chrome": 1, "Edge": 1}) == ESTIMATE.combine([1, 1, 0, 0, 0])
    assert both.value == pytest.approx(1 - ESTIMATE.sum(["Opera", "Safari", "Firefox"]).value)
    gap = ESTIMATE.difference("Chrome", "Safari")
    assert gap.value == pytest.approx(ESTIMATE["Chrome"].frequency - ESTIMATE["Safari"].frequency)
    variances = ESTIMATE.covariance(["Chrome", "Safari"])
    assert gap.standard_error**2 == pytest.approx(variances.trace() - 2 * variances[0, 1])
    assert ESTIMATE.sum(["Chrome"], 0.99).low < ESTIMATE.sum(["Chrome"]).low
    assert ESTIMATE.sum(["Chrome"], target="population").standard_error > ESTIMATE.sum(["Chrome"]).standard_error


def test_groups_are_an_estimate_of_their_own():
    groups = ESTIMATE.regroup({"Chromium": ["Chrome", "Edge", "Opera"], "rest": ...})
    assert [row.label for row in groups] == ["Chromium", "rest"]
    assert groups.frequencies.sum() == pytest.approx(1)
    whole = ESTIMATE.sum(["Chrome", "Edge", "Opera"])
    row = groups["Chromium"]
    assert (row.frequency, row.low, row.high) == pytest.approx((whole.value, whole.low, whole.high))
    assert groups.difference("Chromium", "rest").value == pytest.approx(2 * whole.value - 1)
    assert groups.sum(["Chromium"]).standard_error == pytest.approx(whole.standard_error)
    assert "Chromium" in groups.to_html("Engines")


def test_sums_have_no_exact_intervals():
    with pytest.raises(EstimateError, match="single values"):
        ESTIMATE.regroup({"a": ["Edge"], "b": ...}).interval(method="exact")
