"""Use the built site in Chromium, from its files alone. Run by scripts/test after scripts/docs, not by pytest.

It proves that search works without a server, that pages load nothing from elsewhere, and that they fit a phone.
"""

import os
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Watch, open_browser, open_page  # noqa: E402

SITE = ROOT / "build" / "docs" / "site"
PAGES = ["index", "guide", "cli", "api", "api/sunzi", "mathematics", "performance", "reproduction/report", "changelog"]
PHONE = {"viewport": {"width": 400, "height": 800}, "color_scheme": "dark", "has_touch": True}


def check_search(page: Page) -> None:
    """A word leads to the page about it, which marks the word."""
    page.keyboard.press("/")
    page.keyboard.type("attackability")
    found = page.locator("a[href*='attack.html?h=attackability']").first
    expect(found).to_be_visible()
    found.click()
    expect(page.locator("h1")).to_contain_text("Attack")
    expect(page.locator("article mark").first).to_be_visible()


def check_colours(page: Page) -> None:
    """The page follows the system's preference, and the button changes it."""
    schemes = [page.locator("body").get_attribute("data-md-color-scheme")]
    page.locator("label[for='__palette_0']").click()
    schemes.append(page.locator("body").get_attribute("data-md-color-scheme"))
    assert schemes == ["slate", "default"], schemes


def check_widths(page: Page) -> None:
    """No page is wider than a phone's screen: wide tables and code scroll within it."""
    for name in PAGES:
        page.goto((SITE / f"{name}.html").as_uri())
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"], f"{name}.html is {width} pixels wide"


def check_requests(watch: Watch) -> None:
    """Everything comes from the site's own files."""
    foreign = [address for address in watch.requests if not address.startswith((SITE.as_uri(), "blob:", "data:"))]
    assert watch.requests
    assert (foreign, watch.failures, watch.complaints) == ([], [], [])


def main() -> None:
    """Run every check; a failed assertion ends the program with an error."""
    with sync_playwright() as playwright, open_browser(playwright) as browser:
        start = (SITE / "index.html").as_uri()
        with open_page(browser, start) as (page, watch):
            check_search(page)
            check_requests(watch)
        with open_page(browser, start, **PHONE) as (page, watch):
            check_colours(page)
            check_widths(page)
            check_requests(watch)
    print(f"the site works without a server: search, dark mode, and {len(PAGES)} pages on a phone")


if __name__ == "__main__":
    try:
        main()
    except pytest.skip.Exception as reason:
        print(f"skipped the site in a browser: {reason}")
        sys.exit(os.environ.get("SUNZI_REQUIRE_ALL", "0") != "0")
