"""Open plans on the live page: the texts that were found, how frequent a text must be, and what is said of few."""

import json
from itertools import product

import pytest
from browser import HOSTILE, LiveService
from playwright.sync_api import expect
from running import running

import sunzi
from sunzi.formatting import percent_of_three_digits

PLAN = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=4), 4, cells=1000, groups={"country": ["DE"]})
# Any text can be a token, so that found texts can hold anything.
WILD = sunzi.make_plan("prefixes", sunzi.OpenDomain(HOSTILE, longest=1), 4, cells=1000)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    texts = ["yes"] * 5000 + ["no"] * 3000 + ["never"] * 1200 + [""] * 800
    different = ["".join(letters) for letters in product("abcdefgh", repeat=3)]
    with running(tmp_path_factory.mktemp("page") / "store.db", {}, minimum_reports=50) as started:
        live = LiveService(started)
        live.close(live.open("words", PLAN, PLAN.client(seed=1).report_batch(texts)))
        live.open("words", PLAN, PLAN.client(seed=2).report_batch(texts))
        live.open("nothing", PLAN, PLAN.client(seed=1).report_batch(different))
        live.open("few", PLAN, PLAN.client(seed=1).report_batch(["yes"] * 60))
        live.open("quiet", PLAN)
        yield live


def discovered(service, collection="words"):
    return json.loads(service.get(f"/v1/collections/{collection}/epochs/current/discover.json"))


def number(text):
    return float(text.replace("−", "-").replace(",", "").removesuffix(" %"))


def test_the_texts_are_those_of_the_api(visit, service):
    page, found = visit("?collection=words"), discovered(service)
    rows = page.locator("#texts-body tr")
    expect(rows).to_have_count(found["accepted"])
    assert found["accepted"] >= 4
    for row, shown in zip(found["found"], rows.all(), strict=True):
        expect(shown.locator(".label-text")).to_have_text(row["label"] or "(empty text)")
        assert number(shown.locator("td.share").inner_text()) == pytest.approx(100 * row["frequency"], abs=0.051)
        ends = [number(end) for end in shown.locator("td.interval").inner_text().split(" … ")]
        assert ends == pytest.approx([100 * row["low"], 100 * row["high"]], abs=0.051)
    expect(page.locator("#texts-about")).to_have_text(f"{found['accepted']} texts found in 10,000 reports")
    *lengths, listed = [percent_of_three_digits(each["frequency"]) for each in found["thresholds"]]
    for share in lengths:
        expect(page.locator("#texts-threshold")).to_contain_text(f"{share} if it has up to ")
    expect(page.locator("#texts-threshold")).to_contain_text(f"or {listed} if you name it in a list")
    expect(page.locator("#texts-errors")).to_contain_text("at most 5 % of these are false positives")
    expect(page.locator("#values")).to_have_text("Texts")
    expect(page.locator("#guess-words")).to_have_text("")
    for other in ("Histogram", "Changes", "Trend"):
        expect(page.get_by_text(other, exact=True)).to_be_hidden()


def test_texts_are_downloaded_and_belong_to_an_epoch_and_a_group(visit, service):
    page = visit("?collection=words&epoch=2")
    expect(page.locator("#texts-open")).to_contain_text("found so far")
    with page.expect_download() as download:
        page.locator('[data-file="discover.json"]').click()
    document = json.loads(download.value.path().read_text())
    assert [row["label"] for row in document["found"]][:2] == ["yes", "no"]
    page.get_by_label("Collection and epoch").select_option("v1/collections/words/epochs/1")
    expect(page.locator("#texts-open")).to_be_hidden()
    expect(page.locator("#texts-body tr").first).to_contain_text("yes")


@pytest.mark.parametrize(
    ("collection", "title", "text"),
    [
        ("quiet", "Waiting for the first report", "The program above sends one."),
        ("few", "Too few reports for an estimate", "so collect about 400 reports."),
    ],
)
def test_nothing_is_shown_of_few_reports(visit, service, collection, title, text):
    page = visit(f"?collection={collection}")
    expect(page.locator("#texts-empty-title")).to_have_text(title)
    expect(page.locator("#texts-empty-text")).to_contain_text(text)
    expect(page.locator("#texts-body tr")).to_have_count(0)
    expect(page.locator("#texts-shown")).to_be_hidden()


def test_finding_nothing_is_said(visit, service):
    assert discovered(service, "nothing")["found"] == []
    page = visit("?collection=nothing")
    expect(page.locator("#texts-none")).to_be_visible()
    expect(page.locator("#texts-rows")).to_be_hidden()
    expect(page.locator("#texts-threshold")).to_contain_text("Among 512 reports")


def test_hostile_texts_are_text(visit, service):
    service.open("wild", WILD, WILD.client(seed=1).report_batch(HOSTILE * 300))
    found = [row["label"] for row in discovered(service, "wild")["found"]]
    assert {*HOSTILE} <= {*found}
    page = visit("?collection=wild")
    expect(page.locator("#texts-body tr")).to_have_count(len(found))
    assert page.locator("#texts-body .label-text").all_text_contents() == [
        label if label.strip() else json.dumps(label) for label in found
    ]
    assert page.title() == "wild: 3,000 reports"


@pytest.mark.parametrize("width", [1280, 400])
def test_texts_fit_the_window(visit, service, width):
    page = visit("?collection=words", viewport={"width": width, "height": 900})
    expect(page.locator("#texts-body tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
