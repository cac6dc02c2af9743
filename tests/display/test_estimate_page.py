"""An estimate as a page and in a notebook, and pages in a browser."""

from datetime import UTC, date, datetime
from html import escape

import browser
import pytest
from playwright.sync_api import expect, sync_playwright

import sunzi

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


def test_a_page_has_the_collection_and_a_date():
    page = ESTIMATE.to_html("Spring", collection="<browsers>", day=date(2026, 5, 4))
    assert "Collection &lt;browsers&gt; · 1,000 reports, 3 values · 2026-05-04" in page
    days = {date.today().isoformat(), datetime.now(tz=UTC).date().isoformat()}
    assert any(f">{day}</p>" in ESTIMATE.to_html() for day in days)


def test_every_verdict_of_the_rows_is_drawn_and_explained():
    plan = sunzi.make_plan("grr", 4, epsilon=1)
    estimate = plan.estimate(plan.simulate([0] * 900 + [1] * 100, seed=6))
    page = estimate.to_html()
    for verdict in ("clear", "alone", "unclear"):
        assert f'class="bar {verdict}"' in page
        assert f'<span class="key {verdict}"></span>' in page
    assert "above 0 by its own interval only" not in estimate.to_html(top=1)


def test_a_long_label_is_shortened_in_the_middle():
    long = "https://www.example.org/" + 60 * "x" + "/the/end"
    plan = sunzi.make_plan("grr", [long, "b"], epsilon=3)
    page = plan.estimate(plan.simulate([long] * 90, seed=1)).to_html()
    assert "<bdi>https://www.exampl…" in page
    assert "/the/end</bdi>" in page
    assert f'title="{long}"' in page


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Open a page of 60 values, or of their changes, in a browser at a given width."""
    labels = [f"value {number}" for number in range(59)] + ["https://www.example.org/" + 60 * "x"]
    plan = sunzi.make_plan("ss-compact", labels, epsilon=2)
    estimate = plan.estimate(plan.simulate([labels[59]] * 900 + [labels[5]] * 500 + [labels[40]] * 100, seed=1))
    later = plan.estimate(plan.simulate([labels[59]] * 500 + [labels[5]] * 900, seed=2))
    path = tmp_path_factory.mktemp("page")
    (path / "page.html").write_text(estimate.to_html("Values", top=60, postprocess="clip"), encoding="utf-8")
    (path / "changes.html").write_text(sunzi.difference(estimate, later).to_html("Changes"), encoding="utf-8")
    with sync_playwright() as playwright, browser.open_browser(playwright) as chromium:

        def open_page(width, name="page.html"):
            return browser.open_page(chromium, (path / name).as_uri(), viewport={"width": width, "height": 800})

        yield open_page


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_a_page_shows_its_numbers_at_any_width(opened, width):
    with opened(width) as (page, watch):
        row = page.locator("tbody tr").first
        for kind in ("estimate", "interval", "users", "processed"):
            expect(row.locator(f"td.{kind}")).to_be_visible()
            box = row.locator(f"td.{kind}").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.get_by_role("table").count() == 1
        assert row.get_by_role("cell").count() >= 4
        assert watch.complaints == []


@pytest.mark.slow
def test_a_page_is_searched_and_sorted(opened):
    with opened(1280) as (page, _):
        names = page.locator("tbody tr:visible td:first-child")
        estimates = "() => [...document.querySelectorAll('td.estimate')].map((cell) => parseFloat(cell.textContent))"
        assert page.evaluate(estimates) == sorted(page.evaluate(estimates), reverse=True)
        page.get_by_role("searchbox").fill("VALUE 4")
        expect(names).to_have_count(11)
        expect(page.locator("output")).to_have_text("11 of 60 found")
        page.get_by_role("searchbox").fill("")
        expect(names).to_have_count(60)

        page.get_by_role("button", name="value", exact=True).click()
        assert names.all_text_contents()[1:4] == ["value 0", "value 1", "value 2"]
        expect(page.get_by_role("columnheader", name="value")).to_have_attribute("aria-sort", "ascending")
        page.get_by_role("button", name="value", exact=True).click()
        assert names.all_text_contents()[:2] == ["value 58", "value 57"]
        for column in ("estimate", "users", "95 % interval", "clip, no interval"):
            page.get_by_role("button", name=column).click()
            assert names.all_text_contents()[1] == "value 5", column
        page.get_by_role("button", name="estimate").click()
        page.get_by_role("button", name="estimate").click()
        assert page.evaluate(estimates) == sorted(page.evaluate(estimates))


@pytest.mark.slow
def test_changes_are_shown_and_sorted_on_a_phone(opened):
    with opened(400, "changes.html") as (page, watch):
        row = page.locator("tbody tr").first
        for kind in ("estimate", "interval", "verdict", "before", "after"):
            expect(row.locator(f"td.{kind}")).to_be_visible()
        expect(row.locator("td.verdict")).to_have_text("changed")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.get_by_role("button", name="change", exact=True).click()
        expect(row.locator("td").first).to_have_text("value 5")
        assert watch.complaints == []


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


def test_a_page_says_what_its_readers_can_learn():
    guarantee = PLAN.batch_guarantee(1000, 1e-8, honest=0.9, reader="tally")
    page = ESTIMATE.to_html(batch=guarantee)
    assert escape(guarantee.in_words()) in page
    for name, text in guarantee.facts():
        assert f"<li>{escape(name)}: {escape(text)}</li>" in page
    assert "<details>" not in ESTIMATE.to_html()
    with pytest.raises(sunzi.ParameterError, match=r"at least 1,001 reports; this estimate has 1,000"):
        ESTIMATE.to_html(batch=PLAN.batch_guarantee(1001, 1e-8))


def test_a_page_refuses_the_guarantee_of_another_plan():
    """Also if epsilon and the number of values are the same: another protocol hides less or more."""
    for other in (sunzi.make_plan("ss", PLAN.domain, epsilon=3), sunzi.make_plan("grr", 3, epsilon=3)):
        with pytest.raises(sunzi.ParameterError, match=f"plan {other.fingerprint}; this estimate belongs to grr"):
            ESTIMATE.to_html(batch=other.batch_guarantee(1000, 1e-8))
    alone = PLAN.protocol.estimate(PLAN.domain, PLAN.simulate(["yes"] * 9, seed=1))
    with pytest.raises(sunzi.ParameterError, match="this estimate has no plan"):
        alone.to_html(batch=PLAN.batch_guarantee(9, 1e-8))
