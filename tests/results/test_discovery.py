"""What was found: rows, files and frames."""

import json

import pytest

import sunzi
from sunzi.results.discovery import Discovery, FoundText

FOUND = Discovery(
    (FoundText("yes", 0.5, 0.4, 0.6, 1e-9), FoundText("", 0.3, 0.2, 0.4, 1e-5)), 1000, 500, 0.05, threshold=0.02
)


def test_rows_are_listed_counted_and_named():
    assert FOUND.labels == ("yes", "")
    assert len(FOUND) == 2
    assert [row.frequency for row in FOUND] == [0.5, 0.3]


def test_records_and_documents_hold_everything():
    assert FOUND.records()[0] == {"label": "yes", "frequency": 0.5, "low": 0.4, "high": 0.6, "p_value": 1e-9}
    found = json.loads(json.dumps(FOUND.to_dict()))
    assert {name: found[name] for name in ("reports", "candidates", "false_share", "threshold")} == {
        "reports": 1000,
        "candidates": 500,
        "false_share": 0.05,
        "threshold": 0.02,
    }
    assert found["found"] == FOUND.records()


def test_frames_have_a_row_per_text():
    pytest.importorskip("pandas")
    frame = FOUND.to_frame("pandas")
    assert list(frame.columns) == ["label", "frequency", "low", "high", "p_value"]
    assert frame["label"].tolist() == ["yes", ""]


def test_found_texts_make_the_next_plan():
    plan = sunzi.make_plan("ss-compact", [*FOUND.labels, "other"], 2, other="other")
    assert plan.domain.index("") == 1
    assert plan.domain.index("unheard of") == 2
