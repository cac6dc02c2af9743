"""Poisoning attacks: valid reports, shifts as predicted and within the bound, and whether they are detected."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from small_records import RECORD_PLANS

import sunzi
from sunzi.analysis import PoisoningReach, PoisoningStudy, check_health, study_poisoning
from sunzi.analysis.fake_reports import ATTACKS, FakeClients, as_bytes
from sunzi.analysis.poisoning import HONEST
from sunzi.client.errors import ParameterError
from sunzi.planning import push_bound
from sunzi.protocols.base import Protocol
from sunzi.wire import payload_integers

pytestmark = pytest.mark.slow

SURE = stats.norm.isf(1e-6 / 200)
"""Except for a false alarm of 1e-6, none of about a hundred standard scores exceeds this."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "poisoning.md"


def fake_tally(plan, attack, count, targets=(3,), share=0.05, seed=1):
    messages = FakeClients(PoisoningReach(plan, targets, share), seed).messages(attack, count)
    return plan.tally(as_bytes(plan, messages))


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sunzi.catalogue())
@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_sends_valid_reports(name, attack):
    for epsilon, targets in ((1, (3,)), (4, (0, 7, 19))):
        plan = sunzi.make_plan(name, 20, epsilon)
        assert fake_tally(plan, attack, 50, targets).reports == 50
        assert fake_tally(plan, attack, 0, targets).reports == 0


@pytest.mark.parametrize("name", ["grr", "ss", "ss-compact", "pgr", "rappor", "oue"])
def test_crafted_reports_support_every_target_they_can(name):
    plan = sunzi.make_plan(name, 20, 1)
    for targets, attack in (((3,), "maximal-gain"), ((3,), "balanced"), ((3, 8), "maximal-gain"), ((3, 8), "balanced")):
        gained = (
            0.2
            * plan.estimate(fake_tally(plan, attack, 400, targets), weights="planned").frequencies[list(targets)].sum()
        )
        bound = PoisoningReach(plan, targets, 0.2).push.bound
        if (name, attack, len(targets)) == ("ss-compact", "balanced", 2):
            assert bound / 2 < gained < bound  # not every class of blocks has one with both
        else:
            assert gained == pytest.approx(bound)


@pytest.mark.parametrize("name", ["grr", "ss", "ss-compact", "pgr"])
def test_no_message_supports_more_targets(name):
    plan = sunzi.make_plan(name, 12, 1)
    design, rates = plan.protocol.design, plan.protocol.probabilities
    messages = design.every_message()
    for targets in ([5], [0, 4], [1, 2, 3, 7, 11]):
        supported = sum(design.contains(messages, np.full(len(messages), target)).astype(int) for target in targets)
        best = 0.1 * (supported.max() - len(targets) * rates.false) / rates.gap
        assert PoisoningReach(plan, targets, 0.1).push.bound == pytest.approx(best)


def test_one_target_has_the_planners_bound():
    for name in sunzi.catalogue():
        plan = sunzi.make_plan(name, 20, 1)
        assert PoisoningReach(plan, [4], 0.03).push.bound == pytest.approx(push_bound(plan, 0.03, 4).bound)


def message_counts(design, messages):
    """How often each message occurs, in the order of `every_message`."""
    counted = Counter(payload_integers(design.encode(messages)))
    return np.array([counted[payload] for payload in payload_integers(design.encode(design.every_message()))])


@pytest.mark.parametrize("name", ["grr", "ss", "ss-compact", "pgr"])
def test_random_reports_are_uniform(name):
    plan = sunzi.make_plan(name, 12, 1)
    messages = FakeClients(PoisoningReach(plan, [3], 0.1), 5).messages("random", 40_000)
    design = plan.protocol.design
    counts = message_counts(design, messages)
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("name", ["ss", "ss-compact", "pgr"])
@pytest.mark.parametrize("attack", ["balanced", "noiseless"])
def test_adaptive_reports_are_uniform_over_the_blocks_with_the_target(name, attack):
    plan = sunzi.make_plan(name, 12, 1)
    messages = FakeClients(PoisoningReach(plan, [3], 0.1), 5).messages(attack, 20_000)
    design = plan.protocol.design
    assert np.all(design.contains(messages, np.full(len(messages), 3)))
    counts = message_counts(design, messages)
    every = design.every_message()
    assert stats.chisquare(counts[design.contains(every, np.full(len(every), 3))]).pvalue > 1e-6


def test_balanced_reports_leave_balances_alone():
    plan = sunzi.make_plan("mss-compact", 100, 1)
    fake = check_health(plan, fake_tally(plan, "balanced", 5000, share=0.1))
    assert fake["block balance"].p_value > 1e-6
    assert fake["class balance"].p_value > 1e-6
    greedy = check_health(plan, fake_tally(plan, "maximal-gain", 5000, share=0.1))
    assert greedy["block balance"].p_value < 1e-6
    assert greedy["class balance"].p_value < 1e-6


# --- pushes -----------------------------------------------------------------------------------------------------------


def measured(name, attack, size=50, epsilon=1, share=0.05, targets=1, users=4000, runs=12, **options):
    plan = sunzi.make_plan(name, size, epsilon)
    setting = PoisoningStudy(plan, users, tuple(plan.protocol.targets(targets)), runs, seed=7, **options)
    return setting.run(attack, share)


@pytest.mark.slow
@pytest.mark.parametrize("name", sunzi.catalogue())
def test_maximal_gain_comes_near_the_bound_and_no_attack_exceeds_it(name):
    cases = [(attack, 1) for attack in ATTACKS] + [("maximal-gain", 3), ("balanced", 3)]
    for attack, targets in cases:
        found = measured(name, attack, targets=targets, runs=4)
        # Four runs measure their spread badly, so it is given three times as much room.
        assert found.push <= found.bound + 3 * SURE * found.push_error + 1e-3
        if attack == "maximal-gain":
            assert found.push > 0.7 * found.bound


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_input_poisoning_moves_what_it_says(name):
    """Fake clients that report a target truthfully add their own share minus its previous frequency."""
    found = measured(name, "input", epsilon=2, users=20_000, runs=5)
    assert abs(found.push - 0.05 * (1 - 1 / 50)) < SURE * max(found.push_error, 0.002)


def test_random_reports_of_designs_are_uniform_values():
    found = measured("ss-compact", "random", users=20_000)
    assert abs(found.push) < SURE * max(found.push_error, 0.002)
    # Unary clients do not send fair bits, so every item seems more frequent.
    rates = sunzi.make_plan("oue", 50, 1).protocol.probabilities
    coins = measured("oue", "random", users=20_000)
    expected = 0.05 * ((0.5 - rates.false) / rates.gap - 1 / 50)
    assert abs(coins.push - expected) < SURE * max(coins.push_error, 0.001)


# --- what shows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ss-compact", "pgr", "rappor", "oue", "mss", "mss-compact"])
def test_maximal_gain_shows(name):
    assert measured(name, "maximal-gain", size=200, users=20_000, runs=3).detected == 1


@pytest.mark.parametrize("name", sunzi.catalogue())
@pytest.mark.parametrize("attack", ["input", "noiseless"])
def test_imitations_of_the_honest_client_do_not_show(name, attack):
    """All sixteen cases together raise a false alarm in one of 5 million runs of this test."""
    assert measured(name, attack, size=200, users=10_000, runs=3, significance=4e-9).detected == 0


def test_the_residual_sees_what_balance_does_not_from_some_share_on():
    plan = sunzi.make_plan("mss", 200, 1)
    setting = PoisoningStudy(plan, 20_000, (100,), runs=3)
    faint, strong = setting.run("balanced", 0.002), setting.run("balanced", 0.05)
    assert (faint.detected, strong.detected) == (0, 1)
    assert strong.typical.strongest.name == "fit residual"
    assert strong.typical["block balance"].p_value > 1e-3
    # An attack that cannot be detected gains no more than under subset selection.
    hidden = setting.run("noiseless", 0.05)
    rates = sunzi.make_plan("ss", 200, 1).protocol.probabilities
    assert hidden.detected == 0
    assert hidden.push == pytest.approx(0.05 * (1 - rates.false) / rates.gap, rel=0.1)
    assert strong.push > 1.4 * hidden.push


# --- studies ----------------------------------------------------------------------------------------------------------


def test_a_study_repeats_itself():
    plan = sunzi.make_plan("ss-compact", [f"label {index}" for index in range(30)], 1)
    rows = [row.row() for row in study_poisoning(plan, [0.01, 0.1], users=1000, runs=2)]
    assert [row["attack"] for row in rows] == [HONEST, *(attack for attack in ATTACKS for _ in range(2))]
    alone = [row.row() for row in study_poisoning(plan, [0.1], ["balanced"], users=1000, runs=2)]
    assert alone[0] == rows[0]
    assert alone[1] == next(row for row in rows if (row["attack"], row["share"]) == ("balanced", 0.1))
    other = [row.row() for row in study_poisoning(plan, [0.1], ["input"], users=1000, runs=2, seed=2)]
    assert other[1]["push"] != next(row for row in rows if (row["attack"], row["share"]) == ("input", 0.1))["push"]
    shares = []
    list(study_poisoning(plan, [0.1], ["input", "random"], users=500, runs=2, progress=shares.append))
    assert shares == [pytest.approx(1 / 3), pytest.approx(2 / 3)]


class Silent(Protocol):
    """A protocol that no attack supports."""

    name = "silent"
    choose = from_parameters = parameters = randomize = encode = decode = count = estimate = None
    words_per_report = expected_mse = worst_mse = attackability = support_probabilities = None


def test_wrong_arguments_are_named():
    plan = sunzi.make_plan("grr", 5, 1)
    with pytest.raises(ParameterError, match=r"targets must be distinct items between 0 and 4, got \[5\]"):
        PoisoningReach(plan, [5], 0.1)
    with pytest.raises(ParameterError, match="share of fake clients must lie between 0 and 1, got 1"):
        PoisoningReach(plan, [1], 1.0)
    with pytest.raises(ParameterError, match="targets must be between 1 and 5 items, got 6"):
        plan.protocol.targets(6)
    with pytest.raises(ParameterError, match=r"attack must be one of maximal-gain.*'bribery'"):
        FakeClients(PoisoningReach(plan, [1], 0.1), 1).messages("bribery", 3)
    with pytest.raises(ParameterError, match=r"attack must be one of maximal-gain.*'bribery'"):
        next(study_poisoning(plan, [0.1], ["bribery"]))
    with pytest.raises(ParameterError, match="runs must be a whole number between 2"):
        PoisoningStudy(plan, 100, (1,), runs=1)
    with pytest.raises(ParameterError, match="users must be a whole number between 2 and 100000000, got 1"):
        PoisoningStudy(plan, 1, (1,))
    with pytest.raises(ParameterError, match="seed must be a whole number of at least 0"):
        PoisoningStudy(plan, 100, (1,), seed=-1)
    with pytest.raises(ParameterError, match=r"a share of 0\.001 of 100 users is 0 fake clients"):
        PoisoningStudy(plan, 100, (1,)).run("input", 0.001)
    with pytest.raises(ParameterError, match="'silent' does not define target_parts"):
        PoisoningReach(type("Stub", (), {"domain": plan.domain, "protocol": Silent()})(), [1], 0.1)


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "number"), [("ordered", 1), ("ordered", 3), ("tables", 2), ("number", 1)])
def test_pushes_of_records_keep_to_their_bounds(name, number):
    """The best attack reaches what its formula says; no attack exceeds the bound."""
    plan = RECORD_PLANS[name](2)
    targets = tuple(plan.protocol.targets(number))
    study = PoisoningStudy(plan, 20_000, targets, runs=3, seed=3)
    reach = PoisoningReach(plan, targets, 0.05)
    assert reach.push.expected <= reach.push.bound
    pushed = {attack: study.run(attack, 0.05) for attack in ATTACKS}
    greedy = pushed["maximal-gain"]
    assert greedy.push == pytest.approx(reach.push.expected, abs=6 * greedy.push_error + 0.01)
    assert all(found.push <= greedy.push + 6 * found.push_error + 0.01 for found in pushed.values())
    # Users who lie about their value push by no more than their share.
    assert abs(pushed["input"].push - 0.05 * (0.5 if name == "number" else 1)) < 0.03
    assert not pushed["input"].detected
    assert not study.honest().detected
    if name != "number":
        assert greedy.detected == 1
    assert greedy.row()["pushed"] == plan.protocol.pushed(plan.domain, targets)


def test_what_fake_clients_push_has_a_name():
    plans = [make(1) for make in RECORD_PLANS.values()]
    names = {plan.protocol.name: plan.protocol.pushed(plan.domain, plan.protocol.targets(1)) for plan in plans}
    assert names == {
        "ordered": "the summed frequency of 1 bin",
        "number": "the mean, as a share of the range",
        "tables": "the summed frequency of 1 cell of a × b",
    }
    assert RECORD_PLANS["ordered"](1).protocol.targets(4) == [2, 3, 4, 5]
    with pytest.raises(ParameterError, match="the mean, which is one target, got 2"):
        RECORD_PLANS["number"](1).protocol.targets(2)
    with pytest.raises(ParameterError, match="between 1 and 12 cells, got 13"):
        RECORD_PLANS["tables"](1).protocol.targets(13)


@pytest.mark.parametrize("name", RECORD_PLANS)
def test_parts_of_records_are_the_derivative_of_the_linear_estimate(name):
    """With each view's planned share of reports, one more supported point adds what its part says."""
    plan = RECORD_PLANS[name](2)
    protocol, targets = plan.protocol, plan.protocol.targets(1)
    row, parts = protocol.target_row(targets), protocol.target_parts(targets)
    values = [plan.domain.example(value) for value in range(0, plan.domain.size, 1 + plan.domain.size // 400)]
    tally = plan.simulate(values * 20, seed=1)
    found = float(row @ protocol.linear_estimate(plan.domain, tally).frequencies)
    expected = float(row.sum()) / row.size if name != "number" else 0.0
    for channel, part, reports, index in zip(protocol.channels, parts, tally.block_reports, range(9), strict=False):
        rates = channel.probabilities
        support = channel.point_counts(tally.block(index))
        expected += float(part @ ((support / reports - rates.false) / rates.gap))
    assert found == pytest.approx(expected)


# --- the page's tables ------------------------------------------------------------------------------------------------


def documented(section):
    """The rows of the table under a heading of docs/poisoning.md, as lists of cells."""
    text = PAGE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def number(cell):
    return float(re.match(r"-?[\d.]+", cell.replace("−", "-")).group())


def agrees(cell, value):
    """Whether a value rounds to the cell, up to one unit in its last digit."""
    digits = re.match(r"-?\d+(?:\.(\d+))?", cell.replace("−", "-")).group(1) or ""
    return abs(number(cell) - value) <= 1.01 * 10.0 ** -len(digits)


def test_documented_bounds():
    rows = documented("What each attack does")
    assert {row[0] for row in rows} == set(sunzi.catalogue())
    for name in sunzi.catalogue():
        plan = sunzi.make_plan(name, 1024, 1)
        bound = 100 * PoisoningReach(plan, plan.protocol.targets(1), 0.01).push.bound
        assert all(agrees(row[2], bound) for row in rows if row[0] == name)


@pytest.mark.slow
def test_documented_pushes():
    """The page's command, for the protocol that is both fast and modular."""
    rows = {row[1]: row for row in documented("What each attack does") if row[0] == "mss-compact"}
    plan = sunzi.make_plan("mss-compact", 1024, 1)
    found = {row.attack: row for row in study_poisoning(plan, [0.01], users=20_000, runs=10, seed=1)}
    assert set(rows) == set(ATTACKS)
    for attack, row in rows.items():
        assert agrees(row[3], 100 * found[attack].push), attack
        assert agrees(row[4], 100 * found[attack].detected), attack


@pytest.mark.slow
def test_documented_visibility():
    rows = [row for row in documented("The detectable share") if row[:2] == ["mss-compact", "20,000"]]
    plan = sunzi.make_plan("mss-compact", 1024, 1)
    found = list(study_poisoning(plan, [0.005, 0.02], ["balanced"], users=20_000, runs=10, seed=1))[1:]
    for row in found:
        cell = rows[0][{0.005: 3, 0.02: 5}[row.share]]
        assert agrees(cell, 100 * row.detected)


def test_documented_false_alarms():
    """The page measured 1,000 collections each; this test repeats the cheapest protocol and compares all with their
    bound.
    """
    rows = documented("False alarms")
    assert [row[0] for row in rows] == list(sunzi.catalogue())
    for row in rows:
        assert number(row[1]) <= 100 * stats.binom.isf(1e-6, 1000, 0.05) / 1000
        assert number(row[2]) <= 100 * stats.binom.isf(1e-6, 1000, 0.001) / 1000
    plan = sunzi.make_plan("oue", 100, 1)
    found = next(study_poisoning(plan, [], [], users=2000, runs=1000, seed=1, significance=0.05))
    assert agrees(next(row for row in rows if row[0] == "oue")[1], 100 * found.detected)


def test_documented_bounds_of_records():
    """The bounds in the table about records."""
    survey = {"version": ["1", "2", "3"], "crashed": ["no", "yes"], "country": ["DE", "FR", "IT", "other"]}
    plans = {
        "a range": (sunzi.make_ordered(0, 4096, 64, 1), 16),
        "a cell": (sunzi.make_tables(survey, [("version", "crashed"), ("country",)], 1), 1),
        "a mean": (sunzi.make_number(0, 5000, 1), 1),
    }
    for name, (plan, number) in plans.items():
        bound = 100 * PoisoningReach(plan, plan.protocol.targets(number), 0.01).push.bound
        assert f"| {name} | `maximal-gain` | {bound:.1f} % |" in PAGE.read_text(encoding="utf-8")
