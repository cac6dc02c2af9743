"""Plans: exact files, options and extremes, and arguments that are refused."""

import hashlib
import io
import json
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, PlanError, PrivacyError, ReportError, SunziError
from sunzi.errors import TallyError
from sunzi.plan import Plan, load_plan, make_plan
from sunzi.protocols.registry import catalogue
from sunzi.results.trends import trend

QUOTES = ['"', "'", "\\", "\n", "\r\n", "\t", "", " ", "a\0b", "\x1f\x7f", "null", "0"]
SCRIPTS = [
    "\u00e9",
    "e\u0301",
    "日本語",
    "\u05d0\u200f",
    "\u2028",
    "\ufeff",
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0010ffff",
]
DOMAINS = {"2": 2, "3": 3, "17": 17, "two labels": ["yes", "no"], "odd labels": QUOTES + SCRIPTS}
PLAN = make_plan("mss", 30, 1, moduli=[17, 19, 23])
TALLY = PLAN.simulate(np.arange(3000) % 30, seed=1)


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("epsilon", ["1/100", 1, 12])
def test_plans_round_trip_through_files(name, domain, epsilon, tmp_path):
    plan = make_plan(name, DOMAINS[domain], epsilon)
    path = tmp_path / "plan.json"
    plan.save(path)
    loaded = load_plan(path)
    assert loaded == plan
    assert loaded.fingerprint == plan.fingerprint == hashlib.sha256(loaded.canonical).hexdigest()
    assert loaded.domain == plan.domain
    assert (loaded.epsilon, loaded.report_bits) == (plan.epsilon, plan.report_bits)
    values = list(plan.domain.labels or range(plan.domain.size))
    reports = plan.client(seed=1).report_batch(values)
    assert loaded.client(seed=1).report_batch(values) == reports
    assert loaded.tally(reports) == plan.tally(reports)


def test_errors_of_files_name_the_file(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{}")
    with pytest.raises(PlanError, match=r"broken\.json"):
        load_plan(path)
    record = make_plan("grr", 3, 1).to_json()
    record["parameters"]["response"]["threshold"] = "5"
    path.write_text(json.dumps(record))
    with pytest.raises(PrivacyError, match=r"broken\.json"):
        load_plan(path)


def test_equal_plans_have_equal_fingerprints_and_others_do_not():
    plans = [make_plan(name, size, epsilon) for name in catalogue() for size in (5, 6) for epsilon in (1, 2)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert len(set(plans)) == len(plans)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", ["b", "a"], 1)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", 2, 1)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", ["a", "b"], 1, other="b")
    assert make_plan("grr", 5, 0.5) == make_plan("grr", np.int32(5), "1/2")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("grr", {"classes": 3}),
        ("ss", {"block_size": 0}),
        ("ss", {"block_size": 20}),
        ("ss", {"code": "morse"}),
        ("ss-compact", {"points": 23}),
        ("ss-compact", {"classes": 0}),
        ("ss-compact", {"classes": 5, "points": 23}),
        ("ss-compact", {"classes": 4, "points": 25}),
        ("ss-compact", {"classes": 4, "points": 13}),
        ("pgr", {"order": 6}),
        ("pgr", {"order": 1}),
        ("pgr", {"order": 0}),
        ("mss", {"moduli": [5, 9, 11]}),
        ("mss", {"moduli": [5, 5, 31]}),
        ("mss", {"moduli": [5, 7]}),
        ("mss", {"moduli": []}),
        ("mss", {"moduli": [23], "count": 3}),
        ("mss", {"count": 0}),
        ("mss", {"count": 1000}),
        ("mss-compact", {"moduli": [4, 23]}),
        ("rappor", {"bits": 8}),
        ("magic", {}),
    ],
)
def test_options_without_sense_are_refused_with_a_reason(name, options):
    with pytest.raises(SunziError) as refusal:
        make_plan(name, 20, 1, **options)
    assert len(str(refusal.value)) > 10


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("epsilon", [0.01, 12, 32])
@pytest.mark.parametrize("size", [2, 3])
def test_the_smallest_domains_and_extreme_budgets(name, size, epsilon):
    """Works from plan to estimate. n = 2000 is too few at ε = 0.01, so only the form of the result is checked there."""
    plan = make_plan(name, size, epsilon)
    values = np.arange(2000) % size
    estimate = plan.estimate(plan.tally(plan.client(seed=3).report_batch(values)))
    assert estimate.frequencies.shape == (size,)
    assert np.all(np.isfinite(estimate.frequencies))
    assert np.all(estimate.standard_errors() >= 0)
    if epsilon >= 12:
        assert np.allclose(estimate.frequencies, np.bincount(values) / 2000, atol=0.05)
    assert 0 < plan.attackability <= 1


@pytest.mark.parametrize(
    ("name", "options"), [("grr", {}), ("ss-compact", {}), ("pgr", {}), ("mss-compact", {"count": 3})]
)
def test_ten_million_values(name, options):
    """A plan, a thousand reports and their tally take the memory of a thousand reports, not of ten million values."""
    plan = make_plan(name, 10_000_000, 1, **options)
    values = np.random.default_rng(4).integers(0, 10_000_000, 1000)
    tally = plan.tally(plan.client(seed=4).report_batch(values))
    assert tally.reports == 1000
    assert tally.counters.stored <= 1000
    assert plan.report_bits <= 30
    assert Plan.from_json(plan.canonical) == plan
    assert 1e-7 < plan.attackability < 3e-7


@pytest.mark.parametrize(("name", "size"), [("rappor", 2**24 + 1), ("oue", 2**30), ("ss", 2**24 + 1), ("pgr", 2**30)])
def test_domains_too_large_for_a_protocol_are_refused_with_a_way_out(name, size):
    """PGR is limited to 2^31 points; at ε = 12 its field is so large that no smaller geometry holds the domain."""
    epsilon = 12 if name == "pgr" else 1
    with pytest.raises(SunziError, match="use a compact"):
        make_plan(name, size, epsilon)


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


def test_whole_numbers_of_numpy_are_options():
    assert make_plan("mss", 10, 1, moduli=np.array([7, 11])) == make_plan("mss", 10, 1, moduli=(7, 11))
    assert make_plan("ss", 10, 1, block_size=np.int8(3)) == make_plan("ss", 10, 1, block_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1e-15", "1e-18"])
@pytest.mark.parametrize("domain_size", [2, 3, 20, 1000, 200_000])
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


def test_a_type_error_inside_a_protocol_is_not_taken_for_an_unknown_option(monkeypatch):
    def broken(self, domain, tally, weights="planned"):
        raise TypeError("unexpected keyword argument 'weights'")

    monkeypatch.setattr(type(PLAN.protocol), "estimate", broken)
    with pytest.raises(TypeError, match="unexpected keyword"):
        PLAN.estimate(TALLY, weights="planned")


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


@pytest.mark.parametrize("seed", [None, -1, 1.5, "a"])
def test_seeds(seed):
    with pytest.raises(ParameterError, match="seed must be"):
        PLAN.simulate([1], seed=seed)


@pytest.mark.parametrize("name", catalogue())
def test_plans_are_frozen(name):
    plan = make_plan(name, 12, 1)
    for field in ("protocol", "domain", "groups", "epsilon", "fingerprint"):
        with pytest.raises(AttributeError):
            setattr(plan, field, None)
    with pytest.raises(FrozenInstanceError):
        plan.protocol.domain_size = 3


@pytest.mark.parametrize("name", catalogue())
def test_a_plan_returns_copies(name):
    plan = make_plan(name, 12, 1)
    before = plan.fingerprint
    record = plan.to_json()
    assert type(record["parameters"]) is dict
    record["parameters"].clear()
    assert Plan.from_json(plan.canonical).fingerprint == before
    assert plan.to_json()["parameters"]


@pytest.mark.parametrize("name", catalogue())
def test_plans_and_estimates_can_be_pickled(name):
    """Processes and clusters send them to each other."""
    plan = make_plan(name, 12, 1)
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert copy.client(seed=1).report_batch(range(12)) == plan.client(seed=1).report_batch(range(12))
    with pytest.raises(TypeError, match="item assignment"):
        copy.groups["x"] = ("1",)
    estimate = plan.estimate(plan.simulate(np.arange(2400) % 12, seed=1))
    again = pickle.loads(pickle.dumps(estimate))
    assert np.array_equal(again.interval(), estimate.interval())
    assert np.array_equal(again.postprocess("constrained").frequencies, estimate.postprocess("constrained").frequencies)
    assert again.top(3) == estimate.top(3)


def test_wrong_parameters_are_refused():
    record = PLAN.to_json()
    record["parameters"]["responses"] = {}
    with pytest.raises(PlanError, match="responses must be a list"):
        Plan.from_json(json.dumps(record))


def test_facts_say_one_bit():
    assert dict(make_plan("grr", 2, 1).facts())["report"] == "1 bit"
    assert dict(make_plan("grr", 3, 1).facts())["report"] == "2 bits"


def test_a_lifetime_is_a_term_of_the_plan_that_estimates_mention():
    plan = make_plan("grr", ["1.0", "1.1"], 2)
    stated = plan.with_lifetime(8)
    assert (plan.lifetime, stated.lifetime) == (None, 8)
    assert stated != plan == stated.with_lifetime(None)
    assert Plan.from_json(stated.canonical) == stated == stated.with_groups({"country": ["DE"]}).with_groups({})
    sentence = "a device with a lifetime budget of 8 pays for 4 different answers; then it repeats its latest report"
    assert sentence in dict(stated.facts())["devices"]
    estimates = [stated.estimate(stated.simulate(["1.0"] * 900, seed=seed)) for seed in (1, 2)]
    assert sentence.capitalize() in estimates[0].to_html()
    assert sentence.capitalize() in trend(estimates).to_html()
    assert "lifetime" not in plan.estimate(plan.simulate(["1.0"] * 900, seed=1)).to_html()
    with pytest.raises(PlanError, match="a lifetime of 1 does not pay for one report of epsilon 2"):
        plan.with_lifetime(1)
