"""A device that is off, in every way to be off: nothing is stored, debited or sent, and no file appears."""

import subprocess
import sys
import threading

import pytest
from agreeing import agreed, bodies, files, key_of, rows
from listening import answering

import sunzi
from sunzi.client import Device, do_not_track
from sunzi.client.device.consent import VARIABLE
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.errors import ParameterError

PLAN = sunzi.make_plan("grr", 100, 1)
FORBIDDING = ["1", "true", "TRUE", "yes", "no", " 1 ", "\t2", "00", "False!", "😀"]
ALLOWING = ["", "0", "false", "FALSE", "False", " 0 ", " false\n", "  "]
RECEIPT = b'{"outcome":"counted","reports":1}'
DISABLE = """
import sys
from sunzi.client import Device
Device(sys.argv[1], 1, max_epsilon=1).disable()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


@pytest.fixture
def collector():
    """A server that acknowledges every report."""
    with answering(200, RECEIPT) as server:
        yield server


def epoch_at(address, number=1):
    return f"{address}/v1/collections/default/epochs/{number}"


def disable_elsewhere(path):
    subprocess.run([sys.executable, "-c", DISABLE, str(path)], check=True)


def never_enabled(path, monkeypatch, epoch):
    return Device(path, 3, max_epsilon=1)


def enabled_in_vain(path, monkeypatch, epoch):
    monkeypatch.setenv(VARIABLE, "1")
    device = Device(path, 3, max_epsilon=1)
    assert device.enable() is False
    return device


def forbidden_later(path, monkeypatch, epoch):
    device = reporting(path, epoch)
    monkeypatch.setenv(VARIABLE, "1")
    assert device.enable() is False
    return device


def disabled(path, monkeypatch, epoch):
    device = reporting(path, epoch)
    device.disable()
    return device


def disabled_by_another_process(path, monkeypatch, epoch):
    device = reporting(path, epoch)
    disable_elsewhere(path)
    return device


def disabled_before_it_was_enabled(path, monkeypatch, epoch):
    device = Device(path, 3, max_epsilon=1)
    device.disable()
    return device


def reporting(path, epoch):
    """A device that is on, has spent something and has a report to send."""
    device = agreed(path, 3)
    assert device.queue(PLAN, "browser", 7, epoch).outcome == "queued"
    return device


WAYS = [
    never_enabled,
    enabled_in_vain,
    forbidden_later,
    disabled,
    disabled_by_another_process,
    disabled_before_it_was_enabled,
]
CALLS = {
    "queue": lambda device, epoch: device.queue(PLAN, "browser", 8, epoch),
    "queue the same value": lambda device, epoch: device.queue(PLAN, "browser", 7, epoch),
    "queue several": lambda device, epoch: device.queue(PLAN, "browser", 8, epoch, several=True),
    "queue outside": lambda device, epoch: device.queue(PLAN, "browser", "outside", epoch),
    "flush": lambda device, epoch: device.flush(),
    "client": lambda device, epoch: device.client(PLAN, "browser"),
    "preview": lambda device, epoch: device.preview(PLAN, "browser", 8, epoch),
    "waiting": lambda device, epoch: device.waiting(),
    "spent": lambda device, epoch: device.spent("browser"),
    "enabled": lambda device, epoch: device.enabled,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", WAYS)
def test_a_device_that_is_off_stores_and_sends_nothing(path, monkeypatch, collector, way, call):
    address, asked = collector
    device = way(path, monkeypatch, epoch_at(address, 1))
    before = files(path.parent)
    if call == "client":
        with pytest.raises(ParameterError, match="the device is off"):
            CALLS[call](device, epoch_at(address, 2))
    else:
        found = CALLS[call](device, epoch_at(address, 2))
        expected = {"flush": 0, "enabled": False}
        if call.startswith("queue"):
            assert (found.outcome, found.cost, found.identity) == ("off", 0, None)
        elif call in expected:
            assert found == expected[call]
    assert (files(path.parent), asked) == (before, [])


@pytest.mark.parametrize("way", [never_enabled, enabled_in_vain, disabled_before_it_was_enabled])
def test_no_file_appears_before_the_user_agrees(path, monkeypatch, way):
    device = way(path, monkeypatch, epoch_at("https://collector.example"))
    device.disable()
    assert (device.enabled, device.spent("browser"), device.waiting()) == (False, 0, [])
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("value", FORBIDDING)
def test_spellings_that_forbid_reports(path, monkeypatch, value):
    device = agreed(path, 3)
    monkeypatch.setenv(VARIABLE, value)
    assert do_not_track()
    assert not device.enabled
    assert device.enable() is False
    assert device.queue(PLAN, "browser", 7, epoch_at("https://collector.example")).outcome == "off"


@pytest.mark.parametrize("value", ALLOWING)
def test_spellings_that_allow_reports(path, monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    assert not do_not_track()
    assert reporting(path, epoch_at("https://collector.example")).enabled


def test_what_is_stored_stays_while_one_process_is_forbidden_to_report(path, monkeypatch, collector):
    address, asked = collector
    device = reporting(path, epoch_at(address))
    monkeypatch.setenv(VARIABLE, "1")
    assert (device.enabled, device.flush(), asked) == (False, 0, [])
    monkeypatch.delenv(VARIABLE)
    assert (device.enabled, device.flush(), len(asked)) == (True, 1, 1)


def test_turning_it_off_works_whatever_is_set(path, monkeypatch):
    device = reporting(path, epoch_at("https://collector.example"))
    monkeypatch.setenv(VARIABLE, "1")
    device.disable()
    monkeypatch.delenv(VARIABLE)
    assert not device.enabled


def test_enabling_again_changes_nothing(path):
    device = reporting(path, epoch_at("https://collector.example"))
    key, waiting = key_of(path), device.waiting()
    assert device.enable()
    assert agreed(path, 3).enabled
    assert (key_of(path), device.waiting()) == (key, waiting)


def test_consent_outlives_the_process(path):
    agreed(path, 3)
    assert Device(path, 3, max_epsilon=1).enabled


@pytest.mark.parametrize("elsewhere", [False, True], ids=["by the device", "by another process"])
def test_every_agreement_has_a_key_of_its_own(path, elsewhere):
    """Deleted keys do not come back, even in an object that knew them."""
    device, keys = agreed(path, 3), set()
    for _ in range(3):
        keys.add(key_of(path))
        disable_elsewhere(path) if elsewhere else device.disable()
        assert not device.enabled
        assert device.enable()
    assert len(keys | {key_of(path)}) == 4


def test_a_device_turned_on_again_reports_from_the_next_epoch_on(path, collector):
    """Its new key would give the epoch's report another id, which the collector would count a second time."""
    address, asked = collector
    device = reporting(path, epoch_at(address, 1))
    assert device.flush() == 1
    device.queue(PLAN, "browser", 7, epoch_at(address, 2))
    device.disable()
    assert device.enable()
    for number in (1, 2):
        for value in (7, 8):
            again = device.queue(PLAN, "browser", value, epoch_at(address, number))
            assert (again.outcome, again.cost) == ("repeated", 0)
    assert device.spent("browser") == 1
    fresh = device.queue(PLAN, "browser", 7, epoch_at(address, 3))
    assert (fresh.outcome, fresh.cost) == ("queued", 1), "its noise is new, so the same value costs again"
    assert device.flush() == 1
    assert [each.path.partition("?")[0].rpartition("epochs/")[2] for each in asked] == ["1/reports", "3/reports"]


def test_debits_survive_so_that_consent_is_no_way_around_the_budget(path):
    device = agreed(path, 3)
    for number in range(1, 10):
        outcome = device.queue(PLAN, "browser", 7, epoch_at("https://collector.example", number)).outcome
        assert outcome == ("queued" if number <= 3 else "silent")
        device.disable()
        assert device.enable()
    assert device.spent("browser") == 3


def test_a_device_that_is_turned_off_while_it_sends_stops(path):
    device, sent = agreed(path, 9), []
    for value in range(5):
        device.queue(PLAN, "browser", value, epoch_at("https://collector.example"), several=True)

    def upload(report):
        sent.append(report)
        if len(sent) == 2:
            disable_elsewhere(path)

    assert device.flush(upload) == 2
    assert (len(sent), device.waiting()) == (2, [])


@pytest.mark.parametrize("again", [False, True], ids=["off", "off and on again"])
def test_a_device_that_is_turned_off_while_it_makes_a_report_queues_nothing(path, monkeypatch, again):
    """A report of a deleted key must not be stored, not even if there is a new one."""
    device, other, memoise = agreed(path, 3), Device(path, 3, max_epsilon=1), MemoisingClient.memoise

    def interrupted(client, index):
        other.disable()
        if again:
            other.enable()
        return memoise(client, index)

    monkeypatch.setattr(MemoisingClient, "memoise", interrupted)
    assert device.queue(PLAN, "browser", 7, epoch_at("https://collector.example")).outcome == "off"
    assert (device.spent("browser"), device.waiting(), rows(path, "SELECT * FROM reported")) == (0, [], [])


def test_threads_that_agree_at_once_share_one_key(path):
    devices, barrier, reports = [Device(path, 9, max_epsilon=1) for _ in range(6)], threading.Barrier(6), []

    def agree(device):
        barrier.wait()
        device.enable()
        reports.append(device.client(PLAN, "browser").report_id(epoch_at("https://collector.example")))

    threads = [threading.Thread(target=agree, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(reports), len(set(reports))) == (6, 1)


def test_consent_governs_devices_only(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    assert len(PLAN.client().report(7)) == 1
    assert len(MemoisingClient(PLAN, bytes(32), "browser", max_epsilon=1).report(7)) == 1


def test_bodies_are_kept_while_the_device_is_on(path):
    """The opposite of the matrix above, which would hold of a device that never reports."""
    device = reporting(path, epoch_at("https://collector.example", 1))
    assert device.queue(PLAN, "browser", 8, epoch_at("https://collector.example", 2)).outcome == "queued"
    assert (len(bodies(device)), device.spent("browser")) == (2, 2)
