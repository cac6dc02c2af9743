"""Trends: through real protocols, the public interface, and what is refused."""

import math
from datetime import UTC, date, datetime

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics import series

LABELS = ["Chrome", "Firefox", "Safari"]
PLANS = [sunzi.make_plan("ss-compact", LABELS, 2), sunzi.make_plan("oue", LABELS, 3)]
STEADY, LATER = ["Chrome"] * 3000 + ["Safari"] * 3000, ["Chrome"] * 2000 + ["Safari"] * 4000
WEEKS = [date(2026, 1, 5).replace(day=day) for day in (5, 12, 19, 26)] + [date(2026, 2, day) for day in (2, 9, 16, 23)]


def estimated(plan, values, seed):
    return plan.estimate(plan.simulate(values, seed=seed))


@pytest.fixture(scope="module")
def trend():
    """Eight weeks; the plan changes in the third, the users in the sixth."""
    held = [STEADY] * 5 + [LATER] * 3
    estimates = [estimated(PLANS[number >= 2], values, (1, number)) for number, values in enumerate(held)]
    return sunzi.trend(estimates, WEEKS)


def test_a_change_is_named(trend):
    assert [(alarm.label, alarm.since, alarm.direction) for alarm in trend.alarms()] == [
        ("Chrome", WEEKS[5], "down"),
        ("Safari", WEEKS[5], "up"),
    ]
    assert trend.changed().tolist() == [True, False, True]
    first, second, third = trend.top(3)
    assert {first.label, second.label} == {"Chrome", "Safari"}
    assert (first.change_at, first.changed, third.changed) == (WEEKS[5], True, False)
    assert abs(first.change) == pytest.approx(1 / 6, abs=5 * first.change_error)
    assert first.lack_of_fit < 0.001 < third.lack_of_fit
    assert trend.unit == "day"
    assert trend.most_frequent(2) == [2, 0]


def test_the_series_of_one_value(trend):
    points = trend.points("Firefox", confidence=0.99)
    assert [point.moment for point in points] == WEEKS
    assert sum(point.low < 0 < point.high for point in points) >= 6
    assert points[0].reports == 6000
    half = (points[3].high - points[3].low) / 2
    assert half == pytest.approx(2.5758 * points[3].standard_error, rel=1e-3)
    assert points[-1].smoothed_error < points[-1].standard_error
    assert trend.points("Firefox", smoothing=1)[-1].smoothed == points[-1].frequency


def test_slopes_are_per_day(trend):
    slopes = trend.slopes()
    numbered = sunzi.trend([estimated(PLANS[0], STEADY, seed) for seed in range(3)])
    assert numbered.unit == "epoch"
    assert slopes.slopes[2] == pytest.approx(-slopes.slopes[0], rel=0.2)
    assert slopes.slopes[2] * 49 == pytest.approx(0.2, abs=0.08)


@pytest.mark.parametrize("name", ["ss-compact", "mss-compact", "oue", "pgr"])
def test_residuals_of_real_protocols_are_standard_normal(name):
    """480 residuals: their sd is within 5 standard errors, 16 %, of 1, their mean within 5/√480 of 0."""
    generator = np.random.default_rng(1)
    shares = 1 / np.arange(1, 41)
    plan = sunzi.make_plan(name, 40, 2)
    estimates = [
        estimated(plan, generator.choice(40, size=users, p=shares / shares.sum()), seed)
        for seed, users in enumerate(generator.integers(2_000, 20_000, 13))
    ]
    trend = sunzi.trend(estimates)
    baseline = series._Baseline(40)
    epochs = zip(trend.frequencies, trend.variances, strict=True)
    residuals = np.array([baseline.add(*epoch, 1.0, number) for number, epoch in enumerate(epochs)][1:])
    assert residuals.shape == (12, 40)
    assert abs(residuals.std() - 1) < 0.16
    assert abs(residuals.mean()) < 5 / 480**0.5


@pytest.mark.slow
def test_rare_values_with_few_reports_raise_no_more_alarms_than_stated():
    """Variances at each epoch's own estimate would raise twice as many: low estimates would get large weights."""
    shares = np.arange(1, 11) ** -1.5
    plan = sunzi.make_plan("grr", 10, 5)
    generator = np.random.default_rng(1)
    alarms = 0
    for run in range(20):
        tallies = (plan.simulate(generator.choice(10, 300, p=shares / shares.sum()), seed=(run, n)) for n in range(100))
        alarms += len(sunzi.trend([plan.estimate(tally) for tally in tallies]).alarms(one_in=500))
    assert 20 <= alarms <= 65  # 40 stated, and four standard deviations


def test_frames_and_notebooks(trend):
    frame = trend.to_frame("pandas", values=["Safari", "Chrome"])
    assert list(frame) == ["label", "moment", "reports", "frequency", "standard_error", "low", "high"]
    assert len(frame) == 16
    assert len(trend.to_frame("polars")) == 24
    page = trend._repr_html_()
    assert page.count(">changed<") == 2
    assert "2026-02-09" in page
    assert repr(trend) == "Trend(3 values, 8 epochs)"


ORDERED = sunzi.make_ordered(0, 80, 8, 4, unit="ms")
TABLES = sunzi.make_tables({"version": ["1", "2"], "crashed": ["no", "yes"]}, [("version", "crashed")], 4)


@pytest.mark.parametrize(
    ("plan", "value", "label"),
    [(ORDERED, 25, "20 to 30 ms"), (TABLES, {"version": "2", "crashed": "no"}, "version 2, crashed no")],
)
def test_ordered_values_and_records(plan, value, label):
    """An index is not a value of these domains."""
    trend = sunzi.trend([estimated(plan, [value] * 900, seed) for seed in range(3)])
    assert f">{label}<" in trend.to_html(values=[value])
    assert f">{label}<" in trend.to_html(indices=[2])
    for picture in (trend.plot(values=[value]), trend.plot(indices=[2]), trend.plot(values=[value], indices=[0])):
        assert picture.axes[0].get_legend_handles_labels()[1][0] == label


def test_arrays_are_immutable(trend):
    for array in (trend.frequencies, trend.variances):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


def test_moments_with_times_and_numbers():
    estimates = [estimated(PLANS[0], STEADY, seed) for seed in range(2)]
    hours = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (0, 12)]
    by_hours, by_days = (sunzi.trend(estimates, when) for when in (hours, [1.0, 1.5]))
    assert by_hours.slopes().slopes == pytest.approx(by_days.slopes().slopes)
    assert "2026-01-01 12:00" in by_hours._repr_html_()
    assert all(math.isnan(row.lack_of_fit) for row in by_days.top())


def test_values_without_reports_have_an_error():
    """With hardly any noise, a value that nobody holds would seem to be known exactly."""
    plan = sunzi.make_plan("grr", LABELS, 30)
    trend = sunzi.trend([estimated(plan, ["Chrome"] * 100, seed) for seed in range(3)])
    assert trend.variances.min() == pytest.approx(1e-4)
    assert not trend.changed().any()


@pytest.mark.parametrize(
    ("estimates", "dates", "error", "message"),
    [
        ([0], None, EstimateError, "at least two epochs, got 1 epoch"),
        ([], None, EstimateError, "at least two epochs, got 0 epochs"),
        ([0, 1], [1], ParameterError, "dates must be one per estimate, 2, got 1"),
        ([0, 1], [2, 1], ParameterError, "1 comes after 2; sort the estimates"),
        ([0, 1], [2, 2], ParameterError, "2 comes after 2"),
        ([0, 1], [date(2026, 1, 2), date(2026, 1, 1)], ParameterError, "2026-01-01 comes after 2026-01-02"),
        ([0, 1], [date(2026, 1, 2), 5], ParameterError, "all dates, all dates with times, or all numbers"),
        ([0, 1], ["Monday", "Tuesday"], ParameterError, "not a datetime.date must be a number, got 'Monday'"),
        ([0, 1], [datetime(2026, 1, 1), datetime(2026, 1, 2, tzinfo=UTC)], ParameterError, "all have a time zone"),
        ([0, 1], 5, ParameterError, "dates must be a list, with one entry per epoch, got 5"),
        (None, None, ParameterError, "estimates must be a list, with one entry per epoch, got None"),
        ([0, "other"], None, EstimateError, "different domains, 3 and 4 values; regroup"),
        ([0, "clipped"], None, EstimateError, "got PostprocessedHistogram"),
    ],
)
def test_bad_input(estimates, dates, error, message):
    first = estimated(PLANS[0], STEADY, 1)
    known = {
        0: first,
        1: estimated(PLANS[0], STEADY, 2),
        "other": estimated(sunzi.make_plan("grr", [*LABELS, "Edge"], 2), STEADY, 1),
        "clipped": first.postprocess("clip"),
    }
    with pytest.raises(error, match=message):
        sunzi.trend(None if estimates is None else [known[each] for each in estimates], dates)


def test_bad_arguments(trend):
    with pytest.raises(ParameterError, match="one_in must be a number from 100"):
        trend.alarms(one_in=10)
    with pytest.raises(ParameterError, match="smoothing must be above 0"):
        trend.points("Chrome", smoothing=0)
    with pytest.raises(DomainError, match="Edge"):
        trend.points("Edge")
    with pytest.raises(ParameterError, match="confidence"):
        trend.points("Chrome", confidence=1)
