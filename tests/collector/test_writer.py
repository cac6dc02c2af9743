"""Group commit: one answer per deposit, only after the commit, in groups; full queues and failing stores."""

from __future__ import annotations

import shutil
import threading
import time

import pytest
from deposits import a_deposit, an_epoch, total

from sunzi.client.errors import ParameterError, StoreError
from sunzi.collector import writer as writer_module
from sunzi.collector.epochs import Outcome, Shard
from sunzi.collector.sqlite import SqliteStore
from sunzi.collector.writer import OverloadError, Writer


class Mailbox:
    """Collects delivered results."""

    def __init__(self) -> None:
        self.results = {}
        self.groups = []
        self._changed = threading.Condition()

    def __call__(self, results) -> None:
        with self._changed:
            assert not self.results.keys() & {ticket for ticket, _ in results}, "answered twice"
            self.results.update(results)
            self.groups.append(len(results))
            self._changed.notify()

    def wait(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.results) >= number, 20)


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(tmp_path / "store.db")
    yield opened
    opened.close()


@pytest.fixture
def mailbox():
    return Mailbox()


class Gate:
    """A store whose commit can be blocked, to see which answers arrive meanwhile."""

    def __init__(self, store, monkeypatch) -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        commit = store.commit

        def held_up(deposits):
            self.entered.set()
            assert self.open.wait(20)
            return commit(deposits)

        monkeypatch.setattr(store, "commit", held_up)


def test_every_deposit_is_answered_once_after_it_is_durable(address, opened, mailbox):
    store = opened(address)
    epoch = an_epoch(store)
    other = opened(address)
    seen = []

    def deliver(results):
        seen.append(total(other, epoch))  # another connection sees only committed data
        mailbox(results)

    writer = Writer(store, deliver)
    for number in range(300):
        writer.submit(a_deposit(epoch, number % 200), number)
    mailbox.wait(300)
    writer.close()
    outcomes = list(mailbox.results.values())
    assert (outcomes.count(Outcome.COUNTED), outcomes.count(Outcome.REPEATED)) == (200, 100)
    counted = 0
    for group, durable in zip(mailbox.groups, seen, strict=True):
        counted += group
        assert durable == min(counted, 200)
    assert total(store, epoch) == 200


def test_answers_follow_the_commit_and_waiting_deposits_share_one(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    writer = Writer(store, mailbox)
    writer.submit(a_deposit(epoch, 0), 0)
    assert gate.entered.wait(10)
    for number in range(1, 50):
        writer.submit(a_deposit(epoch, number), number)
    time.sleep(0.05)
    assert mailbox.results == {}
    assert writer.waiting == 49
    gate.open.set()
    mailbox.wait(50)
    assert mailbox.groups == [1, 49]
    assert (writer.counts.groups, writer.counts.deposits, writer.counts.largest_group) == (2, 50, 49)
    writer.close()


def test_a_full_queue_refuses(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    writer = Writer(store, mailbox, limit=5)
    writer.submit(a_deposit(epoch, 0), 0)
    assert gate.entered.wait(10)
    for number in range(1, 6):
        writer.submit(a_deposit(epoch, number), number)
    with pytest.raises(OverloadError, match="5 deposits are waiting"):
        writer.submit(a_deposit(epoch, 6), 6)
    gate.open.set()
    mailbox.wait(6)
    writer.submit(a_deposit(epoch, 6), 6)
    writer.close()
    assert set(mailbox.results.values()) == {Outcome.COUNTED}
    assert total(store, epoch) == 7


def test_a_queue_that_is_full_by_size_refuses(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    size = a_deposit(epoch, 0).size
    writer = Writer(store, mailbox, limit_bytes=3 * size)
    writer.submit(a_deposit(epoch, 0), 0)
    assert gate.entered.wait(20)
    for ticket in range(1, 4):
        writer.submit(a_deposit(epoch, ticket), ticket)
    with pytest.raises(OverloadError, match=f"{3 * size} bytes are waiting"):
        writer.submit(a_deposit(epoch, 4), 4)
    gate.open.set()
    mailbox.wait(4)
    writer.submit(a_deposit(epoch, 5), 5)
    mailbox.wait(5)
    writer.close()


def test_a_group_is_of_bounded_size(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    monkeypatch.setattr(writer_module, "_GROUP_BYTES", 1)
    writer = Writer(store, mailbox, limit_bytes=1)  # one deposit may be larger than both
    writer.submit(a_deposit(epoch, 0), 0)
    assert gate.entered.wait(20)
    writer.submit(a_deposit(epoch, 1), 1)
    gate.open.set()
    mailbox.wait(2)
    writer.close()
    assert mailbox.groups == [1, 1]


def test_small_deposits_do_not_wait_for_many_large_ones(store, mailbox, monkeypatch):
    """They take turns, and neither waits for ever."""
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    large = dict.fromkeys(range(5000), 1)
    monkeypatch.setattr(writer_module, "_GROUP_BYTES", a_deposit(epoch, 0, large).size)
    writer = Writer(store, mailbox)
    writer.submit(a_deposit(epoch, 0, large), "large 0")
    assert gate.entered.wait(20)
    for number in range(1, 4):
        writer.submit(a_deposit(epoch, number, large), f"large {number}")
    for number in range(4, 6):
        writer.submit(a_deposit(epoch, number), f"small {number}")
    gate.open.set()
    mailbox.wait(6)
    writer.close()
    assert list(mailbox.results) == ["large 0", "small 4", "small 5", "large 1", "large 2", "large 3"]
    assert mailbox.groups == [1, 2, 1, 1, 1]


def test_closing_counts_what_waits_and_takes_no_more(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    writer = Writer(store, mailbox)
    for number in range(20):
        writer.submit(a_deposit(epoch, number), number)
    closer = threading.Thread(target=writer.close)
    assert writer.is_alive
    closer.start()
    while writer.is_alive:
        time.sleep(0.001)
    with pytest.raises(OverloadError, match="stopping"):
        writer.submit(a_deposit(epoch, 99), 99)
    gate.open.set()
    closer.join()
    assert list(mailbox.results.values()) == [Outcome.COUNTED] * 20
    assert total(store, epoch) == 20


def test_an_error_is_reported_to_the_whole_group_and_the_writer_survives(store, mailbox, monkeypatch, caplog):
    epoch = an_epoch(store)
    commit = store.commit
    failures = [StoreError("the disk is full"), ZeroDivisionError("nobody thought of this")]

    def fail(deposits):
        if failures:
            raise failures.pop(0)
        return commit(deposits)

    monkeypatch.setattr(store, "commit", fail)
    writer = Writer(store, mailbox)
    for number in range(3):
        writer.submit(a_deposit(epoch, 1), number)
        mailbox.wait(number + 1)
    writer.close()
    assert [str(mailbox.results[0]), str(mailbox.results[1])] == [
        "the disk is full",
        "the store failed: ZeroDivisionError",
    ]
    assert all(isinstance(mailbox.results[number], StoreError) for number in (0, 1))
    assert mailbox.results[2] is Outcome.COUNTED
    assert writer.counts.failures == 2
    assert "unexpected error" in caplog.text


def test_a_receiver_that_fails_does_not_stop_the_writer(store, mailbox, caplog):
    epoch = an_epoch(store)
    calls = []

    def deliver(results):
        calls.append(results)
        if len(calls) == 1:
            raise RuntimeError("the line is dead")
        mailbox(results)

    writer = Writer(store, deliver)
    writer.submit(a_deposit(epoch, 1), "first")
    while not calls:
        time.sleep(0.001)
    writer.submit(a_deposit(epoch, 1), "again")
    mailbox.wait(1)
    writer.close()
    assert mailbox.results == {"again": Outcome.REPEATED}
    assert "could not be delivered" in caplog.text


def test_a_wrong_id_fails_alone(tmp_path, mailbox):
    store = SqliteStore(tmp_path / "shard.db", Shard(0, 2))
    epoch = an_epoch(store)
    deposits = [a_deposit(epoch, number) for number in range(40)]
    writer = Writer(store, mailbox)
    refused = 0
    for number, deposit in enumerate(deposits):
        try:
            writer.submit(deposit, number)
        except StoreError:
            refused += 1
    short = a_deposit(epoch, 1)
    object.__setattr__(short, "identity", b"short")
    with pytest.raises(ParameterError, match="16 bytes"):
        writer.submit(short, "short")
    writer.close()
    assert 0 < refused < 40
    assert list(mailbox.results.values()) == [Outcome.COUNTED] * (40 - refused)
    store.close()


def test_the_log_is_emptied_soon_after_a_commit(store, mailbox, monkeypatch):
    """The window stated in docs/durability.md: after that many seconds no earlier version of a page is left."""
    epoch = an_epoch(store)
    log = store.path.with_name(store.path.name + "-wal")
    store.settle()
    emptied, settle = [], store.settle

    def watched():
        before = log.stat().st_size
        done = settle()
        emptied.append((before > 0, log.stat().st_size == 0))
        return done

    monkeypatch.setattr(store, "settle", watched)
    writer = Writer(store, mailbox, settle_seconds=0.2)
    for number in (1, 2):
        writer.submit(a_deposit(epoch, number), number)
        mailbox.wait(number)
        until = time.monotonic() + 20
        while emptied.count((True, True)) < number and time.monotonic() < until:
            time.sleep(0.01)
        assert emptied.count((True, True)) == number
    writer.submit(a_deposit(epoch, 3), 3)
    writer.close()  # at once, even before its time
    assert total(store, epoch) == 3
    assert log.stat().st_size == 0


def test_settling_is_tried_again(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    tried, answers = [], iter([StoreError("in use"), False, ZeroDivisionError(), True])
    committed = threading.Event()

    def fail_at_first():
        if not committed.is_set():
            return False
        tried.append(next(answers))
        if isinstance(tried[-1], Exception):
            raise tried[-1]
        return tried[-1]

    monkeypatch.setattr(store, "settle", fail_at_first)
    writer = Writer(store, mailbox, settle_seconds=0.02)
    writer.submit(a_deposit(epoch, 1), 1)
    mailbox.wait(1)
    committed.set()
    until = time.monotonic() + 10
    while len(tried) < 4 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(tried) == 4  # and never again once it is done
    assert tried[-1] is True
    writer.close()


def test_the_log_of_a_killed_collector_is_emptied_at_the_next_start(tmp_path, mailbox):
    """The store is copied while in use, which is the state that a killed process leaves."""
    store = SqliteStore(tmp_path / "store.db")
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    (tmp_path / "left").mkdir()
    for file in ("store.db", "store.db-wal"):
        shutil.copy(tmp_path / file, tmp_path / "left" / file)
    store.close()
    again = SqliteStore(tmp_path / "left" / "store.db")
    log = tmp_path / "left" / "store.db-wal"
    assert log.stat().st_size > 0
    writer = Writer(again, mailbox)
    until = time.monotonic() + 10
    while log.stat().st_size and time.monotonic() < until:
        time.sleep(0.01)
    assert log.stat().st_size == 0
    assert total(again, epoch) == 1
    writer.close()
    again.close()


def test_settling_can_be_requested(store, mailbox, monkeypatch):
    """A request is served at once, even by an idle writer, and each request is served once."""
    settled = threading.Semaphore(0)
    monkeypatch.setattr(store, "settle", lambda: settled.release() or True)
    writer = Writer(store, mailbox, settle_seconds=1000)
    assert settled.acquire(timeout=20)  # at its start
    assert not settled.acquire(timeout=0.2)
    for _ in range(3):
        writer.settle()
        assert settled.acquire(timeout=20)
    assert not settled.acquire(timeout=0.2)
    writer.close()


def test_a_request_during_settling_is_served_afterwards(store, mailbox, monkeypatch):
    begun, over = threading.Semaphore(0), threading.Semaphore(0)

    def slowly() -> bool:
        begun.release()
        return over.acquire(timeout=20)

    monkeypatch.setattr(store, "settle", slowly)
    writer = Writer(store, mailbox, settle_seconds=1000)
    assert begun.acquire(timeout=20)
    writer.settle()  # for an epoch closed after the first had begun
    over.release(2)
    assert begun.acquire(timeout=20)
    writer.close()


def test_a_writer_says_when_commits_fail(store, mailbox, monkeypatch):
    epoch = an_epoch(store)
    writer = Writer(store, mailbox)
    commit = store.commit
    assert not writer.is_failing
    for number, works in enumerate((False, True, False)):
        monkeypatch.setattr(store, "commit", commit if works else lambda _: 1 / 0)
        writer.submit(a_deposit(epoch, number), number)
        mailbox.wait(number + 1)
        assert writer.is_failing is not works
    monkeypatch.setattr(writer_module, "_FAILING_SECONDS", 0.0)
    assert not writer.is_failing  # a failure expires: while it is reported, no upload may come to retry
    writer.close()


def test_a_writer_says_when_the_store_hangs(store, mailbox, monkeypatch, caplog):
    monkeypatch.setattr(writer_module, "_STUCK_SECONDS", 0.05)
    epoch = an_epoch(store)
    gate = Gate(store, monkeypatch)
    writer = Writer(store, mailbox)
    assert not writer.is_stuck
    writer.submit(a_deposit(epoch, 0), 0)
    assert gate.entered.wait(20)
    while not writer.is_stuck:
        time.sleep(0.01)
    with pytest.raises(OverloadError, match="the store does not answer"):
        writer.submit(a_deposit(epoch, 1), 1)
    writer.close(0.1)
    assert "the store did not answer" in caplog.text
    gate.open.set()
    mailbox.wait(1)
    writer.close()
    assert not writer.is_stuck
    assert total(store, epoch) == 1
