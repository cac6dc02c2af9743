"""Epochs that rotate by a schedule, by an injected clock: once, whatever is restarted, missed, repeated or killed."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from deposits import a_deposit, an_epoch, total, values

import sunzi
from sunzi.client.errors import StoreError
from sunzi.collector import Collector
from sunzi.collector.rotation import Rotation, Rotator, Step
from sunzi.collector.schedules import Schedule

HOUR, DAY = 3600.0, 86_400.0
START = datetime(2026, 11, 16, 15, 30, tzinfo=UTC).timestamp()
MIDNIGHT = datetime(2026, 11, 17, tzinfo=UTC).timestamp()
DAILY = Schedule.parse("daily")
PLAN = sunzi.make_plan("grr", 4, 1)


def opened_at_start(store, name="web"):
    epoch = store.open_epoch(name, PLAN.canonical, 4)
    store._execute("UPDATE epochs SET opened_at = ? WHERE key = ?", (START, epoch.key))
    return epoch


@pytest.fixture
def rotation(store):
    opened_at_start(store)
    return Rotation(Collector(store), DAILY, HOUR)


def states(store, name="web"):
    return [(epoch.number, epoch.is_open) for epoch in store.epochs(name)]


def test_a_day_passes(rotation, store):
    assert rotation.advance(START) == rotation.advance(MIDNIGHT - 1) == []
    assert rotation.next_time(START) == MIDNIGHT
    assert rotation.advance(MIDNIGHT) == [Step("open_epoch", "web", 2)]
    assert states(store) == [(1, True), (2, True)]  # the old one still counts stragglers
    assert store.epochs()[1].opened_at == MIDNIGHT
    assert store.plan(store.epochs()[1].key) == PLAN.canonical
    assert rotation.next_time(MIDNIGHT) == MIDNIGHT + HOUR
    assert rotation.advance(MIDNIGHT + HOUR - 1) == []
    assert rotation.advance(MIDNIGHT + HOUR) == [Step("close_epoch", "web", 1)]
    assert rotation.advance(MIDNIGHT + HOUR) == []
    assert states(store) == [(1, False), (2, True)]
    assert rotation.next_time(MIDNIGHT + HOUR) == MIDNIGHT + DAY


def test_stragglers_are_counted_in_their_own_epoch(rotation, store):
    (first,) = store.epochs()
    rotation.advance(MIDNIGHT)
    assert values(store.commit([a_deposit(first, 1, {1: 1})])) == ["counted"]
    rotation.advance(MIDNIGHT + HOUR)
    assert values(store.commit([a_deposit(first, 2, {1: 1})])) == ["closed"]
    assert [total(store, epoch) for epoch in store.epochs()] == [1, 0]
    assert rotation.collector.find("web").epoch.number == 2


def test_missed_rotations_are_done_once(store, address, opened, rotation):
    later = MIDNIGHT + 5 * DAY + 7
    again = Rotation(Collector(opened(address)), DAILY, HOUR)  # after a restart
    assert again.advance(later) == [Step("open_epoch", "web", 2)]
    assert again.advance(later + HOUR) == [Step("close_epoch", "web", 1)]
    assert again.advance(later + 2 * HOUR) == []
    assert again.next_time(later + 2 * HOUR) == MIDNIGHT + 6 * DAY


def test_a_restart_during_the_grace_period(address, opened, rotation):
    rotation.advance(MIDNIGHT)
    again = Rotation(Collector(opened(address)), DAILY, HOUR)
    assert again.next_time(MIDNIGHT + 60) == MIDNIGHT + HOUR
    assert again.advance(MIDNIGHT + DAY - 1) == [Step("close_epoch", "web", 1)]


def test_without_grace_the_old_epoch_closes_at_once(rotation, store):
    steps = Rotation(rotation.collector, DAILY, 0.0).advance(MIDNIGHT)
    assert steps == [Step("open_epoch", "web", 2), Step("close_epoch", "web", 1)]
    assert states(store) == [(1, False), (2, True)]


def test_several_collectors_rotate_once(address, opened, rotation, store):
    others = [Rotation(Collector(opened(address)), DAILY, 0.0) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        steps = [step for made in pool.map(lambda each: each.advance(MIDNIGHT + 1), others) for step in made]
    assert steps.count(Step("open_epoch", "web", 2)) == 1
    assert states(store) == [(1, False), (2, True)]


def test_a_clock_behind_does_not_rotate_again(rotation, store):
    rotation.advance(MIDNIGHT + 2)
    assert Rotation(rotation.collector, DAILY, HOUR).advance(MIDNIGHT + 0.5) == []
    assert len(store.epochs()) == 2


def test_every_collection_rotates_unless_it_has_ended(rotation, store):
    opened_at_start(store, "mobile")
    ended = opened_at_start(store, "ended")
    store.close_epoch(ended.key)
    steps = rotation.advance(MIDNIGHT)
    assert sorted(step.collection for step in steps) == ["mobile", "web"]
    assert states(store, "ended") == [(1, False)]


def test_a_collection_that_ends_during_the_grace_period_opens_no_epoch(rotation, store):
    rotation.advance(MIDNIGHT)
    rotation.collector.close("web", 2)
    assert store.open_next_epoch("web", MIDNIGHT + DAY, MIDNIGHT + DAY) is None
    assert rotation.advance(MIDNIGHT + HOUR - 1) == []
    assert states(store) == [(1, True), (2, False)]  # stragglers are counted until the grace period ends
    assert rotation.next_time(MIDNIGHT + 60) == MIDNIGHT + HOUR
    assert rotation.advance(MIDNIGHT + DAY) == [Step("close_epoch", "web", 1)]
    assert rotation.advance(MIDNIGHT + 2 * DAY) == []
    assert states(store) == [(1, False), (2, False)]


def test_a_plan_that_cannot_be_read_blocks_no_collection(rotation, store):
    newer = PLAN.canonical.replace(b'"version":1', b'"version":99')
    epoch = store.open_epoch("first", newer, 4)
    store._execute("UPDATE epochs SET opened_at = ? WHERE key = ?", (START, epoch.key))
    steps = [step for now in (MIDNIGHT, MIDNIGHT + HOUR) for step in rotation.advance(now)]
    assert steps == [
        Step(action, name, number)
        for action, number in (("open_epoch", 2), ("close_epoch", 1))
        for name in ("first", "web")
    ]
    assert store.plan(store.epochs("first")[1].key) == newer


def test_an_epoch_opened_by_hand_is_not_replaced_before_its_time(rotation, store):
    rotation.advance(MIDNIGHT)
    rotation.collector.store.open_next_epoch("web", MIDNIGHT + 2, MIDNIGHT + 2)
    assert rotation.advance(MIDNIGHT + 3) == []
    assert sorted(step.epoch for step in rotation.advance(MIDNIGHT + 2 + HOUR)) == [1, 2]
    assert states(store) == [(1, False), (2, False), (3, True)]


def test_a_failure_at_any_statement_loses_nothing(rotation, store, monkeypatch):
    """A process that dies leaves the transaction unfinished; the next one does the rest, once."""
    (first,) = store.epochs()
    assert values(store.commit([a_deposit(first, 1, {1: 1})])) == ["counted"]
    real, allowed = store._execute, iter(range(100))
    failures = 0

    def failing(left):
        budget = iter(range(left))

        def execute(query, parameters=()):
            if next(budget, None) is None:
                raise StoreError("killed")
            return real(query, parameters)

        return execute

    once = Rotation(rotation.collector, DAILY, 0.0)
    for left in allowed:
        with monkeypatch.context() as patch:
            patch.setattr(store, "_execute", failing(left))
            try:
                once.advance(MIDNIGHT)
                break
            except StoreError:
                failures += 1
        assert states(store) in ([(1, True)], [(1, True), (2, True)], [(1, False), (2, True)])
        assert total(store, first) == 1
        if states(store)[0] == (1, True):
            assert values(store.commit([a_deposit(first, 1, {1: 1})])) == ["repeated"]
    assert failures > 5
    assert states(store) == [(1, False), (2, True)]
    assert total(store, first) == 1


ROTATING = """
import itertools, sys
from deposits import a_deposit
from sunzi.collector import Collector, Schedule, open_store
from sunzi.collector.rotation import Rotation

store = open_store(sys.argv[1], create=False)
rotation = Rotation(Collector(store), Schedule.parse("daily"), 0.0)
now = max(epoch.opened_at for epoch in store.epochs())
for number in itertools.count(int(sys.argv[2])):
    epoch = store.find_epoch("web")
    (outcome,) = store.commit([a_deposit(epoch, number, {number % 4: 1})])
    print(epoch.number, number, outcome.value, flush=True)
    now += 86_400
    rotation.advance(now)
"""


@pytest.mark.slow
def test_a_process_killed_while_it_rotates_loses_nothing(address, store, rotation):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", ROTATING, address, "0"]
    child = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    first = [child.stdout.readline() for _ in range(5)]
    time.sleep(random.random() / 20)
    child.kill()
    lines = [line.split() for line in [*first, *child.stdout] if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    assert {outcome for _, _, outcome in lines} == {"counted"}
    counted, epochs = Counter(int(epoch) for epoch, _, _ in lines), store.epochs("web")
    assert [epoch.number for epoch in epochs] == list(range(1, len(epochs) + 1))
    assert len(epochs) >= 5
    assert all(epoch.reports >= counted[epoch.number] for epoch in epochs)
    assert sum(epoch.reports for epoch in epochs) - counted.total() in (0, 1)  # killed before it could say so
    assert not any(epoch.is_open for epoch in epochs[:-2])
    Rotation(Collector(store), DAILY, 0.0).advance(epochs[-1].opened_at + 1)
    assert [epoch.is_open for epoch in store.epochs("web")] == [False] * (len(epochs) - 1) + [True]


def test_the_thread_rotates_retries_and_stops(store, monkeypatch):
    epoch = an_epoch(store)
    store._execute("UPDATE epochs SET opened_at = 0 WHERE key = ?", (epoch.key,))
    monkeypatch.setattr("sunzi.collector.rotation._RETRY_SECONDS", 0.01)
    steps, failures = [], iter([StoreError("busy")])
    real = store.open_next_epoch

    def fails_once(*arguments):
        for error in failures:
            raise error
        return real(*arguments)

    monkeypatch.setattr(store, "open_next_epoch", fails_once)
    collector = Collector(store)
    rotator = Rotator(Rotation(collector, DAILY, 0.0), steps.append)
    until = time.monotonic() + 30
    while len(steps) < 2 and time.monotonic() < until:
        time.sleep(0.005)
    rotator.stop(10)
    assert steps == [Step("open_epoch", "web", 2), Step("close_epoch", "web", 1)]
    assert not rotator._thread.is_alive()
