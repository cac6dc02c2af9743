"""Trends over a collection's epochs: which epochs, what is kept, and that it is bounded."""

from dataclasses import replace

import numpy as np
import pytest
from epochs import filled_epoch, shares

import sunzi
from sunzi.collector import Collector, open_store
from sunzi.collector.collector import UnknownEpochError
from sunzi.collector.trends import TrendCache, TrendProgress
from sunzi.errors import EstimateError

LABELS = ["apple", "banana", "cherry"]
PLAN = sunzi.make_plan("grr", LABELS, 3)
OTHER = sunzi.make_plan("oue", LABELS, 2)
LARGER = sunzi.make_plan("grr", [*LABELS, "date"], 3)


@pytest.fixture
def collector(tmp_path):
    store = open_store(tmp_path / "store.db")
    yield Collector(store)
    store.close()


def test_a_trend_over_epochs_of_different_plans(collector):
    for number, plan in enumerate([PLAN, PLAN, OTHER, PLAN], 1):
        filled_epoch(collector, "fruit", plan, shares(300, 200, 100), number)
    found = TrendCache(collector).get("fruit", 10, 100, 60)
    assert [epoch.number for epoch in found.epochs] == [1, 2, 3, 4]
    expected = [
        collector.find("fruit", number).plan.estimate(collector.tally(collector.find("fruit", number)))
        for number in range(1, 5)
    ]
    np.testing.assert_allclose(found.trend.frequencies, [each.frequencies for each in expected], rtol=1e-6)
    errors = np.array([each.standard_errors("population") for each in expected])
    np.testing.assert_allclose(found.trend.variances, errors**2, rtol=1e-6)
    assert found.trend.unit == "day"
    assert (found.held_back, found.other_domain) == ([], [])


def test_epochs_that_are_left_out(collector):
    for number, (plan, users) in enumerate([(LARGER, 500), (PLAN, 500), (PLAN, 20), (PLAN, 500), (PLAN, 500)], 1):
        filled_epoch(collector, "fruit", plan, shares(users), number, close=number < 5)
    cache = TrendCache(collector)
    found = cache.get("fruit", 10, 100, 60)
    assert [epoch.number for epoch in found.epochs] == [2, 4, 5]
    assert (found.held_back, found.other_domain) == ([3], [1])
    assert [epoch.number for epoch in cache.get("fruit", 2, 100, 60).epochs] == [4, 5]
    assert [epoch.number for epoch in cache.get("fruit", 10, 100, 60, closed_only=True).epochs] == [2, 4]
    with pytest.raises(EstimateError, match="at least 501 reports; there is none"):
        cache.get("fruit", 10, 501, 60)
    with pytest.raises(EstimateError, match="at least 100 reports; there is 1"):
        cache.get("fruit", 2, 100, 60, closed_only=True)
    with pytest.raises(UnknownEpochError):
        cache.get("vegetables", 10, 100, 60)


def test_closed_epochs_are_estimated_once(collector, monkeypatch):
    for number in range(1, 4):
        filled_epoch(collector, "fruit", PLAN, shares(300, 200, 100), number)
    live = collector.open("fruit", PLAN)
    reads = []
    real = collector.store.tally
    monkeypatch.setattr(collector.store, "tally", lambda key, *rest: reads.append(key) or real(key, *rest))
    cache = TrendCache(collector)
    first = cache.get("fruit", 10, 1, 60)
    assert len(reads) == 3
    assert cache.get("fruit", 10, 1, 60).trend is first.trend
    batch = PLAN.client(seed=9).report_indices(shares(10, 10, 10))
    collector.store.commit([collector.deposit(live, bytes(16), batch)])
    second = cache.get("fruit", 10, 1, 60)
    assert second.trend.reports == (600, 600, 600, 30)
    assert len(reads) == 4
    collector.subtract(collector.find("fruit", 2), "")
    assert cache.get("fruit", 10, 1, 60).trend.reports == (600, 600, 30)


def test_memory_is_bounded(collector):
    for number in range(1, 7):
        filled_epoch(collector, "fruit", PLAN, shares(300, 200, 100), number)
    cache = TrendCache(collector, largest_bytes=3 * 8 * 3)
    assert [epoch.number for epoch in cache.get("fruit", 10, 1, 60).epochs] == [4, 5, 6]
    assert len(cache._rows) == 3


def test_a_long_computation_is_done_in_parts(collector):
    for number in range(1, 5):
        filled_epoch(collector, "fruit", PLAN, shares(300, 200, 100), number)
    cache = TrendCache(collector)
    assert [cache.get("fruit", 10, 1, 0) for _ in range(3)] == [TrendProgress(done, 4) for done in (1, 2, 3)]
    assert len(cache.get("fruit", 10, 1, 0).epochs) == 4


def test_open_epochs_raise_no_alarm(collector):
    for number in range(1, 6):
        filled_epoch(collector, "fruit", PLAN, shares(3000, 2000, 1000), number)
    filled_epoch(collector, "fruit", PLAN, shares(1000, 2000, 3000), 6, close=False)
    cache = TrendCache(collector)
    found = cache.get("fruit", 10, 1, 60)
    assert found.trend.alarms() == []
    assert {alarm.label for alarm in replace(found.trend, unfinished=frozenset()).alarms()} == {"apple", "cherry"}
    collector.close("fruit", 6)
    assert {alarm.label for alarm in cache.get("fruit", 10, 1, 60).trend.alarms()} == {"apple", "cherry"}


def test_a_clock_that_was_set_back(collector):
    for number in range(1, 4):
        filled_epoch(collector, "fruit", PLAN, shares(300, 200, 100), number)
    collector.store._execute("UPDATE epochs SET opened_at = 0 WHERE number = 2")
    found = TrendCache(collector).get("fruit", 10, 1, 60)
    assert (found.trend.unit, found.trend.moments) == ("epoch", (1, 2, 3))


def test_alarms_of_the_newest_closed_epoch(collector):
    cache = TrendCache(collector)
    for number in range(1, 6):
        filled_epoch(collector, "fruit", PLAN, shares(3000, 2000, 1000), number)
        assert cache.newest_alarms("fruit", 100, 60) == []
    filled_epoch(collector, "fruit", PLAN, shares(1000, 2000, 3000), 6)
    for _ in range(2):
        found = cache.newest_alarms("fruit", 100, 60)
        assert {(alarm.label, alarm.direction) for alarm in found} == {("apple", "down"), ("cherry", "up")}
    filled_epoch(collector, "fruit", PLAN, shares(10), 7)  # nothing is published about it
    assert cache.newest_alarms("fruit", 100, 60) == []
    again = TrendCache(collector)
    assert [again.newest_alarms("fruit", 100, 0) for _ in range(5)] == [None] * 5
    assert again.newest_alarms("fruit", 100, 0) == []


@pytest.mark.slow
def test_epochs_whose_tally_determines_no_estimate(collector):
    """Too few moduli of `mss` have reports to tell all values apart."""
    plan = sunzi.make_plan("mss", 1000, 2)
    for number, users in enumerate([500, 1, 500, 1, 500, 1], 1):
        filled_epoch(collector, "large", plan, shares(users), number, close=number < 6)
    cache = TrendCache(collector)
    found = cache.get("large", 10, 1, 60)
    assert [epoch.number for epoch in found.epochs] == [1, 3, 5]
    assert found.held_back == [2, 4, 6]
    parts = TrendCache(collector)
    assert [type(parts.get("large", 10, 1, 0)) for _ in range(4)] == [TrendProgress] * 4
    assert parts.get("large", 10, 1, 0).held_back == [2, 4, 6]
