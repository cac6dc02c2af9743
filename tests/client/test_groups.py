"""Public groups: bounded lists of short codes in a plan, and at most one declared value per attribute in an upload."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sunzi
from sunzi.client.errors import ParameterError, PlanError
from sunzi.client.groups import chosen_groups, declare_groups, parse_groups
from sunzi.groups import are_disjoint, parse_group

DECLARED = {"country": ["DE", "FR"], "release": ["124", "125.0"]}
PLAN = sunzi.make_plan("grr", ["no", "yes"], 1, groups=DECLARED)
PLAIN = sunzi.make_plan("grr", ["no", "yes"], 1)


def test_groups_are_part_of_the_plan():
    assert dict(PLAN.groups) == {"country": ("DE", "FR"), "release": ("124", "125.0")}
    assert PLAIN.with_groups(DECLARED) == PLAN != PLAIN
    assert PLAIN.with_groups(dict(reversed(DECLARED.items()))) == PLAN, "the order of attributes means nothing"
    assert PLAIN.with_groups({"country": ["FR", "DE"]}) != PLAIN.with_groups({"country": ["DE", "FR"]})
    assert sunzi.Plan.from_json(PLAN.canonical) == PLAN
    assert pickle.loads(pickle.dumps(PLAN)).groups == PLAN.groups
    assert PLAN.with_groups({}) == PLAIN
    assert b"groups" not in PLAIN.canonical
    assert dict(PLAN.facts())["groups"] == "country: DE, FR; release: 124, 125.0 (public)"


def test_only_values_of_one_attribute_have_no_reports_in_common():
    assert are_disjoint("country=DE", "country=FR")
    for other in ("country=DE", "release=124", None):
        assert not are_disjoint("country=DE", other)
        assert not are_disjoint(other, "country=DE")


def test_a_plan_cannot_change_its_groups():
    with pytest.raises(TypeError):
        PLAN.groups["country"] = ()


def test_labels_of_a_file_keep_the_groups(tmp_path):
    (tmp_path / "labels.txt").write_text("no\nyes\n")
    plan = sunzi.make_plan("grr", sunzi.Domain(["no", "yes"], separate_labels=True), 1, groups=DECLARED)
    plan.save(tmp_path / "plan.json")
    assert sunzi.load_plan(tmp_path / "plan.json", labels=tmp_path / "labels.txt").groups == PLAN.groups


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "must be an object"),
        ({f"a{number}": ["x"] for number in range(9)}, "at most 8 attributes"),
        ({"Country": ["DE"]}, "a group's attribute must be 1 to 32 of a-z"),
        ({"": ["DE"]}, "a group's attribute"),
        ({"a" * 33: ["DE"]}, "a group's attribute"),
        ({"country": "DE"}, "must be a list"),
        ({"country": {"DE": 1}}, "must be a list"),
        ({"country": 3}, "must be a list"),
        ({"country": []}, "must have 1 to 1000 values, got 0"),
        ({"country": [f"x{number}" for number in range(1001)]}, "got 1001"),
        ({"country": ["DE", "DE"]}, "lists 'DE' twice"),
        ({"country": ["D" * 65]}, "a value of group country must be 1 to 64 of"),
        ({"country": ["D\nE"]}, "a value of group country"),
        ({"country": ["D,E"]}, "a value of group country"),
        ({"country": ["=1"]}, "a value of group country"),
        ({"country": [""]}, "a value of group country"),
        ({"country": [49]}, "a value of group country"),
    ],
)
def test_bad_groups_are_refused(groups, message):
    with pytest.raises(PlanError, match=message):
        declare_groups(groups)
    terms = PLAIN.to_json() | {"groups": groups}
    with pytest.raises(PlanError):
        sunzi.Plan.from_terms(terms)


def test_an_empty_object_is_not_canonical():
    with pytest.raises(PlanError, match="must not be empty"):
        sunzi.Plan.from_terms(PLAIN.to_json() | {"groups": {}})


def test_an_upload_names_declared_groups_only():
    assert chosen_groups(PLAN.groups, {"release": "124", "country": "DE"}) == ("country=DE", "release=124")
    assert chosen_groups(PLAN.groups, None) == chosen_groups(PLAIN.groups, {}) == ()
    for chosen, message in (
        ({"city": "Bonn"}, "this plan has no group 'city'; its groups are country, release"),
        ({"country": "IT"}, "the group country has no value 'IT'; its values are DE, FR"),
        ({"country": None}, "the group country has no value None"),
    ):
        with pytest.raises(ParameterError, match=message):
            chosen_groups(PLAN.groups, chosen)
    with pytest.raises(ParameterError, match="declares no groups"):
        chosen_groups(PLAIN.groups, {"country": "DE"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a group must be ATTRIBUTE=VALUE"),
        ("country", "a group must be ATTRIBUTE=VALUE"),
        ("country=", "a group must be ATTRIBUTE=VALUE"),
        ("country=DE,", "a group must be ATTRIBUTE=VALUE"),
        ("country=D E", "a group must be ATTRIBUTE=VALUE"),
        ("country=DE\x00", "a group must be ATTRIBUTE=VALUE"),
        ("country=DE\n", "a group must be ATTRIBUTE=VALUE"),
        ("country=DE,country=FR", "the group country is named twice"),
        ("country=DE,country=DE", "the group country is named twice"),
    ],
)
def test_malformed_groups_are_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        parse_groups(text)


def test_one_group():
    assert parse_group(PLAN.groups, "release=125.0") == "release=125.0"
    for text in ("country=DE,release=124", "country=IT", "x"):
        with pytest.raises(ParameterError):
            parse_group(PLAN.groups, text)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text):
    try:
        found = parse_groups(text)
    except ParameterError:
        return
    assert ",".join(f"{name}={value}" for name, value in found.items()) == text
