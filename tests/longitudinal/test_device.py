"""A device's ledger and outbox: caps across plans, collections, threads, processes and crashes."""

import stat
import threading
from fractions import Fraction

import pytest
from processes import Process
from running import running

import sunzi
from sunzi.collection.remote import RemoteCollector
from sunzi.errors import BudgetError, ParameterError, PrivacyError, ReportError, StoreError
from sunzi.longitudinal.device import Device

THERE = "https://collector.example/v1/collections/browsers"


@pytest.fixture
def plan():
    return sunzi.make_plan("grr", 100, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


def bodies(device):
    return [report.body for report in device.waiting()]


def test_each_distinct_value_costs_once(plan, path):
    device = Device(path, 3)
    assert device.spent("browser") == 0
    assert device.queue(plan, "browser", 7, THERE).cost == 1
    assert [device.queue(plan, "browser", 7, THERE).cost for _ in range(5)] == [0] * 5
    assert device.queue(plan, "browser", 8, THERE).cost == 1
    assert (device.spent("browser"), device.spent("language")) == (2, 0)
    assert len(set(bodies(device)[:6])) == 1


def test_the_cap_holds_over_plans_and_collections(plan, path):
    device = Device(path, "5/2", caps={"age": "1/2"})
    half = sunzi.make_plan("oue", 100, Fraction(1, 2))
    device.queue(plan, "browser", 1, THERE)
    device.queue(half, "browser", 1, THERE + "-renamed")
    device.queue(plan, "browser", 2, THERE)
    before = device.waiting()
    with pytest.raises(BudgetError, match="5/2"):
        device.queue(half, "browser", 2, THERE)
    with pytest.raises(BudgetError):
        device.queue(plan, "age", 2, THERE)
    assert device.queue(half, "age", 2, THERE).cost == Fraction(1, 2)
    assert (device.spent("browser"), len(device.waiting())) == (Fraction(5, 2), len(before) + 1)
    with pytest.raises(ParameterError):
        Device(path, 0)


def test_a_plan_that_asks_for_too_much_costs_nothing(plan, path):
    device = Device(path, 3)
    with pytest.raises(PrivacyError):
        device.queue(plan, "browser", 1, THERE, max_epsilon="1/2")
    assert (device.spent("browser"), device.waiting()) == (0, [])
    assert device.queue(plan, "browser", 1, THERE, max_epsilon=1).cost == 1


def test_a_renamed_collection_gets_no_fresh_noise(path):
    plan, device = sunzi.make_plan("oue", 64, 1), Device(path, 1)
    for name in ("browsers", "browsers-2", "something else"):
        device.queue(plan, "browser", 7, f"https://collector.example/v1/collections/{name}")
    assert len({report.destination for report in device.waiting()}) == 3
    assert len(set(bodies(device))) == 1
    assert device.spent("browser") == 1


def test_a_value_outside_the_domain_is_said_locally_and_still_reported(plan, path):
    device = Device(path, 1)
    queued = device.queue(plan, "browser", 1000, THERE)
    assert (queued.outside, queued.cost) == (True, 1)
    assert device.queue(plan, "browser", "nonsense", THERE).cost == 0
    assert len(set(bodies(device))) == 1
    labelled = sunzi.make_plan("grr", sunzi.Domain(["a", "b", "other"], other="other"), 1)
    assert not Device(path.with_name("other.db"), 1).queue(labelled, "letter", "z", THERE).outside


def test_what_is_acknowledged_is_deleted_and_what_is_not_is_sent_again(plan, path):
    device = Device(path, 10)
    for value in range(6):
        device.queue(plan, "browser", value, THERE)
    queued, tried = device.waiting(), []

    def upload(report):
        tried.append(report)
        if len(tried) == 3:
            raise StoreError("offline")
        if len(tried) == 2:
            raise ReportError("refused")

    assert device.flush(upload) == 1
    assert device.waiting() == queued[2:]
    sent = []
    assert Device(path, 10).flush(sent.append) == 4
    assert sent == queued[2:]
    assert device.waiting() == []
    assert device.spent("browser") == 6


def test_a_crash_between_debit_and_send_loses_neither(plan, path):
    """The process ends after the debit and before the first byte leaves; the next one sends what was paid for."""
    child = Process(path, 3, [1, 2])
    child.go()
    assert child.next_payment() == "paid 1\n"
    child.kill()
    device = Device(path, 3)
    assert len(device.waiting()) == device.spent("browser") >= 1
    first = device.waiting()

    def dies(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        device.flush(dies)
    assert device.waiting() == first
    sent = []
    device.flush(sent.append)
    assert sent == first
    assert len(device.waiting()) == 0


@pytest.mark.parametrize("payments", [0, 1, 5, 20])
def test_a_process_killed_in_mid_queue(path, payments):
    """kill -9 while it queues: every debit has its report, every report its debit, and the cap still holds."""
    child = Process(path, 30, range(60))
    child.go()
    heard = [child.next_payment() for _ in range(payments)]
    told = len([line for line in heard if line.startswith("paid")]) + len(child.kill())
    device = Device(path, 30)
    waiting = device.waiting()
    assert device.spent("browser") == len(waiting) >= told
    plan, paid, refused = sunzi.make_plan("grr", 100, 1), 0, 0
    for value in range(60):
        try:
            paid += device.queue(plan, "browser", value, "there").cost
        except BudgetError:
            refused += 1
    assert (device.spent("browser"), paid, refused) == (30, 30 - len(waiting), 30)


def test_processes_racing_for_the_last_budget(path):
    racers = [Process(path, 5, range(40)), Process(path, 5, range(39, -1, -1)), Process(path, 5, range(50, 90))]
    for racer in racers:
        racer.go()
    assert sum(sum(racer.end()) for racer in racers) == 5
    device = Device(path, 5)
    assert device.spent("browser") == 5
    assert len(device.waiting()) >= 5


def test_threads_racing_for_the_last_budget(plan, path):
    device, outcomes, barrier = Device(path, 3), [], threading.Barrier(8)

    def race(value):
        barrier.wait()
        try:
            outcomes.append(device.queue(plan, "browser", value, THERE).cost)
        except BudgetError:
            outcomes.append(None)

    threads = [threading.Thread(target=race, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [1, 1, 1, *[None] * 5]
    assert device.spent("browser") == 3


def test_the_file_is_private_and_deleted_reports_are_overwritten(path):
    device = Device(path, 1)
    wide = sunzi.make_plan("oue", 4000, 1)
    device.queue(wide, "browser", 1, THERE)
    body = bodies(device)[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert body in path.read_bytes()
    device.flush(lambda report: None)
    assert body not in path.read_bytes()


def test_a_file_that_is_no_device(tmp_path):
    (tmp_path / "not.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StoreError):
        Device(tmp_path / "not.db", 1)


def test_a_device_and_a_collector(plan, path, tmp_path):
    """The outbox against a real service: sent twice, counted once."""
    with running(tmp_path / "store.db", {"default": plan}) as service:
        remote = RemoteCollector(service.address, patience=5)
        epoch = remote.current()
        device = Device(path, 30)
        for value in range(20):
            device.queue(epoch.plan, "browser", value, service.address)
        queued = device.waiting()

        def lost(report):
            remote.upload(epoch, report.body, report.identity)
            raise StoreError("the answer was lost")

        assert device.flush(lost) == 0
        outcomes = []
        assert device.flush(lambda report: outcomes.append(remote.upload(epoch, report.body, report.identity))) == 20
        assert outcomes == ["repeated", *["counted"] * 19]
        assert service.tally() == plan.tally([report.body for report in queued])
        remote.close()
