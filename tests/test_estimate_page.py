"""An estimate as a page and in a notebook. The page that the command writes is tested in tests/cli/test_estimate.py."""

import pytest

import sunzi
from sunzi.errors import DomainError

NASTY = '<script>alert("x")</script>'
PLAN = sunzi.make_plan("grr", ["yes", NASTY, "no"], epsilon=3)
ESTIMATE = PLAN.estimate(PLAN.simulate(["yes"] * 900 + ["no"] * 100, seed=1))


def test_a_page_has_the_title_and_the_plan():
    page = ESTIMATE.to_html("Spring & survey", postprocess="simplex")
    assert "<title>Spring &amp; survey</title>" in page
    assert "<h1>Spring &amp; survey</h1>" in page
    assert all(text in page for text in (PLAN.fingerprint, "1,000 reports, 3 values", "simplex, no interval"))
    assert "<script>alert" not in page
    assert "<h1>1,000 reports, 3 values</h1>" in ESTIMATE.to_html()


def test_a_protocol_by_itself_has_no_plan_to_show():
    page = PLAN.protocol.estimate(PLAN.domain, PLAN.simulate(["yes"] * 9, seed=1)).to_html()
    assert "epsilon" not in page
    assert "plan" not in page


def test_a_notebook_shows_bars_with_intervals():
    shown = ESTIMATE._repr_html_()
    assert "<script>alert" not in shown
    assert shown.count('class="whisker"') == shown.count("<rect") == 3
    assert "<html" not in shown
    copy = ESTIMATE.postprocess("clip")
    assert "biased upwards" in copy._repr_html_()
    assert "whisker" not in copy._repr_html_()


def test_a_ridge_estimate_shows_no_intervals():
    plan = sunzi.make_plan("mss", 100, epsilon=1)
    assert "biased" in plan.estimate(plan.simulate([1] * 100, seed=1), ridge=1.0)._repr_html_()


def test_rows_by_value_and_in_order():
    assert len(ESTIMATE) == 3
    rows = list(ESTIMATE)
    assert [row.label for row in rows] == ["yes", NASTY, "no"]
    assert ESTIMATE["no"] == rows[2]
    assert ESTIMATE["no"] == next(row for row in ESTIMATE.top() if row.label == "no")
    assert ESTIMATE.postprocess("clip")["no"].frequency == max(0.0, rows[2].frequency)
    with pytest.raises(DomainError, match="maybe"):
        ESTIMATE["maybe"]
