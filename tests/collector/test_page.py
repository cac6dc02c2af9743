"""The live page in a real browser with a real service: it shows the API's figures and contacts no other server."""

import json
import re
from fractions import Fraction
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from browser import FRUIT, HELD, HOSTILE, contrasts, live_service, program_in
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from sunzi.formatting import attacker_success, privacy_bound
from sunzi.plan import make_plan

TOKEN = "an admin token of some length"
MODULES = {
    file.name: file.read_text() for file in files("sunzi.collector").joinpath("page").iterdir() if file.suffix == ".js"
}


def estimate(service, collection="fruit", query="top=20"):
    return json.loads(service.get(f"/v1/collections/{collection}/epochs/current/estimate.json?{query}"))


def column(page, name):
    return [text.strip() for text in page.locator(f"#body td.{name}").all_inner_texts()]


def labels(page):
    return page.locator("#body .label-text").all_text_contents()


def number(text):
    return float(text.replace("−", "-").replace(",", "").removesuffix("%"))


def overflowing(page):
    """Elements that extend beyond the window, except inside boxes that scroll."""
    return page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility()
          && !node.closest('pre, .unseen, .skip') && node.getBoundingClientRect().right > innerWidth + 0.5)
          .map((node) => node.outerHTML.slice(0, 80))
          .concat(document.documentElement.scrollWidth > innerWidth ? ['the page scrolls sideways'] : [])"""
    )


def test_every_module_is_served(visit, service):
    visit()
    watch, _ = visit.watches[0]
    assert watch.failures == []
    assert {answer.status for answer in watch.answers} == {200}
    modules = [answer for answer in watch.answers if answer.request.resource_type == "script"]
    assert sorted(answer.url for answer in modules) == sorted(f"{service.url}/{name}" for name in MODULES)
    for answer in modules:
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self';" in answer.headers["content-security-policy"]


def test_modules_import_one_way():
    graph = {name: re.findall(r'\bfrom "\./(.+)";$', text, re.MULTILINE) for name, text in MODULES.items()}
    order = list(TopologicalSorter(graph).static_order())  # a cycle is an error
    assert (sorted(order), order[-1]) == (sorted(graph), "page.js")


def test_rows_are_the_estimate(visit, service):
    page, rows = visit(), estimate(service)["histogram"]
    assert labels(page) == [row["label"] for row in rows]
    shares, intervals = column(page, "share"), column(page, "interval")
    step = 10.0 ** -len(shares[0].removesuffix(" %").partition(".")[2])
    for row, share, interval, users in zip(rows, shares, intervals, column(page, "users"), strict=True):
        assert number(share) == pytest.approx(100 * row["frequency"], abs=step)
        ends = [number(end) for end in interval.split(" … ")]
        assert ends == pytest.approx([100 * row["low"], 100 * row["high"]], abs=step)
        assert number(users) == pytest.approx(row["count"], abs=0.51)
    expect(page.locator("#histogram-about")).to_have_text("all 12 values, from 1,700 reports")
    expect(page.locator("#interval")).to_have_text("95 % interval")


BADGES = {
    "clear": [],
    "alone": ["> 0 ?, above 0 by its own interval only"],
    "unclear": ["≈ 0, not distinguishable from 0"],
}


def test_drawings_are_the_estimate(visit, service):
    page, rows = visit(), estimate(service)["histogram"]
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('#body tr')].map((row) => {
          const part = (selector) => row.querySelector(selector).getBoundingClientRect();
          const [bar, whisker, zero] = ['.mark-bar', '.mark-whisker', '.zero'].map(part);
          const marks = [...row.querySelectorAll('.near-zero')].filter((mark) => mark.checkVisibility());
          return { row: row.className, marks: marks.map((mark) => mark.textContent), zero: zero.left,
            bar: [bar.left, bar.right], whisker: [whisker.left, whisker.right],
            fill: getComputedStyle(row.querySelector('.mark-bar')).fill };
        })"""
    )
    places = []
    for row, seen in zip(rows, drawn, strict=True):
        tip = seen["bar"][1] if row["frequency"] > 0 else seen["bar"][0]
        root = seen["bar"][0] if row["frequency"] > 0 else seen["bar"][1]
        places += [(row["frequency"], tip), (0.0, root), (0.0, seen["zero"])]
        places += [(row["low"], seen["whisker"][0]), (row["high"], seen["whisker"][1])]
        verdict = "clear" if row["above_zero"] else "alone" if row["low"] > 0 else "unclear"
        assert (seen["row"], seen["marks"]) == (verdict, BADGES[verdict])
        assert (seen["fill"] == "none") != row["above_zero"]
    shares, pixels = np.array(places).T
    slope, zero = np.polyfit(shares, pixels, 1)
    assert slope > 0
    # One axis for all: outlines are centred on their edge, and a line's box may include half its stroke.
    assert np.abs(slope * shares + zero - pixels).max() < 1.5
    assert {seen["row"] for seen in drawn} == set(BADGES)


def test_negatives_are_visible_and_explained(visit, service):
    page, rows = visit(), estimate(service)["histogram"]
    negative = [row["label"] for row in rows if row["frequency"] < 0]
    assert negative
    row = page.locator("#body tr").filter(has_text=negative[-1])
    assert row.locator("td.share").inner_text().startswith("−")
    expect(row.locator(".near-zero").first).to_contain_text("not distinguishable from 0")
    boxes = [row.locator(part).bounding_box() for part in (".mark-bar", ".zero")]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + 1.5
    expect(page.locator("#negatives")).to_contain_text("goes both ways")
    page.locator("#search").fill("apple")
    expect(page.locator("#body tr")).to_have_count(1)
    expect(page.locator("#negatives")).to_be_hidden()


def test_post_processed_estimates_are_shown_next_to_the_raw_ones(visit, service):
    page = visit()
    raw, marks = column(page, "share"), page.locator(".drawing .mark-processed").filter(visible=True)
    assert page.locator("#method").is_disabled()
    assert marks.count() == 0
    page.get_by_text("Raw and post-processed").click()
    for method in ("simplex", "constrained", "significant", "clip"):
        page.locator("#method").select_option(method)
        found = estimate(service, query=f"top=20&postprocess={method}")
        effect = f"Post-processed with {method}, next to the raw estimate: {found['postprocess_effect']}."
        expect(page.locator("#effect")).to_have_text(effect)
        assert column(page, "share") == raw
        assert page.locator("#processed-title").text_content() == f"Post\u2011processed {method}"
        expected = [100 * row[f"frequency_{method}"] for row in found["histogram"]]
        assert [number(text) for text in column(page, "processed")] == pytest.approx(expected, abs=0.051)
        assert marks.count() == len(raw)
    expect(page.locator("#processed-key")).to_contain_text("no longer unbiased, so without interval")
    page.get_by_text("Raw", exact=True).click()
    expect(page.locator("#effect")).to_be_hidden()
    assert marks.count() == 0
    assert page.locator("#body td.processed").filter(visible=True).count() == 0


def test_twenty_two_thousand_labels(visit, service):
    words = [f"word-{index:05d}" for index in range(22_000)]
    plan = make_plan("pgr", words, 2)
    service.open("words", plan, plan.client(seed=3).report_batch(["word-00007"] * 3000 + words[100:2100]))
    page = visit("?collection=words")
    expect(page.locator("#body tr")).to_have_count(20)
    expect(page.locator("#histogram-about")).to_contain_text("the 20 most frequent of 22,000 values")
    assert labels(page)[0] == "word-00007"
    for top in ("10", "50", "100"):
        page.locator("#top").select_option(top)
        expect(page.locator("#body tr")).to_have_count(int(top))
        assert labels(page) == [row["label"] for row in estimate(service, "words", f"top={top}")["histogram"]]
    page.keyboard.press("Escape")
    page.locator("#title").click()
    page.keyboard.press("/")
    page.keyboard.type("WORD-1234")
    expect(page.locator("#body tr")).to_have_count(10)
    assert sorted(labels(page)) == words[12340:12350]
    expect(page.locator("#histogram-about")).to_contain_text("10 matching values")
    page.keyboard.type(" nothing")
    expect(page.locator("#empty-title")).to_have_text("No matches")
    page.keyboard.press("Escape")
    expect(page.locator("#body tr")).to_have_count(100)
    assert all("top=" in address for watch, _ in visit.watches for address in watch.requests if "estimate" in address)


def downloaded(page, link):
    """The download that a click starts. If a file takes seconds to make, the browser may block it, because it no longer
    counts as started by the user; then the user clicks again.
    """
    for patience in (15_000, 15_000, 30_000):
        try:
            with page.expect_download(timeout=patience) as download:
                link.click()
        except PlaywrightTimeoutError:
            continue
        return download.value
    raise AssertionError(f"no download from {link}")


def test_downloads_are_the_apis_answers(visit, service, tmp_path):
    names = []
    for half in (slice(8), slice(8, None)):  # the browser blocks the eleventh download of a page for a while
        page = visit()
        page.get_by_text("Raw and post-processed").click()
        page.locator("#search").fill("P")
        expect(page.locator("#histogram-about")).to_contain_text("4 matching values")
        page.locator("#client summary").click()
        for link in page.locator(".download").filter(visible=True).all()[half]:
            download = downloaded(page, link)
            names.append(download.suggested_filename)
            download.save_as(tmp_path / names[-1])
            answer = service.get(link.get_attribute("href").removeprefix(service.url))
            assert (tmp_path / names[-1]).read_bytes() == answer
    views = {"status", "estimate", "progress", "health"}
    assert {f"fruit-1-{view}.{form}" for view in views for form in ("json", "csv")} <= set(names)
    assert {"fruit-1-estimate.parquet", "fruit-1.tally", "fruit-1.plan.json"} <= set(names)
    shown = json.loads((tmp_path / "fruit-1-estimate.json").read_text())
    assert [row["label"] for row in shown["histogram"]] == labels(page)
    assert shown["postprocess"] == "simplex"
    picture = page.locator('[data-file="estimate.png"]')
    expect(picture).to_be_hidden()  # pictures have neither a search nor post-processing
    page.locator("#search").fill("")
    page.get_by_text("Raw", exact=True).click()
    assert Path(downloaded(page, picture).path()).read_bytes().startswith(b"\x89PNG")


def test_facts_and_health_in_plain_words(visit, service):
    page = visit()
    expect(page.locator("#reports")).to_have_text("1,700")
    guarantee = privacy_bound(Fraction(1)).partition(": ")[2]
    assert page.locator("#epsilon-words").inner_text() == f"{guarantee[0].upper()}{guarantee[1:]}."
    status = json.loads(service.get("/v1/collections/fruit/epochs/1/status.json"))
    guess = attacker_success(status["attackability"], len(FRUIT))
    assert page.locator("#guess-words").inner_text().replace("\u00a0", " ") == f"{guess[0].upper()}{guess[1:]}."
    expect(page.locator("#epsilon")).to_have_text("ε = 1")
    expect(page.locator("#state")).to_have_text("Open")
    health = json.loads(service.get("/v1/collections/fruit/epochs/1/health.json"))
    assert page.locator(".test-verdict").all_text_contents() == [test["verdict"] for test in health["tests"]]
    expect(page.locator("#verdict-text")).to_have_text(f"No alarm: {health['verdict']}.")
    page.get_by_text("What the tests can and cannot detect").click()
    expect(page.locator("#health .explain")).to_contain_text("Fake users who run the honest client on false values")
    minutes = json.loads(service.get("/v1/collections/fruit/epochs/1/progress.json"))
    busiest = max(row["reports"] for row in minutes)
    expect(page.locator("#timeline-text")).to_contain_text(f", {busiest:,} reports")
    expect(page.locator("#timeline .outline")).to_have_count(1)
    assert page.locator("#timeline .time").count() >= 1


def test_an_alarm_is_shown_by_text_and_shape(visit, service):
    plan = make_plan("mss", FRUIT, 1)
    crafted = plan.client(seed=2).report_batch(["lime"]) * 500
    service.open("poisoned", plan, plan.client(seed=1).report_batch(HELD), crafted)
    page = visit("?collection=poisoned")
    expect(page.locator("#health-short")).to_contain_text("Alarm")
    expect(page.locator("#verdict-text")).to_contain_text("not made by the honest client")
    alarmed = page.locator('.test[data-state="alarm"]')
    assert alarmed.count() >= 1
    assert set(alarmed.locator(".test-icon").all_text_contents()) == {"!"}


def test_new_reports_change_numbers_and_nothing_else(visit, service):
    plan = make_plan("grr", FRUIT, 1)
    path = service.open("growing", plan, plan.client(seed=1).report_batch(HELD))
    page = visit("?collection=growing")
    page.evaluate("window.kept = [...document.querySelectorAll('#body tr, #axis, .mark-bar')]")
    before = column(page, "users")
    service.send(path, plan.client(seed=2).report_batch(HELD))
    expect(page.locator("#reports")).to_have_text("3,400")
    expect(page.locator("#histogram-about")).to_contain_text("3,400 reports")
    assert column(page, "users") != before
    assert page.evaluate("window.kept.every((node) => node.isConnected)")


def test_epochs_are_selectable_and_closed_ones_marked(visit, service):
    first, second = make_plan("grr", FRUIT, 1), make_plan("grr", FRUIT, 2)
    closed = service.open("seasons", first, first.client(seed=1).report_batch(HELD))
    page = visit("?collection=seasons&epoch=1")
    service.close(closed)
    expect(page.locator("#state")).to_contain_text("Closed")
    expect(page.locator("#tick-text")).to_have_text("Closed with 1,700 reports")
    service.open("seasons", second)
    page.reload()
    expect(page.locator("#epoch")).to_have_text("epoch 1")
    expect(page.locator("#elsewhere")).to_have_text("New clients report to epoch 2; this is epoch 1.")
    page.get_by_label("Collection and epoch").select_option("v1/collections/seasons/epochs/2")
    expect(page.locator("#epoch")).to_have_text("epoch 2")
    expect(page.locator("#state")).to_have_text("Open")
    expect(page.locator("#epsilon")).to_have_text("ε = 2")
    expect(page.locator("#empty-title")).to_have_text("Waiting for the first report")
    assert page.url.endswith("?collection=seasons&epoch=2")


def test_hostile_labels_are_text(visit, service):
    plan = make_plan("grr", HOSTILE, 2)
    service.open("hostile", plan, plan.client(seed=1).report_batch(HOSTILE * 20))
    page = visit("?collection=hostile", viewport={"width": 360, "height": 800})
    expect(page.locator("#body tr")).to_have_count(len(HOSTILE))
    assert sorted(labels(page)) == sorted(json.dumps(label) if not label.strip() else label for label in HOSTILE)
    assert page.locator("#body img, #body script").count() == 0
    assert page.title().startswith("hostile: ")
    assert json.dumps(HOSTILE[0]) in page.locator("#code").text_content()
    page.locator("#search").fill("<script>")
    expect(page.locator("#body tr")).to_have_count(1)
    page.locator("#search").fill("<b>no</b>")
    expect(page.locator("#empty-text")).to_have_text("No label contains “<b>no</b>”.")
    page.locator("#search").fill("")
    expect(page.locator("#body tr")).to_have_count(len(HOSTILE))
    assert overflowing(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_and_contrast(visit, service, scheme):
    page = visit(viewport={"width": 360, "height": 800}, color_scheme=scheme)
    page.get_by_text("Raw and post-processed").click()
    expect(page.locator("#rows")).to_have_class(re.compile("with-processed"))
    page.locator("#client summary").click()
    page.get_by_text("What the tests can and cannot detect").click()
    for language in ("JavaScript", "Python"):
        program_in(page, language)
        assert overflowing(page) == []
        found = contrasts(page)
        assert len(found) > 100
        assert [each for each in found if each["ratio"] < each["needed"]] == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 23)"
    assert dark == (scheme == "dark")


def test_everything_by_keyboard(visit, service):
    page = visit()
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            """() => { const at = document.activeElement;
              const shown = at.matches('.segments input') ? at.nextElementSibling : at;
              const style = getComputedStyle(shown);
              return { name: at.id || at.dataset?.file || at.tagName.toLowerCase() + '.' + at.className,
                visible: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 } }"""
        )
        if focus["name"].startswith("body"):
            break
        assert focus["visible"], focus
        seen.append(focus["name"])
    assert seen[0] == "a.skip"
    expected = ["status.json", "status.csv", "search", "top", "raw"]
    expected += ["estimate.json", "estimate.csv", "estimate.parquet", "estimate.png", "tally"]
    expected += ["progress.json", "progress.csv", "health.json", "health.csv"]
    assert [name for name in seen if name in expected] == expected
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("p/")
    assert page.locator("#search").input_value() == "p/"
    page.keyboard.press("Escape")
    for key in ("Tab", "Tab", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("#effect")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "method"
    page.locator("#client summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "language"


def test_a_lost_connection_is_shown_and_retried(visit, service):
    page = visit()
    rows = column(page, "users")
    page.context.set_offline(True)
    expect(page.locator("#connection-text")).to_have_text("Connection lost, retrying")
    assert column(page, "users") == rows
    page.context.set_offline(False)
    expect(page.locator("#connection-text")).to_have_text("Live")
    watch, _ = visit.watches[0]
    assert all("ERR_INTERNET_DISCONNECTED" in complaint for complaint in watch.complaints)
    watch.complaints.clear()


def test_a_hidden_tab_asks_nothing(visit, service):
    page = visit()
    watch, _ = visit.watches[0]
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    page.evaluate(f"{hide} document.dispatchEvent(new Event('visibilitychange')); }}", True)
    asked = len(watch.requests)
    page.wait_for_timeout(3000)
    assert len(watch.requests) == asked
    page.evaluate(f"{hide} document.dispatchEvent(new Event('visibilitychange')); }}", False)
    with page.expect_response("**/status.json"):
        pass


def test_the_admin_token(visit, tmp_path):
    plan = make_plan("grr", FRUIT, 1)
    with live_service(tmp_path, admin_token=TOKEN) as locked:
        locked.open("secret", plan, plan.client(seed=1).report_batch(HELD))
        page = visit("", ready=False, url=locked.url)
        expect(page.locator("#gate")).to_be_visible()
        expect(page.locator("#main")).to_be_hidden()
        assert page.evaluate("document.activeElement.id") == "token"
        for wrong in ("not the token at all", "ünicode"):
            page.get_by_role("textbox", name="Admin token").fill(wrong)
            page.keyboard.press("Enter")
            expect(page.locator("#gate-error")).to_have_text("This token is wrong.")
        page.get_by_role("textbox", name="Admin token").fill(TOKEN)
        page.get_by_role("button", name="Unlock").click()
        expect(page.locator("#reports")).to_have_text("1,700")
        expect(page.locator("#body tr")).to_have_count(len(FRUIT))
        content = Path(downloaded(page, page.locator('[data-file="estimate.csv"]')).path()).read_bytes()
        assert content == locked.get("/v1/collections/secret/epochs/1/estimate.csv?top=20", TOKEN)
        page.reload()
        expect(page.locator("#reports")).to_have_text("1,700")
        assert TOKEN not in page.content()
        page.get_by_role("button", name="Forget token").click()
        expect(page.locator("#gate")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
        page.close()


def test_a_collector_without_a_collection(visit, tmp_path):
    with live_service(tmp_path) as bare:
        page = visit("", ready=False, url=bare.url)
        expect(page.locator("#nothing")).to_contain_text("No collection yet")
        bare.open("first", make_plan("grr", FRUIT, 1))
        expect(page.locator("#collection")).to_have_text("first")
        expect(page.locator("#chooser")).to_be_hidden()
        page.close()


def test_too_few_reports_are_never_shown_as_no_alarm(visit, service, tmp_path):
    faint = make_plan("grr", FRUIT, "1/20")
    service.open("faint", faint, faint.client(seed=1).report_batch(HELD[::10]))
    page = visit("?collection=faint")
    expect(page.locator("#health-short")).to_have_text("Too few reports")
    expect(page.locator("#health-fact")).to_have_attribute("data-state", "unknown")
    expect(page.locator("#verdict-text")).to_contain_text("Too few reports")
    with live_service(tmp_path, minimum_reports=100) as strict:
        plan = make_plan("mss", FRUIT, 1)
        strict.open("fruit", plan, plan.client(seed=1).report_batch(HELD[:12]))
        page = visit("", url=strict.url)
        expect(page.locator("#empty-title")).to_have_text("Too few reports for an estimate")
        expect(page.locator("#empty-text")).to_contain_text("88 more reports are needed")
        expect(page.locator("#health-short")).to_have_text("Too few reports")
        expect(page.locator("#verdict-text")).to_contain_text("88 more reports are needed")
        expect(page.locator("#rows")).to_be_hidden()


def test_readers_are_told_what_they_can_learn(visit, tmp_path):
    page = visit()
    expect(page.locator("#readers-text")).to_contain_text("No guarantee is claimed for readers: this collector also")
    expect(page.locator("#readers-details")).to_be_hidden()
    plan = make_plan("grr", FRUIT, 2)
    with live_service(tmp_path, minimum_reports=100, publish_delta=1e-8, honest=0.9) as service:
        path = service.open("fruit", plan, plan.client(seed=1).report_batch(HELD))
        page = visit(url=service.url, viewport={"width": 400, "height": 800})
        expect(page.locator("#empty-title")).to_have_text("Published when the epoch is closed")
        expect(page.locator("#readers-text")).to_contain_text("until it is closed.")
        expect(page.locator("#health-short")).to_have_text("Not yet")
        service.close(path)
        guarantee = plan.batch_guarantee(len(HELD), 1e-8, honest=0.9, reader="tally")
        expect(page.locator("#readers-text")).to_have_text(guarantee.in_words())
        expect(page.locator("#body tr")).to_have_count(12)
        page.locator("#readers-details summary").click()
        assert page.locator("#readers-facts dd").all_inner_texts() == [text for _, text in guarantee.facts()]
        expect(page.locator("#readers-conditions li").first).to_contain_text("not hold against the operator")
        assert overflowing(page) == []
