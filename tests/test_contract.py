"""The contract between the parties: exact files, mutations refused, options and extremes."""

import copy
import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

from sunzi.contract import Contract, canonical_json, parse_json
from sunzi.domain import Domain
from sunzi.errors import ParameterError, PlanError, PrivacyError, SunziError
from sunzi.plan import Plan, load_plan, make_plan
from sunzi.protocols.registry import catalogue

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


@pytest.mark.parametrize("name", catalogue())
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("epsilon", ["1/100", 1, 12])
def test_plans_round_trip_through_files(name, domain, epsilon, tmp_path):
    plan = make_plan(name, DOMAINS[domain], epsilon)
    path = tmp_path / "plan.json"
    plan.save(path)
    loaded = load_plan(path)
    assert loaded == plan
    assert loaded.fingerprint == plan.fingerprint == hashlib.sha256(loaded.contract.canonical).hexdigest()
    assert loaded.domain == plan.domain
    assert (loaded.epsilon, loaded.report_bits) == (plan.epsilon, plan.report_bits)
    values = list(plan.domain.labels or range(plan.domain.size))
    reports = plan.client(seed=1).report_batch(values)
    assert loaded.client(seed=1).report_batch(values) == reports
    assert loaded.tally(reports) == plan.tally(reports)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, b"{}"),
        ([], b"[]"),
        ({"b": 1, "a": 2, "A": 3, "_": 4}, b'{"A":3,"_":4,"a":2,"b":1}'),
        ([True, False, -5, 0, 2**53 - 1], b"[true,false,-5,0,9007199254740991]"),
        # The text of RFC 8785, section 3.2.2, and the escapes of section 3.2.2.2.
        ("\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/", '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()),
        ("\b\t\n\f\r", b'"\\b\\t\\n\\f\\r"'),
        ("\x00\x1f\x7f\x80", b'"\\u0000\\u001f\x7f\xc2\x80"'),
        ("</script>", b'"</script>"'),
        ("😂\u2028", b'"\xf0\x9f\x98\x82\xe2\x80\xa8"'),
        ({"nested": [{"z": [], "a": {}}]}, b'{"nested":[{"a":{},"z":[]}]}'),
    ],
)
def test_the_canonical_form(value, expected):
    assert canonical_json(value) == expected
    assert json.loads(expected) == value


@pytest.mark.parametrize(
    "value",
    [1.0, 0.5, float("nan"), None, 2**53, -(2**53), {"é": 1}, {1: 1}, "\ud800", ["\udfff"], b"a", (1,), {"a": {2}}],
)
def test_values_without_a_canonical_form_are_refused(value):
    with pytest.raises(PlanError):
        canonical_json(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":1}',
        b"NaN",
        b"Infinity",
        b"{} {}",
        b"[1,]",
        b"'a'",
        b"01",
        b"9" * 5000,
        b"[" * 100_000,
    ],
)
def test_text_that_is_not_strict_json_is_refused(text):
    with pytest.raises(PlanError):
        parse_json(text)
    with pytest.raises(PlanError):
        Plan.from_json(text)


def leaves(value, path=()):
    """The paths of all entries of a JSON value, nested ones included."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))


def replaced(value, path, new):
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], new)
    return changed


def removed(value, path):
    changed = copy.copy(value)
    if len(path) > 1:
        changed[path[0]] = removed(value[path[0]], path[1:])
    else:
        del changed[path[0]]
    return changed


WRONG = [None, True, False, 0, 1, 2, -1, 3, 7, 2**53, 1.5, 1.0, "", "1", "2", "x", "é", [], [0], [1, 1], {}, {"a": 1}]
MUTATED = {
    "grr": make_plan("grr", ["a", "b", "c"], 1, other="c"),
    "ss": make_plan("ss", 9, 1),
    "ss-compact": make_plan("ss-compact", 11, 1, classes=4),
    "pgr": make_plan("pgr", 20, 1, order=4),
    "rappor": make_plan("rappor", 3, 1),
    "oue": make_plan("oue", 3, "1/2"),
    "mss": make_plan("mss", 12, 1, moduli=[5, 11]),
    "mss-compact": make_plan("mss-compact", 12, 1, moduli=[7, 13]),
    "label file": make_plan("grr", Domain(["a", "b"], separate_labels=True), 1),
}


@pytest.mark.parametrize("name", MUTATED)
def test_a_changed_plan_is_refused_or_is_another_plan_to_the_letter(name):
    """Nothing is ignored, guessed or repaired: an accepted plan says exactly what was written."""
    record = MUTATED[name].contract.to_json()
    places = list(leaves(record))
    changed = [replaced(record, path, new) for path in places for new in WRONG]
    changed += [removed(record, path) for path in places if path]
    objects = [path for path in places if isinstance(value_at(record, path), dict)]
    changed += [replaced(record, path, {**value_at(record, path), "x": 1}) for path in objects]
    accepted = 0
    for candidate in changed:
        text = json.dumps(candidate)
        try:
            plan = Plan.from_json(text)
        except PlanError:
            continue
        accepted += 1
        assert plan.contract.canonical == canonical_json(json.loads(text))
        assert plan.fingerprint != MUTATED[name].fingerprint or candidate == record
    assert accepted < len(changed) / 20


def value_at(value, path):
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("name", MUTATED)
def test_thresholds_one_off_are_refused(name):
    record = MUTATED[name].contract.to_json()
    tried = 0
    for path in leaves(record):
        if path and str(path[-1]).endswith("threshold"):
            for step in (-1, 1, 1 << 32):
                tried += 1
                wrong = replaced(record, path, str(int(value_at(record, path)) + step))
                with pytest.raises(PrivacyError):
                    Plan.from_json(json.dumps(wrong))
            with pytest.raises(PlanError):
                Plan.from_json(json.dumps(replaced(record, path, "0" + value_at(record, path))))
    assert tried


@pytest.mark.parametrize(
    "epsilon",
    ["2/4", "2/1", "0.5", "1e0", "0", "-1", "+1", " 1", "1 ", "01", "33", "1/0", "1_0", "\u0662", 1, "", "1e999999999"],
)
def test_epsilon_has_one_spelling(epsilon):
    record = MUTATED["grr"].contract.to_json() | {"epsilon": epsilon}
    with pytest.raises(PlanError):
        Plan.from_json(json.dumps(record))


def test_a_plan_of_an_unknown_protocol_version_or_format_is_refused():
    record = MUTATED["grr"].contract.to_json()
    for change in ({"protocol": "magic"}, {"version": 2}, {"version": True}, {"version": "1"}, {"format": "sunzi"}):
        with pytest.raises(PlanError):
            Plan.from_json(json.dumps(record | change))


def test_errors_of_files_name_the_file(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{}")
    with pytest.raises(PlanError, match=r"broken\.json"):
        load_plan(path)
    record = MUTATED["grr"].contract.to_json()
    record["parameters"]["response"]["threshold"] = "5"
    path.write_text(json.dumps(record))
    with pytest.raises(PrivacyError, match=r"broken\.json"):
        load_plan(path)


def test_a_client_may_cap_epsilon_and_pin_the_plan():
    plan = make_plan("grr", 5, "3/2")
    for cap in (2, 1.5, "3/2", Fraction(3, 2)):
        assert plan.client(max_epsilon=cap).report(1)
    for cap in (1, 1.4999, "1/2"):
        with pytest.raises(PrivacyError, match="accepts at most"):
            plan.client(max_epsilon=cap)
    for pin in (plan.fingerprint, plan.fingerprint.upper(), bytes.fromhex(plan.fingerprint)):
        assert plan.client(fingerprint=pin).report(1)
    for pin in (make_plan("grr", 6, "3/2").fingerprint, bytes(32), "", plan.fingerprint[:16], "not hexadecimal"):
        with pytest.raises(PrivacyError, match="pinned"):
            plan.client(fingerprint=pin)
    with pytest.raises(ParameterError, match="epsilon"):
        plan.client(max_epsilon="much")


def test_equal_plans_have_equal_fingerprints_and_others_do_not():
    plans = [make_plan(name, size, epsilon) for name in catalogue() for size in (5, 6) for epsilon in (1, 2)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert len(set(plans)) == len(plans)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", ["b", "a"], 1)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", 2, 1)
    assert make_plan("grr", ["a", "b"], 1) != make_plan("grr", ["a", "b"], 1, other="b")
    assert make_plan("grr", 5, 0.5) == make_plan("grr", np.int32(5), "1/2")


def test_a_contract_is_the_same_for_every_reader():
    contract = MUTATED["mss"].contract
    again = Contract.from_json(json.loads(json.dumps(contract.to_json(), sort_keys=True)))
    assert again.fingerprint == contract.fingerprint
    assert again == contract


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
    assert Plan.from_json(plan.contract.canonical) == plan
    assert 1e-7 < plan.attackability < 3e-7


@pytest.mark.parametrize(("name", "size"), [("rappor", 2**24 + 1), ("oue", 2**30), ("ss", 2**24 + 1), ("pgr", 2**30)])
def test_domains_too_large_for_a_protocol_are_refused_with_a_way_out(name, size):
    """PGR is limited to 2^31 points; at ε = 12 its field is so large that no smaller geometry holds the domain."""
    epsilon = 12 if name == "pgr" else 1
    with pytest.raises(SunziError, match="use a compact"):
        make_plan(name, size, epsilon)
