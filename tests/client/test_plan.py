"""A plan has one canonical text, and changed ones are refused."""

import copy
import json

import pytest

from sunzi import client
from sunzi.client.errors import PlanError, PrivacyError
from sunzi.client.strict_json import canonical_json, parse_json
from sunzi.domains.labels import Domain
from sunzi.plan import Plan, make_plan


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
    record = MUTATED[name].to_json()
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
        except PlanError as error:
            with pytest.raises(type(error)):
                client.Plan.from_json(text)
            continue
        accepted += 1
        assert client.Plan.from_json(text) == plan
        assert plan.canonical == canonical_json(json.loads(text))
        assert plan.fingerprint != MUTATED[name].fingerprint or candidate == record
    assert accepted < len(changed) / 20


def value_at(value, path):
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("name", MUTATED)
def test_thresholds_one_off_are_refused(name):
    record = MUTATED[name].to_json()
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
    record = MUTATED["grr"].to_json() | {"epsilon": epsilon}
    with pytest.raises(PlanError):
        Plan.from_json(json.dumps(record))


def test_a_plan_of_an_unknown_protocol_version_or_format_is_refused():
    record = MUTATED["grr"].to_json()
    for change in ({"protocol": "magic"}, {"version": 2}, {"version": True}, {"version": "1"}, {"format": "sunzi"}):
        with pytest.raises(PlanError):
            Plan.from_json(json.dumps(record | change))


def test_a_plan_is_the_same_for_every_reader():
    plan = MUTATED["mss"]
    for again in (Plan, client.Plan):
        found = again.from_terms(json.loads(json.dumps(plan.to_json(), sort_keys=True)))
        assert found.fingerprint == plan.fingerprint
        assert found == plan


def test_reports_and_tallies_are_named_as_such(tmp_path):
    plan = make_plan("grr", 3, 1)
    path = tmp_path / "plan.json"
    for content in (plan.client().report_batch([0, 1]), plan.simulate([0, 1], seed=1).to_bytes()):
        path.write_bytes(content)
        with pytest.raises(PlanError, match=r"plan\.json: this is a file of reports or a tally, not a plan"):
            client.load_plan(path)
