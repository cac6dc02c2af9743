"""Tests of the service share `running`, which lies beside them, and the built JavaScript client of tests/clients.

Those of the live page share a browser, a service with a collection of fruit, and how a page of it is visited.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from sunzi.plan import make_plan

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "clients")]


@pytest.fixture(scope="module")
def browser():
    from browser import find_chromium, open_browser

    find_chromium()
    with sync_playwright() as playwright, open_browser(playwright) as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    from browser import FRUIT, HELD, live_service

    with live_service(tmp_path_factory.mktemp("page")) as started:
        fruit = make_plan("mss", FRUIT, 1)
        started.open("fruit", fruit, fruit.client(seed=1).report_many(HELD))
        yield started


@pytest.fixture
def visit(browser, service):
    """Open a page; when the test ends, it must have asked nobody else, and nothing must have gone wrong in it."""
    from browser import open_page

    with ExitStack() as stack:
        watches = []

        def opened(query="?collection=fruit", ready=True, url=service.url, **options):
            page, watch = stack.enter_context(open_page(browser, f"{url}/{query}", **options))
            watches.append((watch, url))
            if ready:
                expect(page.locator("#main")).to_have_attribute("aria-busy", "false")
            return page

        opened.watches = watches
        yield opened
        for watch, url in watches:
            assert watch.strangers(url) == []
            assert watch.complaints == []
            assert watch.requests
