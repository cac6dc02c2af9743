"""A real browser for tests of web pages, which records requests and errors."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import packages
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Response, expect
from running import Running, framed, running

from sunzi.plan import Plan

SECONDS = 30  # generous, because test machines can be busy
_CHROMIUM = "chromium-headless-shell"
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

FRUIT = ["apple", "pear", "plum", "cherry", "quince", "medlar", "fig", "date", "lime", "kiwi", "guava", "papaya"]
HELD = ["apple"] * 900 + ["pear"] * 500 + ["plum"] * 300
HOSTILE = [
    "<script>document.title = 'broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "\"quotes' and `ticks` & &amp;",
    "\u202etfel ot thgir",
    "שלום עולם",
    "long " + 195 * "x",
    "👩‍🔬 emoji 🍏",
    "  ",
    "two\nlines",
    "${alert(1)} {{7*7}} %s",
]

expect.set_options(timeout=SECONDS * 1000)


class LiveService:
    """A running collector with the operations that tests of its page need."""

    def __init__(self, service: Running) -> None:
        self.url: str = service.address
        self._service = service

    def open(self, collection: str, plan: Plan, *batches: bytes) -> str:
        """Open an epoch, send these batches and return the epoch's path."""
        number = self._service.collector.open(collection, plan).epoch.number
        path = f"/v1/collections/{collection}/epochs/{number}"
        for batch in batches:
            self.send(path, batch)
        return path

    def send(self, path: str, batch: bytes) -> None:
        """Upload a batch to an epoch's path."""
        answer = self._service.post(f"{path}/batches", framed(batch))
        assert answer.json()["outcome"] == "counted"

    def close(self, path: str) -> None:
        """Close an epoch permanently."""
        assert self._service.post(f"{path}/close").status == 200

    def get(self, path: str, token: str | None = None) -> bytes:
        """The content at a path of the API; fails unless the status is 200."""
        answer = self._service.get(path, **({"Authorization": f"Bearer {token}"} if token else {}))
        assert answer.status == 200, answer
        content: bytes = answer.body
        return content


@contextlib.contextmanager
def live_service(directory: Path, **settings: Any) -> Iterator[LiveService]:
    """A running collector without collections."""
    with running(directory / "store.db", {}, **settings) as service:
        yield LiveService(service)


class Watch:
    """Records the requests of a page and its errors, including violations of the content security policy."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.answers: list[Response] = []
        self.failures: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("response", self._keep)
        page.on("requestfailed", lambda request: self.failures.append(request.url))
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error(`CSP ${event.violatedDirective}`))"
        )

    def _keep(self, answer: Response) -> None:
        self.answers.append(answer)

    def _hear(self, message: ConsoleMessage) -> None:
        # Chromium logs every error status: 401 means that a token is needed, 409 that there is nothing to estimate yet.
        is_refusal = re.match("Failed to load resource: .* status of 40[19] ", message.text) is not None
        if message.type in ("error", "warning") and not is_refusal:
            self.complaints.append(message.text)

    def foreign_requests(self, origin: str) -> list[str]:
        """The requests to other origins."""
        own = (f"{origin}/", f"blob:{origin}/", "data:")
        return [address for address in self.requests if not address.startswith(own)]


def find_chromium() -> str:
    """The path of Debian's Chromium without windows, installed if possible; otherwise the test is skipped.

    It takes less than half the processor time of the usual Chromium.
    """
    reason = None if shutil.which(_CHROMIUM) else packages.install(_CHROMIUM)
    if reason is not None:
        pytest.skip(f"pages are tested in Debian's {_CHROMIUM}: {reason}")
    found = shutil.which(_CHROMIUM)
    assert found is not None, "Chromium was found or has just been installed"
    return found


@contextlib.contextmanager
def open_browser(playwright: Playwright) -> Iterator[Browser]:
    """Headless Chromium."""
    browser = playwright.chromium.launch(executable_path=find_chromium(), args=_ARGUMENTS, timeout=4000 * SECONDS)
    try:
        yield browser
    finally:
        browser.close()


@contextlib.contextmanager
def open_page(browser: Browser, address: str, **options: Any) -> Iterator[tuple[Page, Watch]]:
    """A page in its own context, and the record of its requests and errors. Nothing moves, which would take time."""
    options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
    with contextlib.closing(browser.new_context(**options)) as context:
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        watch = Watch(page)
        page.goto(address)
        yield page, watch


# The contrast of every visible text and every kind of mark with its background, by WCAG 2.
_CONTRASTS = """
() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
      if (colour[3] > 0) throw new Error(`half transparent: ${at.className}`);
    }
    throw new Error("nothing behind");
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || !node.checkVisibility() || node.closest('noscript')) continue;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const colour = node.namespaceURI.endsWith('svg') ? style.fill : style.color;
    found.push({ text, needed: isLarge ? 3 : 4.5, ratio: ratio(parse(colour), behind(node)) });
  }
  const marks = { '.clear .mark-bar': 'fill', '.clear .mark-whisker': 'stroke', '.unclear .mark-bar': 'stroke',
    '.unclear .mark-whisker': 'stroke', '.zero': 'stroke', '.drawing .mark-processed': 'fill', '.outline': 'stroke' };
  for (const [text, property] of Object.entries(marks)) {
    const node = document.querySelector(text);
    const colour = parse(getComputedStyle(node)[property]);
    found.push({ text, needed: 3, ratio: ratio(colour, behind(node)) });
  }
  const [bar, whisker] = ['.clear .mark-bar', '.clear .mark-whisker'].map((each) => document.querySelector(each));
  const crossing = ratio(parse(getComputedStyle(bar).fill), parse(getComputedStyle(whisker).stroke));
  found.push({ text: 'whisker on its bar', needed: 3, ratio: crossing });
  return found;
}
"""


def contrasts(page: Page) -> list[dict[str, Any]]:
    """The contrast ``ratio`` of every text and kind of mark, and the one ``needed`` for WCAG's level AA, on a live page
    that shows a post-processed histogram.
    """
    found: list[dict[str, Any]] = page.evaluate(_CONTRASTS)
    return found


def program_in(page: Page, language: str) -> str:
    """Select a language and return the client program that the page shows."""
    if page.locator("#client").get_attribute("open") is None:
        page.locator("#client summary").click()
    page.locator("#languages").get_by_text(language, exact=True).click()
    expect(page.get_by_role("radio", name=language)).to_be_checked()
    return page.locator("#code").text_content() or ""
