"""A difference as a page and in a notebook. A browser shows it in tests/display/test_estimate_page.py."""

from html import unescape

import pytest

import sunzi
from sunzi.display.changes_page import p_value_text

LABELS = ["yes", '<script>alert("x")</script>', "no", "maybe", "a long label " + 60 * "x"]
PLAN = sunzi.make_plan("grr", LABELS, epsilon=3)
BEFORE = PLAN.estimate(PLAN.simulate(["yes"] * 900 + ["no"] * 100, seed=1))
AFTER = PLAN.estimate(PLAN.simulate(["yes"] * 500 + ["no"] * 300 + ["maybe"] * 40, seed=2))
FOUND = sunzi.difference(BEFORE, AFTER)


def test_a_page_has_both_sides_and_every_verdict():
    page = FOUND.to_html("Spring & survey", names=("<old>", "new"), confidence=0.9)
    assert "<h1>Spring &amp; survey</h1>" in page
    assert "&lt;old&gt;: 1,000 reports · new: 840 reports" in page
    assert "<script>alert" not in page
    assert page.count('class="whisker"') == len(LABELS)
    for row in FOUND.top(5, 0.9):
        assert f'data-value="{row.change:.9g}"' in page
        assert f'data-value="{row.before:.9g}" data-name="&lt;old&gt;"' in page
    text = unescape(page)
    assert page.count(">changed<") == FOUND.changed(0.1).sum() > 1
    assert "changed: the probability of any false verdict is at most 10 %" in text
    assert f"nothing changed at all:\n{p_value_text(FOUND.p_value())}." in text
    assert "can come out below 0" in text
    assert PLAN.fingerprint in page


def test_the_default_title_counts_changes():
    assert f"<h1>{FOUND.changed().sum()} of 5 values changed</h1>" in FOUND.to_html()
    same = sunzi.difference(BEFORE, BEFORE).to_html(verdict="discoveries")
    assert "<h1>0 of 5 values changed</h1>" in same
    assert "p = 1." in same


def test_a_guarantee_is_stated_only_if_both_sides_share_it():
    other = sunzi.make_plan("grr", LABELS, epsilon=1)
    mixed = sunzi.difference(BEFORE, other.estimate(other.simulate(["yes"] * 900, seed=2))).to_html()
    assert "times as likely" in FOUND.to_html()
    assert "times as likely" not in mixed
    assert PLAN.fingerprint in mixed
    assert other.fingerprint in mixed


@pytest.mark.parametrize(
    ("p_value", "text"), [(1.0, "p = 1"), (0.0432, "p = 0.043"), (1e-4, "p = 0.0001"), (1e-9, "p < 1e-6")]
)
def test_p_values_in_words(p_value, text):
    assert p_value_text(p_value) == text


def test_a_notebook_shows_bars_with_intervals():
    shown = FOUND._repr_html_()
    assert shown.count('class="whisker"') == shown.count("<rect") == len(LABELS)
    assert "1,000 reports before, 840 reports after." in shown
    assert "<html" not in shown
