"""Power cuts: once a report is queued its debit is permanent, even if the disk drops unsynchronised writes."""

import random
import shutil

import pytest
from agreeing import THERE, agreed
from power_cuts import Disk, PowerCuts

import sunzi
from sunzi.client import Device
from sunzi.client.device import ledger
from sunzi.client.errors import StoreError

CUTS = 60


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("grr", 100, 1)


@pytest.fixture
def cuts():
    with PowerCuts().installed() as installed:
        yield installed


def spent_after_cut(cuts, directory, plan, seed, cut_after=None):
    """Queue three values on a disk that loses power; return the paid costs, and after the cut the spent budget and the
    number of waiting reports.
    """
    before, after = directory / "before", directory / "after"
    before.mkdir(parents=True)
    after.mkdir()
    cuts.disk = None
    agreed(before / "device.db", 30)
    cuts.disk = disk = Disk(before, cut_after)
    paid = 0
    try:
        device = Device(before / "device.db", 30, max_epsilon=1)
        for value in range(3):
            paid += device.queue(plan, "browser", value, THERE, several=True).cost
    except StoreError:
        assert disk.is_dead
    disk.after_cut(after, random.Random(seed))
    cuts.disk = None
    device = Device(after / "device.db", 30, max_epsilon=1)
    assert device.enabled
    found = device.spent("browser"), len(device.waiting())
    shutil.rmtree(directory)
    return paid, *found


@pytest.mark.slow
def test_no_debit_is_lost_after_queue_has_returned(cuts, plan, tmp_path):
    outcomes = [spent_after_cut(cuts, tmp_path / str(seed), plan, seed) for seed in range(CUTS)]
    assert set(outcomes) == {(3, 3, 3)}


@pytest.mark.slow
def test_a_cut_at_any_moment_loses_neither_a_debit_nor_its_report(cuts, plan, tmp_path):
    outcomes, cut_after = set(), 0
    while not outcomes or max(outcomes)[0] < 3:
        cut_after += 1
        paid, spent, waiting = spent_after_cut(cuts, tmp_path / str(cut_after), plan, cut_after, cut_after)
        assert paid <= spent <= paid + 1
        assert waiting == spent
        outcomes.add((paid, spent))
    assert {paid for paid, _ in outcomes} == {0, 1, 2, 3}
    assert cut_after > 20


@pytest.mark.slow
def test_a_device_that_leaves_its_journal_is_caught(cuts, plan, tmp_path, monkeypatch):
    """The same without a durable removal of the journal. If nothing were lost, the tests above would prove nothing."""
    monkeypatch.setattr(ledger, "_SETTINGS", ("synchronous=FULL",))
    outcomes = [spent_after_cut(cuts, tmp_path / str(seed), plan, seed) for seed in range(CUTS)]
    assert sum(spent < paid for paid, spent, _ in outcomes) > CUTS // 4
