"""The example site in a real browser, started as its users start it."""

import re
import subprocess
import sys
from functools import partial

import browser
import pytest
from javascript import ROOT
from playwright.sync_api import expect, sync_playwright

pytestmark = pytest.mark.slow

UPLOAD = re.compile(r"/reports\?")
ESTIMATE = re.compile(r"/estimate\.json$")
PLAN = re.compile("/v1/collections/browsers/plan")


@pytest.fixture
def survey(client_directory):
    program = [sys.executable, str(ROOT / "examples" / "survey" / "serve.py"), "--port", "0", "--visitors", "2000"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield re.search(r"http\S+", child.stdout.readline()).group()
        finally:
            child.terminate()
            child.communicate(timeout=60)


def of_epoch(number, route):
    """Announce an epoch of this number, and count every report that is sent to it."""
    page, answer = route.request.frame.page, route.fetch()
    page.route(UPLOAD, lambda upload: upload.fulfill(json={"outcome": "counted", "reports": 1}))
    route.fulfill(json={**answer.json(), "epoch": number})


def agree(page):
    """Agree to reports, which the page may not send before."""
    expect(page.locator("#about")).to_contain_text("randomised on this device before it is sent")
    expect(page.locator("#consent")).not_to_be_checked()
    expect(page.locator("#send")).to_be_disabled()
    page.get_by_label("I agree").check()
    expect(page.locator("#send")).to_be_enabled()


def send(page, label):
    page.get_by_label(label).check()
    page.get_by_role("button", name="Send a noisy report").click()


def test_the_survey_shows_the_outcome_of_a_report(survey):
    """Counted, rejected, postponed, or not made at all."""
    with (
        sync_playwright() as playwright,
        browser.open_browser(playwright) as chromium,
        browser.open_page(chromium, survey) as (page, _),
    ):
        expect(page.locator("#no-report")).to_be_visible()
        expect(page.locator("#report")).to_be_hidden()  # a list without entries
        agree(page)
        refusal = {"error": "ClosedEpochError", "message": "epoch 1 of browsers is closed"}
        page.route(UPLOAD, lambda route: route.fulfill(status=410, json=refusal))
        send(page, "Safari")
        expect(page.locator("#notice")).to_contain_text("rejected a report")
        expect(page.locator("#waiting")).to_have_text("0 to be sent")
        page.unroute(UPLOAD)

        page.route(UPLOAD, lambda route: route.fulfill(status=403, body="<html>Welcome to our hotel"))
        send(page, "Safari")
        expect(page.locator("#notice")).to_contain_text("cannot be reached; your report will be sent later")
        expect(page.locator("#waiting")).to_have_text("1 to be sent")
        page.unroute(UPLOAD)

        send(page, "Safari")
        expect(page.locator("#notice")).to_contain_text("was counted")

        # The browser's database fails.
        page.evaluate("() => { IDBDatabase.prototype.transaction = () => { throw new Error('the disk is full'); }; }")
        send(page, "Safari")
        expect(page.locator("#notice")).to_contain_text("This did not work")
        expect(page.locator("#notice")).to_contain_text("the disk is full")


def test_the_survey(survey):
    with (
        sync_playwright() as playwright,
        browser.open_browser(playwright) as chromium,
        browser.open_page(chromium, survey) as (page, watch),
    ):
        expect(page.locator("#reports")).to_contain_text("2,000 reports")
        expect(page.locator("#result [role=row]")).to_have_count(6)
        agree(page)
        page.get_by_label("Safari").check()
        expect(page.locator("#preview")).to_contain_text("of 6 values")
        send(page, "Safari")
        expect(page.locator("#notice")).to_have_text("Your report was counted.")
        expect(page.locator("#report")).to_be_visible()
        expect(page.locator("#chosen")).to_have_text("Safari")
        number = int(page.locator("#hexadecimal").text_content(), 16)
        assert page.locator("#bits").text_content() == f"{number:08b}"[::-1]
        labels = page.locator("#answers label").all_text_contents()
        expect(page.locator("#seen")).to_have_text(labels[number])
        expect(page.locator("#reports")).to_contain_text("2,001 reports")
        seen = page.locator("#hexadecimal").text_content()

        # Without an estimate, there is no list of results. This browser has one vote, also after a reload.
        page.route(ESTIMATE, lambda route: route.abort())
        page.reload()
        expect(page.locator("#answers label")).to_have_count(6)
        expect(page.locator("#everybody")).to_be_hidden()
        page.unroute(ESTIMATE)
        expect(page.locator("#everybody")).to_be_visible()
        for label in ("Safari", "Chrome"):
            send(page, label)
            expect(page.locator("#notice")).to_contain_text("already answered")
            expect(page.locator("#spent")).to_have_text("ε 2 of 6 in total")
        expect(page.locator("#reports")).to_contain_text("2,001 reports")

        # In the next epochs, the same answer is the same report and costs nothing; others use up the budget.
        for epoch, (label, spent) in enumerate((("Safari", 2), ("Chrome", 4), ("Edge", 6), ("Opera", 6)), 2):
            before = page.locator("#hexadecimal").text_content()
            page.route(PLAN, partial(of_epoch, epoch))
            page.reload()
            expect(page.locator("#result [role=row]")).to_have_count(6)
            send(page, label)
            expect(page.locator("#chosen")).to_have_text(label)
            expect(page.locator("#spent")).to_have_text(f"ε {spent} of 6 in total")
            if label == "Opera":
                expect(page.locator("#notice")).to_contain_text("used up its privacy budget")
                expect(page.locator("#hexadecimal")).to_have_text(before)
            if label == "Safari":
                expect(page.locator("#hexadecimal")).to_have_text(seen)
            page.unroute(PLAN)
        expect(page.locator("#reports")).to_contain_text("2,001 reports")
        assert [text for text in watch.complaints if "ERR_FAILED" not in text] == []
        assert watch.foreign_requests(survey.removesuffix("/survey/")) == []


def test_the_survey_sends_nothing_without_consent(survey):
    stored = "async () => (await indexedDB.databases()).length + localStorage.length"
    with (
        sync_playwright() as playwright,
        browser.open_browser(playwright) as chromium,
        browser.open_page(chromium, survey) as (page, watch),
    ):
        expect(page.locator("#notice")).to_contain_text("Please agree above")
        expect(page.locator("#send")).to_be_disabled()
        page.get_by_label("Edge").check()
        expect(page.locator("#preview")).to_contain_text("of 6 values")
        assert page.evaluate(stored) == 0
        # Withdrawn, the consent is gone for good, and the browser cannot report twice in this epoch.
        agree(page)
        send(page, "Safari")
        expect(page.locator("#notice")).to_have_text("Your report was counted.")
        page.get_by_label("I agree").uncheck()
        expect(page.locator("#notice")).to_contain_text("Nothing more is sent")
        page.reload()
        agree(page)
        send(page, "Safari")
        expect(page.locator("#notice")).to_contain_text("already answered")
        assert watch.complaints == []
    with (
        sync_playwright() as playwright,
        browser.open_browser(playwright) as chromium,
        browser.open_page(chromium, "about:blank") as (page, _),
    ):
        page.add_init_script("Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })")
        page.goto(survey)
        page.get_by_label("I agree").click()
        expect(page.locator("#notice")).to_contain_text("asks not to be tracked")
        expect(page.locator("#consent")).not_to_be_checked()
        expect(page.locator("#send")).to_be_disabled()
        assert page.evaluate(stored) == 0
