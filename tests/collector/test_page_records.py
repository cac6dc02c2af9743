"""Numbers and tables on the live page: a distribution with ranges and quantiles, a mean, tables with margins."""

import datetime
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from browser import LiveService
from playwright.sync_api import expect
from running import running

import sunzi

BASE = "/v1/collections"
BINS = 64
COUNTRIES = ["DE", "FR, south", "<b>IT</b>"]


def plans():
    generator = np.random.default_rng(1)
    times = generator.gamma(3, 250, 9_000)
    attributes = {"country": COUNTRIES, "version": ["1", "2"], "crashed": ["no", "yes"]}
    tables = sunzi.make_tables(attributes, [("country",), ("country", "crashed"), ("version", "crashed")], epsilon=3)
    # Nobody in Italy crashes, so that the attributes depend on each other.
    columns = (
        generator.choice(COUNTRIES, 9_000, p=[0.6, 0.3, 0.1]),
        generator.choice(["1", "2"], 9_000),
        generator.choice(["no", "yes"], 9_000, p=[0.7, 0.3]),
    )
    records = [
        {"country": country, "version": version, "crashed": "no" if country == COUNTRIES[2] else crashed}
        for country, version, crashed in zip(*columns, strict=True)
    ]
    days = datetime.date(2026, 1, 1), datetime.date(2026, 3, 6)
    yield "times", sunzi.make_ordered(0, 4096, BINS, epsilon=2, clamp=True, unit="ms"), times
    yield "dates", sunzi.make_ordered(*days, BINS, epsilon=2), [days[0]] * 200
    yield "narrow", sunzi.make_ordered(0, 0.01, BINS, epsilon=2), [0.001] * 200
    yield "mean", sunzi.make_number(0, 4000, epsilon=2, clamp=True, unit="ms"), times
    yield "survey", tables, records
    platforms = sunzi.make_tables({"platform": ["web", "tv"], "crashed": ["no", "yes"]}, [("platform", "crashed")], 1)
    yield "rare", platforms, [{"platform": "web", "crashed": "no"}] * 500
    yield "few", sunzi.make_ordered(0, 4096, BINS, epsilon=2), [1] * 20


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("page") / "store.db", {}, minimum_reports=100) as started:
        live = LiveService(started)
        for name, plan, values in plans():
            live.open(name, plan, plan.client(seed=1).report_batch(values))
        yield live


def number(text):
    return float(text.replace("−", "-").replace(",", "").split(" ")[0])


def fetched(service, path):
    return json.loads(service.get(f"{BASE}/{path}"))


def answered(service, path):
    return fetched(service, path)["answers"]


def test_a_distribution_has_quantiles_and_ranges(visit, service):
    page = visit("?collection=times")
    bars = page.locator("#bars g")
    expect(bars).to_have_count(32)
    edges = [128 * place for place in range(33)]
    query = "&".join(f"range={low}:{high}" for low, high in pairwise(edges))
    answers = answered(service, f"times/epochs/1/answers.json?{query}&quantile=0.5&quantile=0.95&mean=true")
    titles = page.locator("#bars g title").all_text_contents()
    assert titles[1].startswith("128 to 256 ms: ")
    for answer, title, bar in zip(answers, titles, bars.all(), strict=False):
        assert number(title.split(": ")[1]) == pytest.approx(100 * answer["value"], abs=0.06)
        assert bar.get_attribute("class") == ("clear" if answer["low"] > 0 else "unclear")
    figures = page.locator("#measures .figure").all_text_contents()
    assert [number(figure) for figure in figures] == pytest.approx([each["value"] for each in answers[32:]], abs=0.6)
    expect(page.locator("#records-about")).to_have_text("32 bins, from 9,000 reports")

    box = page.locator("#bars").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 5.5 / 32 * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + 2.5 / 32 * box["width"], height)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"\?collection=times&range=256%3A768$"))
    expect(page.locator("#range-share")).to_contain_text("256 to 768 ms: ")
    (chosen,) = answered(service, "times/epochs/1/answers.json?range=256:768")
    share = number(page.locator("#range-share strong").inner_text())
    assert share == pytest.approx(100 * chosen["value"], abs=0.06)
    with page.expect_download() as download:
        page.locator('[data-file="records.json"]').click()
    assert chosen in json.loads(download.value.path().read_text())["answers"]

    page.reload()
    expect(page.locator("#range-share strong")).to_be_visible()
    expect(page.get_by_label("From")).to_have_value("256")
    page.get_by_label("To below").fill("990")
    page.get_by_label("To below").press("Tab")
    expect(page.locator("#range-share")).to_contain_text("256 to 960 ms: ")  # an edge of the plan's own bins
    page.get_by_role("button", name="Clear range").click()
    expect(page.locator("#range-share")).to_contain_text("Drag over the bars")
    page.get_by_text("Histogram", exact=True).click()
    expect(page.locator("#body tr")).to_have_count(20)


def test_dates_are_shown_as_dates(visit):
    page = visit("?collection=dates&range=20454:20456")
    expect(page.locator("#range-share")).to_contain_text("2026-01-01 to 2026-01-03: ")
    expect(page.get_by_label("To below")).to_have_value("2026-01-03")
    page.get_by_label("To below").fill("2026-02-01")
    page.get_by_label("To below").press("Tab")
    expect(page.locator("#range-share")).to_contain_text("2026-01-01 to 2026-02-01: ")
    expect(page.locator("#measures .figure").first).to_have_text(re.compile(r"2026-01-\d\d"))


def test_ends_of_narrow_ranges_are_told_apart(visit):
    page = visit("?collection=narrow")
    expect(page.locator("#bars > text[y='100%']")).to_have_text(["0", "0.0025", "0.005", "0.0075", "0.01"])


def test_a_number_has_its_mean_and_nothing_else(visit, service):
    page = visit("?collection=mean&view=changes")
    (answer,) = answered(service, "mean/epochs/1/answers.json?mean=true")
    figure = page.locator("#measures .figure")
    expect(figure).to_have_count(1)
    assert number(figure.inner_text()) == pytest.approx(answer["value"], abs=0.6)
    interval, clamped = page.locator("#measures .soft").all()
    expect(interval).to_contain_text("95 % interval")
    expect(clamped).to_contain_text("Values outside 0 to 4000 ms count as its nearest")
    expect(page.locator("#values")).to_have_text("Numbers")
    expect(page.locator("#values-words")).to_contain_text(re.compile(r"^0 to 4000 ms rounded to \d points; numbers"))
    expect(page.locator("#views")).to_be_hidden()
    expect(page.locator("#controls")).to_be_hidden()


def test_tables_have_margins_and_a_test(visit, service):
    page = visit("?collection=survey")
    expect(page.locator("#table option")).to_have_text(
        ["country × crashed", "version × crashed", "country", "crashed", "version"]
    )
    answer = fetched(service, "survey/epochs/1/estimate.json?table=country,crashed")["histogram"]
    cells = page.locator("#cells tbody td:not(.margin)")
    expect(cells).to_have_count(6)
    expect(cells.last.locator(".share")).to_be_visible()
    for row, cell in zip(answer, cells.all(), strict=True):
        assert number(cell.locator(".share").inner_text()) == pytest.approx(100 * row["frequency"], abs=0.06)
        assert (cell.get_attribute("class") == "unclear") != row["above_zero"]
    assert not answer[-1]["above_zero"]
    for part, attribute in (("tbody", "country"), ("tfoot", "crashed")):
        margin = fetched(service, f"survey/epochs/1/estimate.json?table={attribute}")["histogram"]
        expect(page.locator(f"#cells {part} .margin .share")).to_have_count(len(margin))
        shown = page.locator(f"#cells {part} .margin .share").all_inner_texts()
        assert [number(share) for share in shown] == pytest.approx([100 * row["frequency"] for row in margin], abs=0.06)
    expect(page.locator("#independence")).to_contain_text("country and crashed are associated")
    assert page.locator("#cells tbody th").all_text_contents() == COUNTRIES

    page.get_by_label("Table", exact=True).select_option("version,crashed")
    expect(page.locator("#independence")).to_contain_text("consistent with independence of version and crashed")
    expect(page.locator("#cells tfoot .share")).to_have_count(2)  # the margin that both tables have
    expect(page).to_have_url(re.compile(r"\?collection=survey&table=version%2Ccrashed$"))
    page.get_by_label("Table", exact=True).select_option("country")
    expect(page.locator("#cells tbody .share")).to_have_count(3)
    expect(page.locator("#independence")).to_be_hidden()
    page.go_back()
    expect(page.locator("#cells tbody .share")).to_have_count(6)  # 4 cells and 2 margins


def test_tables_have_shares_within_the_values_of_an_attribute(visit, service):
    page = visit("?collection=survey")
    cells = page.locator("#cells tbody td:not(.margin)")
    whole = number(cells.first.locator(".share").inner_text())
    page.get_by_label("Cells show").select_option(label="shares within each country")
    expect(page).to_have_url(re.compile(r"\?collection=survey&given=country$"))
    answers = answered(service, "survey/epochs/1/answers.json?table=country,crashed&given=country")
    expect(cells.first.locator(".share")).not_to_have_text(re.compile(f"^{whole}"))
    for answer, cell in zip(answers, cells.all(), strict=True):
        expect(cell.locator(".share")).to_be_visible()
        assert number(cell.locator(".share").inner_text()) == pytest.approx(100 * answer["value"], abs=0.6)
        assert (cell.get_attribute("class") == "unclear") == (answer["low"] <= 0)
    expect(page.locator("#independence")).to_contain_text("country and crashed are associated")
    expect(page.locator("#cells .margin .share")).to_have_count(5)
    with page.expect_download() as download:
        page.locator('[data-file="records.json"]').click()
    assert json.loads(download.value.path().read_text())["answers"] == answers
    page.get_by_label("Table", exact=True).select_option("version,crashed")
    expect(page.get_by_label("Cells show")).to_have_value("")
    expect(page.locator("#table-legend")).to_contain_text("tested for all cells at once")
    page.get_by_label("Table", exact=True).select_option("version")
    expect(page.get_by_label("Cells show")).to_be_hidden()


def test_a_share_among_nobody_may_be_anything(visit):
    page = visit("?collection=rare&given=platform")
    cells = page.locator("#cells tbody td:not(.margin)")
    expect(cells.locator(".share")).to_have_count(4)
    assert cells.locator(".share").all_inner_texts()[2:] == ["?", "?"]
    expect(cells.last).to_contain_text("no interval")
    expect(page.locator("#table-legend")).to_contain_text("too few records have this value to estimate shares")


def test_too_few_reports_and_other_collections(visit):
    page = visit("?collection=few")
    expect(page.locator("#records-empty-title")).to_have_text("Too few reports for an estimate")
    page.locator("#choice").select_option("v1/collections/survey/epochs/1")
    expect(page.locator("#cells tbody .share").first).to_be_visible()
    expect(page.locator("#distribution")).to_be_hidden()
    page.locator("#choice").select_option("v1/collections/mean/epochs/1")
    expect(page.locator("#measures .figure")).to_have_count(1)
    expect(page.locator("#tables")).to_be_hidden()


def test_narrow_screens(visit):
    page = visit("?collection=few", viewport={"width": 360, "height": 800})
    for collection, part in (("times", "#bars"), ("survey", "#cells"), ("mean", "#measures")):
        page.locator("#choice").select_option(f"v1/collections/{collection}/epochs/1")
        expect(page.locator(part)).to_be_visible()
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), collection


def test_health_and_guesses_of_records(visit, service):
    words = {"times": "guesses the bin", "mean": "a number at one of the", "survey": "guesses the whole record"}
    for name, guess in words.items():
        page = visit(f"?collection={name}")
        expect(page.locator("#guess-words")).to_contain_text(guess)
        health = fetched(service, f"{name}/epochs/1/health.json")
        assert not health["alarm"]
        expect(page.locator(".test-verdict")).to_have_text([test["verdict"] for test in health["tests"]])
        judged = {test["name"] for test in health["tests"] if test["p_value"] is not None}
        assert judged >= ({"negative frequencies"} if name == "mean" else {"block balance", "fit residual"})
