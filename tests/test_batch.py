import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sunzi
from sunzi.batch import _grouped, batch_guarantee, honest_reports, rounded
from sunzi.client.errors import ParameterError, PrivacyError
from sunzi.errors import PlanWarning
from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse

PLAN = sunzi.make_plan("ss", 1024, 4)


@pytest.mark.slow
def test_every_protocol_has_a_guarantee_with_its_attack() -> None:
    for name in sunzi.catalogue():
        for reader in ("reports", "tally") if name in ("oue", "rappor") else ("reports",):
            found = sunzi.make_plan(name, 100, 2).batch_guarantee(100_000, 1e-8, reader=reader)
            assert found.attack_epsilon is not None
            assert 0 < found.attack_epsilon <= found.epsilon < 0.05
            assert found.epsilon <= 1.35 * found.attack_epsilon


@pytest.mark.parametrize(
    "plan",
    [
        sunzi.make_ordered(0, 5000, 256, 2),
        sunzi.make_number(0, 5000, 2),
        sunzi.make_tables({"a": ["x", "y"], "b": ["1", "2", "3"]}, [("a", "b"), ("a",)], 2),
    ],
    ids=lambda plan: plan.protocol.name,
)
def test_plans_of_records(plan: sunzi.Plan) -> None:
    found = plan.batch_guarantee(100_000, 1e-8)
    assert found.attack_epsilon is not None
    assert 0 < found.attack_epsilon <= found.epsilon < 0.05


def test_registered_protocols_get_the_bound_of_any_randomiser() -> None:
    """Even if they inherit from a protocol whose exact bound is known: they may randomise in another way."""

    class Own(GeneralizedRandomizedResponse):
        name = "own"

    own = Own(100, sunzi.make_plan("grr", 100, 4).protocol.response)
    for reader in ("reports", "tally"):
        found = batch_guarantee(own, 10**6, 1e-8, reader=reader)
        assert found.attack_epsilon is None
        assert found.epsilon == pytest.approx(0.0643, rel=1e-2)
        assert dict(found.facts())["attack"] == "unknown"


@pytest.mark.slow
def test_honest_share() -> None:
    """k = 1024, a million reports, δ = 1e-8."""
    for honest, epsilon in ((1, 0.0312), (0.9, 0.0330), (0.5, 0.0449), (0.1, 0.1042)):
        found = PLAN.batch_guarantee(10**6, 1e-8, honest=honest)
        assert found.epsilon == pytest.approx(epsilon, rel=5e-3)
        assert found.honest_reports == 10**6 * honest
    assert honest_reports(10, 0.55) == 6


@pytest.mark.slow
def test_minimum_batch() -> None:
    for epsilon, reports in ((1, 1272), (0.5, 4976)):
        found = PLAN.minimum_batch(epsilon, 1e-8)
        assert found == pytest.approx(reports, rel=5e-3)
        assert PLAN.batch_guarantee(found, 1e-8).epsilon <= epsilon
    assert PLAN.minimum_batch(1, 1e-8, honest=0.5) == pytest.approx(2 * 1272, rel=5e-3)
    assert PLAN.minimum_batch(4, 1e-8) == 1
    assert sunzi.make_plan("oue", 9, 2).minimum_batch(0.5, 1e-6, reader="tally") < 2000


def test_one_report_has_the_local_epsilon_only() -> None:
    alone = PLAN.batch_guarantee(1, 1e-8)
    assert alone.epsilon == 4
    assert alone.attack_epsilon == pytest.approx(4, rel=1e-3)
    assert dict(alone.facts())["batch"].startswith("at least 1 report in")


def test_epochs_with_fresh_noise_add_up() -> None:
    plan = sunzi.make_plan("grr", 1024, 4)
    found = plan.batch_guarantee(10**6, 1e-8, epochs=30)
    assert found.epsilon == pytest.approx(0.0567, rel=1e-2)
    assert found.epochs == 30
    assert found.attack_epsilon is not None
    assert found.epsilon < 1.02 * found.attack_epsilon
    listed = plan.batch_guarantee([10**6] * 30, 1e-8)
    assert listed == found
    mixed = plan.batch_guarantee(np.array([10**6] * 29 + [2 * 10**6]), 1e-8)
    assert 0.97 * found.epsilon < mixed.epsilon < 1.03 * found.epsilon
    assert plan.batch_guarantee(2, 1e-8, epochs=3).epsilon <= 12


def test_batches_of_many_sizes() -> None:
    """They are treated alike in groups of similar size: as its least for the bound, as its largest for the attack."""
    plan = sunzi.make_plan("grr", 1024, 4)
    sizes = [100_000 + 3571 * number for number in range(30)]
    found = plan.batch_guarantee(sizes, 1e-8)
    assert found.attack_epsilon is not None
    exact = plan.batch_guarantee(int(30 / sum(1 / size for size in sizes)), 1e-8, epochs=30)  # the harmonic mean
    assert exact.epsilon < found.epsilon < 1.04 * exact.epsilon
    assert 0.9 * found.epsilon < found.attack_epsilon < found.epsilon
    for many, most in ((sizes, 8), ([number**2 for number in range(1, 2000)], 4), ([5] * 9, 1)):
        groups = _grouped(many, most)
        assert [size for group in groups for size in group] == many
        assert len(groups) == most


def test_sums_of_batches_of_different_sizes() -> None:
    """Each on a grid that fits it: rounding up the loss of every batch adds up."""
    bits = sunzi.make_plan("rappor", 100, 4)
    alike = bits.batch_guarantee([12_000] * 100, 1e-8, reader="tally").epsilon
    mixed = bits.batch_guarantee([12_000] * 99 + [500_000], 1e-8, reader="tally").epsilon
    assert 0.98 * alike < mixed < 1.1 * alike
    small = bits.batch_guarantee(1000, 1e-8, reader="tally").epsilon
    assert small < bits.batch_guarantee([1000] + [10**7] * 364, 1e-8, reader="tally").epsilon < 1.1 * small


def test_attacks_on_many_tiny_batches() -> None:
    """Probabilities under the other value that round to 0 are no infinite evidence."""
    for name, reader in (("grr", "reports"), ("oue", "tally")):
        found = sunzi.make_plan(name, 9, 4).batch_guarantee(2, 1e-8, epochs=365, reader=reader)
        assert found.attack_epsilon is not None
        assert 600 < found.attack_epsilon < found.epsilon <= 4 * 365


def test_the_attack_on_the_smallest_batch_alone_counts() -> None:
    plan = sunzi.make_plan("grr", 1024, 4)
    found = plan.batch_guarantee([10, 10**6], 1e-8)
    assert found.attack_epsilon is not None
    assert found.attack_epsilon >= plan.batch_guarantee(10, 1e-8).attack_epsilon > 2.8


def test_memoised_reports_follow_the_cohort_rule() -> None:
    cohort = PLAN.batch_guarantee(10**6, 1e-8, epochs=30, cohort=5000)
    assert cohort.epsilon == PLAN.batch_guarantee(5000, 1e-8).epsilon
    assert cohort.honest_reports == 5000
    assert "exactly the same batches" in dict(cohort.facts())["cohort"]
    with pytest.raises(ParameterError, match="cohort must be a whole number between 1 and 1000"):
        PLAN.batch_guarantee(1000, 1e-8, cohort=2000)


def test_no_figure_without_its_conditions() -> None:
    found = PLAN.batch_guarantee(10**6, 1e-8, honest=0.9, epochs=2)
    facts = dict(found.facts())
    assert set(facts) == {
        "plan",
        "central epsilon",
        "attack",
        "local epsilon",
        "batch",
        "epochs",
        "honest",
        "reader",
        "published",
        "neighbours",
    }
    assert "1,000,000" in facts["batch"]
    assert "900,000" in facts["honest"]
    for condition in ("only whole batches", "no snapshot, group or corrected version", "its number of reports only"):
        assert condition in facts["published"]
    assert facts["plan"] == f"ss, 1,024 values, {PLAN.fingerprint}"
    assert found.in_words().count(". ") == 1
    json = found.to_dict()
    assert json["meaning"] == found.in_words()
    assert {
        "plan",
        "protocol",
        "domain_size",
        "epsilon",
        "attack_epsilon",
        "minimum_reports",
        "honest_share",
        "reader",
        "adjacency",
    } <= set(json)
    assert replace(found, local_epsilon=Fraction(1)).to_dict()["local_epsilon"] == 1


def test_figures_are_rounded_to_the_safe_side() -> None:
    assert rounded(1.3049, 3, up=True) == "1.31"
    assert rounded(0.086572, 4, up=True) == "0.08658"
    assert rounded(0.086572, 4, up=False) == "0.08657"
    assert rounded(54.59815, 3, up=True) == "54.6"
    assert rounded(2980.95, 3, up=True) == "2,990"
    words = PLAN.batch_guarantee(10**6, 1e-8, epochs=60).in_words()
    assert "at most 1.31 times" in words
    assert "the factor is e^240" in words  # 60 reports of one person


def test_nothing_can_be_claimed_or_attacked() -> None:
    for plan in (sunzi.make_plan("grr", 2, "1e-15"), sunzi.make_plan("rappor", 3, "1e-15")):
        assert plan.batch_guarantee(1000, 1e-8, reader="tally").epsilon == 1e-15
    assert dict(sunzi.make_plan("grr", 2, 1).batch_guarantee(2, 0.45).facts())["attack"] == "none succeeds"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((1000, 1e-8), {"reader": "operator"}, PrivacyError, "no central guarantee for a reader 'operator'"),
        ((1000, 1e-16), {}, ParameterError, "delta must lie between 1e-15 and 1, got 1e-16"),
        ((1000, 1), {}, ParameterError, "delta must lie between 1e-15 and 1, got 1"),
        ((0, 1e-8), {}, ParameterError, "reports must be a whole number between 1 and"),
        ((1000, 1e-8), {"honest": 0}, ParameterError, "honest must be a share above 0 and at most 1, got 0"),
        ((1000, 1e-8), {"epochs": 0}, ParameterError, "epochs must be a whole number between 1 and"),
        ((b"ab", 1e-8), {}, ParameterError, "reports must be a whole number between 1 and"),
        (([], 1e-8), {}, ParameterError, "give 1 to 10,000 batches, got 0"),
        (([5, 6], 1e-8), {"epochs": 2}, ParameterError, "give either one number of reports per epoch"),
    ],
)
def test_refusals(arguments, options, error, message) -> None:
    with pytest.raises(error, match=re.escape(message)):
        PLAN.batch_guarantee(*arguments, **options)


def test_refused_minimum_batches() -> None:
    with pytest.raises(ParameterError, match="the central epsilon must be positive, got 0"):
        PLAN.minimum_batch(0, 1e-8)
    with pytest.raises(ParameterError, match="do not reach a central epsilon"):
        sunzi.make_plan("grr", 10, 30).minimum_batch(0.1, 1e-8)


def test_a_large_delta_gets_a_warning() -> None:
    with pytest.warns(PlanWarning, match="even publishing one person's report would be allowed"):
        PLAN.batch_guarantee(1000, 1e-2)
    with pytest.warns(PlanWarning, match="not below 1/1,000,000,000"):
        sunzi.make_plan("grr", 9, 1).batch_guarantee([10**3, 10**9], 1e-8)


def test_a_least_batch_that_is_too_large_for_delta_gets_a_warning() -> None:
    with pytest.warns(PlanWarning, match=r"delta = 1e-08 is not below 1/48,\d{3},\d{3},\d{3}") as caught:
        assert PLAN.minimum_batch(1e-4, 1e-8) > 10**10
    assert caught[0].filename == __file__


def test_a_number_of_reports_may_be_an_array_without_axes() -> None:
    plan = sunzi.make_plan("grr", 9, 1)
    assert plan.batch_guarantee(np.array(1000), 1e-8) == plan.batch_guarantee(1000, 1e-8)
    with pytest.raises(ParameterError, match="reports must be a whole number"):
        plan.batch_guarantee(np.ones((2, 2)), 1e-8)
