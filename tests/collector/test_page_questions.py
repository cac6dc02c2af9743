"""Questions of an analyst on the live page: sums, changes, trends and groups, each with its permalink and downloads."""

import json
import re
from pathlib import Path

import pytest
from browser import LiveService, contrasts
from epochs import filled_epoch, shares
from playwright.sync_api import expect
from running import running

import sunzi

FRUIT = ["apple", "pear, ripe", "cherry", "cherry pie", "plum", "<b>fig</b>"]
PLAN = sunzi.make_plan("grr", FRUIT, 2, groups={"country": ["DE", "FR"]})
BASE = "/v1/collections/fruit"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Eight epochs, the last open and with groups; the apple falls from the fifth on."""
    with running(tmp_path_factory.mktemp("page") / "store.db", {}, minimum_reports=100) as started:
        for number in range(1, 8):
            counts = (3000, 2000, 1000, 200) if number < 5 else (2000, 2000, 2000, 200)
            filled_epoch(started.collector, "fruit", PLAN, shares(*counts), number)
        filled_epoch(started.collector, "fruit", PLAN, shares(200), 8, close=False)
        for group, counts in (("country=DE", (900, 300)), ("country=FR", (300, 900))):
            batch = PLAN.client(seed=9).report_indices(shares(*counts))
            assert started.send_batch(batch, epoch=8, collection="fruit", groups=group).status == 200
        yield LiveService(started)


def number(text):
    return float(text.replace("−", "-").replace("+", "").replace(",", "").removesuffix("%"))


def fetched(service, path):
    return json.loads(service.get(path))


def saved(page, file):
    with page.expect_download() as download:
        page.locator(f'[data-file="{file}"]').click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def sideways(page):
    return page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_selected_values_have_a_sum(visit, service):
    page = visit("?collection=fruit&epoch=1")
    expect(page.locator("#sum")).to_be_hidden()
    page.get_by_label("Select apple for a sum").check()
    page.get_by_label("Select pear, ripe for a sum").check()
    expect(page.locator("#sum-values")).to_have_text("apple + pear, ripe")
    answer = fetched(service, f"{BASE}/epochs/1/sum.json?value=apple&value=pear,%20ripe")
    assert number(page.locator("#sum-share").inner_text()) == pytest.approx(100 * answer["frequency"], abs=0.06)
    expect(page.locator("#sum-interval")).to_contain_text("95 % interval")
    assert page.url.endswith("&value=apple&value=pear%2C+ripe")
    name, content = saved(page, "sum.json")
    assert (name, json.loads(content)) == ("fruit-1-sum.json", answer)
    page.reload()
    expect(page.get_by_label("Select apple for a sum")).to_be_checked()
    expect(page.locator("#sum-values")).to_have_text("apple + pear, ripe")
    page.get_by_role("button", name="Clear selection").click()
    expect(page.locator("#sum")).to_be_hidden()
    expect(page.get_by_label("Select apple for a sum")).not_to_be_checked()


def test_changes_are_the_librarys(visit, service):
    page = visit("?collection=fruit&epoch=7")
    page.get_by_text("Changes", exact=True).click()
    rows = page.locator("#changes-body tr")
    expect(rows).to_have_count(len(FRUIT))
    expect(page.locator("#before")).to_have_value("6")
    expect(page.locator("#changes-test")).to_contain_text("are consistent with no change at all")
    page.locator("#before").select_option("2")
    expect(page.locator("#changes-verdict")).to_contain_text("2 of 6 values changed.")
    answer = fetched(service, f"{BASE}/difference.json?before=2&after=7&top=20")
    assert page.locator("#changes-body .label-text").all_text_contents() == [row["label"] for row in answer["changes"]]
    for change, row in zip(answer["changes"], rows.all(), strict=True):
        assert number(row.locator(".share").inner_text()) == pytest.approx(100 * change["change"], abs=0.06)
        low, high = map(number, row.locator(".interval").inner_text().split(" … "))
        assert (low, high) == pytest.approx((100 * change["low"], 100 * change["high"]), abs=0.06)
        assert (row.get_attribute("class") == "clear") == change["changed"]
        assert row.locator(".near-zero", has_text="changed").is_visible() == change["changed"]
    expect(page.locator("#changes-test")).to_contain_text("p < 0.000001")
    assert page.locator("#changes-body b").count() == 0
    assert page.url.endswith("?collection=fruit&epoch=7&view=changes&before=2")
    name, content = saved(page, "difference.json")
    assert (name, json.loads(content)) == ("fruit-7-difference.json", answer)
    assert saved(page, "difference.png")[1].startswith(b"\x89PNG")

    page.locator("#search").fill("cherry")
    expect(rows).to_have_count(2)
    expect(page.locator('[data-file="difference.png"]')).to_be_hidden()
    assert saved(page, "difference.csv")[1].decode().count("\n") == 3
    page.locator("#search").fill("")
    page.locator("#limit").select_option("discoveries")
    expect(page.locator("#changes-verdict")).to_contain_text("On average, at most 5 % of these are false positives.")


def test_the_back_button_returns_to_every_view(visit, service):
    page = visit("?collection=fruit&epoch=7&view=changes&before=2")
    expect(page.locator("#changes-about")).to_contain_text("from epoch 2 (")
    page.locator("#before").select_option("5")
    expect(page.locator("#changes-about")).to_contain_text("from epoch 5 (")
    page.get_by_text("Trend", exact=True).click()
    expect(page.locator(".panel")).to_have_count(len(FRUIT))
    page.locator("#choice").select_option("v1/collections/fruit/epochs/3")
    expect(page.locator("#epoch")).to_have_text("epoch 3")
    page.go_back()
    expect(page.locator("#epoch")).to_have_text("epoch 7")
    expect(page.locator("#trend")).to_be_visible()
    page.go_back()
    expect(page.locator("#changes-about")).to_contain_text("from epoch 5 (")
    page.go_back()
    expect(page.locator("#changes-about")).to_contain_text("from epoch 2 (")
    expect(page.locator("#view-changes")).to_be_checked()
    page.go_forward()
    expect(page.locator("#before")).to_have_value("5")


def test_trends_have_intervals_and_alarms(visit, service):
    page = visit("?collection=fruit&view=trend")
    panels = page.locator(".panel")
    expect(panels).to_have_count(len(FRUIT))
    answer = fetched(service, f"{BASE}/trend.json?top=20")
    assert page.locator(".panel-label").all_text_contents() == [value["label"] for value in answer["values"]]
    for value, panel in zip(answer["values"], panels.all(), strict=True):
        newest = number(panel.locator("strong").inner_text())
        assert newest == pytest.approx(100 * value["frequency"][-1], abs=0.06)
        corners = re.findall(r"[ML]", panel.locator(".line").get_attribute("d"))
        assert len(corners) == len(answer["epochs"])
        assert len(re.findall(r"[ML]", panel.locator(".band").get_attribute("d"))) == 2 * len(corners)
        alarms = [alarm for alarm in answer["alarms"] if alarm["label"] == value["label"]]
        assert panel.locator(".alarm").count() == len(alarms)
        expect(panel.locator("p").last).to_contain_text("since" if alarms else "no alarm")
    assert {alarm["label"] for alarm in answer["alarms"]} == {"apple", "cherry"}
    expect(page.locator("#trend-alarms")).to_contain_text("apple down since")
    assert saved(page, "trend.csv")[1].decode().count("\n") == 1 + 8 * len(FRUIT)

    page.locator("#search").fill("cherry")
    expect(panels).to_have_count(2)
    page.locator("#search").fill("")
    page.locator("#top").select_option("10")
    page.locator("#sort").select_option("changed")
    expect(page.locator(".panel-label").first).to_have_text(re.compile("apple|cherry"))
    assert page.url.endswith("?collection=fruit&view=trend&top=10&sort=changed")
    page = visit("?collection=fruit&view=trend&value=plum")
    expect(page.locator(".panel-label")).to_have_text("plum")


def test_a_trend_shows_its_progress(visit, service):
    page = visit("?collection=fruit")
    unfinished = iter([{"computed": 3, "epochs": 8}])

    def answer(route):
        progress = next(unfinished, None)
        route.fallback() if progress is None else route.fulfill(status=202, json=progress)

    page.route("**/trend.json*", answer)
    page.get_by_text("Trend", exact=True).click()
    expect(page.locator("#trend-empty-text")).to_have_text("3 of 8 epochs are estimated.")
    expect(page.locator(".panel")).to_have_count(len(FRUIT))
    expect(page.locator("#trend-empty")).to_be_hidden()


def test_groups_are_chosen_and_compared(visit, service):
    page = visit("?collection=fruit")
    expect(page.locator("#group option")).to_have_text(["all users", "country=DE (1,200)", "country=FR (1,200)"])
    page.get_by_label("Users", exact=True).select_option("country=FR")
    expect(page.locator("#histogram-about")).to_have_text("all 6 values, from 1,200 reports of country=FR")
    answer = fetched(service, f"{BASE}/epochs/8/estimate.json?top=20&group=country=FR")
    assert page.locator("#body .label-text").all_text_contents() == [row["label"] for row in answer["histogram"]]
    page.get_by_text("Changes", exact=True).click()
    page.locator("#before").select_option("8")
    expect(page.locator("#changes-empty-text")).to_contain_text("choose another epoch, or two groups of one attribute")
    expect(page.locator('[data-file="difference.csv"]')).to_be_hidden()
    page.locator("#before-group").select_option("country=DE")
    expect(page.locator("#changes-verdict")).to_contain_text("2 of 6 values changed.")
    expect(page.locator("#changes-about")).to_contain_text("from epoch 8, country=DE (")
    expect(page.locator("#changes-about")).to_contain_text("to epoch 8, country=FR (")


def test_epochs_are_listed_newest_first_with_dates_and_counts(visit, service):
    page = visit("?collection=fruit")
    texts = page.locator("#choice option").all_text_contents()
    assert [int(re.search(r"epoch (\d+)", text)[1]) for text in texts] == list(range(8, 0, -1))
    assert all(
        re.fullmatch(r"fruit, epoch \d, \d+ \w+ \d{4}, \d\d:\d\d, [\d,]+ reports(, closed)?", text) for text in texts
    )
    assert texts[-1].endswith(", 6,200 reports, closed")
    page = visit("?collection=fruit&epoch=1&view=changes")
    expect(page.locator("#before option").first).to_contain_text("epoch 8, ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_and_contrast(visit, service, scheme):
    query = "?collection=fruit&epoch=7&postprocess=clip&value=apple&before=2"
    page = visit(query, viewport={"width": 360, "height": 800}, color_scheme=scheme)
    expect(page.locator("#sum-share")).to_be_visible()
    for view, part in (("Histogram", "#body tr"), ("Changes", "#changes-body tr"), ("Trend", ".panel")):
        page.get_by_text(view, exact=True).click()
        expect(page.locator(part).first).to_be_visible()
        assert not sideways(page), view
        assert [each for each in contrasts(page) if each["ratio"] < each["needed"]] == [], view
