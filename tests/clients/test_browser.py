"""The built client in a real browser: offline periods, reloads, lost responses, several tabs, a killed browser.

A page of one origin reports to a collector of another. Without Chromium the tests are skipped.
"""

import contextlib
import os
import re
import signal
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import browser
import numpy as np
import pages
import pytest
from playwright.sync_api import Error, expect, sync_playwright
from running import running

import sunzi

pytestmark = pytest.mark.slow

LABELS = ["Firefox", "Chrome", "Safari", "Edge", "other"]
SHARES = [0.4, 0.3, 0.15, 0.1, 0.05]
USERS = 400
# The live page shows 95 % intervals. Three times as wide, they extend 5.9 standard errors to each side and miss the
# truth less than once in a million runs, over all labels.
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


def open_page(context, site, collector, lifetime=3, agrees=True):
    page = context.new_page()
    page.goto(f"{site}/page.html")
    begin(page, collector, lifetime, agrees)
    return page


def reload(page, collector, lifetime=3, agrees=True):
    """Reload the page and start it again."""
    page.reload()
    begin(page, collector, lifetime, agrees)


def begin(page, collector, lifetime, agrees):
    expect(page.locator("#state")).to_have_text("ready")
    page.evaluate("([address, cap, agrees]) => begin(address, cap, agrees)", [collector.address, lifetime, agrees])


def queue(page, pairs):
    for start in range(0, len(pairs), 100):
        part = pairs[start : start + 100]
        assert page.evaluate("(pairs) => queueAll(pairs)", part) == len(part)


def waiting(page):
    return page.evaluate("async () => (await device.waiting()).length")


def until(page, condition):
    """Wait until a condition holds, while the page runs."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert condition()


def shown_number(text):
    return float(text.strip().rstrip(" %").replace("−", "-"))


def shown_histogram(dashboard):
    """The live page's table: {label: (low, share, high)}, in percent."""
    shown = {}
    for row in dashboard.locator("#body tr").all():
        low, high = row.locator("td.interval").inner_text().split("…")
        share = row.locator("td.share").inner_text()
        label = row.locator(".label-text").inner_text()
        shown[label] = tuple(shown_number(text) for text in (low, share, high))
    return shown


def check_shown(dashboard, values):
    """The live page's histogram is correct: its intervals contain the truth and are narrow."""
    expect(dashboard.locator("#histogram-about")).to_have_text(f"all 5 values, from {USERS} reports")
    expect(dashboard.locator("#interval")).to_have_text("95 % interval")
    shown = shown_histogram(dashboard)
    assert shown.keys() == set(LABELS)
    for label, (low, share, high) in shown.items():
        truth = 100 * values.count(label) / USERS
        assert share - WIDER * (share - low) <= truth <= share + WIDER * (high - share), (label, shown)
        assert low < share < high < low + 12
    return shown


def lose_responses(page):
    """Send reports that the collector counts, and drop its responses."""

    def lose(route):
        route.fetch()
        route.abort()

    lost = re.compile(r"/reports\?")
    page.route(lost, lose)
    assert page.evaluate("() => device.flush()")["acknowledged"] == 0
    page.unroute(lost)


def test_400_users_offline_and_back(chromium, plan, site, collector):
    """400 values from end to end: from a page that goes offline, is reloaded and closed, to the live page."""
    values = np.random.default_rng(7).choice(LABELS, USERS, p=SHARES).tolist()
    # One device stands for many, because each attribute has its own noise and budget.
    pairs = [[f"user {number}", value] for number, value in enumerate(values)]
    context, watching = chromium.new_context(), chromium.new_context()
    page, dashboard = open_page(context, site, collector), watching.new_page()
    dashboard.goto(collector.address)

    def expect_counted(number):
        assert collector.tally().reports == number
        expect(dashboard.locator("#reports")).to_have_text(f"{number:,}")

    queue(page, pairs[:50])
    assert page.evaluate("() => device.flush()") == {"acknowledged": 50, "rejected": 0, "waiting": 0}
    expect_counted(50)

    # Offline, all reports are kept. Online again, the page is reloaded before it sends any.
    context.set_offline(True)
    queue(page, pairs[50:250])
    assert page.evaluate("() => device.flush()") == {"acknowledged": 0, "rejected": 0, "waiting": 200}
    context.set_offline(False)
    reload(page, collector)
    assert waiting(page) == 200
    expect_counted(50)

    # It is reloaded again while it sends.
    page.evaluate("() => { device.flush().catch(() => undefined); }")
    page.wait_for_timeout(100)
    reload(page, collector)
    left = waiting(page)
    assert page.evaluate("() => device.flush()")["acknowledged"] == left
    expect_counted(250)

    # Responses are lost after the collector has counted: all reports are sent again and counted once.
    queue(page, pairs[250:300])
    lose_responses(page)
    assert collector.tally().reports > 250
    assert page.evaluate("() => device.flush()") == {"acknowledged": 50, "rejected": 0, "waiting": 0}
    expect_counted(300)

    # The rest is handed over when the page closes, and sent again by the next page, which cannot know of that.
    queue(page, pairs[300:])
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

    # The histogram matches the collector's tally to the last digit shown.
    estimate = plan.estimate(collector.tally())
    for index, label in enumerate(LABELS):
        low, high = (100 * float(end[index]) for end in estimate.interval(0.95))
        assert shown[label] == pytest.approx((low, 100 * float(estimate.frequencies[index]), high), abs=0.051)


def test_one_report_is_made_and_sent(chromium, plan, site, collector):
    """Without a device, a report is made once, sent several times and counted once."""
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


def test_reports_arrive_when_the_page_is_left(chromium, site, collector):
    context = chromium.new_context()
    page = open_page(context, site, collector)
    queue(page, [[f"user {number}", "Chrome"] for number in range(20)])

    # Other requests fail, so only those that outlive the page can arrive.
    page.evaluate(
        """() => {
          const real = fetch;
          globalThis.fetch = (address, init) =>
            init.keepalive ? real(address, init) : Promise.reject(new TypeError("offline"));
          device.keepSending(1000);
        }"""
    )
    page.wait_for_timeout(200)
    assert collector.tally().reports == 0
    page.goto(f"{site}/page.html?elsewhere")
    until(page, lambda: collector.tally().reports == 20)
    context.close()


def test_an_open_tab_recovers_after_site_data_is_cleared(chromium, site, collector):
    context = chromium.new_context()
    page = open_page(context, site, collector)
    queue(page, [["browser", "Chrome"]])
    before = page.evaluate("async () => (await (await device.client(epoch.plan, 'browser')).reportId(epoch.url))")
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": site, "storageTypes": "all"})
    page.wait_for_timeout(200)
    # The consent is gone too. Given again, the device is a new one, with a new key, ledger and outbox.
    assert page.evaluate("() => device.enabled()") is False
    assert waiting(page) == 0
    assert page.evaluate("() => device.enable()") is True
    assert page.evaluate("() => device.spent('browser')") == "0"
    queue(page, [["browser", "Chrome"]])
    assert page.evaluate("async () => (await device.waiting())[0].id") != before
    assert page.evaluate("() => device.flush()") == {"acknowledged": 1, "rejected": 0, "waiting": 0}
    context.close()


def test_tabs_share_one_budget(chromium, site, collector):
    context = chromium.new_context()
    # ε is 3 per report and 7 in total: the tabs together can report two values.
    tabs = [open_page(context, site, collector, lifetime=7) for _ in range(3)]
    for tab in tabs:
        tab.evaluate(
            "(labels) => { globalThis.paid = queueAll(labels.map((label) => ['browser', label]), {several: true}); }",
            LABELS,
        )
    assert sum(tab.evaluate("() => paid") for tab in tabs) >= 2
    assert tabs[0].evaluate("() => device.spent('browser')") == "6"
    ids = tabs[0].evaluate("async () => (await device.waiting()).map(({ id }) => id)")
    assert len(set(ids)) == len(ids)
    # All tabs share one key: equal values give equal reports.
    derive = "async () => [...await (await device.client(epoch.plan, 'browser')).derive(0)]"
    derived = [tab.evaluate(derive) for tab in tabs]
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
            const request = database.transaction('device').objectStore('device').get('identity');
            request.onsuccess = () => resolve(request.result.key);
          });
          const read = await crypto.subtle.exportKey('raw', key).then(() => 'read', (error) => error.name);
          return [key.constructor.name, key.extractable, key.usages, read];
        }"""
    )
    assert found == ["CryptoKey", False, ["sign"], "InvalidAccessError"]
    context.close()


# Everything that a device does, and what the browser has stored afterwards.
USE = """async () => {
  const { outcome } = await device.queue(epoch.plan, 'browser', 'Chrome', epoch.url);
  const stop = device.keepSending(0.01);
  const { acknowledged } = await device.flush();
  const handedOver = device.handOver();
  await new Promise((resolve) => setTimeout(resolve, 100));
  stop();
  dispatchEvent(new Event('pagehide'));
  const preview = await device.preview(epoch.plan, 'browser', 'Chrome', epoch.url);
  const stored = [...(await indexedDB.databases()).map(({ name }) => name), ...Object.keys(localStorage)];
  return [await device.enabled(), outcome, acknowledged, handedOver, await device.spent('browser'),
    preview.bytes.length > 64, stored];
}"""
OFF = [False, "off", 0, 0, "0", True, []]


def posts(page):
    """The uploads of a page from now on."""
    found = []
    page.on("request", lambda request: found.append(request.url) if request.method == "POST" else None)
    return found


def test_before_the_consent_nothing_is_stored_or_sent(chromium, site, collector):
    context = chromium.new_context()
    page = open_page(context, site, collector, agrees=False)
    sent = posts(page)
    assert page.evaluate(USE) == OFF
    reload(page, collector, agrees=False)
    assert page.evaluate(USE) == OFF
    assert sent == []
    assert page.evaluate("() => device.enable()") is True
    # The consent is stored.
    reload(page, collector, agrees=False)
    enabled, outcome, _, _, spent, _, stored = page.evaluate(USE)
    assert (enabled, outcome, spent, stored) == (True, "queued", "3", ["sunzi"])
    until(page, lambda: waiting(page) == 0)
    assert len(sent) >= 1
    assert collector.tally().reports == 1
    context.close()


def test_a_preview_before_the_consent_is_what_is_sent(chromium, site, collector):
    context = chromium.new_context()
    page = open_page(context, site, collector, agrees=False)
    bodies = []
    page.on("request", lambda request: bodies.append(request.post_data_buffer) if request.method == "POST" else None)
    preview = page.evaluate("() => device.preview(epoch.plan, 'browser', 'Edge', epoch.url)")
    assert page.evaluate("async () => (await indexedDB.databases()).length") == 0
    page.evaluate("() => device.enable()")
    page.evaluate("() => device.queue(epoch.plan, 'browser', 'Edge', epoch.url)")
    page.evaluate("() => device.flush()")
    assert [body.hex() for body in bodies] == [preview["bytes"]]
    assert "of 5 values" in preview["meaning"]
    context.close()


REFUSALS = [
    "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })",
    "Object.defineProperty(Navigator.prototype, 'doNotTrack', { get: () => '1' })",
    "Object.defineProperty(Navigator.prototype, 'doNotTrack', { get: () => 'yes' })",
    "Object.defineProperty(window, 'doNotTrack', { value: '1' })",
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_browsers_signal_wins_over_a_stored_consent(chromium, site, collector, refusal):
    context = chromium.new_context()
    page = open_page(context, site, collector)
    queue(page, [["another", "Chrome"]])
    refused = context.new_page()
    refused.add_init_script(refusal)
    sent = posts(refused)
    refused.goto(f"{site}/page.html")
    begin(refused, collector, 3, True)
    assert refused.evaluate("() => device.enable()") is False
    enabled, outcome, acknowledged, handed_over, spent, _, stored = refused.evaluate(USE)
    assert (enabled, outcome, acknowledged, handed_over, spent) == (False, "off", 0, 0, "0")
    assert stored == ["sunzi"]
    assert waiting(refused) == 1
    refused.close()
    assert sent == []
    # It says nothing about other pages.
    assert page.evaluate("() => device.flush()")["acknowledged"] == 1
    context.close()


def test_a_tab_that_turns_the_device_off_turns_it_off_in_all(chromium, site, collector):
    context = chromium.new_context()
    tabs = [open_page(context, site, collector) for _ in range(2)]
    other, tab = tabs
    # Nothing gets through but what outlives the page.
    other.evaluate(
        """() => {
          const real = fetch;
          globalThis.fetch = (address, init) =>
            init.keepalive ? real(address, init) : Promise.reject(new TypeError("offline"));
          device.keepSending(1000);
        }"""
    )
    queue(other, [[f"user {number}", "Chrome"] for number in range(20)])
    tab.evaluate("() => device.disable()")
    other.wait_for_timeout(200)
    assert [each.evaluate("() => device.enabled()") for each in tabs] == [False, False]
    assert [waiting(each) for each in tabs] == [0, 0]
    stored = tab.evaluate(
        """async () => {
          const database = await new Promise((resolve) => {
            const request = indexedDB.open('sunzi');
            request.onsuccess = () => resolve(request.result);
          });
          const all = (name) => new Promise((resolve) => {
            const request = database.transaction(name).objectStore(name).getAll();
            request.onsuccess = () => resolve(request.result);
          });
          const [devices, accounts] = [await all('device'), await all('accounts')];
          const left = accounts.filter(({ outbox, latest }) => outbox.length || Object.keys(latest).length);
          return [devices.length, accounts.length, left.length, Object.keys(localStorage)];
        }"""
    )
    assert stored == [0, 20, 0, []]
    other.goto(f"{site}/page.html?elsewhere")
    other.wait_for_timeout(500)
    assert collector.tally().reports == 0
    # Again on, it reports from the next epoch on.
    tab.evaluate("() => device.enable()")
    outcome = "async (name) => (await device.queue(epoch.plan, name, 'Edge', epoch.url)).outcome"
    assert [tab.evaluate(outcome, name) for name in ("user 3", "user 20")] == ["repeated", "queued"]
    context.close()


def test_plans_are_not_cached(chromium, site, collector):
    """An ETag or a cached plan that the server chose would identify the browser."""
    plan, asked = collector.get("/v1/collections/default/plan").body, []

    class Tagging(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers.get("If-None-Match"))
            self.send_response(200)
            for name, value in (
                ("Access-Control-Allow-Origin", "*"),
                ("Cache-Control", "max-age=3600"),
                ("ETag", '"a name of this browser"'),
                ("Content-Length", str(len(plan))),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(plan)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Tagging)
    with contextlib.closing(chromium.new_context()) as context, server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = open_page(context, site, collector)
        for _ in range(3):
            page.evaluate("(address) => fetchEpoch(address)", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert asked == [None] * 3


def processes_of(directory):
    """The ids of the processes that were started with this user data directory."""
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
    """A browser with persistent data."""
    options = {"executable_path": browser.find_chromium(), "args": browser._ARGUMENTS, "timeout": 120_000}
    return playwright.chromium.launch_persistent_context(str(directory), **options)


SPENT = """async ([queued, late]) => {
  const named = (name, count) => [...Array(count).keys()].map((i) => `${name} ${i}`);
  const names = [...named('user', queued), ...named('late', late)];
  return Promise.all(names.map((name) => device.spent(name)));
}"""


def test_a_killed_browser_loses_no_debit_and_sends_no_unpaid_report(playwright, site, collector, tmp_path):
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
    # Everything queued before is there, and each debit has exactly one report.
    assert spent[:queued] == ["3"] * queued
    assert set(spent) <= {"0", "3"}
    paid = spent.count("3")
    assert waiting(page) == paid
    assert page.evaluate("() => device.flush()") == {"acknowledged": paid, "rejected": 0, "waiting": 0}
    context.close()
    assert collector.tally().reports == paid
