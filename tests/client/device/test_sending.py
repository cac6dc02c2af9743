"""Sending over HTTP: only to the epoch that a report was made for, and only a collector's answer counts."""

import hashlib
from contextlib import closing

import pytest
from agreeing import agreed
from listening import answering
from running import running

import sunzi
from sunzi.client import Device, RemoteEpoch, Sender, UnauthorizedError
from sunzi.client.errors import ReportError, StoreError
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
    return agreed(tmp_path / "device.db", 30)


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


def test_a_device_that_is_off_and_a_collector(plan, tmp_path):
    """Neither before the user agrees nor after the device was turned off does anything arrive."""
    with running(tmp_path / "store.db", {"default": plan}) as service:
        device = Device(tmp_path / "device.db", 3, max_epsilon=1)
        assert (device.queue(plan, "browser", 7, epoch_of(service.address)).outcome, device.flush()) == ("off", 0)
        device.enable()
        device.queue(plan, "browser", 7, epoch_of(service.address))
        device.disable()
        assert device.flush() == 0
        assert service.tally().reports == 0
        device.enable()
        assert device.queue(plan, "browser", 7, epoch_of(service.address)).outcome == "repeated"
        device.queue(plan, "language", 7, epoch_of(service.address))
        assert device.flush() == 1
        assert service.tally().reports == 1


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


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, PORTAL),
        (200, b"{}"),
        (200, b'{"outcome":"welcome"}'),
        (302, b""),
        (403, PORTAL),
        (405, REFUSAL),
        (405, PORTAL),
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


@pytest.mark.parametrize("body", [PORTAL, b"[]", b"{}", b'{"plan":1}', b"[" * 100_000])
def test_a_captive_portal_is_not_a_collector(plan, body):
    with answering(200, body) as (address, _), closing(RemoteCollector(address, max_epsilon=1)) as remote:
        calls = [remote.current, lambda: remote.upload(RemoteEpoch(plan, "default", 1, True), plan.client().report(1))]
        if body != b'{"plan":1}':
            calls.append(remote.tally)
        for call in calls:
            with pytest.raises(StoreError, match=address):
                call()


def test_a_refusal_says_why(plan):
    with (
        answering(410, REFUSAL) as (address, _),
        closing(RemoteCollector(address, max_epsilon=1)) as remote,
        pytest.raises(ReportError, match="epoch 1 is closed"),
    ):
        remote.upload(RemoteEpoch(plan, "default", 1, True), plan.client().report(1))
