"""Ranges, the cumulative distribution and quantiles, and how often their intervals cover."""

from datetime import date

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError
from sunzi.errors import EstimateError

BINS = 64


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_ordered(0, 640, BINS, epsilon=2, unit="ms")


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).gamma(4, 40, 4000).clip(0, 639.9)


@pytest.fixture(scope="module")
def estimate(plan, values):
    return plan.estimate(plan.simulate(values, seed=1))


def test_ranges_and_sums_of_bins_agree(estimate):
    bins = estimate.bins.centres[10:20]
    for target in ("reporters", "population"):
        found, same = estimate.range(100, 200, target=target), estimate.sum(bins, target=target)
        assert found.value == pytest.approx(same.value)
        assert found.standard_error == pytest.approx(same.standard_error)
        assert found.low < found.value < found.high
    assert estimate.range(0, 640).value == pytest.approx(1)
    assert estimate.range(0, 640).standard_error < 1e-9


def test_the_errors_of_bins_are_those_of_queries(plan, values):
    many = plan.estimate(plan.simulate(np.tile(values, 25), seed=2))
    bins = [many.combine(row, target="population").standard_error for row in np.eye(BINS)]
    np.testing.assert_allclose(many.standard_errors("population"), bins, rtol=1e-9)


def test_the_cumulative_distribution_is_that_of_ranges(estimate):
    found = estimate.cdf()
    assert found.edges.tolist() == [10.0 * edge for edge in range(BINS + 1)]
    one = estimate.range(0, 150)
    assert (found.values[15], found.low[15], found.high[15]) == pytest.approx((one.value, one.low, one.high))
    assert found.values[[0, -1]] == pytest.approx([0, 1])
    assert found.standard_errors[[0, -1]].tolist() == [0, 0]


def test_quantiles_rise_with_their_probability(estimate):
    found = [estimate.quantile(probability) for probability in (0.05, 0.25, 0.5, 0.75, 0.95)]
    assert [each.value for each in found] == sorted(each.value for each in found)
    assert all(each.low <= each.value <= each.high for each in found)
    wide = estimate.quantile(0.5, confidence=0.999)
    assert wide.low <= found[2].low
    assert found[2].high <= wide.high
    assert wide.high - wide.low > found[2].high - found[2].low


def test_wider_bins_are_sums(estimate):
    found = estimate.histogram([0, 100, 300, 640])
    assert [row.label for row in found] == ["0 to 100 ms", "100 to 300 ms", "300 to 640 ms"]
    assert found["100 to 300 ms"].frequency == pytest.approx(estimate.range(100, 300).value)
    assert found.frequencies.sum() == pytest.approx(1)


def test_edges_of_wider_bins_may_be_an_array(estimate):
    assert estimate.histogram(np.arange(0, 641, 320)).frequencies == pytest.approx(estimate.histogram(2).frequencies)


@pytest.mark.parametrize("edges", [[0, 640], [0, 100], [100, 200, 640], [0, 200, 100, 640], [0, 0, 640]])
def test_edges_of_wider_bins_cover_the_range(estimate, edges):
    with pytest.raises(ParameterError, match="edges must rise from 0 to 640"):
        estimate.histogram(edges)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda estimate: estimate.range(200, 100), "low must be below high"),
        (lambda estimate: estimate.range(3, 100), "not the edge of a bin"),
        (lambda estimate: estimate.quantile(0), "between 0 and 1"),
        (lambda estimate: estimate.quantile(1.5), "between 0 and 1"),
        (lambda estimate: estimate.quantile("half"), "probability"),
        (lambda estimate: estimate.range(0, 100, confidence=2), "confidence"),
        (lambda estimate: estimate.interval(method="exact"), "exact"),
        (lambda estimate: estimate.range(0, 100, target="users"), "target must be reporters or population"),
        (lambda estimate: estimate.quantile(0.5, target=None), "target must be reporters or population"),
        (lambda estimate: estimate.mean(target="users"), "target must be reporters or population"),
    ],
)
def test_wrong_questions_are_refused(estimate, ask, message):
    with pytest.raises(sunzi.SunziError, match=message):
        ask(estimate)


def test_smoothing_removes_noise_and_has_no_intervals(plan, values):
    truth = np.bincount((values // 10).astype(int), minlength=BINS) / values.size
    raw = plan.estimate(plan.simulate(values, seed=3))
    smooth = raw.smooth()
    assert smooth.method == "smooth"
    assert smooth.frequencies.min() >= 0
    assert smooth.frequencies.sum() == pytest.approx(1)
    assert ((smooth.frequencies - truth) ** 2).sum() < 0.3 * ((raw.frequencies - truth) ** 2).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bins", "epsilon", "shape"), [(16, 1, "smooth"), (64, 0.5, "spiky"), (64, 2, "one"), (256, 3, "spiky")]
)
def test_intervals_cover(bins, epsilon, shape):
    """Ranges and the mean 93–97 % of the time over 150 runs; quantiles, whose ends are edges of bins, at least 93 %.

    Ranges of one run are dependent, so that this is what fixed seeds gave, with room for other platforms.
    """
    generator, users, runs = np.random.default_rng(5), 4000, 150
    weights = {
        "smooth": np.exp(-0.5 * ((np.arange(bins) - 0.4 * bins) / (0.15 * bins)) ** 2),
        "spiky": 0.3 / bins + np.isin(np.arange(bins), [3, bins // 2, bins - 2]) * 0.3,
        "one": np.arange(bins) == bins // 3,
    }[shape]
    values = generator.choice(bins, users, p=weights / weights.sum()) + 0.5
    plan = sunzi.make_ordered(0, bins, bins, epsilon)
    low = generator.integers(0, bins - 1, 40)
    high = generator.integers(low + 1, bins + 1)
    cumulative = np.concatenate([[0], np.cumsum(np.bincount(values.astype(int), minlength=bins))]) / users
    truth, mean = cumulative[high] - cumulative[low], values.mean()
    quantiles = {probability: np.quantile(values, probability, method="inverted_cdf") for probability in (0.1, 0.5)}
    ranges, means, inside, errors = [], [], [], []
    for seed in range(runs):
        estimate = plan.estimate(plan.simulate(values, seed=seed))
        found = estimate.cdf()
        shares = found.values[high] - found.values[low]
        spread = estimate._known_uncertainty().ranges(low, high, 0.95, "reporters")[0]
        ranges.append((np.abs(shares - truth) <= 1.96 * spread + 1e-12).mean())
        errors.append(((shares - truth) ** 2 / spread**2).mean())
        result = estimate.mean()
        means.append(result.low <= mean <= result.high)
        for probability, value in quantiles.items():
            result = estimate.quantile(probability)
            inside.append(result.low <= value <= result.high)
    assert 0.93 <= np.mean(ranges) <= 0.97
    assert np.mean(means) >= 0.84
    assert np.mean(inside) >= 0.93
    assert 0.88 <= np.mean(errors) <= 1.12


def test_intervals_of_few_reports_with_little_noise_cover_the_population():
    """Bins, ranges, the cumulative distribution and the mean, each in at least 80 % of 200 collections of 20 users:
    below that with a coverage of at least 91 % less than once in 1e-6. Rare bins often have no report at all.
    """
    shares = np.array([0.9, 0.05, 0.03, 0.02, 0, 0, 0, 0])
    plan, covered = sunzi.make_ordered(0, 8, 8, epsilon=10), []
    for seed in range(200):
        drawn = np.random.default_rng(seed).choice(8, 20, p=shares)
        estimate = plan.estimate(plan.simulate(drawn, seed=seed))
        low, high = estimate.interval(target="population")
        bins = (low <= shares) & (shares <= high)
        curve = estimate.cdf(target="population")
        below = np.cumsum(shares)[:3]
        prefixes = (curve.low[1:4] <= below) & (below <= curve.high[1:4])
        late, mean = estimate.range(1, 8, target="population"), estimate.mean(target="population")
        others = [late.low <= 0.1 <= late.high, mean.low <= shares @ (np.arange(8) + 0.5) <= mean.high]
        covered.append([*bins[:4], *prefixes, *others])
    assert np.mean(covered, axis=0).min() >= 0.8


def test_bins_of_a_few_lies_are_not_significant():
    """About four of 256 bins are supported by two or more lies. All intervals cover in at least 42 of 60 collections:
    in fewer less than once in 1e-6, if they cover in 93 % of cases.
    """
    plan, values, covered = sunzi.make_ordered(0, 256, 256, epsilon=4), [128] * 270 + [3] * 15 + [254] * 15, 0
    truth = np.bincount(values, minlength=256) / 300
    for seed in range(60):
        low, high = plan.estimate(plan.simulate(values, seed=seed)).interval(simultaneous=True)
        covered += bool(((low <= truth) & (truth <= high)).all())
    assert covered >= 42


def test_a_plan_without_numbers_has_no_ranges():
    plan = sunzi.make_plan("ordered", 8, epsilon=1)
    estimate = plan.estimate(plan.simulate([1, 2, 3] * 100, seed=1))
    assert estimate.sum([1, 2, 3]).value > 0.5
    with pytest.raises(EstimateError, match="make_ordered"):
        estimate.range(1, 3)


def test_dates_are_asked_by_date():
    plan = sunzi.make_ordered(date(2026, 1, 1), date(2026, 1, 9), 8, epsilon=4)
    estimate = plan.estimate(plan.simulate(["2026-01-02"] * 600 + [date(2026, 1, 7)] * 400, seed=1))
    found = estimate.range(date(2026, 1, 1), "2026-01-05")
    assert found.low < 0.6 < found.high
    with pytest.raises(DomainError, match="2026-02-01"):
        estimate.range("2026-01-01", "2026-02-01")


def test_pages_show_wider_bins_in_order(estimate):
    page = estimate.to_html("Load times")
    assert page.startswith("<!DOCTYPE html>")
    median = estimate.quantile(0.5)
    assert f"Half of the values are below {median.value:.5g} ms (interval {median.low:.5g} ms to" in page
    assert page.index("0 to 20 ms") < page.index("20 to 40 ms") < page.index("600 to 620 ms")
    assert "0 to 40 ms" in estimate._repr_html_()
    with pytest.raises(ParameterError, match="clip"):
        estimate.to_html(postprocess="clip")


def test_a_number_of_bins_is_rounded_to_a_power_of_two(estimate):
    assert len(estimate.histogram(20)) == 16
    assert len(estimate.histogram(1000)) == BINS


@pytest.mark.parametrize(
    ("low", "high"), [(10**12, 10**12 + 10), (date(2020, 1, 1), date(2020, 1, 5))], ids=["large", "dates"]
)
def test_tiny_bins_have_labels_of_their_own(low, high):
    plan = sunzi.make_ordered(low, high, 16, epsilon=4)
    estimate = plan.estimate(plan.simulate([low] * 500, seed=1))
    assert len(estimate.histogram(16)) == 16
    assert "<table" in estimate.to_html()


def test_too_many_bins_are_refused():
    plan = sunzi.make_ordered(0, 1, 1 << 15, epsilon=4)
    estimate = plan.estimate(plan.simulate([0.5] * 2000, seed=1))
    with pytest.raises(ParameterError, match="take too much memory"):
        estimate.histogram(1 << 15)
    with pytest.raises(ParameterError, match="edges"):
        estimate.histogram(2.5)
