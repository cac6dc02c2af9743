"""Plans of ordered values and of tables: reports, tallies, checks of plans, and planned errors."""

import json

import numpy as np
import pytest
from benchmarks.record_references import four_ary_plan

import sunzi
from sunzi.errors import EstimateError, ParameterError, PlanError
from sunzi.numerics.randomness import ReproducibleSource

SHARES = 1 << 32


@pytest.fixture(scope="module")
def ordered():
    return sunzi.make_ordered(0, 64, 64, epsilon=1)


@pytest.fixture(scope="module")
def tables():
    attributes = {"a": list("xyz"), "b": list("0123"), "c": list("uv")}
    return sunzi.make_tables(attributes, [("a", "b"), ("b", "c")], epsilon=2)


@pytest.fixture(params=["ordered", "tables"])
def plan(request):
    return request.getfixturevalue(request.param)


def values_of(plan, number):
    return np.random.default_rng(number).integers(0, plan.domain.size, number)


def test_plans_come_back_from_their_files(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    assert sunzi.load_plan(tmp_path / "plan.json") == plan


def test_reports_are_counted_in_the_view_they_name(plan):
    indices = values_of(plan, 2000)
    batch = plan.client(seed=1).report_indices(indices)
    single = [plan.client(seed=1).report_index(int(indices[0]))]
    tally = plan.tally(batch)
    assert tally.reports == sum(tally.block_reports) == 2000
    assert plan.tally(single).reports == 1
    assert (tally + plan.tally(single)).reports == 2001
    assert len(single[0]) * 8 >= plan.max_report_bits


def test_views_are_drawn_by_their_shares(plan):
    drawn = plan.protocol.draw_selectors(100_000, ReproducibleSource(1))
    shares = np.array([view.share for view in plan.protocol.views]) / SHARES
    counts = np.bincount(drawn, minlength=shares.size)
    # Each within 6 standard errors: a false alarm in 1e-8 of seeds.
    assert np.all(np.abs(counts - 1e5 * shares) <= 6 * np.sqrt(1e5 * shares))


def test_simulated_and_real_reports_have_one_distribution(plan):
    """All reports are about one value; two-sided, each counter within 6 standard errors."""
    indices = np.full(40_000, 5)
    real = plan.tally(plan.client(seed=2).report_indices(indices)).counters.dense()
    simulated = plan.protocol.simulate(indices, ReproducibleSource(3)).dense()
    assert np.all(np.abs(real - simulated) <= 6 * np.sqrt(real + simulated + 1))


def changed(plan, change):
    value = json.loads(plan.contract.canonical)
    change(value)
    return json.dumps(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["parameters"]["views"][0].update(share=1), "add up to 2"),
        (lambda value: value["parameters"]["views"][0].update(share=True), "whole number|canonical"),
        (lambda value: value["parameters"]["views"][0].update(share=0), "at least 1"),
        (lambda value: value["parameters"]["views"].pop(), "rise|add up"),
        (lambda value: value["parameters"]["views"].reverse(), "rise|canonical|cells|nodes"),
        (lambda value: value["parameters"]["views"][-1].update(level=3), "rise"),
        (lambda value: value["parameters"]["views"][-1].update(level="6"), "whole number"),
        (lambda value: value["parameters"]["views"][-1].update(level=40), "whole number"),
        (lambda value: value["parameters"]["views"][0].update(modulus=3), "keys level"),
        (lambda value: value["parameters"].update(views={}), "list of at most"),
        (lambda value: value["parameters"].update(views=[]), "between 1 and"),
        (lambda value: value["parameters"].update(more=1), "more"),
        (lambda value: value["domain"].update(size=63), "power of two"),
        (lambda value: value["domain"].update(size=32), "rise|levels"),
    ],
)
def test_wrong_ordered_plans_are_refused(ordered, change, message):
    with pytest.raises(PlanError, match=message):
        sunzi.Plan.from_json(changed(ordered, change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["parameters"].update(sizes=[3, 4, 3]), "24 different records|cells"),
        (lambda value: value["parameters"].update(sizes=[24, 1, 1]), "whole numbers from 2"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[2, 1]), "rise"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[1, 3]), "below 3"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[]), "rise"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[0, 1, 2]), "cells|points"),
        (lambda value: value["parameters"]["views"].append(value["parameters"]["views"][0]), "add up"),
        (lambda value: value.update(domain={"size": 24}), "needs a domain of records"),
        (lambda value: value.update(protocol="grr"), "asks about single values, not about records"),
    ],
)
def test_wrong_plans_of_tables_are_refused(tables, change, message):
    with pytest.raises(PlanError, match=message):
        sunzi.Plan.from_json(changed(tables, change))


@pytest.mark.slow
def test_planned_errors_are_those_of_estimates(ordered):
    """Mean squared errors of bins and ranges over 400 runs, within 6 standard errors: a false alarm in 1e-8."""
    users, runs = 2000, 400
    values = values_of(ordered, users)
    truth = np.bincount(values, minlength=64) / users
    errors, ranges = [], []
    for seed in range(runs):
        found = ordered.estimate(ordered.simulate(values, seed=seed)).frequencies - truth
        errors.append((found**2).mean())
        ranges.append((np.cumsum(found) ** 2).mean())
    for measured, planned in ((errors, ordered.expected_mse(users)),):
        assert abs(np.mean(measured) - planned) <= 6 * np.std(measured) / runs**0.5 + 0.01 * planned
    assert ordered.expected_mse(users) <= ordered.worst_mse(users)
    assert 0.3 < np.mean(ranges) / ordered.protocol.range_variance(users) < 1


def test_ranges_are_better_than_from_a_flat_histogram(ordered):
    flat = sunzi.make_plan("ss-compact", 64, epsilon=1)
    # A range of half of the bins adds up the errors of 32, less what is known of the sum.
    assert ordered.protocol.range_variance(1) < 0.5 * flat.expected_mse(1) * 64 / 6
    assert ordered.expected_mse(1) > flat.expected_mse(1)


def least_range_variance(size, epsilon):
    """No ε-LDP mechanism has a smaller mean variance of ranges and prefixes at the flat histogram (docs/mathematics.md
    §13): (tr W^½)²·(we^ε + D − w)²/(w(D − w)D(e^ε − 1)²) at the best w, W the mean of the queries' centred aaᵀ.
    """
    bins = np.arange(size)
    first, last = np.minimum.outer(bins, bins), np.maximum.outer(bins, bins)
    both = ((first + 1) * (size - last) / (size * (size + 1) / 2) + (size - last) / size) / 2
    centred = both - both.mean(axis=0) - both.mean(axis=0)[:, np.newaxis] + both.mean()
    trace = np.sqrt(np.maximum(np.linalg.eigvalsh(centred), 0)).sum()
    odds, blocks = np.exp(epsilon), np.arange(1, size)
    factors = (blocks * odds + size - blocks) ** 2 / (blocks * (size - blocks) * size * (odds - 1) ** 2)
    return trace**2 * factors.min()


@pytest.mark.parametrize(("size", "epsilon"), [(16, 0.5), (256, 1), (1024, 1), (1024, 2)])
def test_ranges_are_near_the_bound_for_any_mechanism(size, epsilon):
    planned = sunzi.make_ordered(0, size, size, epsilon).protocol.range_variance(1)
    assert 1 < planned / least_range_variance(size, epsilon) <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon"), [(256, 1), (256, 2), (1024, 2), (4096, 1)])
def test_ranges_are_better_than_from_a_four_ary_tree_with_uniform_levels(size, epsilon):
    planned = sunzi.make_ordered(0, size, size, epsilon).protocol.range_variance(1)
    assert planned <= 0.87 * four_ary_plan(size, epsilon).protocol.range_variance(1)


def test_a_power_of_two_is_needed():
    with pytest.raises(ParameterError, match="got 100; take 64 or 128"):
        sunzi.make_ordered(0, 1, 100, epsilon=1)


def test_bins_beyond_all_designs_are_refused_before_any_work():
    with pytest.raises(ParameterError, match="at most 2\\^24 bins, got 1,073,741,824; take fewer"):
        sunzi.make_ordered(0, 1, 1 << 30, epsilon=1)


def test_views_without_reports_are_left_out_or_refused(ordered, tables):
    finest = ordered.protocol.views[-1].response
    counters = finest.design.message_count
    only_coarse = ordered.tally(
        [
            report
            for report in ordered.client(seed=1).reports(list(range(64)) * 5)
            if int.from_bytes(report, "little") < ordered.protocol.tally_layout.length - counters
        ]
    )
    with pytest.raises(EstimateError, match="no report was about single bins"):
        ordered.estimate(only_coarse)
    with pytest.raises(EstimateError, match="no report tells about a × c; this plan has the tables"):
        tables.estimate(tables.simulate([{"a": "x", "b": "0", "c": "u"}] * 50, seed=1), table=("a", "c"))


def test_tables_that_nobody_has_answered_yet_are_told_from_those_that_are_not_planned():
    plan = sunzi.make_tables({name: ["0", "1"] for name in "abc"}, [("a", "b"), ("a", "c"), ("b", "c")], epsilon=1)
    tally = plan.simulate([{"a": "0", "b": "0", "c": "1"}], seed=1)
    (answered,) = [place for place, reports in enumerate(tally.block_reports) if reports]
    known = {"abc"[number] for number in plan.protocol.tables[answered]}
    for table in ("ab", "ac", "bc"):
        if set(table) != known:
            with pytest.raises(EstimateError, match=r"no report tells about \w yet: .* Wait for more reports"):
                plan.estimate(tally, table=tuple(table))
    full = plan.simulate([{"a": "0", "b": "0", "c": "1"}] * 300, seed=1)
    with pytest.raises(EstimateError, match=r"no report tells about a × b × c; this plan has the tables .* Name one"):
        plan.estimate(full, table=tuple("abc"))


def test_tables_of_a_thin_tally_follow_from_the_views_that_have_reports(tables):
    one = tables.tally(tables.client(seed=3).reports([{"a": "x", "b": "0", "c": "u"}]))
    answered = tables.protocol.tables[one.block_reports.index(1)]
    names = [list(tables.domain.attributes)[number] for number in answered]
    assert tables.estimate(one, table=names).frequencies.sum() == pytest.approx(1)


def test_the_attacker_names_a_cell_and_guesses_the_rest(tables):
    assert 1 / 24 < tables.attackability < 0.5
    assert tables.protocol.words_per_report > 1
    assert tables.protocol.decoding_cost(1000).operations > 0


def test_ten_attributes_are_planned_with_all_pairs():
    names = [f"a{number}" for number in range(10)]
    pairs = [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
    plan = sunzi.make_tables({name: list("0123") for name in names}, pairs, epsilon=1)
    assert len(plan.protocol.tables) >= len(pairs)
    assert sum(view.share for view in plan.protocol.views) == SHARES
