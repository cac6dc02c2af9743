"""Plans of ordered values and of tables: reports, tallies and checks of plans."""

import json

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import PlanError
from sunzi.errors import EstimateError
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
    value = json.loads(plan.canonical)
    change(value)
    return json.dumps(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["parameters"]["views"][0].update(share=1), "add up to 2"),
        (lambda value: value["parameters"]["views"][0].update(share=True), "whole number|canonical"),
        (lambda value: value["parameters"]["views"][0].update(share=0), "share must lie between 1 and"),
        (lambda value: value["parameters"]["views"].pop(), "rise|add up"),
        (lambda value: value["parameters"]["views"].reverse(), "rise|canonical|cells|nodes"),
        (lambda value: value["parameters"]["views"][-1].update(level=3), "rise"),
        (lambda value: value["parameters"]["views"][-1].update(level="6"), "whole number"),
        (lambda value: value["parameters"]["views"][-1].update(level=40), "whole number"),
        (lambda value: value["parameters"]["views"][0].update(modulus=3), "exactly level, share, response"),
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
        (
            lambda value: value["parameters"].update(sizes=[24, 1, 1]),
            "a view has 24 cells",
        ),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[2, 1]), "rise"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[1, 3]), "below 3"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[]), "rise"),
        (lambda value: value["parameters"]["views"][-1].update(attributes=[0, 1, 2]), "cells|points"),
        (lambda value: value["parameters"]["views"].append(value["parameters"]["views"][0]), "add up"),
        (lambda value: value.update(domain={"size": 24}), "needs a domain of records"),
        (lambda value: value.update(protocol="grr"), "is for single values; for records plan tables"),
    ],
)
def test_wrong_plans_of_tables_are_refused(tables, change, message):
    with pytest.raises(PlanError, match=message):
        sunzi.Plan.from_json(changed(tables, change))


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
    with pytest.raises(EstimateError, match="no report covers single bins"):
        ordered.estimate(only_coarse)
    with pytest.raises(EstimateError, match="this plan does not cover a × c; its tables are"):
        tables.estimate(tables.simulate([{"a": "x", "b": "0", "c": "u"}] * 50, seed=1), table=("a", "c"))
