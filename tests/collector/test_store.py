"""Requirements on every store, tested with each kind."""

from __future__ import annotations

import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from deposits import LENGTH, a_deposit, an_epoch, an_id, counts, total, values

from sunzi.client.errors import ParameterError, StoreError
from sunzi.collector.collector import Collector
from sunzi.collector.epochs import Deposit, Shard
from sunzi.plan import make_plan


def test_a_deposit_is_counted_once(store):
    epoch = an_epoch(store)
    deposit = a_deposit(epoch, 7, {3: 1, 1999: 2})
    assert values(store.commit([deposit])) == ["counted"]
    assert values(store.commit([deposit, deposit])) == ["repeated", "repeated"]
    expected = np.zeros(LENGTH, dtype=np.int64)
    expected[3], expected[1999] = 1, 2
    np.testing.assert_array_equal(counts(store, epoch), expected)
    assert total(store, epoch) == 1
    assert store.identity_count(epoch.key) == 1


def test_equal_ids_of_one_group_count_once(store):
    epoch = an_epoch(store)
    first, second = a_deposit(epoch, 1, {0: 1}), a_deposit(epoch, 1, {1: 1})
    assert values(store.commit([first, second, first])) == ["counted", "repeated", "repeated"]
    assert counts(store, epoch)[:2].tolist() == [1, 0]


def test_an_empty_group(store):
    assert store.commit([]) == []


def test_a_batch_counts_all_its_reports(store):
    epoch = an_epoch(store)
    batch = Deposit(epoch.key, an_id(1), 1000, np.arange(500), np.full(500, 2))
    assert values(store.commit([batch])) == ["counted"]
    assert total(store, epoch) == 1000
    assert counts(store, epoch).sum() == 1000


def test_every_epoch_has_its_own_ids_and_counts(store):
    first, second, other = an_epoch(store), an_epoch(store), an_epoch(store, "mobile")
    assert [(e.collection, e.number) for e in store.epochs()] == [("mobile", 1), ("web", 1), ("web", 2)]
    group = [a_deposit(epoch, 5) for epoch in (second, other, first)]
    assert values(store.commit(group)) == ["counted"] * 3
    assert values(store.commit(group[::-1])) == ["repeated"] * 3
    for epoch in (first, second, other):
        assert total(store, epoch) == 1


def test_an_epoch_is_kept_as_it_was_opened(store, address, opened):
    before = time.time()
    epoch = store.open_epoch("web", b"\x00\xffplan", LENGTH)
    assert before <= epoch.opened_at <= time.time()
    assert (store.plan(epoch.key), epoch.reports, epoch.closed_at, epoch.is_open) == (b"\x00\xffplan", 0, None, True)
    assert opened(address).epochs() == [epoch]


@pytest.mark.parametrize("name", ["", "Web", "-web", "a" * 65, "a/b", "a b"])
def test_a_collection_needs_a_plain_name(store, name):
    with pytest.raises(ParameterError, match="name"):
        an_epoch(store, name)
    assert store.epochs() == []


def test_a_closed_epoch_takes_nothing_and_forgets_its_ids(store, address, opened):
    epoch, other = an_epoch(store), an_epoch(store)
    early, late = a_deposit(epoch, 1), a_deposit(epoch, 2)
    store.commit([early, a_deposit(other, 1)])
    store.add_tokens(epoch.key, [b"t" * 32])
    store.close_epoch(epoch.key)
    closed = next(e for e in store.epochs() if e.key == epoch.key)
    assert not closed.is_open
    assert closed.closed_at >= closed.opened_at
    for which in (store, opened(address)):
        assert values(which.commit([late, early, a_deposit(other, 1)])) == ["closed", "closed", "repeated"]
        assert (which.identity_count(epoch.key), list(which.identities(epoch.key))) == (0, [])
        assert list(which.tokens(epoch.key)) == []
        assert total(which, epoch) == 1
    store.close_epoch(epoch.key)
    assert next(e for e in store.epochs() if e.key == epoch.key) == closed
    with pytest.raises(StoreError, match="closed"):
        store.add_tokens(epoch.key, [b"u" * 32])


def test_an_epoch_that_does_not_exist(store):
    an_epoch(store)
    stranger = Deposit(99, an_id(1), 1, np.array([0]), np.array([1]))
    assert values(store.commit([stranger])) == ["closed"]
    with pytest.raises(StoreError, match="99"):
        store.tally(99, LENGTH)
    assert (store.identity_count(99), list(store.identities(99)), store.progress(99)) == (0, [], [])


def test_tokens_are_spent_once(store):
    epoch = an_epoch(store)
    tokens = [bytes([number]) * 32 for number in range(4)]
    store.add_tokens(epoch.key, [*tokens, tokens[0]])
    assert sorted(store.tokens(epoch.key)) == tokens
    # Two ids use one token: the first gets it. An unknown or spent token leaves its id unused.
    group = [a_deposit(epoch, 1, token=tokens[0]), a_deposit(epoch, 2, token=tokens[0])]
    assert values(store.commit(group)) == ["counted", "token refused"]
    assert values(store.commit([a_deposit(epoch, 3, token=b"?" * 32)])) == ["token refused"]
    assert store.identity_count(epoch.key) == 1
    assert values(store.commit([a_deposit(epoch, 2, token=tokens[1])])) == ["counted"]
    # Sent again, it is acknowledged and costs no second token.
    assert values(store.commit([a_deposit(epoch, 2, token=tokens[2])])) == ["repeated"]
    assert sorted(store.tokens(epoch.key)) == tokens[2:]
    assert total(store, epoch) == 2


def test_tokens_belong_to_their_epoch(store):
    first, second = an_epoch(store), an_epoch(store)
    store.add_tokens(first.key, [b"t" * 32])
    assert values(store.commit([a_deposit(second, 1, token=b"t" * 32)])) == ["token refused"]
    assert values(store.commit([a_deposit(first, 1, token=b"t" * 32)])) == ["counted"]


def test_against_a_simple_model(store, address, opened):
    """Random groups, duplicates and closings, compared with dictionaries."""
    chance = random.Random(1)
    epochs = [an_epoch(store) for _ in range(3)]
    seen: dict[int, set[int]] = {epoch.key: set() for epoch in epochs}
    expected = {epoch.key: np.zeros(LENGTH, dtype=np.int64) for epoch in epochs}
    is_open = {epoch.key: True for epoch in epochs}
    for step in range(60):
        group = [(chance.choice(epochs), chance.randrange(300)) for _ in range(chance.choice((1, 2, 40)))]
        outcomes = values(store.commit([a_deposit(epoch, number, {number: 1, 1999: 1}) for epoch, number in group]))
        for (epoch, number), outcome in zip(group, outcomes, strict=True):
            if not is_open[epoch.key]:
                assert outcome == "closed"
            elif number in seen[epoch.key]:
                assert outcome == "repeated"
            else:
                assert outcome == "counted"
                seen[epoch.key].add(number)
                expected[epoch.key][[number, 1999]] += 1
        if step == 30:
            store.close_epoch(epochs[0].key)
            is_open[epochs[0].key] = False
        if step % 20 == 0:
            store.settle()
    for epoch in epochs:
        np.testing.assert_array_equal(counts(opened(address), epoch), expected[epoch.key])
        ids = {an_id(number) for number in seen[epoch.key]} if is_open[epoch.key] else set()
        assert set(store.identities(epoch.key)) == ids


def test_a_failing_commit_counts_nothing(store, monkeypatch):
    epoch = an_epoch(store)
    store.add_tokens(epoch.key, [b"t" * 32])
    deposit = a_deposit(epoch, 1, token=b"t" * 32)

    def fail(*_):
        raise RuntimeError("in the very last step")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_add_reports", fail)
        with pytest.raises(RuntimeError):
            store.commit([deposit])
    assert (total(store, epoch), counts(store, epoch).sum(), store.identity_count(epoch.key)) == (0, 0, 0)
    assert values(store.commit([deposit])) == ["counted"]


@pytest.mark.parametrize("identity", [b"", b"x" * 15, b"x" * 17])
def test_an_id_has_sixteen_bytes(store, identity):
    epoch = an_epoch(store)
    wrong = Deposit(epoch.key, identity, 1, np.array([0]), np.array([1]))
    with pytest.raises(ParameterError, match="16 bytes"):
        store.commit([a_deposit(epoch, 1), wrong])
    assert total(store, epoch) == 0


def test_a_transaction_is_all_or_nothing(store):
    epoch = an_epoch(store)

    def fail_after_all() -> None:
        store.commit([a_deposit(epoch, 1)])
        an_epoch(store, "another")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), store.transaction():
        fail_after_all()
    assert (len(store.epochs()), total(store, epoch), store.identity_count(epoch.key)) == (1, 0, 0)


def test_a_reading_transaction_sees_one_moment_and_writes_nothing(store, address, opened):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    other = opened(address)
    with store.transaction(reading=True):
        assert total(store, epoch) == 1
        other.commit([a_deposit(epoch, 2)])
        assert (total(store, epoch), store.identity_count(epoch.key)) == (1, 1)
        assert list(store.identities(epoch.key)) == [an_id(1)]
    assert total(store, epoch) == 2
    with pytest.raises(StoreError), store.transaction(reading=True):
        store.commit([a_deposit(epoch, 3)])
    assert total(store, epoch) == 2
    assert values(store.commit([a_deposit(epoch, 3)])) == ["counted"]


def test_ids_are_read_while_they_are_added(store, address, opened):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, number) for number in range(30)])
    reading = store.identities(epoch.key)
    found = [next(reading)]
    opened(address).commit([a_deposit(epoch, 99)])
    found += reading
    assert sorted(found) == sorted(an_id(number) for number in range(30))


def test_shards_are_kept_and_checked(fresh_address, opened):
    address = fresh_address()
    store = opened(address, Shard(1, 3))
    assert opened(address).shard == Shard(1, 3)
    with pytest.raises(StoreError, match="1/3"):
        opened(address, Shard(0, 3))
    epoch = an_epoch(store)
    for number in range(30):
        deposit = a_deposit(epoch, number)
        if int.from_bytes(deposit.identity[:2], "big") % 3 == 1:
            assert values(store.commit([deposit])) == ["counted"]
        else:
            with pytest.raises(StoreError, match="shard"):
                store.commit([deposit])
    assert 0 < total(store, epoch) < 30


def test_a_store_that_must_be_there(fresh_address, opened):
    address = fresh_address()
    with pytest.raises(StoreError, match="there is no store"):
        opened(address, create=False)
    opened(address)
    opened(address, create=False)


def test_many_threads(store):
    """Four threads send every deposit, each in a different order."""
    epoch = an_epoch(store)
    numbers = range(120)

    def send(seed: int) -> list[str]:
        order = random.Random(seed).sample(numbers, len(numbers))
        groups = [order[start : start + 7] for start in range(0, len(order), 7)]
        return list(itertools.chain(*(values(store.commit([a_deposit(epoch, n) for n in g])) for g in groups)))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(itertools.chain(*pool.map(send, range(4))))
    assert outcomes.count("counted") == len(numbers)
    assert outcomes.count("repeated") == 3 * len(numbers)
    np.testing.assert_array_equal(counts(store, epoch), (np.arange(LENGTH) < len(numbers)).astype(np.int64))


def test_epochs_opened_at_once_have_different_numbers(store):
    with ThreadPoolExecutor(4) as pool:
        epochs = list(pool.map(lambda _: an_epoch(store), range(12)))
    assert sorted(epoch.number for epoch in epochs) == list(range(1, 13))


def test_an_epoch_that_is_open_under_the_plan_is_joined(store):
    first, other = store.ensure_epoch("web", b"{1}", 10), store.ensure_epoch("web", b"{2}", 10)
    assert [(e.collection, e.number, store.plan(e.key)) for e in store.epochs()] == [
        ("web", 1, b"{1}"),
        ("web", 2, b"{2}"),
    ]
    assert store.ensure_epoch("web", b"{1}", 10) == first
    assert store.ensure_epoch("mobile", b"{1}", 10).number == 1
    newer = store.open_epoch("web", b"{1}", 10)
    assert store.ensure_epoch("web", b"{1}", 10) == newer
    store.close_epoch(newer.key)
    store.close_epoch(other.key)
    assert store.ensure_epoch("web", b"{1}", 10) == first
    assert store.ensure_epoch("web", b"{2}", 10).number == 4
    with pytest.raises(ParameterError, match="name"):
        store.ensure_epoch("Web", b"{1}", 10)


def test_collectors_that_begin_at_once_share_an_epoch(store, address, opened):
    """Each has its own connections, like a process: an epoch that one does not see yet must not be opened twice."""
    plan = make_plan("grr", 20, 1)
    collectors = [Collector(opened(address)) for _ in range(4)]
    for turn in range(5):
        ready = threading.Barrier(4)

        def begin(collector: Collector, name: str = f"web{turn}", ready: threading.Barrier = ready) -> int:
            ready.wait()
            return collector.open(name, plan).epoch.number

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(begin, collectors)) == [1] * 4
    assert len(store.epochs()) == 5


def test_a_store_is_empty_or_not_within_a_transaction(store, address, opened):
    """While one process fills an empty store, others cannot start to fill it."""
    other, refused = opened(address), []

    def fill() -> None:
        with other.transaction():
            try:
                other.require_empty()
            except StoreError as error:
                refused.append(str(error))

    with store.transaction():
        store.require_empty()
        thread = threading.Thread(target=fill)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        an_epoch(store)
    thread.join()
    assert len(refused) == 1
    assert "empty" in refused[0]


def test_a_closed_epoch_is_closed_though_it_cannot_be_wiped(store, monkeypatch):
    epoch = an_epoch(store)

    def fail() -> bool:
        raise StoreError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(store, "settle", fail)
        assert store.close_epoch(epoch.key) is False
    assert not store.epochs()[0].is_open
    assert store.close_epoch(epoch.key) is True


def test_a_check_writes_and_leaves_epochs_alone(store, address, opened):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    store.check()
    assert opened(address).shard == store.shard
    assert (total(store, epoch), len(store.epochs())) == (1, 1)
    with pytest.raises(StoreError), store.transaction(reading=True):
        store.check()


def test_closing_while_others_commit(store):
    """The tally of the closed epoch contains exactly the deposits acknowledged as counted."""
    many = 100_000
    epoch = an_epoch(store, counters=many)
    outcomes: dict[int, str] = {}

    def send(part: int) -> None:
        number = part
        while outcomes.get(number - 4) != "closed":
            outcomes[number] = store.commit([a_deposit(epoch, number, {number: 1})])[0].value
            number += 4

    threads = [threading.Thread(target=send, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    while sum(outcome == "counted" for outcome in list(outcomes.values())) < 20:
        time.sleep(0.002)
    store.close_epoch(epoch.key)
    at_close = counts(store, epoch, many)
    for thread in threads:
        thread.join()
    assert {number for number, outcome in outcomes.items() if outcome == "counted"} == set(np.flatnonzero(at_close))
    assert list(outcomes.values()).count("closed") == 4
    np.testing.assert_array_equal(counts(store, epoch, many), at_close)


def test_settling_says_when_it_is_done(store):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    assert store.settle() is True
    assert store.settle() is True
    assert total(store, epoch) == 1


def with_key(epoch, number, uploader="app", quota=None, **options):
    return replace(a_deposit(epoch, number, **options), uploader=uploader, reports_per_minute=quota)


def test_a_key_can_be_subtracted_from_an_open_and_from_a_closed_epoch(store, address, opened):
    epoch = an_epoch(store)
    store.commit([with_key(epoch, number, "good") for number in range(10)])
    honest, minutes = counts(store, epoch), store.progress(epoch.key)
    for close in (False, True):
        stolen = [with_key(epoch, 100 * (1 + close) + number, "stolen", cells={3: 5}) for number in range(30)]
        assert values(store.commit(stolen)) == ["counted"] * 30
        assert (total(store, epoch), store.epochs()[0].reports, counts(store, epoch)[3]) == (40, 40, 151)
        if close:
            store.close_epoch(epoch.key)
        assert store.subtract(epoch.key, "stolen") == 30
        assert (total(store, epoch), store.epochs()[0].reports) == (10, 10)
        np.testing.assert_array_equal(counts(store, epoch), honest)
        assert sum(reports for _, reports in store.progress(epoch.key)) == sum(reports for _, reports in minutes)
        assert store.subtract(epoch.key, "stolen") == 0  # nothing is left
    again = opened(address)
    assert (total(again, epoch), [each.uploader for each in again.contributions(epoch.key)]) == (
        10,
        ["good", "stolen", "stolen"],
    )


def test_only_a_key_that_has_uploaded_can_be_subtracted(store):
    epoch = an_epoch(store)
    store.commit([with_key(epoch, 1, "good")])
    with pytest.raises(StoreError, match=r"the key 'gone'; reports have the keys 'good'"):
        store.subtract(epoch.key, "gone")
    assert total(store, epoch) == 1


def test_a_quota_is_never_overdrawn(store, monkeypatch):
    epoch, now = an_epoch(store), [1_000_000.0]
    monkeypatch.setattr("sunzi.collector.store.time.time", lambda: now[0])
    group = [with_key(epoch, number, quota=10) for number in range(25)]
    assert values(store.commit(group)) == ["counted"] * 10 + ["over quota"] * 15
    assert (total(store, epoch), store.identity_count(epoch.key)) == (10, 10)
    now[0] += 30  # half a minute
    assert values(store.commit(group)) == ["repeated"] * 10 + ["counted"] * 5 + ["over quota"] * 10
    now[0] += 6000
    assert values(store.commit(group)).count("counted") == 10  # never more than a minute's worth
    now[0] -= 6000  # a clock that goes back fills nothing
    assert values(store.commit([with_key(epoch, 99, quota=10)])) == ["over quota"]
    assert values(store.commit([with_key(epoch, 99, "other", quota=10)])) == ["counted"]


def test_a_quota_survives_a_restart(store, address, opened):
    epoch = an_epoch(store)
    assert values(store.commit([with_key(epoch, number, quota=2) for number in range(2)])) == ["counted"] * 2
    store.close()
    assert values(opened(address).commit([with_key(epoch, 5, quota=2)])) == ["over quota"]


def test_a_token_is_not_spent_beyond_the_quota(store):
    epoch = an_epoch(store)
    tokens = [bytes([number]) * 32 for number in range(3)]
    store.add_tokens(epoch.key, tokens)
    group = [with_key(epoch, number, quota=1, token=tokens[number]) for number in range(3)]
    assert values(store.commit(group)) == ["counted", "over quota", "over quota"]
    assert sorted(store.tokens(epoch.key)) == tokens[1:]


def test_collectors_that_share_a_store_share_a_quota(store, address, opened):
    first, second = an_epoch(store), an_epoch(store, "other")
    stores = [store, opened(address)]

    def send(number):
        epoch = (first, second)[number % 2]
        return values(stores[number % 2].commit([with_key(epoch, number, quota=20)]))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(itertools.chain(*pool.map(send, range(60))))
    assert 20 <= outcomes.count("counted") <= 22  # a third of a report is added in a second
    assert outcomes.count("counted") == total(store, first) + total(store, second)
