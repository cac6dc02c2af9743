"""Tests specific to the store in an SQLite file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import version_one
from deposits import a_deposit, an_epoch, an_id, commit_until_refused, counts, total, values

from sunzi.client.errors import StoreError
from sunzi.collector import sqlite as sqlite_module
from sunzi.collector.epochs import Deposit
from sunzi.collector.sqlite import APPLICATION_ID, SqliteStore
from sunzi.collector.stores import backup, open_store

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    opened = SqliteStore(path)
    yield opened
    opened.close()


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def test_every_connection_is_durable(store):
    for _ in range(2):
        shown = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete", "fullfsync")
        }
        assert shown == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "fullfsync": 1}
        store._connections.drop()


def test_settling_empties_the_log(store, path):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    assert log_of(path).stat().st_size > 0
    assert store.settle()
    assert log_of(path).stat().st_size == 0


def test_settling_does_not_wait_for_readers(store, path):
    """A long backup must not keep the collector from acknowledging; the log is emptied once the backup ends."""
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    reader = SqliteStore(path)
    with reader.transaction(reading=True):
        reader.epochs()
        store.commit([a_deposit(epoch, 2)])
        assert not store.settle()
        assert values(store.commit([a_deposit(epoch, 3)])) == ["counted"]
    assert store.settle()
    assert log_of(path).stat().st_size == 0
    reader.close()
    # The busy timeout is restored.
    assert store._connection.execute("PRAGMA busy_timeout").fetchone()[0] == 30_000


def test_ids_of_a_closed_epoch_leave_no_trace(store, path):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, number) for number in range(2000)])
    store.settle()
    assert sum(an_id(number) in path.read_bytes() for number in range(20)) == 20
    store.close_epoch(epoch.key)
    left = path.read_bytes() + log_of(path).read_bytes()
    assert not any(an_id(number) in left for number in range(2000))


def test_space_of_closed_epochs_is_used_again(store, path):
    sizes = []
    for turn in range(6):
        epoch = an_epoch(store)
        store.commit([a_deposit(epoch, number) for number in range(3000 * turn, 3000 * (turn + 1))])
        store.close_epoch(epoch.key)
        sizes.append(path.stat().st_size)
    pages_of_a_tally = 5 * 4096
    assert sizes[-1] <= sizes[0] + 5 * pages_of_a_tally + 8 * 4096


def test_a_foreign_file_is_left_unchanged(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a Sunzi store"):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("before", [True, False])
def test_another_makes_the_store_while_this_one_looks_at_the_file(path, monkeypatch, before):
    others = []
    is_blank = sqlite_module._is_blank

    def interrupted(connection):
        monkeypatch.setattr(sqlite_module, "_is_blank", is_blank)
        if before:
            others.append(SqliteStore(path))
        answer = is_blank(connection)
        if not before:
            others.append(SqliteStore(path))
        return answer

    monkeypatch.setattr(sqlite_module, "_is_blank", interrupted)
    late = SqliteStore(path)
    epoch = an_epoch(others[0])
    assert [found.key for found in late.epochs()] == [epoch.key]
    others[0].close()
    late.close()


def test_a_file_that_is_not_a_database_is_refused(path, tmp_path):
    path.write_bytes(b"a letter to somebody" * 100)
    with pytest.raises(StoreError, match=r"store\.db: file is not a database"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="No such file"):
        SqliteStore(tmp_path / "no" / "such" / "directory.db")


def test_a_newer_store_is_refused(store, path):
    store._connection.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StoreError, match="version 99; this release supports versions up to 3"):
        SqliteStore(path)


def test_a_store_without_its_version_is_damaged(store, path):
    store._connection.execute("PRAGMA user_version = 0")
    store.close()
    with pytest.raises(StoreError, match="damaged"):
        SqliteStore(path)


def test_an_empty_file_is_a_store_only_if_one_may_be_made(path):
    path.touch()
    with pytest.raises(StoreError, match="there is no store"):
        SqliteStore(path, create=False)
    assert path.read_bytes() == b""
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    SqliteStore(path).close()
    SqliteStore(path, create=False).close()


def test_version_one_opens(path):
    shutil.copy(FIXTURES / "store-v1.db", path)
    store = open_store(str(path), create=False)
    version_one.check(store)
    store.close()


def test_opening_a_store_changes_nothing(path):
    shutil.copy(FIXTURES / "store-v1.db", path)
    SqliteStore(path).close()
    upgraded = path.read_bytes()
    SqliteStore(path).close()
    assert path.read_bytes() == upgraded


def test_an_older_store_is_upgraded_in_one_transaction(path, monkeypatch):
    shutil.copy(FIXTURES / "store-v1.db", path)
    step = sqlite_module.MIGRATIONS[1]

    def fail(connection):
        step(connection)
        raise sqlite3.OperationalError("in the middle")

    monkeypatch.setattr(sqlite_module, "MIGRATIONS", {**sqlite_module.MIGRATIONS, 1: fail})
    with pytest.raises(StoreError, match="in the middle"):
        SqliteStore(path)
    steps = []

    def upgrade(connection):
        step(connection)
        steps.append(1)

    monkeypatch.setattr(sqlite_module, "MIGRATIONS", {**sqlite_module.MIGRATIONS, 1: upgrade})
    for _ in range(2):
        store = SqliteStore(path)
        assert store._connection.execute("PRAGMA user_version").fetchone()[0] == sqlite_module.SCHEMA_VERSION
        store.close()
    assert steps == [1]
    store = SqliteStore(path)
    version_one.check(store)
    store.close()


def test_every_older_version_has_a_step():
    assert set(sqlite_module.MIGRATIONS) == set(range(1, sqlite_module.SCHEMA_VERSION))


def test_a_store_without_its_settings_is_damaged(store, path):
    store._connection.execute("DELETE FROM settings")
    store.close()
    with pytest.raises(StoreError, match="damaged"):
        SqliteStore(path)


def test_the_file_says_what_it_is(store):
    assert store._connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    assert APPLICATION_ID.to_bytes(4, "big") == b"SUNZ"


@pytest.mark.slow
def test_a_full_disk(small_disk, tmp_path):
    """Deposits are refused with a clear error and not counted; once there is space, the store works again."""
    directory = tmp_path if small_disk is None else small_disk.directory
    store = SqliteStore(directory / "store.db")
    if small_disk is None:  # filesystems cannot be mounted here: limit SQLite's number of pages instead
        store._connection.execute("PRAGMA max_page_count = 150")
    epoch = an_epoch(store, counters=1 << 40)

    def a_wide_deposit(number: int) -> Deposit:
        cells = np.arange(number * 1_000_000, (number + 1) * 1_000_000, 20_000)
        return Deposit(epoch.key, an_id(number), 1, cells, np.ones_like(cells))

    acknowledged, message = commit_until_refused(store, a_wide_deposit, 0, 100_000)
    assert "full" in message
    assert acknowledged > 10
    assert (store.epochs()[0].reports, store.identity_count(epoch.key)) == (acknowledged, acknowledged)
    acknowledged, message = commit_until_refused(store, a_wide_deposit, acknowledged, acknowledged + 50)
    assert "full" in message  # the error persists until there is space
    if small_disk is None:
        store._connection.execute("PRAGMA max_page_count = 100000")
    else:
        small_disk.resize(30)
    for number in range(acknowledged + 100):
        assert values(store.commit([a_wide_deposit(number)])) == ["repeated" if number < acknowledged else "counted"]
    reports, counters = store.tally(epoch.key, 1 << 40)
    assert reports == acknowledged + 100
    _, found = counters.nonzero()
    assert found.tolist() == [1] * (50 * reports)
    store.close()
    assert sqlite3.connect(directory / "store.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_check_notices_that_nothing_can_be_written(small_disk):
    if small_disk is None:
        pytest.skip("filesystems cannot be mounted here, so no disk can be filled")
    store = SqliteStore(small_disk.directory / "store.db")
    store.check()
    assert store.settle()
    filler = small_disk.directory / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(4 << 20))
    with pytest.raises(StoreError, match="full"):
        store.check()
    filler.unlink()
    store.check()
    store.close()


def test_a_lock_that_is_not_given_up(store, path, monkeypatch):
    epoch = an_epoch(store)
    monkeypatch.setattr(sqlite_module, "_WAIT_SECONDS", 0.1)
    impatient = SqliteStore(path)
    with store.transaction():
        with pytest.raises(StoreError, match="locked"):
            impatient.commit([a_deposit(epoch, 1)])
        with pytest.raises(StoreError, match="locked"):
            impatient.check()
    assert values(impatient.commit([a_deposit(epoch, 1)])) == ["counted"]
    assert total(store, epoch) == 1
    assert counts(store, epoch)[1] == 1
    impatient.close()


@pytest.mark.parametrize("successor", [None, "empty", "other"])
def test_a_file_that_was_deleted_or_replaced_is_noticed_at_the_next_commit(tmp_path, successor):
    store = SqliteStore(tmp_path / "store.db")
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / name).rename(tmp_path / f"moved-{name}")
    if successor == "empty":
        (tmp_path / "store.db").touch()
    elif successor == "other":
        SqliteStore(tmp_path / "store.db").close()
    for _ in range(2):
        with pytest.raises(StoreError, match="was replaced by another file" if successor else "was deleted"):
            store.commit([a_deposit(epoch, 2)])
        with pytest.raises(StoreError):
            store.check()
    store.close()


def test_two_collectors_cannot_claim_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    first, second = SqliteStore(tmp_path / "store.db"), SqliteStore(tmp_path / "store.db")
    for _ in range(2):  # claiming twice is no error
        first.claim()
    assert (tmp_path / "store.db-claim").stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreError, match="in use by another collector"):
        second.claim()
    second.epochs()  # reading is allowed
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    second.claim()  # newer versions can share the file
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    first.close()
    second.claim()
    second.close()


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_only_the_owner_can_read_a_store(path, mask):
    before = os.umask(mask)
    try:
        store = SqliteStore(path)
        store.commit([a_deposit(an_epoch(store), 1)])
        files = list(path.parent.glob(f"{path.name}*"))
        assert len(files) >= 2  # with its log
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        backup(store, path.parent / "backup.db")
        assert (path.parent / "backup.db").stat().st_mode & 0o777 == 0o600
        store.close()
    finally:
        os.umask(before)
