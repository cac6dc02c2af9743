"""One estimate per group: small groups are merged or held back, and columns that are left out are added up."""

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.tables import estimate_groups

PLAN = sunzi.make_plan("ss-compact", ["a", "b", "c"], 3)


def tallies(**sizes):
    return {(name, number % 2): PLAN.simulate(["a"] * (size // 2) + ["b"] * (size - size // 2), seed=size)
            for number, (name, size) in enumerate(sizes.items())}  # fmt: skip


GROUPS = tallies(DE=300, FR=500, LU=60, MT=50, SM=30)


def test_groups_come_largest_first():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"], min_reports=30)
    assert [(name, each.reports) for name, each in groups.estimates.items()] == [
        ("country=FR, release=1", 500),
        ("country=DE, release=0", 300),
        ("country=LU, release=0", 60),
        ("country=MT, release=1", 50),
        ("country=SM, release=0", 30),
    ]
    assert groups.small_groups() is None
    expected = PLAN.estimate(GROUPS["DE", 0]).frequencies
    assert np.array_equal(groups.estimates["country=DE, release=0"].frequencies, expected)


def test_small_groups_are_merged():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"])
    assert {name: each.reports for name, each in groups.estimates.items()} == {
        "country=FR, release=1": 500,
        "country=DE, release=0": 300,
        "other": 140,
    }
    assert (groups.merged, groups.held_back) == (3, 0)
    assert groups.small_groups() == "3 groups with fewer than 100 reports are merged into 'other'"


def test_small_groups_are_held_back():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"], small="hold")
    assert len(groups.estimates) == 2
    assert groups.small_groups() == "3 groups with fewer than 100 reports are held back"


def test_too_few_reports_together_are_held_back():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"], min_reports=200)
    assert (len(groups.estimates), groups.merged, groups.held_back) == (2, 0, 3)


def test_columns_that_are_left_out_are_added_up():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"], columns=["release"])
    assert {name: each.reports for name, each in groups.estimates.items()} == {"release=1": 550, "release=0": 390}


def test_missing_values_are_a_group():
    (name,) = estimate_groups(PLAN, {(None,): GROUPS["DE", 0]}, ["country"]).estimates
    assert name == "country=none"


def test_groups_whose_names_would_be_alike_stay_apart():
    keys = [("1, b=2", "3"), ("1", "2, b=3"), ("none", "x"), (None, "x"), ('"none"', "x")]
    groups = estimate_groups(PLAN, dict.fromkeys(keys, GROUPS["DE", 0]), ["a", "b"])
    assert set(groups.estimates) == {
        'a="1, b=2", b=3',
        'a=1, b="2, b=3"',
        'a="none", b=x',
        "a=none, b=x",
        r'a="\"none\"", b=x',
    }


ANSWERS = {name: ["no", "yes"] for name in "pqr"}
TABLES = sunzi.make_tables(ANSWERS, [("p", "q"), ("q", "r"), ("p", "r")], 1)


def single_report(is_about_p_and_q):
    for seed in range(100):
        tally = TABLES.simulate([dict.fromkeys(ANSWERS, "no")], seed=seed)
        if tally.block_reports[TABLES.protocol.tables.index((0, 1))] == is_about_p_and_q:
            return tally
    raise AssertionError("no such report")


def test_groups_without_an_estimate_are_held_back():
    large = TABLES.simulate([dict.fromkeys(ANSWERS, "no")] * 100, seed=1)
    found = {("DE",): large, ("LU",): single_report(False), ("MT",): single_report(True)}
    groups = estimate_groups(TABLES, found, ["country"], min_reports=1, table=["p", "q"])
    assert list(groups.estimates) == ["country=DE", "country=MT"]
    assert (groups.merged, groups.held_back, groups.without_estimate) == (0, 0, 1)
    assert groups.small_groups() == "1 group has too few reports for an estimate"
    assert groups.table().notes["groups_without_estimate"] == 1


def test_a_merged_group_without_an_estimate_is_held_back():
    large = TABLES.simulate([dict.fromkeys(ANSWERS, "no")] * 100, seed=1)
    small = dict.fromkeys([("LU",), ("MT",)], single_report(False))
    groups = estimate_groups(TABLES, {("DE",): large, **small}, ["country"], min_reports=2, table=["p", "q"])
    assert (groups.merged, groups.held_back, groups.without_estimate) == (0, 2, 0)


def test_a_question_that_no_group_answers_is_refused():
    with pytest.raises(EstimateError, match="no report covers q yet"):
        estimate_groups(TABLES, {("LU",): single_report(False)}, ["country"], min_reports=1, table=["p", "q"])


def test_options_reach_the_estimate():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"], weights="planned")
    assert {each.weights for each in groups.estimates.values()} == {"planned"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_reports": 0}, "min_reports must be a whole number of at least 1"),
        ({"small": "drop"}, "small must be merge or hold"),
        ({"columns": ["city"]}, "the groups have no column 'city'; they have 'country', 'release'"),
        ({"columns": []}, "one or more columns"),
        ({"columns": ["country", "country"]}, "each once"),
        ({"min_reports": 10**6}, r"no group has 1,000,000 reports, the minimum; the largest of 5 has 500\."),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        estimate_groups(PLAN, GROUPS, ["country", "release"], **options)


def test_the_table_has_all_groups():
    groups = estimate_groups(PLAN, GROUPS, ["country", "release"])
    table = groups.table(top=2, notes={"plan": "x"})
    assert table.columns["group"] == [name for name in groups.estimates for _ in range(2)]
    assert table.columns["reports"] == [500, 500, 300, 300, 140, 140]
    assert set(table.columns["label"]) == {"a", "b"}
    rows = groups.common_rows(2, 0.95, "reporters")
    assert [row.frequency for each in rows.values() for row in each] == table.columns["frequency"]
    assert table.notes["groups_merged"] == 3
    assert table.notes["plan"] == "x"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frame = estimate_groups(PLAN, GROUPS, ["country", "release"]).to_frame(library)
    assert list(frame.columns)[:4] == ["group", "reports", "label", "frequency"]
    assert len(frame) == 9
