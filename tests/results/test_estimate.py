"""Estimates and their post-processed copies: rows, frames, errors, and arguments that are refused."""

from functools import partial

import numpy as np
import pytest
import simulation_statistics as statistics

from sunzi.client.errors import DomainError, ParameterError
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue

SIZE = 43
PLAN = make_plan("mss", 30, 1, moduli=[17, 19, 23])
TALLY = PLAN.simulate(np.arange(3000) % 30, seed=1)
ESTIMATE = PLAN.estimate(TALLY)


def estimated(name, epsilon=1):
    plan = make_plan(name, SIZE, epsilon, **({"moduli": (7, 11, 31, 37)} if name.startswith("mss") else {}))
    values, _ = statistics.values_of(statistics.histogram("zipf", SIZE), 3000)
    return plan.estimate(plan.simulate(values, seed=31))


@pytest.mark.parametrize("name", catalogue())
def test_clipping_changes_negative_frequencies_only(name):
    estimate = estimated(name)
    clipped = estimate.postprocess("clip").frequencies
    negative = estimate.frequencies < 0
    assert negative.any()
    assert np.all(clipped[negative] == 0)
    assert np.array_equal(clipped[~negative], estimate.frequencies[~negative])
    if name not in ("rappor", "oue"):  # its sum is random
        assert clipped.sum() > 1


@pytest.mark.parametrize("name", catalogue())
def test_significant_items_are_those_whose_simultaneous_interval_lies_above_zero(name):
    estimate = estimated(name, epsilon=3)
    kept = estimate.postprocess("significant").frequencies
    low, _ = estimate.interval(simultaneous=True)
    assert np.array_equal(kept, np.where(low > 0, estimate.frequencies, 0))
    assert 0 < np.count_nonzero(kept) < SIZE
    assert kept[0] == estimate.frequencies[0]


@pytest.mark.parametrize(("name", "epsilon"), [(name, epsilon) for name in catalogue() for epsilon in (1, 4)])
def test_every_copy_says_what_was_done(name, epsilon):
    estimate = estimated(name, epsilon)
    before = estimate.frequencies.copy()
    for method in ("clip", "simplex", "significant", "constrained"):
        copy = estimate.postprocess(method)
        assert copy.method == method
        assert copy.effect
        assert not hasattr(copy, "interval")
        assert copy.frequencies.shape == (SIZE,)
    assert np.array_equal(estimate.frequencies, before)


def test_errors_about_a_population_include_the_sampling_error():
    estimate = estimated("oue", 3)
    own, population = estimate.standard_errors(), estimate.standard_errors("population")
    share = estimate.postprocess("simplex").frequencies
    np.testing.assert_allclose(population**2 - own**2, share * (1 - share) / estimate.reports, rtol=1e-9, atol=1e-15)
    assert estimate.standard_errors() is own  # computed once


def test_intervals_grow_with_confidence_and_with_the_number_of_items_covered_at_once():
    estimate = estimated("ss-compact")
    widths = [
        np.subtract(*estimate.interval(0.8)[::-1]),
        np.subtract(*estimate.interval(0.95)[::-1]),
        np.subtract(*estimate.interval(0.95, simultaneous=True)[::-1]),
    ]
    assert np.all(widths[0] < widths[1])
    assert np.all(widths[1] < widths[2])


def test_top_rows_are_the_largest_frequencies_with_their_intervals():
    rows = ESTIMATE.top(30, 0.9)
    low, high = ESTIMATE.interval(0.9)
    assert [row.frequency for row in rows] == sorted(ESTIMATE.frequencies, reverse=True)
    for row in rows:
        assert (row.frequency, row.count) == (ESTIMATE.frequencies[row.index], ESTIMATE.counts[row.index])
        assert (row.low, row.high) == (low[row.index], high[row.index])
        assert row.standard_error == ESTIMATE.standard_errors()[row.index]
    assert all(np.isnan(row.low) for row in ESTIMATE.postprocess("clip").top(3))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_the_columns_of_the_estimate(library):
    plan = make_plan("grr", ["no", "yes"], 2)
    estimate = plan.estimate(plan.simulate(["yes"] * 700 + ["no"] * 300, seed=1))
    frame = estimate.to_frame(library)
    assert list(frame.columns) == ["label", "frequency", "count", "standard_error", "low", "high"]
    assert list(frame["label"]) == ["no", "yes"]
    assert list(frame["frequency"]) == estimate.frequencies.tolist()
    assert list(frame["high"]) == estimate.interval()[1].tolist()
    assert list(estimate.postprocess("simplex").to_frame(library).columns) == ["label", "simplex", "count"]
    with pytest.raises(ParameterError, match="library must be pandas or polars, got 'excel'"):
        estimate.to_frame("excel")


def test_frequencies_are_read_only_copies():
    for holder in (ESTIMATE, ESTIMATE.postprocess("clip")):
        with pytest.raises(ValueError, match="read-only"):
            holder.frequencies[0] = 1


def test_a_ridge_estimate_has_no_errors():
    biased = PLAN.estimate(TALLY, ridge=10)
    assert not biased.is_unbiased
    for ask in (biased.standard_errors, biased.interval, biased.top, partial(biased.postprocess, "significant")):
        with pytest.raises(EstimateError, match="a ridge estimate is biased"):
            ask()


@pytest.mark.parametrize("confidence", ["a", None, float("nan"), 0, 1, -1, 95, True])
def test_confidence_levels(confidence):
    for call in (ESTIMATE.interval, partial(ESTIMATE.postprocess, "significant"), partial(ESTIMATE.top, 3)):
        with pytest.raises(ParameterError, match="confidence must"):
            call(confidence)


@pytest.mark.parametrize("method", ["magic", None, "_read_only"])
def test_post_processing_methods(method):
    with pytest.raises(ParameterError, match="method must be one of clip, simplex, significant, constrained, or for"):
        ESTIMATE.postprocess(method)


@pytest.mark.parametrize("number", [2.5, None, "a", -1, True])
def test_numbers_of_rows(number):
    for ask in (ESTIMATE.top, ESTIMATE.postprocess("simplex").top):
        with pytest.raises(ParameterError, match="number must be a whole number of at least 0"):
            ask(number)
    assert len(ESTIMATE.top(np.int64(2))) == 2


def test_targets_and_methods():
    for ask in (ESTIMATE.interval, ESTIMATE.top):
        with pytest.raises(ParameterError, match="target must be reporters or population, got 'everyone'"):
            ask(target="everyone")
    with pytest.raises(ParameterError, match="target must be"):
        ESTIMATE.standard_errors("everyone")
    with pytest.raises(ParameterError, match="method must be auto, normal, score or exact, got 'magic'"):
        ESTIMATE.interval(method="magic")


@pytest.mark.parametrize(
    "look_up",
    [
        lambda estimate: estimate["chrome"],
        lambda estimate: estimate.postprocess("clip")["chrome"],
        lambda estimate: estimate.sum(["chrome"]),
        lambda estimate: estimate.difference("Edge", "chrome"),
        lambda estimate: estimate.combine({"chrome": 2}),
        lambda estimate: estimate.covariance(["chrome"]),
        lambda estimate: estimate.regroup({"one": ["chrome"], "rest": ...}),
    ],
)
def test_an_unknown_label_is_an_error_and_never_the_row_of_other(look_up):
    plan = make_plan("grr", Domain(["Chrome", "Edge", "rest"], other="rest"), 2)
    estimate = plan.estimate(plan.simulate(["Chrome"] * 100, seed=1))
    with pytest.raises(DomainError, match="label 'chrome' is not in the domain; did you mean 'Chrome'\\?"):
        look_up(estimate)


def test_whether_a_value_has_a_row():
    plan = make_plan("grr", Domain(["Chrome", "Edge", "rest"], other="rest"), 2)
    estimate = plan.estimate(plan.simulate(["Chrome"] * 100, seed=1))
    assert [value in estimate for value in ("Chrome", "rest", "chrome", "", None, 0)] == [True, True] + 4 * [False]
    assert [value in ESTIMATE for value in (0, 29, 30, -1, "0")] == [True, True, False, False, False]
