"""Trends as pages: rows, rings, scales, and labels that are not markup."""

import re

import pytest

import sunzi
from sunzi.display.trends_page import TrendPage

PLAN = sunzi.make_plan("grr", ["<b>bold</b>", "plain"], 3)


@pytest.fixture(scope="module")
def trend():
    held = [["plain"] * 500 + ["<b>bold</b>"] * 500] * 5 + [["plain"] * 800 + ["<b>bold</b>"] * 200] * 3
    return sunzi.trend([PLAN.estimate(PLAN.simulate(values, seed=seed)) for seed, values in enumerate(held)])


def test_a_page_loads_nothing_and_escapes_labels(trend):
    page = trend.to_html("A <title>", collection="browsers")
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "Collection browsers · 8 epochs, 1 to 8 · 8,000 reports" in page
    assert "<b>" not in page
    assert "&lt;b&gt;bold" in page
    assert not re.search(r"(?:src|href)=", page)
    assert "One false alarm is expected in 200 values times epochs" in page


def test_rings_are_at_alarms(trend):
    rings = re.findall(r'<circle class="ring" cx="([0-9.]+)%"', TrendPage(trend, (0,)).fragment())
    expected = [float(alarm.moment - 1) / 7 * 80 + 1 for alarm in trend.alarms() if alarm.index == 0]
    assert [float(ring) for ring in rings] == pytest.approx(expected, abs=0.01)
    assert rings


def test_values_can_be_named(trend):
    page = trend.to_html(values=["plain"], one_in=1e9)
    assert page.count("<polyline") == 1
    assert "1,000,000,000 values times epochs" in page


def test_a_slope_shows_the_digits_of_its_error(trend):
    page = trend.to_html()
    assert len(re.findall(r"[+-]\d+\.\d+ ± 0\.\d\d", page)) == 2
