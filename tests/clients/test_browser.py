"""The built client in a real browser: offline and back, reloads, lost answers, several tabs, a killed browser.

A page of one origin reports to a collector of another. Where Chromium cannot be had the tests are skipped, and say so.
"""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import browser
import numpy as np
import pages
import pytest
from playwright.sync_api import Error, expect, sync_playwright
from running import running

import sunzi

LABELS = ["Firefox", "Chrome", "Safari", "Edge", "other"]
SHARES = [0.4, 0.3, 0.15, 0.1, 0.05]
USERS = 2000
# The live page shows 95 % intervals. Three times as wide they hold 5.9 standard errors to each side, which a truth
# misses less than once in a million runs, over all labels.
WIDER = 3


@pytest.fixture(scope="module")
def playwright():
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def chromium(playwright):
    with browser.open_browser(playwright) as opened:
        yield opened


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("grr", domain=LABELS, epsilon=3)


@pytest.fixture(scope="module")
def site(client_directory, tmp_path_factory):
    with pages.served(client_directory, tmp_path_factory.mktemp("site") / "site") as origin:
        yield origin


@pytest.fixture
def collector(plan, site, tmp_path):
    with running(tmp_path / "store.db", {"default": plan}, allow_origins=(site,)) as service:
        yield service


def open_page(context, site, collector, lifetime=3):
    page = context.new_page()
    page.goto(f"{site}/page.html")
    expect(page.locator("#state")).to_have_text("ready")
    page.evaluate("([address, cap]) => begin(address, cap)", [collector.address, lifetime])
    return page


def again(page, collector, lifetime=3):
    """Reload, and start as a page does."""
    page.reload()
    expect(page.locator("#state")).to_have_text("ready")
    page.evaluate("([address, cap]) => begin(address, cap)", [collector.address, lifetime])


def queue(page, pairs):
    for start in range(0, len(pairs), 100):
        part = pairs[start : start + 100]
        assert page.evaluate("(pairs) => queueAll(pairs)", part) == len(part)


def waiting(page):
    return page.evaluate("async () => (await device.waiting()).length")


def until(page, condition):
    """Wait for what the page brings about in its own time."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert condition()


def shown_number(text):
    return float(text.strip().rstrip(" %").replace("−", "-"))


def shown_histogram(dashboard):
    """What the live page's table says: {label: (low, share, high)}, in percent."""
    shown = {}
    for row in dashboard.locator("#body tr").all():
        low, high = row.locator("td.interval").inner_text().split("…")
        share = row.locator("td.share").inner_text()
        label = row.locator(".label-text").inner_text()
        shown[label] = tuple(shown_number(text) for text in (low, share, high))
    return shown


def check_shown(dashboard, values):
    """The live page's histogram is right: the truth is within its intervals, and they say something."""
    expect(dashboard.locator("#histogram-about")).to_have_text("all 5 values, from 2,000 reports")
    expect(dashboard.locator("#interval")).to_have_text("95 % interval")
    shown = shown_histogram(dashboard)
    assert shown.keys() == set(LABELS)
    for label, (low, share, high) in shown.items():
        truth = 100 * values.count(label) / USERS
        assert share - WIDER * (share - low) <= truth <= share + WIDER * (high - share), (label, shown)
        assert low < share < high < low + 8
    return shown


def lose_answers(page):
    """Send, and let no answer come back from a collector that has counted."""

    def lose(route):
        route.fetch()
        route.abort()

    lost = re.compile(r"/reports\?")
    page.route(lost, lose)
    assert page.evaluate("() => device.flush()")["acknowledged"] == 0
    page.unroute(lost)


def test_2000_users_offline_and_back(chromium, plan, site, collector):
    """The whole way of 2,000 values, from a page that is cut off, reloaded and closed to what the live page shows."""
    values = np.random.default_rng(7).choice(LABELS, USERS, p=SHARES).tolist()
    # One device here stands for many: each attribute has noise and budget of its own.
    pairs = [[f"user {number}", value] for number, value in enumerate(values)]
    context, watching = chromium.new_context(), chromium.new_context()
    page, dashboard = open_page(context, site, collector), watching.new_page()
    dashboard.goto(collector.address)

    def expect_counted(number):
        assert collector.tally().reports == number
        expect(dashboard.locator("#reports")).to_have_text(f"{number:,}")

    queue(page, pairs[:600])
    assert page.evaluate("() => device.flush()") == {"acknowledged": 600, "refused": 0, "waiting": 0}
    expect_counted(600)

    # Offline, everything is kept; online, the page is reloaded before it has sent anything.
    context.set_offline(True)
    queue(page, pairs[600:1200])
    assert page.evaluate("() => device.flush()") == {"acknowledged": 0, "refused": 0, "waiting": 600}
    context.set_offline(False)
    again(page, collector)
    assert waiting(page) == 600
    expect_counted(600)

    # It is reloaded again in the midst of sending.
    page.evaluate("() => { device.flush().catch(() => undefined); }")
    page.wait_for_timeout(150)
    again(page, collector)
    left = waiting(page)
    assert page.evaluate("() => device.flush()")["acknowledged"] == left
    expect_counted(1200)

    # Answers are lost after the collector has counted: everything is sent once more, and counted once.
    queue(page, pairs[1200:1500])
    lose_answers(page)
    assert collector.tally().reports > 1200
    assert page.evaluate("() => device.flush()") == {"acknowledged": 300, "refused": 0, "waiting": 0}
    expect_counted(1500)

    # The rest goes while the page closes: by beacon, and once more by the next page, which cannot know of the beacon.
    queue(page, pairs[1500:])
    context.set_offline(True)
    page.evaluate("() => { device.keepSending(); }")
    page.wait_for_timeout(100)
    context.set_offline(False)
    page.close()
    page = open_page(context, site, collector)
    page.evaluate("() => { device.keepSending(1); }")
    until(page, lambda: waiting(page) == 0)
    expect_counted(USERS)
    context.close()

    shown = check_shown(dashboard, values)
    watching.close()

    # It is the histogram of what the collector has counted, to the last digit shown.
    estimate = plan.estimate(collector.tally())
    for index, label in enumerate(LABELS):
        low, high = (100 * float(end[index]) for end in estimate.interval(0.95))
        assert shown[label] == pytest.approx((low, 100 * float(estimate.frequencies[index]), high), abs=0.051)


def test_one_report_is_made_and_sent(chromium, plan, site, collector):
    """The client alone, without a device: made once, sent as often as one likes, counted once."""
    context = chromium.new_context()
    page = open_page(context, site, collector)
    is_bytes, report, outcomes = page.evaluate(
        """async () => {
          const client = new Client(epoch.plan, { maxEpsilon: 3 });
          const report = client.report('Safari');
          const outcomes = [await client.send(epoch.url), await client.send(epoch.url)];
          return [report instanceof Uint8Array, [...report], [...outcomes, await client.send(epoch.url, report)]];
        }"""
    )
    assert is_bytes
    assert outcomes == ["counted", "repeated", "repeated"]
    assert collector.tally() == plan.tally([bytes(report)])
    with pytest.raises(Error, match="PrivacyError"):
        page.evaluate("() => new Client(epoch.plan, { maxEpsilon: 2 })")
    context.close()


def test_beacons_arrive_when_the_page_is_left(chromium, site, collector):
    context = chromium.new_context()
    page = open_page(context, site, collector)
    queue(page, [[f"user {number}", "Chrome"] for number in range(20)])

    # The page has no chance to send by itself: its own requests fail.
    def fail_fetches(route):
        route.abort() if route.request.resource_type == "fetch" else route.continue_()

    page.route(re.compile(r"/reports\?"), fail_fetches)
    page.evaluate("() => { device.keepSending(1000); }")
    page.wait_for_timeout(200)
    assert collector.tally().reports == 0
    page.goto(f"{site}/page.html?elsewhere")
    until(page, lambda: collector.tally().reports == 20)
    context.close()


def test_tabs_share_one_budget(chromium, site, collector):
    context = chromium.new_context()
    # ε is 3 a report and 7 a lifetime: two values may be reported, by whichever tab.
    tabs = [open_page(context, site, collector, lifetime=7) for _ in range(3)]
    for tab in tabs:
        tab.evaluate("(labels) => { globalThis.paid = queueAll(labels.map((label) => ['browser', label])); }", LABELS)
    assert sum(tab.evaluate("() => paid") for tab in tabs) >= 2
    assert tabs[0].evaluate("() => device.spent('browser')") == "6"
    bodies = tabs[0].evaluate("async () => (await device.waiting()).map(({ address, body }) => [address, [...body]])")
    assert len({address for address, _ in bodies}) == len(bodies)
    # All tabs have one key: a value that two of them reported is the same report.
    derived = [tab.evaluate("async () => [...await device.client(epoch.plan, 'browser').derive(0)]") for tab in tabs]
    assert derived[0] == derived[1] == derived[2]
    context.close()


def test_the_key_cannot_be_read(chromium, site, collector):
    context = chromium.new_context()
    page = open_page(context, site, collector)
    found = page.evaluate(
        """async () => {
          const database = await new Promise((resolve) => {
            const request = indexedDB.open('sunzi');
            request.onsuccess = () => resolve(request.result);
          });
          const key = await new Promise((resolve) => {
            const request = database.transaction('device').objectStore('device').get('key');
            request.onsuccess = () => resolve(request.result);
          });
          const read = await crypto.subtle.exportKey('raw', key).then(() => 'read', (error) => error.name);
          return [key.constructor.name, key.extractable, key.usages, read];
        }"""
    )
    assert found == ["CryptoKey", False, ["sign"], "InvalidAccessError"]
    context.close()


def processes_of(directory):
    """The ids of the processes that were started with this directory of user data."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"--user-data-dir={directory}".encode() in command:
            found.append(int(path.parent.name))
    return found


def persistent(playwright, directory):
    """A browser whose data outlive it."""
    options = {"executable_path": browser.find_chromium(), "args": browser._ARGUMENTS, "timeout": 120_000}
    return playwright.chromium.launch_persistent_context(str(directory), **options)


SPENT = """async ([queued, late]) => {
  const named = (name, count) => [...Array(count).keys()].map((i) => `${name} ${i}`);
  const names = [...named('user', queued), ...named('late', late)];
  return Promise.all(names.map((name) => device.spent(name)));
}"""


def test_a_killed_browser_neither_loses_a_debit_nor_sends_unpaid(playwright, site, collector, tmp_path):
    directory, queued, late = tmp_path / "profile", 50, 500
    context = persistent(playwright, directory)
    page = open_page(context, site, collector)
    queue(page, [[f"user {number}", "Chrome"] for number in range(queued)])
    page.evaluate("(late) => { queueAll([...Array(late).keys()].map((i) => [`late ${i}`, 'Edge'])); }", late)
    page.wait_for_timeout(300)
    victims = processes_of(directory)
    assert victims
    for process in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    with contextlib.suppress(Error):
        context.close()
    for lock in directory.glob("Singleton*"):
        lock.unlink()

    context = persistent(playwright, directory)
    page = open_page(context, site, collector)
    spent = page.evaluate(SPENT, [queued, late])
    # What was queued before is there; and each debit has its report, no more and no less.
    assert spent[:queued] == ["3"] * queued
    assert set(spent) <= {"0", "3"}
    paid = spent.count("3")
    assert waiting(page) == paid
    assert page.evaluate("() => device.flush()") == {"acknowledged": paid, "refused": 0, "waiting": 0}
    context.close()
    assert collector.tally().reports == paid
