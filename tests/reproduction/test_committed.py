"""The committed report and pictures match the committed tables."""

import re
import sys
from pathlib import Path

import browser
import matplotlib as mpl
import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.collecting import EFFICIENT, PAPERS
from reproduction.report import write_report
from reproduction.table import Table

from reproduction import catalogue, claims, runner

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "reproduction"
RESULTS = COMMITTED / "results"
POINTS_OF_TEXT = 9.5
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
PINNED = re.search(r"^matplotlib==(\S+)", (ROOT / "requirements" / "demo.txt").read_text(), re.MULTILINE)[1]


def test_the_report_is_that_of_the_tables(tmp_path):
    (tmp_path / "results").symlink_to(RESULTS)
    write_report([catalogue.find(each) for each in catalogue.NAMES], tmp_path)
    for name in ("REPORT.md", "report.html"):
        assert (tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes(), name


def parts_of(path):
    """The text of a picture between its numbers, and the numbers."""
    text = path.read_text()
    return NUMBER.split(text), np.array([float(number) for number in NUMBER.findall(text)])


def check_same(drawn, committed):
    """The same up to the last digit of a coordinate, which other processors may round differently."""
    (text, numbers), (committed_text, committed_numbers) = parts_of(drawn), parts_of(committed)
    assert text == committed_text
    np.testing.assert_allclose(numbers, committed_numbers, atol=0.02)


@pytest.mark.skipif(mpl.__version__ != PINNED, reason=f"pictures were drawn by Matplotlib {PINNED}")
@pytest.mark.parametrize("name", catalogue.NAMES)
def test_pictures_are_those_of_the_tables(tmp_path, name):
    (tmp_path / f"{name}.csv").symlink_to(RESULTS / f"{name}.csv")
    runner.draw_one(catalogue.find(name), tmp_path, narrow=False)
    check_same(tmp_path / f"{name}.svg", RESULTS / f"{name}.svg")
    drawn, committed = ((folder / f"{name}.pdf").stat().st_size for folder in (tmp_path, RESULTS))
    assert drawn == pytest.approx(committed, rel=0.01)


@pytest.mark.skipif(mpl.__version__ != PINNED, reason=f"pictures were drawn by Matplotlib {PINNED}")
@pytest.mark.parametrize("name", ["bits", "exact"])
def test_narrow_pictures_are_those_of_the_tables(tmp_path, name):
    (tmp_path / f"{name}.csv").symlink_to(RESULTS / f"{name}.csv")
    runner.draw_one(catalogue.find(name), tmp_path, narrow=True)
    assert [path.name for path in tmp_path.glob("*.[sp]*")] == [f"{name}.narrow.svg"]
    check_same(tmp_path / f"{name}.narrow.svg", RESULTS / f"{name}.narrow.svg")


def test_narrow_pictures_have_the_same_panels():
    for name in catalogue.NAMES:
        wide, narrow = ((RESULTS / f"{name}{suffix}").read_text() for suffix in (".svg", ".narrow.svg"))
        assert narrow.count('<g id="axes_') == wide.count('<g id="axes_')
        assert float(re.search(r'width="([\d.]+)pt"', narrow)[1]) == 4 * 72


@pytest.mark.slow
def test_the_page_can_be_read_at_any_width():
    """Pictures fit the screen, the text in them has at least 9 pixels, and the contents lead to every section."""
    with (
        sync_playwright() as playwright,
        browser.open_browser(playwright) as chromium,
        browser.open_page(chromium, (COMMITTED / "report.html").as_uri()) as (page, watch),
    ):
        links = page.locator("nav a").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
        assert links == ["#claims", *(f"#{name}" for name in catalogue.NAMES)]
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(
                "(narrow) => [...document.images].every((image) => image.complete && "
                "(image.currentSrc !== image.src) === narrow)",
                arg=width == 400,
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            scales = page.evaluate("[...document.images].map((image) => image.width / image.naturalWidth)")
            assert len(scales) == len(catalogue.NAMES)
            assert min(scales) * POINTS_OF_TEXT * 96 / 72 >= 9
        page.locator("nav a").last.click()
        expect(page.locator(f"h2{links[-1]}")).to_be_in_viewport()
        assert watch.complaints == []


def test_every_claim_has_evidence_and_every_table_is_full():
    found = set()
    for name in catalogue.NAMES:
        table = Table.load(RESULTS / f"{name}.csv")
        assert table.distinct("scale") == ["full"]
        assert len(table.distinct("sunzi")) == 1
        found |= {piece.claim for piece in catalogue.find(name).evidence(table)}
    declared = [value for value in vars(claims).values() if isinstance(value, claims.Claim)]
    assert found == set(declared)
    assert len({claim.words for claim in declared}) == len(declared)
    assert f"{len(declared)} claims" in (COMMITTED / "REPORT.md").read_text()


def test_the_tables_hold_the_trials_that_were_promised():
    """300 per point as in the paper; on the largest domain 100 where subsets are large, and for other protocols."""
    for name in ("mse", "other-sizes", "analytical-mse", "error-cdf", "dra", "geometry", "comparison"):
        for row in Table.load(RESULTS / f"{name}.csv"):
            if row.get("method") == EFFICIENT:
                assert row["trials"] in (20, 30, 60)
                continue
            slow = row.get("domain_size") == 22_000
            assert row["trials"] >= (100 if slow else 300)
    large = Table.load(RESULTS / "mse.csv").where(domain_size=22_000, method=PAPERS)
    fewer = {(row["method"], row["epsilon"]) for row in large if row["trials"] != 300}
    assert fewer == {("ss", 0.5), ("ss", 1.0)} | {("mss", epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5)}
    report = (COMMITTED / "REPORT.md").read_text()
    assert "fewer at some: 100 for RAPPOR at k = 22,000" in " ".join(report.split())
    lengths = Table.load(RESULTS / "lengths.csv")
    assert lengths.where(length=9).distinct("trials") == [200]
