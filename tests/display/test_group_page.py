"""The page with a chart per group: complete, on one scale, escaped, and without anything from elsewhere."""

import re

import browser
import pytest
from playwright.sync_api import sync_playwright

import sunzi
from sunzi.display.group_page import GroupPage
from sunzi.tables import estimate_groups

HOSTILE = "<b>&"
PLAN = sunzi.make_plan("grr", [HOSTILE, "b", "c"], 2)
TALLIES = {
    (name,): PLAN.simulate([HOSTILE] * size + ["b"] * 100, seed=size) for name, size in (("DE", 900), ("<i>", 50))
}
GROUPS = estimate_groups(PLAN, TALLIES | {("MT",): PLAN.simulate(["b"] * 9, seed=1)}, ["country"])


def test_every_group_has_a_chart_of_the_same_values():
    page = GROUPS.to_html(top=2)
    assert re.findall(r"<h2>(.*?) <span", page) == ["country=DE", "country=&lt;i&gt;"]
    assert page.count(f'<td title="{"&lt;b&gt;&amp;"}">') == page.count('<td title="b">') == 2
    assert page.count('class="whisker"') == 4, "an interval on every bar"
    assert "<b>" not in page
    assert "1 group with fewer than 100 reports is held back" in page


def test_all_charts_have_one_scale():
    page = GroupPage(GROUPS).page("A title")
    heads = re.findall(r'<th class="draw">(.*?)</th>', page)
    assert len(heads) == 2
    assert len(set(heads)) == 1
    assert "<title>A title</title>" in page


def test_numbers_are_those_of_the_table():
    rows = GROUPS.common_rows(1, 0.95, "reporters")
    page = GROUPS.to_html(top=1)
    for (row,) in rows.values():
        assert re.search(
            rf"<td title=\"{100 * row.low:.1f} % to {100 * row.high:.1f} %\">{100 * row.frequency:.1f} %", page
        )


@pytest.mark.slow
def test_the_page_fits_every_window(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(GROUPS.to_html(), encoding="utf-8")
    with sync_playwright() as playwright, browser.open_browser(playwright) as chromium:
        for width in (1280, 400):
            with browser.open_page(chromium, path.as_uri(), viewport={"width": width, "height": 800}) as (page, watch):
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.get_by_role("table").count() == 2
                assert watch.complaints == []
