"""The protocol of open domains: plans, reports, tallies, and what it refuses."""

import json

import numpy as np
import pytest

import sunzi
from sunzi.client import MemoisingClient
from sunzi.client.errors import ParameterError, PlanError
from sunzi.errors import EstimateError, TallyError
from sunzi.numerics.randomness import ReproducibleSource

SHARES = 1 << 32
LONG = sunzi.OpenDomain("bytes", longest=100)


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=6), epsilon=2, cells=1000)


@pytest.fixture(scope="module")
def tally(plan):
    return plan.simulate(["hello"] * 3000 + ["world"] * 1000, seed=1)


def test_plans_come_back_from_their_files(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    assert sunzi.load_plan(tmp_path / "plan.json") == plan
    again = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=6), epsilon=2, cells=1000)
    assert again == plan, "the same terms give the same plan"


def test_reports_are_counted_in_the_view_they_name(plan):
    texts = ["", "a", "hello", "longer than planned", "\ud800", "naïve"] * 300
    batch, single = plan.client(seed=1).report_batch(texts), plan.client(max_epsilon=2).report("hello")
    tally = plan.tally([batch, single])
    assert tally.reports == sum(tally.block_reports) == 1801
    assert 8 * len(single) >= plan.max_report_bits
    assert sunzi.Tally.from_bytes(tally.to_bytes()) == tally


def test_batches_and_simulations_draw_the_same_words(plan):
    texts = ["hello", "world", "x"] * 50
    batch = plan.tally(plan.client(seed=3).report_batch(texts))
    assert plan.simulate(texts, seed=3) == batch
    assert len(plan.client(seed=3).reports(texts)) == 150


def test_views_are_drawn_equally(plan):
    drawn = plan.protocol.draw_selectors(60_000, ReproducibleSource(1))
    counts, number = np.bincount(drawn), len(plan.protocol.views)
    # Each within 6 standard errors: a false alarm in 1e-8 of seeds.
    assert np.all(np.abs(counts - 6e4 / number) <= 6 * (6e4 / number) ** 0.5)


def test_memoised_reports_repeat(plan):
    client = MemoisingClient(plan, bytes(32), "word", max_epsilon=2)
    assert client.report("hello") == client.report("hello")
    assert plan.tally([client.report("hello"), client.report_index(None)]).reports == 2


def test_views_have_different_moduli_and_see_what_they_should(plan):
    views = plan.protocol.views
    assert len({view.cells for view in views}) == len(views)
    assert [view.digits for view in views if view.role == "count"] == [7] * round(len(views) / 4)
    assert all(27 < view.base < view.cells <= view.response.design.points for view in views)
    lists = sunzi.make_plan("prefixes", plan.domain, 2, list_only=True, cells=1000).protocol.views
    assert [(view.role, view.digits) for view in lists] == [("search", 7)] * 4 + [("count", 7)] * 2


def changed(plan, change):
    value = json.loads(plan.canonical)
    change(value)
    return json.dumps(value)


def first_prefix(**values):
    return lambda plan: plan["parameters"]["views"][0]["prefix"].update(values)


def only_short_search(plan):
    for view in plan["parameters"]["views"][2:]:
        view["prefix"].update(role="count", digits=7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (first_prefix(role="spy"), "search or count"),
        (first_prefix(base=5), "at least 28"),
        (first_prefix(base=10**6), "base must lie"),
        (first_prefix(digits=0), "digits must lie"),
        (first_prefix(digits=8), "see all 8 digits"),
        (first_prefix(modulus=10**5), "only .* points"),
        (first_prefix(modulus=True), "whole number"),
        (first_prefix(more=1), "digits, base, modulus, role|must be an object"),
        (lambda plan: plan["parameters"]["views"][0].update(prefix=3), "digits, base, modulus, role|must be an object"),
        (lambda plan: plan["parameters"]["views"][0].update(share=1), "add up to 2"),
        (lambda plan: plan["parameters"]["views"][-1]["prefix"].update(digits=3), "view that counts must see all"),
        (lambda plan: plan["domain"].update(longest=9), "up to 10 digits"),
        (lambda plan: plan.update(domain={"size": 5}), "needs an open domain"),
        (lambda plan: plan.update(protocol="grr"), "for texts prefixes"),
        (only_short_search, "searches must see"),
        (lambda plan: [view["prefix"].update(role="search") for view in plan["parameters"]["views"]], "role count"),
    ],
)
def test_wrong_plans_are_refused(plan, change, message):
    with pytest.raises(PlanError, match=message):
        sunzi.Plan.from_json(changed(plan, change))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda plan, tally: sunzi.make_plan("prefixes", 100, 2), PlanError, "needs an open domain"),
        (lambda plan, tally: sunzi.make_plan("prefixes", plan.domain, 2, moduli=[3]), ParameterError, "'moduli'"),
        (lambda plan, tally: sunzi.make_plan("prefixes", plan.domain, 2, cells=3), ParameterError, "cells must be"),
        (lambda plan, tally: sunzi.make_plan("prefixes", LONG, 2, cells=1000), ParameterError, "too few primes"),
        (lambda plan, tally: sunzi.make_plan("mss", plan.domain, 2), PlanError, "for texts prefixes"),
        (lambda plan, tally: plan.estimate(tally), EstimateError, "has no list of values"),
        (lambda plan, tally: plan.estimate(tally, labels=3), ParameterError, "texts must be a list"),
        (lambda plan, tally: plan.estimate(tally, labels="the"), ParameterError, "there is no file 'the'"),
        (lambda plan, tally: plan.discover(tally, false_share=2), ParameterError, "false_share must lie"),
        (lambda plan, tally: plan.discover(tally, beam=0), ParameterError, "beam must be a whole number of at least 1"),
        (lambda plan, tally: plan.discover(tally, prior=["a"], candidates=["a"]), ParameterError, "needs no prior"),
        (lambda plan, tally: plan.discover(tally, depth=3), ParameterError, "'depth'"),
        (lambda plan, tally: plan.discover(plan.simulate(["a"] * 90, seed=1)), EstimateError, "each needs 30"),
        (lambda plan, tally: plan.estimate(plan.simulate(["a"], seed=1), labels=["a"]), EstimateError, "no report yet"),
        (lambda plan, tally: plan.discover(3), TallyError, "takes a Tally"),
        (lambda plan, tally: plan.thresholds(0), ParameterError, "users must be at least 1"),
        (lambda plan, tally: plan.expected_mse(100, [1.0]), ParameterError, "no histogram"),
    ],
)
def test_mistakes_are_explained(plan, tally, make, error, message):
    with pytest.raises(error, match=message):
        make(plan, tally)


def test_analyses_that_go_through_all_values_are_refused(plan, tally):
    from sunzi.analysis import audit, check_health, simulate_attack, study_poisoning

    for analyse in (
        lambda: simulate_attack(plan, trials=10),
        lambda: audit(plan, trials=10),
        lambda: list(study_poisoning(plan, [0.1], users=100)),
    ):
        with pytest.raises(sunzi.SunziError, match=r"no channels|no list of values"):
            analyse()
    assert check_health(plan, tally).verdict.startswith("no sign of dishonest reports")


def test_plans_with_a_list_discover_nothing():
    listed = sunzi.make_plan("grr", 3, 1)
    with pytest.raises(EstimateError, match="has a list of values"):
        listed.discover(listed.simulate([0], seed=1))
    with pytest.raises(ParameterError, match="has a list of values"):
        listed.thresholds(100)


def test_a_batch_hides_more_than_a_report(plan):
    assert 0 < plan.batch_guarantee(100_000, 1e-8).epsilon < 0.1


def test_facts_are_those_of_an_open_domain(plan):
    facts = dict(plan.facts())
    assert facts["values"].startswith("texts of up to 6")
    assert "the frequency of a text" in facts["error"]
    assert "attacker" not in facts
    assert "texts without a list" in repr(plan)
    assert 0 < plan.expected_mse(1000) < plan.worst_mse(1000)
    assert plan.protocol.decoding_cost(1000).operations > 0
