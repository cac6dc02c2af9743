"""Backup, restore, moves between kinds of stores, and the sum of shards."""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import replace

import numpy as np
import pytest
from deposits import LENGTH, a_deposit, an_epoch, an_id, counts, total, values

from sunzi.client.errors import StoreError
from sunzi.collector import stores
from sunzi.collector.epochs import Deposit, Shard
from sunzi.collector.sqlite import SqliteStore
from sunzi.collector.stores import backup, copy_store, find_epoch, merge_shards, open_store, stored_tally
from sunzi.plan import Plan, make_plan

PLAN = make_plan("grr", 20, 1)
COUNTERS = PLAN.protocol.tally_layout.length


def contents(store):
    """The content of a store except its keys, which are internal."""
    return [
        (
            (epoch.collection, epoch.number, store.plan(epoch.key), epoch.page_cells, epoch.reports, epoch.opened_at),
            epoch.closed_at,
            [
                (
                    each.uploader,
                    each.group,
                    each.reports,
                    each.subtracted_at,
                    {k: bytes(v) for k, v in store.pages(each.key).items()},
                )
                for each in store.contributions(epoch.key, None)
            ],
            sorted(store.identities(epoch.key)),
            sorted(store.tokens(epoch.key)),
            store.progress(epoch.key),
        )
        for epoch in store.epochs()
    ]


def quotas(store):
    return sorted(store._execute("SELECT uploader, reports_left, filled_at FROM quotas"))


def fill(store):
    """Closed and open epochs, tokens, sparse and full pages; the order of keys is not that of names."""
    zebra = an_epoch(store, "zebra")
    ant, huge = an_epoch(store, "ant"), an_epoch(store, "huge", counters=1 << 40)
    store.commit([a_deposit(zebra, number) for number in range(300)])
    store.commit([a_deposit(ant, number, {number: 3}) for number in range(40)])
    store.commit([Deposit(huge.key, an_id(1), 7, np.array([5, 1 << 39]), np.array([3, 4]))])
    store.commit([replace(a_deposit(zebra, number), uploader=f"key {number % 2}") for number in range(400, 420)])
    store.commit([replace(a_deposit(zebra, 500), uploader="key 1", reports_per_minute=90)])
    named = replace(a_deposit(zebra, 600), uploader="key 0", groups=("country=DE", "release=1"))
    store.commit([named, replace(a_deposit(zebra, 601), groups=("country=DE",))])
    store.subtract(zebra.key, "key 0")
    store.add_tokens(zebra.key, [bytes([number]) * 32 for number in range(3)])
    store.close_epoch(ant.key)
    an_epoch(store, "ant")


@pytest.fixture(params=["sqlite", "postgres"])
def target(request, tmp_path, opened):
    """A store of either kind to copy into."""
    if request.param == "postgres":
        return opened(request.getfixturevalue("server").fresh_address())
    return opened(str(tmp_path / "target.db"))


def test_a_copy_is_the_same_and_goes_on(store, target):
    fill(store)
    assert copy_store(store, target) == 4
    assert contents(target) == contents(store)
    assert quotas(target) == quotas(store) != []
    assert target.group_reports(find_epoch(target, "zebra").key) == {"country=DE": 1}
    zebra, ant = find_epoch(target, "zebra"), find_epoch(target, "ant", 1)
    group = [a_deposit(zebra, 5), a_deposit(zebra, 301, token=bytes(32)), a_deposit(ant, 1)]
    assert values(target.commit(group)) == ["repeated", "counted", "closed"]
    assert target.open_epoch("zebra", b"{}", 1).number == 2


def test_a_copy_needs_an_empty_store_of_the_same_shard(store, target, opened, tmp_path):
    fill(store)
    an_epoch(target)
    before = contents(target)
    with pytest.raises(StoreError, match="empty"):
        copy_store(store, target)
    assert contents(target) == before
    shard = opened(str(tmp_path / "shard.db"), Shard(1, 2))
    with pytest.raises(StoreError, match="shard 0/1, the target is shard 1/2"):
        copy_store(store, shard)


def test_a_store_that_is_filled_meanwhile_is_not_copied_into(store, fresh_address, opened, monkeypatch):
    fill(store)
    address = fresh_address()
    target, other = opened(address), opened(address)
    transaction = target.transaction

    def interrupted(**options):
        monkeypatch.setattr(target, "transaction", transaction)
        an_epoch(other, "theirs")
        return transaction(**options)

    monkeypatch.setattr(target, "transaction", interrupted)
    with pytest.raises(StoreError, match="empty"):
        copy_store(store, target)
    assert [epoch.collection for epoch in target.epochs()] == ["theirs"]


def test_a_copy_that_fails_leaves_nothing(store, target, monkeypatch):
    fill(store)

    def fail(*_):
        raise StoreError("the source is gone")

    monkeypatch.setattr(store, "tokens", fail)
    with pytest.raises(StoreError, match="gone"):
        copy_store(store, target)
    assert target.epochs() == []


def test_a_copy_shows_one_moment(store, address, opened, tmp_path):
    """A copy made during writes is consistent: its ids match its counts."""
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 0, {0: 1})])
    busy, numbers = opened(address), itertools.count(1)
    ending = threading.Event()

    def write():
        while not ending.is_set():
            busy.commit([a_deposit(epoch, number, {0: 1}) for number in itertools.islice(numbers, 10)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for attempt in range(6):
            backup(store, tmp_path / f"{attempt}.db")
    finally:
        ending.set()
        writer.join()
    sizes = []
    for attempt in range(6):
        copy = opened(str(tmp_path / f"{attempt}.db"))
        found = find_epoch(copy, "web")
        assert total(copy, found) == counts(copy, found)[0] == copy.identity_count(found.key)
        sizes.append(total(copy, found))
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_a_backup_is_one_whole_file(store, opened, tmp_path):
    fill(store)
    directory = tmp_path / "backups"
    directory.mkdir()
    assert backup(store, directory / "store.db") == 4
    assert os.listdir(directory) == ["store.db"]
    (directory / "store.db").rename(tmp_path / "elsewhere.db")  # no other file is needed
    assert contents(opened(str(tmp_path / "elsewhere.db"), create=False)) == contents(store)


def test_a_backup_overwrites_nothing(store, tmp_path):
    path = tmp_path / "precious.db"
    path.write_text("precious")
    with pytest.raises(StoreError, match="exists already"):
        backup(store, path)
    assert path.read_text() == "precious"
    with pytest.raises(StoreError, match="No such file or directory"):
        backup(store, tmp_path / "no" / "directory.db")


def test_a_file_that_appears_meanwhile_is_kept(store, tmp_path, monkeypatch):
    path = tmp_path / "precious.db"
    copy = stores._copy_to_file

    def slowly(*arguments):
        path.write_text("precious")
        return copy(*arguments)

    monkeypatch.setattr(stores, "_copy_to_file", slowly)
    with pytest.raises(StoreError, match="File exists"):
        backup(store, path)
    assert path.read_text() == "precious"


def test_a_failed_backup_leaves_no_file(store, tmp_path, monkeypatch):
    fill(store)
    monkeypatch.setattr(SqliteStore, "settle", lambda _: False)
    with pytest.raises(StoreError, match="in use by another process"):
        backup(store, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_an_old_backup_counts_later_reports_again(store, opened, tmp_path):
    """As docs/durability.md says: it is the store at that moment, so reports counted since can be sent again."""
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    backup(store, tmp_path / "old.db")
    store.commit([a_deposit(epoch, 2)])
    old = opened(str(tmp_path / "old.db"))
    again = [a_deposit(find_epoch(old, "web"), number) for number in (1, 2)]
    assert values(old.commit(again)) == ["repeated", "counted"]


# Shards.


@pytest.fixture
def shards(fresh_address, opened):
    """Three collectors of one collection, each with an open epoch; 90 reports, each sent to the shard of its id."""
    stores = [opened(fresh_address(), Shard(index, 3)) for index in range(3)]
    for store in stores:
        epoch = store.open_epoch("web", PLAN.canonical, COUNTERS)
        mine = [a_deposit(epoch, number, {number % COUNTERS: 1}) for number in range(90)]
        store.commit([deposit for deposit in mine if store.shard.takes(deposit.identity)])
    return stores


def close_all(stores):
    for store in stores:
        store.close_epoch(find_epoch(store, "web").key)


def test_shards_add_up(shards):
    close_all(shards)
    tally = merge_shards(shards[::-1], "web", 1)
    assert tally.reports == 90
    np.testing.assert_array_equal(tally.counts, np.bincount(np.arange(90) % COUNTERS, minlength=COUNTERS))
    assert tally.fingerprint == PLAN.digest
    assert all(0 < stored_tally(store, find_epoch(store, "web"), PLAN).reports < 90 for store in shards)


def test_every_shard_is_needed_once(shards, other_store):
    close_all(shards)
    for wrong in ([], shards[:2], [*shards, shards[0]], [shards[0], shards[1], shards[1]], [*shards, other_store]):
        with pytest.raises(StoreError, match="every shard of one collection exactly once"):
            merge_shards(wrong, "web", 1)


def test_open_epochs_are_not_merged(shards):
    close_all(shards[:2])
    with pytest.raises(StoreError, match="still open in shard 2/3"):
        merge_shards(shards, "web", 1)


def test_shards_need_one_plan(shards, fresh_address, opened):
    other = opened(fresh_address(), Shard(2, 3))
    other.open_epoch("web", make_plan("grr", 21, 1).canonical, COUNTERS)
    close_all([*shards, other])
    with pytest.raises(StoreError, match="different plans"):
        merge_shards([*shards[:2], other], "web", 1)


def test_epochs_are_found_by_name(store):
    fill(store)
    assert find_epoch(store, "ant").number == 2
    assert find_epoch(store, "ant", 1).number == 1
    with pytest.raises(StoreError, match="no epoch 3 of 'ant' here; its epochs are 1 to 2"):
        find_epoch(store, "ant", 3)
    with pytest.raises(StoreError, match=r"no collection 'bee' here; the collections are \['ant', 'huge', 'zebra'\]"):
        find_epoch(store, "bee")


def test_a_stored_tally_is_checked(store):
    epoch = store.open_epoch("web", PLAN.canonical, COUNTERS)
    store.commit([Deposit(epoch.key, an_id(1), 5, np.array([0]), np.array([4]))])
    with pytest.raises(StoreError, match=r"is damaged: epoch 1 of web: .* not of 5"):
        stored_tally(store, find_epoch(store, "web"), Plan.from_json(store.plan(epoch.key)))


def test_a_path_is_a_store_in_a_file(tmp_path):
    store = open_store(str(tmp_path / "postgresql.db"))
    assert isinstance(store, SqliteStore)
    assert store.tally(an_epoch(store).key, LENGTH)[0] == 0
    store.close()
