"""Tests specific to the store in a PostgreSQL database."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psycopg
import pytest
import version_one
from deposits import LENGTH, a_deposit, an_epoch, an_id, commit_until_refused, counts, total, values
from postgres_servers import running_server

import sunzi
from sunzi.client.errors import ParameterError, StoreError
from sunzi.collector import postgres as postgres_module
from sunzi.collector.epochs import Deposit
from sunzi.collector.postgres import PostgresStore
from sunzi.collector.stores import _take_schema, backup, open_store
from sunzi.collector.writer import Writer

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def address(server):
    return server.fresh_address()


@pytest.fixture
def store(address):
    opened = open_store(address)
    yield opened
    opened.close()


@pytest.fixture
def administrator(server):
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        yield connection


@pytest.fixture
def database(administrator):
    """A separate database, for tests that affect a whole database."""
    name = f"own_{os.getpid()}_{time.monotonic_ns()}"
    administrator.execute(f"CREATE DATABASE {name}")
    yield name
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


def shown(store: PostgresStore, setting: str) -> str:
    return store._connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()[0]


def end_connections_of(administrator, store: PostgresStore) -> None:
    pid = store._connection.info.backend_pid
    administrator.execute("SELECT pg_terminate_backend(%s)", (pid,))
    while administrator.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
        time.sleep(0.01)


@pytest.mark.parametrize("default", ["off", "local", "remote_apply"])
def test_a_commit_is_synchronous_for_every_default(server, administrator, database, default):
    administrator.execute(f"ALTER DATABASE {database} SET synchronous_commit TO {default}")
    store = open_store(server.address(database))
    assert shown(store, "synchronous_commit") == ("remote_apply" if default == "remote_apply" else "on")
    store.close()


@pytest.mark.slow
def test_a_server_that_does_not_flush_is_refused():
    with (
        running_server({"fsync": "off"}) as careless,
        pytest.raises(StoreError, match="fsync is off"),
    ):
        open_store(careless.address())


def test_the_isolation_does_not_depend_on_the_default(server, administrator, database):
    administrator.execute(f"ALTER DATABASE {database} SET default_transaction_isolation TO serializable")
    store = open_store(server.address(database))
    epoch = an_epoch(store)
    assert values(store.commit([a_deposit(epoch, 1)])) == ["counted"]
    with store.transaction():
        assert shown(store, "transaction_isolation") == "read committed"
    store.close()


def test_a_lost_connection_is_reported_and_replaced(store, administrator):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    end_connections_of(administrator, store)
    with pytest.raises(StoreError, match="terminating connection"):
        store.commit([a_deposit(epoch, 2)])
    assert values(store.commit([a_deposit(epoch, 1), a_deposit(epoch, 2)])) == ["repeated", "counted"]
    end_connections_of(administrator, store)
    with pytest.raises(StoreError):
        store.epochs()
    assert store.epochs()[0].reports == 2


def test_a_connection_lost_in_the_middle_counts_nothing(store, administrator, monkeypatch):
    epoch = an_epoch(store)
    add = store._add_reports

    def lose(*arguments):
        end_connections_of(administrator, store)
        add(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_add_reports", lose)
        with pytest.raises(StoreError):
            store.commit([a_deposit(epoch, 1)])
    assert (total(store, epoch), store.identity_count(epoch.key), counts(store, epoch).sum()) == (0, 0, 0)
    assert values(store.commit([a_deposit(epoch, 1)])) == ["counted"]


def test_no_server_listens(tmp_path):
    with pytest.raises(StoreError, match="schema sunzi") as caught:
        open_store(f"postgresql://somebody:secret@/nowhere?host={tmp_path}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["postgresql://h/d?no_such_option=1", "postgresql://h:port/d"])
def test_an_address_that_cannot_be_read(address):
    with pytest.raises((ParameterError, StoreError)):
        open_store(address)


@pytest.mark.parametrize("name", ["", "Sunzi", "a-b", 'a"b', "1a", "a" * 64])
def test_a_schema_has_a_plain_name(server, name):
    with pytest.raises(ParameterError, match="schema"):
        PostgresStore(server.conninfo, schema=name)


@pytest.mark.parametrize(
    ("address", "rest", "schema"),
    [
        ("postgresql:///d", "postgresql:///d", "sunzi"),
        ("postgresql:///d?schema=a", "postgresql:///d", "a"),
        (
            "postgresql://u:p%3F@h:1/d?host=/a%20b&schema=a&sslmode=require",
            "postgresql://u:p%3F@h:1/d?host=/a%20b&sslmode=require",
            "a",
        ),
    ],
)
def test_the_schema_is_taken_out_of_the_address(address, rest, schema):
    assert _take_schema(address) == (rest, schema)


def test_tables_of_others_are_left_alone(server, administrator, database):
    with psycopg.connect(server.conninfo, dbname=database, autocommit=True) as connection:
        connection.execute("CREATE TABLE epochs (theirs int)")
        connection.execute("CREATE SCHEMA taken")
        connection.execute("CREATE TABLE taken.letters (theirs int)")
        connection.execute("CREATE SCHEMA prepared")
        store = open_store(server.address(database))
        assert values(store.commit([a_deposit(an_epoch(store), 1)])) == ["counted"]
        store.close()
        with pytest.raises(StoreError, match="not a Sunzi store"):
            open_store(server.address(database, schema="taken"))
        open_store(server.address(database, schema="prepared")).close()
        assert connection.execute("SELECT count(*) FROM public.epochs").fetchone() == (0,)
        query = "SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('public', 'taken')"
        assert connection.execute(query).fetchone() == (2,)


def test_a_newer_store_is_refused(store, address):
    store._connection.execute("UPDATE settings SET value = '99' WHERE name = 'schema_version'")
    with pytest.raises(StoreError, match="version 99; this release supports versions up to 3"):
        open_store(address)


@pytest.mark.parametrize("version", ["0", "one", "-1"])
def test_a_store_without_its_version_is_damaged(store, address, version):
    store._connection.execute("UPDATE settings SET value = %s WHERE name = 'schema_version'", (version,))
    with pytest.raises(StoreError, match="damaged"):
        open_store(address)


def test_a_store_without_its_settings_is_damaged(store, address):
    store._connection.execute("DELETE FROM settings")
    with pytest.raises(StoreError, match="damaged"):
        open_store(address)


@pytest.fixture
def version_one_address(server, database):
    with psycopg.connect(server.conninfo, dbname=database, autocommit=True) as connection:
        connection.execute((FIXTURES / "store-v1.sql").read_text())
    return server.address(database)


def test_version_one_opens(version_one_address):
    store = open_store(version_one_address, create=False)
    version_one.check(store)
    store.close()


def test_an_older_store_is_upgraded_in_one_transaction(version_one_address, monkeypatch):
    step = postgres_module.MIGRATIONS[1]

    def fail(connection):
        step(connection)
        connection.execute("SELECT 1 / 0")

    monkeypatch.setattr(postgres_module, "MIGRATIONS", {**postgres_module.MIGRATIONS, 1: fail})
    with pytest.raises(StoreError, match="division by zero"):
        open_store(version_one_address)
    steps = []

    def upgrade(connection):
        step(connection)
        steps.append(1)

    monkeypatch.setattr(postgres_module, "MIGRATIONS", {**postgres_module.MIGRATIONS, 1: upgrade})
    open_store(version_one_address).close()
    store = open_store(version_one_address)
    assert steps == [1]
    assert store._setting("schema_version") == str(postgres_module.SCHEMA_VERSION)
    version_one.check(store)
    store.close()


def test_every_older_version_has_a_step():
    assert set(postgres_module.MIGRATIONS) == set(range(1, postgres_module.SCHEMA_VERSION))


def test_an_epoch_closed_during_a_backup_is_never_kept_open_without_ids(store, address, tmp_path):
    """Dropping its ids also affects older snapshots; a copy without the ids would count every report again."""
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, number) for number in range(5)])
    reader = open_store(address)
    epochs, closers = reader.epochs, []

    def close_meanwhile():
        found = epochs()
        if not closers:
            closers.append(threading.Thread(target=store.close_epoch, args=(epoch.key,)))
            closers[0].start()
            closers[0].join()
        return found

    reader.epochs = close_meanwhile
    with pytest.raises(StoreError, match="start again"):
        backup(reader, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
    assert backup(reader, tmp_path / "copy.db") == 1
    reader.close()


def table_of_ids(store, epoch):
    return store._connection.execute("SELECT to_regclass(%s)", (f"identities_{epoch.key}",)).fetchone()[0]


def test_closing_does_not_wait_for_readers_of_the_ids(store, address):
    """Uploads do not wait either; the ids are dropped when the reader has finished, and none can be used again."""
    epoch, other = an_epoch(store), an_epoch(store)
    store.commit([a_deposit(epoch, number) for number in range(50)])
    store.add_tokens(epoch.key, [bytes(32)])
    reader, uploader = open_store(address), open_store(address)
    store._connection.execute("SET lock_timeout TO 200")
    uploader._connection.execute("SET lock_timeout TO 200")
    with reader.transaction(reading=True):
        assert reader.identity_count(epoch.key) == 50
        assert store.close_epoch(epoch.key) is False
        assert values(uploader.commit([a_deposit(epoch, 1), a_deposit(other, 1)])) == ["closed", "counted"]
        assert (store.identity_count(epoch.key), list(store.identities(epoch.key))) == (0, [])
        assert store.settle() is False
        assert len(list(reader.identities(epoch.key))) == 50  # as of its own snapshot
        assert table_of_ids(store, epoch) is not None
    assert store.settle() is True
    assert table_of_ids(store, epoch) is None
    assert list(store.tokens(epoch.key)) == []
    assert values(uploader.commit([a_deposit(epoch, 1)])) == ["closed"]
    reader.close()
    uploader.close()


def test_a_writer_drops_ids_that_were_left(store, address):
    """As after an epoch was closed by a command, or by a killed process, while another connection read."""
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    reader = open_store(address)
    with reader.transaction(reading=True):
        reader.identity_count(epoch.key)
        assert store.close_epoch(epoch.key) is False
    reader.close()
    Writer(store, lambda _: None).close()
    assert table_of_ids(store, epoch) is None


def test_space_of_closed_epochs_is_used_again(store):
    """Deleted rows take space until VACUUM, which runs after an epoch is closed and every few seconds in a writer."""
    sizes = []
    for turn in range(5):
        epoch = an_epoch(store)
        store.add_tokens(epoch.key, (an_id(number) * 2 for number in range(2000 * turn, 2000 * (turn + 1))))
        store.close_epoch(epoch.key)
        sizes.append(store._connection.execute("SELECT pg_relation_size('tokens')").fetchone()[0])
    assert sizes[-1] < 1.5 * sizes[0]
    tables = store._connection.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = %s", (store.schema,)
    ).fetchone()
    assert tables == (7,)  # and no table of ids


def test_a_page_is_kept_in_its_row(store):
    """Out of line, earlier versions of a page would remain in PostgreSQL's TOAST table."""
    epoch = an_epoch(store)
    wide = np.random.default_rng(1).integers(1, 1 << 60, LENGTH)
    store.commit([Deposit(epoch.key, an_id(0), 1, np.arange(LENGTH), wide)])
    query = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'pages'::regclass"
    assert store._connection.execute(query).fetchone() == (0,)
    np.testing.assert_array_equal(counts(store, epoch), wide)


def test_errors_do_not_show_what_was_written(store):
    epoch = an_epoch(store)
    with pytest.raises(StoreError, match="duplicate key") as caught, store.transaction():
        store._insert_epoch("web", epoch.number, b"a secret", 1, 0.0)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_full_disk(killable_server, small_disk):
    """On a full disk, deposits are refused with a clear error and not counted; with space, the store works again."""
    if small_disk is None:
        pytest.skip("filesystems cannot be mounted here, so no disk can be filled")
    if os.geteuid() == 0:
        shutil.chown(small_disk.directory, "postgres")
    small_disk.resize(12)
    with psycopg.connect(killable_server.conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk.directory}'")
        connection.execute("CREATE DATABASE small TABLESPACE small")
    store = open_store(killable_server.address("small"))
    epoch = an_epoch(store, counters=1 << 22)

    def a_wide_deposit(number: int) -> Deposit:
        """Its own ten pages."""
        cells = np.arange(number * 5000, (number + 1) * 5000)
        return Deposit(epoch.key, an_id(number), 1, cells, np.random.default_rng(number).integers(1, 1 << 50, 5000))

    acknowledged, message = commit_until_refused(store, a_wide_deposit, 0, 800)
    assert "No space left on device" in message
    assert acknowledged > 5
    assert (store.epochs()[0].reports, store.identity_count(epoch.key)) == (acknowledged, acknowledged)
    small_disk.resize(60)
    group = [a_wide_deposit(number) for number in range(acknowledged + 20)]
    assert values(store.commit(group)) == ["repeated"] * acknowledged + ["counted"] * 20
    expected = sum(int(deposit.counts.sum()) for deposit in group)
    assert store.tally(epoch.key, 1 << 22)[1].total() == expected
    store.close()
    killable_server.kill()


@pytest.mark.slow
def test_without_psycopg_the_extra_is_named():
    program = """
import sys
sys.modules["psycopg"] = None
from sunzi.collector.stores import open_store
from sunzi.errors import MissingExtraError
try:
    open_store("postgresql:///d")
except MissingExtraError as error:
    print(error)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(sunzi.__file__).resolve().parents[1])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == (
        "a PostgreSQL store needs an extra that is not installed: pip install 'sunzi[postgres]'"
    )


def test_a_server_that_stops_answering_is_an_error(killable_server, opened, monkeypatch):
    """Its processes are stopped, so they keep their connections and answer nothing."""
    monkeypatch.setattr(postgres_module, "_ANSWER_SECONDS", 0.5)
    store = opened(killable_server.fresh_address())
    epoch = an_epoch(store)
    with psycopg.connect(killable_server.conninfo, autocommit=True) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'sunzi'"
        processes = [row[0] for row in connection.execute(query)]
    assert processes
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(StoreError, match="the server has not answered"):
            store.commit([a_deposit(epoch, 1)])
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
    store.commit([a_deposit(epoch, 1)])
    assert total(store, epoch) == 1
