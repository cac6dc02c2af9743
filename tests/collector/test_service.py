"""Readiness and quotas, which all routes share."""

import itertools
import time

import numpy as np
import pytest
from running import running

import sunzi
from sunzi.client.errors import StoreError

PLAN = sunzi.make_plan("ss-compact", 50, 2)


@pytest.fixture
def service(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}) as made:
        yield made


def batch():
    return PLAN.client(seed=1).report_indices(np.arange(20))


def fail(*_):
    raise StoreError("the disk is full")


def test_readiness_fails_with_the_commits(service, monkeypatch):
    assert service.get("/ready").status == 200
    with monkeypatch.context() as patch:
        patch.setattr(service.collector.store, "commit", fail)
        assert service.send_batch(batch()).status == 503
    answer = service.get("/ready")
    assert (answer.status, answer.json()["error"]) == (503, "NotReady")
    assert int(answer.headers["Retry-After"]) >= 1
    assert service.send_batch(batch()).status == 200
    assert service.get("/ready").status == 200


@pytest.mark.slow
def test_readiness_tries_the_store_once_a_second_at_most(service, monkeypatch):
    tried = []
    check = service.collector.store.check
    monkeypatch.setattr(service.collector.store, "check", lambda: (tried.append(time.monotonic()), check()))
    begun = time.monotonic()
    while time.monotonic() < begun + 2.5:
        assert service.get("/ready").status == 200
    assert tried
    assert all(later - earlier > 0.9 for earlier, later in itertools.pairwise(tried))
