"""Invalid arguments: each raises an error of this package that names the value."""

import io
import json
import pickle
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sunzi.errors import EstimateError, ParameterError, PlanError, PrivacyError, ReportError, TallyError
from sunzi.numerics.intervals import normal_quantile, simultaneous_confidence
from sunzi.plan import Plan, make_plan
from sunzi.protocols.registry import catalogue

PLAN = make_plan("mss", 30, 1, moduli=[17, 19, 23])
TALLY = PLAN.simulate(np.arange(3000) % 30, seed=1)
ESTIMATE = PLAN.estimate(TALLY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("mss", {"moduli": 5}, "moduli must be a list of primes, got 5"),
        ("mss", {"moduli": [7.9, 11]}, r"a modulus must be a whole number of at least 2, got 7\.9"),
        ("mss", {"moduli": ["7", "11"]}, "a modulus must be a whole number of at least 2, got '7'"),
        ("mss", {"count": 2.5}, r"count must be a whole number between 1 and 256, got 2\.5"),
        ("mss", {"count": True}, "count must be a whole number between 1 and 256, got True"),
        ("mss", {"flavour": 2}, "mss does not accept the options {'flavour': 2}: .*flavour"),
        ("grr", {"flavour": 2}, "grr does not accept the options {'flavour': 2}: .*flavour"),
        ("ss", {"block_size": 2.5}, r"block_size must be a whole number between 1 and 9, got 2\.5"),
        ("ss-compact", {"classes": 2.5}, r"classes must be a whole number of at least 1, got 2\.5"),
        ("ss-compact", {"classes": 10**7}, "no union of 10000000 classes suits epsilon 1; use about 4"),
        ("ss-compact", {"classes": 10**9}, "classes=1000000000; use fewer"),
        ("ss-compact", {"classes": 4, "points": 0}, "points must be a whole number between 2 and 67108864, got 0"),
        ("pgr", {"order": 3.5}, r"order must be a whole number between 2 and 1048576, got 3\.5"),
    ],
)
def test_options(name, options, reason):
    with pytest.raises(ParameterError, match=reason):
        make_plan(name, 10, 1, **options)


@pytest.mark.parametrize("name", [["grr"], None, 5, "GRR"])
def test_protocols(name):
    with pytest.raises(ParameterError, match="protocol must be one of"):
        make_plan(name, 10, 1)


def test_numbers_that_python_does_not_write():
    huge = 10**5000
    for ask in (
        lambda: make_plan("ss", 10, 1, block_size=huge),
        lambda: make_plan("grr", 10, huge),
        lambda: make_plan("grr", 10, 1).domain.index(huge),
        lambda: PLAN.expected_mse(huge),
        lambda: ESTIMATE.interval(huge),
    ):
        with pytest.raises(ParameterError, match="a number of very many digits"):
            ask()


def test_whole_numbers_of_numpy_are_options():
    assert make_plan("mss", 10, 1, moduli=np.array([7, 11])) == make_plan("mss", 10, 1, moduli=(7, 11))
    assert make_plan("ss", 10, 1, block_size=np.int8(3)) == make_plan("ss", 10, 1, block_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1e-15", "1e-18"])
@pytest.mark.parametrize("domain_size", [2, 3, 20, 1000, 1_000_000])
@pytest.mark.parametrize("name", catalogue())
def test_the_smallest_budgets_are_planned_exactly_or_refused_with_the_reason(name, domain_size, epsilon):
    """p − q is far below the rounding error of p here, so it must not be computed as a difference."""
    if name == "grr" and domain_size > 1e20 * float(epsilon):  # 64 bits cannot represent such a small difference
        with pytest.raises(PrivacyError, match="no information about the value"):
            make_plan(name, domain_size, epsilon)
    else:
        assert make_plan(name, domain_size, epsilon).expected_mse(1) > 1 / float(epsilon) ** 2


@pytest.mark.parametrize("reports", [None, 5, Path("reports.bin"), [1], "text", io.StringIO("text"), [["nested"]]])
def test_reports(reports):
    with pytest.raises(ReportError, match="bytes"):
        PLAN.tally(reports)


def test_tallies():
    for wrong in (None, PLAN.client().report_batch([1, 2]), [TALLY]):
        with pytest.raises(TallyError, match=r"takes a Tally, got .*plan\.tally"):
            PLAN.estimate(wrong)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"flavour": 1}, "mss does not accept the options {'flavour': 1}: .*flavour"),
        ({"ridge": "x"}, "ridge must be a number, got 'x'"),
        ({"ridge": float("inf")}, "ridge must be a number, got inf"),
        ({"ridge": -1}, "ridge must be at least 0"),
    ],
)
def test_options_of_estimates(options, reason):
    with pytest.raises(ParameterError, match=reason):
        PLAN.estimate(TALLY, **options)


def test_an_error_inside_a_protocol_is_kept_beside_the_refusal():
    with pytest.raises(ParameterError) as refusal:
        PLAN.estimate(TALLY, flavour=1)
    assert isinstance(refusal.value.__cause__, TypeError)


def test_too_few_reports_for_the_moduli():
    plan = make_plan("mss", 100, 1)
    with pytest.raises(EstimateError, match=r"only 1 of 16 moduli have reports yet, .* 100 values apart; collect more"):
        plan.estimate(plan.simulate([1], seed=1))
    assert plan.estimate(plan.simulate([1], seed=1), ridge=1.0).frequencies.shape == (100,)


@pytest.mark.parametrize("confidence", ["a", None, float("nan"), 0, 1, -1, 95, True])
def test_confidence_levels(confidence):
    for call in (ESTIMATE.interval, partial(ESTIMATE.postprocess, "significant"), partial(ESTIMATE.top, 3)):
        with pytest.raises(ParameterError, match="confidence must"):
            call(confidence)


@pytest.mark.parametrize("method", ["magic", None, "_read_only"])
def test_post_processing_methods(method):
    with pytest.raises(ParameterError, match="method must be one of clip, simplex, significant, constrained; got"):
        ESTIMATE.postprocess(method)


def test_confidence_close_to_one():
    """The quantile is computed in the lower tail, where floats are dense: 1 − confidence/2 would round to 1."""
    assert normal_quantile(1 - 2**-53) == pytest.approx(8.29236, abs=1e-5)
    low, high = ESTIMATE.interval(1 - 2**-53)
    assert np.all(low < high)
    with pytest.raises(ParameterError, match=r"10000000 intervals at once .* lower it"):
        simultaneous_confidence(0.9999999999, 10**7)
    assert simultaneous_confidence(0.95, 10**7) < 1


@pytest.mark.parametrize("number", [2.5, None, "a", -1, True])
def test_numbers_of_rows(number):
    for ask in (ESTIMATE.top, ESTIMATE.postprocess("simplex").top):
        with pytest.raises(ParameterError, match="number must be a whole number of at least 0"):
            ask(number)
    assert len(ESTIMATE.top(np.int64(2))) == 2


@pytest.mark.parametrize("users", ["x", None, 0, float("nan"), float("inf")])
def test_numbers_of_users(users):
    for plan in (PLAN, make_plan("grr", 5, 1)):
        for ask in (plan.expected_mse, plan.worst_mse):
            with pytest.raises(ParameterError, match="users must be"):
                ask(users)
    assert PLAN.expected_mse(1e6) == PLAN.expected_mse(10**6)


def test_histograms():
    for wrong in ("abc", [0.5, 0.5], [[1.0]], [0.5, 0.6, -0.1], object()):
        with pytest.raises(ParameterError, match="histogram must be 3"):
            make_plan("grr", 3, 1).expected_mse(10, wrong)


def test_seeds_and_fingerprints():
    for seed in (None, -1, 1.5, "a"):
        with pytest.raises(ParameterError, match="seed must be"):
            PLAN.simulate([1], seed=seed)
    with pytest.raises(ParameterError, match="fingerprint is hexadecimal text or bytes, got 5"):
        PLAN.client(fingerprint=5)


@pytest.mark.parametrize("name", catalogue())
def test_plans_are_frozen(name):
    plan = make_plan(name, 12, 1)
    terms = plan.contract
    for holder, field in ((plan, "contract"), (plan, "protocol"), (terms, "parameters"), (terms, "epsilon")):
        with pytest.raises(FrozenInstanceError):
            setattr(holder, field, None)
    places = [terms.parameters, *terms.parameters.values(), *terms.parameters.get("responses", ())]
    for place in places:
        if not isinstance(place, str):
            with pytest.raises(TypeError, match="item assignment"):
                place["threshold" if hasattr(place, "keys") else 0] = "1"


@pytest.mark.parametrize("name", catalogue())
def test_a_plan_returns_copies(name):
    plan = make_plan(name, 12, 1)
    before = plan.fingerprint
    record = plan.contract.to_json()
    assert type(record["parameters"]) is dict
    record["parameters"].clear()
    assert Plan.from_json(plan.contract.canonical).fingerprint == before
    assert plan.contract.to_json()["parameters"]


@pytest.mark.parametrize("name", catalogue())
def test_plans_and_estimates_can_be_pickled(name):
    """Processes and clusters send them to each other."""
    plan = make_plan(name, 12, 1)
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert copy.contract == plan.contract
    assert copy.client(seed=1).report_batch(range(12)) == plan.client(seed=1).report_batch(range(12))
    with pytest.raises(TypeError, match="item assignment"):
        copy.contract.parameters["x"] = 1
    estimate = plan.estimate(plan.simulate(np.arange(2400) % 12, seed=1))
    again = pickle.loads(pickle.dumps(estimate))
    assert np.array_equal(again.interval(), estimate.interval())
    assert np.array_equal(again.postprocess("constrained").frequencies, estimate.postprocess("constrained").frequencies)
    assert again.top(3) == estimate.top(3)


def test_a_contract_with_wrong_parameters_is_refused_as_ever():
    record = PLAN.contract.to_json()
    record["parameters"]["responses"] = {}
    with pytest.raises(PlanError, match="responses must be a list"):
        Plan.from_json(json.dumps(record))
