"""Readiness and quotas, which all routes share."""

import itertools
import time

import numpy as np
import pytest
from running import running

import sunzi
from sunzi.collector.service import Quotas
from sunzi.collector.settings import UploadKey
from sunzi.errors import StoreError

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


def test_a_bucket_fills_steadily():
    now = [0.0]
    quotas, key = Quotas(lambda: now[0]), UploadKey("app", b"", 60)
    assert quotas.take(key, 60) == 0
    assert quotas.take(key, 1) == 1
    now[0] = 10
    assert quotas.take(key, 10) == 0
    assert quotas.take(key, 20) == 20
    now[0] = 1000
    assert quotas.take(key, 90) == 0  # a full bucket lets a larger request pass, which is paid off later
    assert quotas.take(key, 1) == 31
    quotas.give_back(key, 90)
    quotas.give_back(key, 90)
    assert quotas.take(key, 60) == 0  # never more than a full bucket
    assert quotas.take(key, 1) == 1
