"""Exact intervals and quantiles are those of listed distributions, and widths have no jump where the method changes."""

import numpy as np
import pytest
from scipy import stats

from sunzi.client.errors import ParameterError
from sunzi.numerics import intervals
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.plan import make_plan
from sunzi.results.uncertainty import SupportUncertainty


def rates_of(true, false):
    return SupportProbabilities(true, false, true - false)


def law(users, holders, rates):
    """The distribution of Binomial(h, p) + Binomial(n − h, q), listed."""
    true = stats.binom.pmf(np.arange(holders + 1), holders, rates.true)
    false = stats.binom.pmf(np.arange(users - holders + 1), users - holders, rates.false)
    return np.convolve(true, false)


def random_settings(number, seed=1):
    generator = np.random.default_rng(seed)
    for _ in range(number):
        users = int(10 ** generator.uniform(0.3, 3))
        false = 10 ** generator.uniform(-4, -0.35)
        true = 1 - 10 ** generator.uniform(-7, -2) if generator.random() < 0.3 else generator.uniform(false, 1)
        yield users, int(generator.integers(0, users + 1)), rates_of(true, false)


def test_tail_probabilities_are_those_of_listed_distributions():
    for users, holders, rates in random_settings(150):
        listed = np.cumsum(law(users, holders, rates)[::-1])[::-1]
        counts = np.flatnonzero(listed > 1e-12)
        found = intervals._upper_tail(counts, users, np.full(counts.size, holders), rates.true, rates.false)
        np.testing.assert_allclose(found, listed[counts], rtol=1e-7)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99999])
@pytest.mark.parametrize(
    ("users", "true", "false"), [(1, 0.9, 0.1), (60, 0.99, 0.01), (60, 0.5, 0.02), (75, 0.7, 0.3), (40, 0.999999, 0.4)]
)
def test_exact_intervals_hold_the_numbers_of_users_that_both_tails_allow(users, true, false, confidence):
    rates, counts, tail = rates_of(true, false), np.arange(users + 1), (1 - confidence) / 2
    low, high = intervals.exact(counts, users, rates, confidence, at_hand=True)
    held = (low[:, None] <= counts / users) & (counts / users <= high[:, None])
    laws = np.array([law(users, holders, rates) for holders in counts]).T
    below, above = np.cumsum(laws, axis=0), np.cumsum(laws[::-1], axis=0)[::-1]
    np.testing.assert_array_equal(held, (below > tail) & (above > tail))
    outside = (low < 0) | (high > 1)
    wide_low, wide_high = intervals.exact(counts, users, rates, confidence, at_hand=False)
    assert np.all((low == wide_low)[low < 0])
    assert np.all((high == wide_high)[high > 1])
    assert outside[0] or users == 1


@pytest.mark.parametrize("epsilon", [1, 5, 8, 12])
def test_exact_intervals_include_the_estimate(epsilon):
    plan, counts = make_plan("grr", 10, epsilon), np.arange(301)
    rates = plan.protocol.response.probabilities
    for confidence in (0.5, 0.95):
        low, high = intervals.exact(counts, 300, rates, confidence, at_hand=True)
        estimates = (counts / 300 - rates.false) / rates.gap
        assert np.all((low <= estimates) & (estimates <= high))


@pytest.mark.parametrize("target", ["reporters", "population"])
@pytest.mark.parametrize(
    ("name", "size", "epsilon"),
    [
        ("grr", 10, 5),
        ("grr", 1000, 5),
        ("grr", 2, 6),
        ("ss", 200, 3),
        ("pgr", 57, 5),
        ("oue", 57, 3),
        ("rappor", 57, 8),
    ],
)
def test_widths_have_no_jump_where_the_method_changes(name, size, epsilon, target):
    """Width·√n of an item, averaged over counts near the expected one, along n through the switch at 96 rare counts.

    By whole numbers of users alone it may move by a per cent or two. Clopper and Pearson's interval, which is one about
    the population, is 3 to 13 times as wide for the users at hand.
    """
    rates = make_plan(name, size, epsilon).protocol.probabilities
    rarest = min(rates.false, 1 - rates.true)
    for frequency in (0, 0.1, 0.6, 1):
        widths = []
        for rare in (60, 80, 90, 95, 97, 110, 150):
            users = int(rare / rarest)
            counts = np.round(users * (rates.false + rates.gap * frequency) + np.arange(-8, 9)).astype(np.int64)
            counts = np.unique(np.clip(counts, 0, users))
            uncertainty = SupportUncertainty(counts, users, rates, (counts / users - rates.false) / rates.gap)
            low, high = uncertainty.interval(0.95, target, "auto")
            widths.append(np.mean(high - low) * users**0.5)
        assert max(widths) < 1.06 * min(widths)


def test_both_kinds_of_rare_counts_call_for_exact_intervals():
    """Many false supports, but few missing true ones: an item that all users hold."""
    users, rates = 600, rates_of(0.999, 0.2)
    for holders in (0, users // 2, users):
        counts = np.arange(users + 1)
        uncertainty = SupportUncertainty(counts, users, rates, (counts / users - rates.false) / rates.gap)
        low, high = uncertainty.interval(0.95, "reporters", "auto")
        covered = (low <= holders / users) & (holders / users <= high)
        assert law(users, holders, rates)[covered].sum() >= 0.95


def test_many_items_share_their_counts():
    """One interval per distinct count, in the order of the items."""
    rates, support = rates_of(0.9, 0.001), np.array([5, 0, 900, 5, 0])
    low, high = intervals.exact(support, 1000, rates, 0.95, at_hand=True)
    assert low[0] == low[3]
    assert high[1] == high[4]
    assert low[2] < 1 < high[2] or low[2] > 0.9


def test_confidence_close_to_one():
    """The quantile is computed in the lower tail, where floats are dense: 1 − confidence/2 would round to 1."""
    assert intervals.normal_quantile(1 - 2**-53) == pytest.approx(8.29236, abs=1e-5)
    plan = make_plan("mss", 30, 1, moduli=[17, 19, 23])
    low, high = plan.estimate(plan.simulate(np.arange(3000) % 30, seed=1)).interval(1 - 2**-53)
    assert np.all(low < high)
    with pytest.raises(ParameterError, match=r"10000000 intervals at once .* lower it"):
        intervals.simultaneous_confidence(0.9999999999, 10**7)
    assert intervals.simultaneous_confidence(0.95, 10**7) < 1


def mixed_tail(threshold, normal, counts):
    """P(X ≥ threshold) for a normal with a given variance plus centred Poisson counts (rate, step), listed."""
    sums, chances = np.zeros(1), np.ones(1)
    for rate, step in counts:
        numbers = np.arange(int(rate + 12 * rate**0.5 + 20))
        sums = np.add.outer(sums, (numbers - rate) * step).reshape(-1)
        chances = np.outer(chances, stats.poisson.pmf(numbers, rate)).reshape(-1)
    return float(chances @ stats.norm.sf((threshold - sums) / normal**0.5))


@pytest.mark.parametrize("quantile", [1.0, 1.96, 3.0, 4.5])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(("up", "down"), [(0.8, 0.0), (3.0, 0.0), (3.0, 1.0), (40.0, 2.0), (400.0, 0.0)])
def test_quantiles_of_jumps_are_those_of_listed_distributions(up, down, direction, quantile):
    """A tenth of the variance is normal. Steps are nearly on a lattice for small rates, which no smooth approximation
    follows; between its points the tail is right within a factor of 1.7, where a normal one is wrong up to 25 times.
    """
    variance = up + down
    parts = np.array([[up], [down], [variance / 20], [variance / 20]])
    steps = np.array([[1.0], [-1.0], [1e-3], [-1e-3]])
    relative = intervals._jump_quantiles(parts, steps, quantile, direction)
    threshold = float(relative[0]) * (1.1 * variance) ** 0.5
    found = mixed_tail(threshold, variance / 10, [(up, direction), *([(down, -direction)] if down else [])])
    assert 1 / 1.7 < found / stats.norm.sf(quantile) < 1.7


def test_many_small_jumps_have_normal_quantiles():
    parts, steps = np.array([[1.0], [0.0], [0.05], [0.05]]), np.array([[1e-4], [0.0], [1e-5], [-1e-5]])
    for direction in (1, -1):
        np.testing.assert_allclose(intervals._jump_quantiles(parts, steps, 3.0, direction), 3.0, rtol=1e-3)


def test_a_tail_that_cannot_be_reached_ends_where_the_counts_are_zero():
    """A Poisson count of rate 1/2 and nothing else is never more than 1/2 below its mean."""
    parts, steps = np.array([[0.5], [0.0], [0.0], [0.0]]), np.array([[1.0], [0.0], [0.1], [-0.1]])
    assert intervals._jump_quantiles(parts, steps, 4.0, -1) * 0.5**0.5 == pytest.approx(0.5, abs=0.01)


def test_intervals_of_a_lattice_include_what_a_count_of_zero_leaves_likely():
    """A count of 0 where 2 lies are expected: its probability is exp(−2 − nΔf), far above the tail up to f = 2/(nΔ)."""
    reports, rates = 1000, rates_of(0.5, 0.002)
    count = intervals.OwnCount(np.ones(1), np.full(1, rates.false), rates.gap, rates, reports)
    jumps = intervals.Jumps.of_counts([count], 0.0, at_hand=False)
    estimate, slope = np.array([-rates.false / rates.gap]), jumps.own[1]
    _, high = intervals.skewed(estimate, np.zeros(1), jumps.up[1], slope, 1 / reports, jumps, 3.66)
    assert high[0] > 2 / (reports * rates.gap)


@pytest.mark.parametrize("at_hand", [True, False])
def test_intervals_with_jumps_become_score_intervals(at_hand):
    """With millions of reports; with few, the upper tail of an absent item is longer and the lower one shorter."""
    estimates = np.array([0.0, 0.01, 0.3])
    rates, others, weight = rates_of(0.8, 0.01), np.array([0.0, 0.2, 0.01]), np.full(3, 0.5)
    for reports in (10**9, 40):
        counts = [intervals.OwnCount(weight, rates.false + rates.gap * others, rates.gap, rates, reports)] * 2
        jumps = intervals.Jumps.of_counts(counts, 0.05 / reports, at_hand)
        base, slope = 1.1 * (jumps.up[1] + jumps.down[1]), np.full(3, 0.5 / reports)
        normal = intervals.score_of(estimates, base, slope, 0.0, 1.96)
        low, high = intervals.skewed(estimates, np.zeros(3), base, slope, 0.0, jumps, 1.96)
        if reports == 10**9:
            np.testing.assert_allclose((low, high), normal, rtol=1e-3, atol=1e-3 * base.max() ** 0.5)
        else:
            assert low[0] < normal[0][0]
            assert high[0] < normal[1][0]
            assert np.all(low < estimates)
            assert np.all(high > estimates)
