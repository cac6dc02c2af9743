"""One estimate per group: small groups are merged or held back, and columns that are left out are added up."""

import numpy as np
import pytest

import sunzi
from sunzi.errors import ParameterError
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
