"""Sending over HTTP: only to the epoch that a report was made for, and only a collector's answer counts."""

import hashlib
import re
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from running import running

import sunzi
from sunzi.client.device.device import Device
from sunzi.client.device.remote import RemoteEpoch, Sender, UnauthorizedError
from sunzi.client.errors import ParameterError, ReportError, StoreError
from sunzi.collector.remote import RemoteCollector
from sunzi.collector.settings import UploadKey

pytestmark = pytest.mark.slow

PORTAL = b"<html>Welcome to our hotel. Please log in"
REFUSAL = b'{"error":"ClosedEpochError","message":"epoch 1 is closed"}'


@pytest.fixture
def plan():
    return sunzi.make_plan("grr", 100, 1)


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path / "device.db", 30, max_epsilon=1)


@contextmanager
def answering(status, body):
    """A server that gives the same answer to every request; yields its address and the requested paths."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


def epoch_of(address, number=1):
    return f"{address}/v1/collections/default/epochs/{number}"


def test_a_device_and_a_collector(plan, device, tmp_path):
    """The outbox with a real service: sent twice, counted once."""
    with running(tmp_path / "store.db", {"default": plan}) as service, closing(Sender()) as sender:
        with closing(RemoteCollector(service.address, max_epsilon=1)) as remote:
            epoch = remote.current()
        assert epoch.url == epoch_of(service.address)
        for value in range(20):
            device.queue(epoch.plan, "browser", value, epoch.url, several=True)
        queued = device.waiting()

        def lost(report):
            sender(report)
            raise StoreError("the answer was lost")

        assert device.flush(lost) == 0
        outcomes = []
        assert device.flush(lambda report: outcomes.append(sender(report))) == 20
        assert outcomes == ["repeated", *["counted"] * 19]
        assert service.tally() == plan.tally([report.body for report in queued])


def test_a_report_goes_to_the_epoch_that_it_was_made_for(device, tmp_path):
    """Even if a newer epoch is open, in which the same bytes would mean another value."""
    old, new = (sunzi.make_plan("grr", labels, 1) for labels in (["a", "b", "c", "d"], ["d", "c", "b", "a"]))
    with running(tmp_path / "store.db", {"default": old}) as service:
        with closing(RemoteCollector(service.address, max_epsilon=1)) as remote:
            epoch = remote.current()
            device.queue(epoch.plan, "letter", "a", epoch.url)
            service.collector.open("default", new, old_plan="keep")
            assert remote.current().number == 2
        assert device.flush() == 1
        assert (service.tally(epoch=1).reports, service.tally(epoch=2).reports) == (1, 0)
        # If its URL ever has another plan, the report is refused there instead of counted.
        device.queue(old, "letter", "a", epoch_of(service.address, 2))
        assert device.flush() == 0
        assert (device.waiting(), service.tally(epoch=2).reports) == ([], 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, PORTAL),
        (200, b"{}"),
        (200, b'{"outcome":"welcome"}'),
        (302, b""),
        (403, PORTAL),
        (404, b'{"error":"no route"}'),
        (410, b"[]"),
        (401, REFUSAL),
        (421, REFUSAL),
        (503, REFUSAL),
    ],
)
def test_answers_of_other_servers_delete_nothing(plan, device, status, body):
    with answering(status, body) as (address, asked):
        for value in range(3):
            device.queue(plan, "browser", value, epoch_of(address), several=True)
        with closing(Sender(patience=0)) as sender:
            assert device.flush(sender) == 0
        assert len(device.waiting()) == 3
        assert len(asked) == 1


def test_a_collectors_refusal_is_final(plan, device):
    with answering(410, REFUSAL) as (address, asked):
        for value in range(3):
            device.queue(plan, "browser", value, epoch_of(address), several=True)
        refused, queued = [], device.waiting()
        assert device.flush(on_refused=lambda report, error: refused.append((report, str(error)))) == 0
        assert (device.waiting(), len(asked)) == ([], 3)
        assert [report for report, _ in refused] == queued
        assert all("epoch 1 is closed" in said for _, said in refused)


def test_refusals_are_logged_by_default(plan, device, caplog):
    with answering(410, REFUSAL) as (address, _):
        device.queue(plan, "browser", 1, epoch_of(address))
        assert device.flush() == 0
    assert "epoch 1 is closed" in caplog.text


def test_a_dead_collector_holds_up_no_other(plan, device, tmp_path):
    with running(tmp_path / "store.db", {"default": plan}) as service:
        device.queue(plan, "browser", 1, epoch_of("http://127.0.0.1:9"))
        device.queue(plan, "browser", 2, epoch_of(service.address))
        with closing(Sender(patience=0)) as sender:
            assert device.flush(sender) == 1
        assert [report.destination for report in device.waiting()] == [epoch_of("http://127.0.0.1:9")]


def test_single_use_tokens(plan, device, tmp_path):
    with running(tmp_path / "store.db", {"default": plan}, single_use_tokens=True) as service:
        live = service.collector.find("default")
        first, second = service.collector.make_tokens(live, 2)
        report = plan.client().report(3)
        with closing(RemoteCollector(service.address, max_epsilon=1, patience=5)) as remote:
            epoch = remote.current()
            with pytest.raises(UnauthorizedError):
                remote.upload(epoch, report, bytes(16))
            assert remote.upload(epoch, report, bytes(16), token=first) == "counted"
            assert remote.upload(epoch, report, bytes(16), token=first) == "repeated"
            with pytest.raises(UnauthorizedError):
                remote.upload(epoch, report, token=first)
        # A spent token is only its own report's problem; without any token, all reports for this epoch must wait.
        for value, token in enumerate([first, second, None]):
            device.queue(plan, "browser", value, epoch.url, token=token, several=True)
        assert device.flush() == 1
        assert [report.token for report in device.waiting()] == [first, None]
        assert service.tally().reports == 2


def test_a_rotated_key_deletes_nothing(plan, device, tmp_path):
    keys = (UploadKey("shop", hashlib.sha256(b"the new key").digest(), 1000),)
    with running(tmp_path / "store.db", {"default": plan}, upload_keys=keys) as service:
        for value in range(3):
            device.queue(plan, "browser", value, epoch_of(service.address), several=True)
        with closing(Sender(secret="the old key")) as sender:
            assert device.flush(sender) == 0
        assert len(device.waiting()) == 3
        with closing(Sender(secret="the new key")) as sender:
            assert device.flush(sender) == 3
        assert service.tally().reports == 3


@pytest.mark.slow
@pytest.mark.parametrize("body", [PORTAL, b"[]", b"{}", b'{"plan":1}', b"[" * 100_000])
def test_a_captive_portal_is_not_a_collector(plan, body):
    with answering(200, body) as (address, _), closing(RemoteCollector(address, max_epsilon=1)) as remote:
        calls = [remote.current, lambda: remote.upload(RemoteEpoch(plan, "default", 1, True), plan.client().report(1))]
        if body != b'{"plan":1}':
            calls.append(remote.tally)
        for call in calls:
            with pytest.raises(StoreError, match=address):
                call()


def test_addresses(plan):
    for address in ("http://host:abc", "http://host:99999", "ftp://host", "host:80", "http://", "http://[host"):
        with pytest.raises(ParameterError, match=re.escape(repr(address))):
            RemoteCollector(address, max_epsilon=1)
    with closing(
        RemoteCollector("http://user:password@[::1]:80/base/v1/collections/browsers", max_epsilon=1)
    ) as remote:
        assert remote.url == "http://[::1]/base/v1/collections/browsers"


def test_a_refusal_says_why(plan):
    with (
        answering(410, REFUSAL) as (address, _),
        closing(RemoteCollector(address, max_epsilon=1)) as remote,
        pytest.raises(ReportError, match="epoch 1 is closed"),
    ):
        remote.upload(RemoteEpoch(plan, "default", 1, True), plan.client().report(1))
