"""Histograms: rows by value and in order, of estimates and of post-processed copies."""

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError
from sunzi.results.histogram import data_frame, labels_column, largest, read_only

NASTY = '<script>alert("x")</script>'
PLAN = sunzi.make_plan("grr", ["yes", NASTY, "no"], epsilon=3)
ESTIMATE = PLAN.estimate(PLAN.simulate(["yes"] * 900 + ["no"] * 100, seed=1))


def test_rows_by_value_and_in_order():
    assert len(ESTIMATE) == 3
    rows = list(ESTIMATE)
    assert [row.label for row in rows] == ["yes", NASTY, "no"]
    assert ESTIMATE["no"] == rows[2]
    assert ESTIMATE["no"] == next(row for row in ESTIMATE.top() if row.label == "no")
    assert ESTIMATE.postprocess("clip")["no"].frequency == max(0.0, rows[2].frequency)
    with pytest.raises(DomainError, match="maybe"):
        ESTIMATE["maybe"]


def test_frames_have_labels_or_indices():
    assert labels_column(PLAN.domain) == ["yes", NASTY, "no"]
    assert labels_column(sunzi.Domain(3)).tolist() == [0, 1, 2]
    assert data_frame({"a": [1, 2]}, "polars")["a"].to_list() == data_frame({"a": [1, 2]}, "pandas")["a"].tolist()
    with pytest.raises(ParameterError, match="library must be pandas or polars, got 'arrow'"):
        data_frame({}, "arrow")


def test_the_largest_come_first_and_ties_in_order():
    assert largest(np.array([0.1, 0.3, 0.1, 0.5]), 3).tolist() == [3, 1, 0]
    copy = read_only(np.array([1.0]))
    with pytest.raises(ValueError, match="read-only"):
        copy[0] = 2
