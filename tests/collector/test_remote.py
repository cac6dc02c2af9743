"""The client of a collector: it sends until acknowledged and waits while the collector is unreachable."""

import numpy as np
import pytest
from running import running

import sunzi
from sunzi.collector.remote import RemoteCollector
from sunzi.errors import ReportError, StoreError

PLAN = sunzi.make_plan("ss-compact", [f"word {number}" for number in range(50)], 2)


@pytest.fixture
def service(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}) as made:
        yield made


def batch():
    return PLAN.client(seed=1).report_indices(np.arange(20))


def test_the_remote_collector_sends_until_acknowledged(service):
    remote = RemoteCollector(service.address)
    epoch = remote.current()
    assert epoch.plan == PLAN
    assert remote.upload(epoch, batch(), bytes(16)) == "counted"
    assert remote.upload(epoch, batch(), bytes(16)) == "repeated"
    assert remote.upload(epoch, PLAN.client(seed=4).report("word 3")) == "counted"
    plan, tally = remote.tally()
    assert (plan, tally.reports) == (PLAN, 21)
    with pytest.raises(ReportError, match="refused"):
        remote.upload(epoch, batch()[:-1])
    remote.close()


def test_the_remote_collector_waits_for_one_that_is_away(tmp_path):
    slept = []
    remote = RemoteCollector("http://127.0.0.1:9", patience=5, sleep=slept.append)
    with pytest.raises(StoreError, match="could not be reached"):
        remote.current()
    assert len(slept) >= 3
    assert slept[-1] > slept[0]
