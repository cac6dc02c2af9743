"""A device's file: nobody else may read it, deleted things are gone from it, and other files are refused unchanged."""

import os
import sqlite3
import stat
from contextlib import closing

import pytest
from agreeing import THERE, agreed, bodies, epoch_of, files, key_of, rows

import sunzi
from sunzi.client import Device
from sunzi.client.device.ledger import VERSION
from sunzi.client.errors import StoreError
from sunzi.collector.sqlite import SqliteStore

PLAN = sunzi.make_plan("grr", 100, 1)
WIDE = sunzi.make_plan("oue", 4000, 1)
WIDER = sunzi.make_plan("rappor", 80_000, 1)
"""Its reports fill more than two pages of SQLite."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


@pytest.fixture
def careless(monkeypatch):
    """SQLite as most systems have it: deleted content stays in the file, unless a program asks for more."""

    def connect(*arguments, genuine=sqlite3.connect, **options):
        connection = genuine(*arguments, **options)
        connection.execute("PRAGMA secure_delete=OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)


def calls_of(path):
    """Every call that reads or writes the file of a device."""
    device = Device(path, 1, max_epsilon=1)
    return [
        device.enable,
        device.disable,
        device.waiting,
        lambda: device.enabled,
        lambda: device.spent("browser"),
        lambda: device.queue(PLAN, "browser", 1, THERE),
        lambda: device.preview(PLAN, "browser", 1, THERE),
        lambda: device.client(PLAN, "browser"),
        lambda: device.flush(lambda report: None),
    ]


def chunks(body):
    """Pieces of a report that are long enough to occur nowhere else."""
    return [body[start : start + 16] for start in range(0, len(body) - 15, 16)]


def traces(path, secrets):
    """How many pieces of these secrets the file still holds."""
    data = path.read_bytes()
    return sum(chunk in data for secret in secrets for chunk in chunks(secret))


def test_the_file_is_private(path):
    agreed(path, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("number", range(len(calls_of("device.db"))))
def test_others_lose_the_right_to_read_the_file(path, number):
    """For instance after it was copied from a backup."""
    agreed(path, 1)
    path.chmod(0o644)
    calls_of(path)[number]()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.usefixtures("careless")
def test_an_acknowledged_report_is_overwritten(path):
    """Its id is gone; its bytes are kept once, to be repeated when the budget has ended."""
    device = agreed(path, 2)
    identity = device.queue(WIDE, "browser", 1, THERE).identity
    (body,) = bodies(device)
    assert (path.read_bytes().count(body), traces(path, [identity])) == (2, 1)
    device.flush(lambda report: None)
    assert (path.read_bytes().count(body), traces(path, [identity])) == (1, 0)
    device.queue(WIDE, "browser", 2, epoch_of(2))
    device.flush(lambda report: None)
    assert traces(path, [body]) == 0


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("plan", [WIDE, WIDER], ids=["reports within a page", "reports of many pages"])
def test_disabling_leaves_no_trace_of_key_reports_and_ids(path, plan):
    """Of reports that wait, that were sent, and that were remembered for many attributes."""
    device = agreed(path, 3)
    for number in range(1, 9):
        for attribute in ("browser", f"attribute {number}"):
            device.queue(plan, attribute, number % 3, epoch_of(number))
    everything = device.waiting()

    def upload(report):
        if everything.index(report) % 2:
            raise StoreError("later")

    assert device.flush(upload) == 8
    device.queue(plan, "browser", 1, THERE, several=True)
    secrets = [key_of(path), *(report.identity for report in everything), *(report.body for report in everything)]
    assert traces(path, secrets[:1]) == 2
    assert traces(path, secrets[17:]) > 0
    device.disable()
    assert traces(path, secrets) == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_disabling_keeps_debits_and_epochs(path):
    device = agreed(path, 3)
    for number in (1, 2, 2):
        device.queue(PLAN, "browser", number, epoch_of(number))
    kept = [rows(path, f"SELECT * FROM {table}") for table in ("debits", "reported")]
    device.disable()
    assert [rows(path, f"SELECT * FROM {table}") for table in ("debits", "reported")] == kept
    assert [len(found) for found in kept] == [2, 2]
    assert {rows(path, f"SELECT count(*) FROM {table}")[0] for table in ("device", "outbox")} == {(0,)}
    assert rows(path, "SELECT body FROM latest") == [(None,)]


def test_a_file_that_is_not_a_device_is_refused_unchanged(tmp_path):
    """Its permissions, too: the path of a device may be mistaken."""
    (tmp_path / "not.db").write_bytes(b"something else entirely" * 100)
    (tmp_path / "folder.db").mkdir(mode=0o755)
    SqliteStore(tmp_path / "store.db").close()
    (tmp_path / "not.db").chmod(0o644)
    (tmp_path / "store.db").chmod(0o644)
    for name, said in (("not", "not a database"), ("folder", "it is not a file"), ("store", "not a Sunzi device")):
        path = tmp_path / f"{name}.db"
        before = path.stat().st_mode, path.is_file() and path.read_bytes()
        for call in calls_of(path):
            with pytest.raises(StoreError, match=said):
                call()
        assert (path.stat().st_mode, path.is_file() and path.read_bytes()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.db", "not.db", "store.db"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_a_terminal_keeps_its_permissions(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    path.chmod(0o644)
    with pytest.raises(StoreError, match="it is not a file"):
        Device(path, 1, max_epsilon=1).enable()
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_of_a_later_version_is_refused_unchanged(path):
    agreed(path, 3).queue(PLAN, "browser", 1, THERE)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = files(path.parent)
    for call in calls_of(path):
        with pytest.raises(StoreError, match=f"version {VERSION + 1}; this release supports version {VERSION}"):
            call()
    assert files(path.parent) == before


def test_a_device_is_refused_as_a_store(path):
    agreed(path, 1)
    with pytest.raises(StoreError, match="not a Sunzi store"):
        SqliteStore(path)


def test_a_missing_folder_is_named(tmp_path):
    device = Device(tmp_path / "missing" / "device.db", 1, max_epsilon=1)
    assert not device.enabled
    with pytest.raises(StoreError, match=r"missing/device\.db: No such file"):
        device.enable()


def test_a_file_that_is_removed_meanwhile_is_not_created_again(path):
    device = agreed(path, 3)
    device.queue(PLAN, "browser", 1, THERE)
    with pytest.raises(StoreError, match="No such file"):
        device.flush(lambda report: path.unlink())
    assert not path.exists()


@pytest.mark.parametrize(
    ("column", "wrong", "said"),
    [
        *(("groups", named, "the groups of a report") for named in ("", "country", "country=DE,country=FR", 7, b"x")),
        ("token", "ab", "the token of a report"),
        ("fingerprint", "AB" * 32, "the fingerprint of a report"),
        ("destination", f"{THERE}/", "the destination of a report"),
        ("destination", "there", "the destination of a report"),
        ("id", b"short", "the id of a report"),
        ("body", "text", "a report is not a blob"),
    ],
)
def test_a_damaged_report_is_refused(path, column, wrong, said):
    device = agreed(path, 3)
    device.queue(PLAN, "browser", 7, THERE)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE outbox SET {column} = ?", (wrong,))
    with pytest.raises(StoreError, match=said):
        device.waiting()


@pytest.mark.parametrize("wrong", [b"", b"short", bytes(33), "a" * 32, 7])
def test_a_damaged_key_is_refused(path, wrong):
    device = agreed(path, 3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE device SET key = ?", (wrong,))
    with pytest.raises(StoreError, match="the key is not a blob of 32 bytes"):
        device.queue(PLAN, "browser", 7, THERE)
