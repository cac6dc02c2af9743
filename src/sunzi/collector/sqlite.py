"""A store in one SQLite file: the default, which needs no server.

Commits are durable: write-ahead log, ``synchronous=FULL``. Freed space is overwritten (``secure_delete``), and
:meth:`SqliteStore.settle` truncates the log, which until then holds earlier versions of the tally's pages.

Threads of one process never write and checkpoint at the same time: SQLite before 3.51.3 can then damage the file
(sqlite.org/wal.html#walresetbug).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from sunzi.client.errors import StoreError
from sunzi.collector.database import SCHEMA_VERSION, ThreadConnections, identity_table
from sunzi.collector.epochs import Shard
from sunzi.collector.store import Store

if sys.platform != "win32":
    import fcntl

APPLICATION_ID = 0x53554E5A  # "SUNZ", by which file(1) and this module recognise the file
_WAIT_SECONDS = 30.0
_SHARABLE_VERSION = (3, 51, 3)
_SETTLE_WAIT_SECONDS = 0.2
_RETRY_SECONDS = 0.02
_PAGE_BITS = 40
_FEW_PAGES = 100
_LAST_CONTRIBUTION = (1 << 63 - _PAGE_BITS) - 1
_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE epochs (
    key INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, number INTEGER NOT NULL, plan BLOB NOT NULL,
    page_cells INTEGER NOT NULL, opened_at REAL NOT NULL, closed_at REAL, UNIQUE (collection, number)
);
CREATE TABLE pages (place INTEGER PRIMARY KEY, counts BLOB NOT NULL);
CREATE TABLE progress (
    contribution INTEGER NOT NULL, minute INTEGER NOT NULL, reports INTEGER NOT NULL, PRIMARY KEY (contribution, minute)
) WITHOUT ROWID;
CREATE TABLE tokens (epoch INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (epoch, hash)) WITHOUT ROWID;
"""
# Lists epochs from the index alone: in the table, every row holds a plan, which can be large.
_VERSION_2 = """
CREATE INDEX epoch_list ON epochs (collection, number, page_cells, opened_at, closed_at);
CREATE TABLE contributions (
    key INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL, uploader TEXT NOT NULL,
    reports INTEGER NOT NULL DEFAULT 0, subtracted_at REAL
);
CREATE INDEX contributions_of_epoch ON contributions (epoch);
CREATE TABLE quotas (uploader TEXT PRIMARY KEY, reports_left REAL NOT NULL, filled_at REAL NOT NULL) WITHOUT ROWID;
"""
# Reports of public groups are also counted in separate contributions.
_VERSION_3 = """
ALTER TABLE contributions ADD COLUMN public_group TEXT NOT NULL DEFAULT '';
DROP INDEX contributions_of_epoch;
CREATE INDEX contributions_of_group ON contributions (epoch, public_group, uploader);
"""
# The pages and minutes of an epoch become those of its only contribution, which gets the same key.
_FROM_VERSION_1 = f"""{_VERSION_2}
INSERT INTO contributions (key, epoch, uploader, reports) SELECT key, key, '', reports FROM epochs;
ALTER TABLE epochs DROP COLUMN reports;
ALTER TABLE progress RENAME COLUMN epoch TO contribution;
"""


def _run_all(connection: sqlite3.Connection, script: str) -> None:
    """Run statements in the current transaction, which ``executescript`` would commit."""
    for statement in script.split(";"):
        connection.execute(statement)


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    1: lambda connection: _run_all(connection, _FROM_VERSION_1),
    2: lambda connection: _run_all(connection, _VERSION_3),
}
"""For each older schema version, the step to the next. Version 1 is the first."""


class SqliteStore(Store):
    """Opens an SQLite file, creates it if it is missing, and upgrades it if it is older.

    Parameters
    ----------
    path: the file.
    shard: the shard of a new store; an existing store must have the same one.
    create: whether to create a missing file; otherwise StoreError is raised.
    """

    def __init__(self, path: str | Path, shard: Shard | None = None, *, create: bool = True) -> None:
        self.path = Path(path)
        self.label = str(path)
        self._create = create
        if not create and not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}; `sunzi serve` with a plan creates one")
        self._connections = ThreadConnections(self._connect)
        self._write_lock = threading.RLock()
        self._file: tuple[int, int] | None = None
        self._claimed: BinaryIO | None = None
        self._start(shard)

    def _prepare(self, shard: Shard | None) -> None:
        connection = self._connection
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {version}; this release supports versions up to {SCHEMA_VERSION}"
            )
        if _is_blank(connection):
            _run_all(connection, _SCHEMA + _VERSION_2 + _VERSION_3)
            settings = {"shard": str(shard or Shard()), "created_at": str(time.time())}
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif version < 1:
            raise StoreError(f"{self.path} is damaged: its schema version is missing")
        else:
            for older in range(version, SCHEMA_VERSION):
                MIGRATIONS[older](connection)
        if version != SCHEMA_VERSION:
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @property
    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._connections.get()
        return connection

    def _connect(self) -> sqlite3.Connection:
        with self._store_errors():
            self._check_log()
            if self._create:
                _create_private(self.path)
            # Each thread has its own connection, but any thread may close them all.
            connection = sqlite3.connect(
                self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _check_log(self) -> None:
        """Raise StoreError if the file was emptied and its log was not: SQLite would delete the log."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if _size(log) and not _size(self.path):
            raise StoreError(f"{self.path} is missing or empty, but its log {log} is not; restore both from a backup")

    def _check_file(self) -> None:
        """Raise StoreError if the file is not the one that was opened: SQLite would go on writing to a deleted file."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} was deleted or cannot be reached: {error.strerror}") from error
        self._file = self._file or (status.st_dev, status.st_ino)
        if self._file != (status.st_dev, status.st_ino):
            raise StoreError(f"{self.path} was replaced by another file; restart the collector to use that one")

    def claim(self) -> None:
        """Lock ``FILE-claim``, for SQLite before 3.51.3, where two processes on one file can damage it."""
        if self._claimed is not None or sqlite3.sqlite_version_info >= _SHARABLE_VERSION or sys.platform == "win32":
            return
        name = f"{self.path}-claim"
        try:
            file = open(name, "ab", opener=partial(os.open, mode=0o600))  # noqa: SIM115  # open as long as the store
        except OSError as error:
            raise StoreError(f"{name}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreError(
                f"{self.path} is in use by another collector; stop it first, or use SQLite 3.51.3 or newer (this is "
                f"{sqlite3.sqlite_version}) or PostgreSQL"
            ) from None
        self._claimed = file

    def close(self) -> None:
        """Close the connections of all threads, and let other collectors use the file."""
        super().close()
        if self._claimed is not None:
            self._claimed.close()
            self._claimed = None

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Reject other programs' files without changing them, then turn on durability."""
        # Test for blank first: another process may commit the tables and the mark together between the two tests.
        if _is_blank(connection):
            if not self._create:
                raise StoreError(f"there is no store at {self.path}, only an empty file")
        elif connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreError(f"{self.path} is an SQLite file, but not a Sunzi store")
        self._use_write_ahead_log(connection)
        # On macOS, fsync leaves data in the disk's cache; fullfsync does not. The log is copied to the file when it has
        # 32 MB or the store is settled: by default, each commit to a wide tally would write all of it twice.
        durable = ("synchronous=FULL", "fullfsync=ON", "secure_delete=ON")
        for setting in (*durable, "cache_size=-65536", "wal_autocheckpoint=8000"):
            connection.execute(f"PRAGMA {setting}")

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log; retry, since SQLite does not wait here if two processes open a new file."""
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(_RETRY_SECONDS)
        if mode != "wal":
            raise StoreError(f"{self.path}: SQLite cannot use a write-ahead log here, only {mode!r}; use a local disk")

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """Run the block as one durable transaction; with ``reading``, on one consistent snapshot."""
        with self._store_errors():
            connection = self._connection
            if connection.in_transaction:
                if not reading and connection.execute("PRAGMA query_only").fetchone()[0]:
                    raise StoreError(f"{self.path}: cannot write within a reading transaction")
                yield
            elif reading:
                with _query_only(connection), _transaction(connection, "BEGIN"):
                    yield
            else:
                with self._write_lock, _transaction(connection, "BEGIN IMMEDIATE"):
                    self._check_file()
                    yield

    def settle(self) -> bool:
        """Copy the log's pages into the file and truncate the log. Returns False if a reader still uses it."""
        with self._store_errors(), self._write_lock, _busy_timeout(self._connection, _SETTLE_WAIT_SECONDS):
            is_busy: int = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not is_busy

    def check(self) -> None:
        """Write the current time, since SQLite skips writing an unchanged value."""
        with self.transaction():
            self._execute("INSERT OR REPLACE INTO settings VALUES ('checked_at', ?)", (str(time.time()),))

    def size(self) -> int:
        """The sizes of the file and its log. Deleted ids leave space in the file, which new ones fill."""
        return sum(_size(self.path.with_name(self.path.name + suffix)) for suffix in ("", "-wal"))

    def pages(self, contribution: int) -> Mapping[int, bytes]:
        """All pages of a contribution, by its key."""
        first, end = self._place(contribution), self._place(contribution + 1)
        rows = self._execute("SELECT place, counts FROM pages WHERE place >= ? AND place < ?", (first, end))
        return {place - first: counts for place, counts in rows}

    def _place(self, contribution: int) -> int:
        """The place of a contribution's first page."""
        if not 0 < contribution <= _LAST_CONTRIBUTION:
            raise self._rows.damage(f"the key of a contribution is {contribution}")
        return contribution << _PAGE_BITS

    def _execute(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        with self._store_errors():
            return self._connection.execute(query, tuple(parameters)).fetchall()

    def _stream(self, query: str) -> Iterator[bytes]:
        yield from (row[0] for row in self._connection.execute(query))

    def lock_epochs(self) -> None:
        """BEGIN IMMEDIATE has locked the whole file."""

    def _create_identities(self, key: int) -> None:
        self._execute(f"CREATE TABLE {identity_table(key)} (id BLOB PRIMARY KEY) WITHOUT ROWID")

    def _has_identities(self, key: int) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return bool(self._execute(query, (identity_table(key),)))

    def _forget(self, key: int) -> None:
        self._execute(f"DROP TABLE {identity_table(key)}")
        self._execute("DELETE FROM tokens WHERE epoch = ?", (key,))

    def _insert_identities(self, key: int, identities: Sequence[bytes]) -> set[bytes]:
        execute = self._connection.execute
        statement = f"INSERT OR IGNORE INTO {identity_table(key)} VALUES (?)"
        return {identity for identity in identities if execute(statement, (identity,)).rowcount == 1}

    def _remove_identities(self, key: int, identities: Sequence[bytes]) -> None:
        rows = [(identity,) for identity in identities]
        self._connection.executemany(f"DELETE FROM {identity_table(key)} WHERE id = ?", rows)

    def _insert_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        self._connection.executemany("INSERT OR IGNORE INTO tokens VALUES (?, ?)", ((key, token) for token in hashes))

    def _spend_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        execute = self._connection.execute
        statement = "DELETE FROM tokens WHERE epoch = ? AND hash = ?"
        return {token for token in hashes if execute(statement, (key, token)).rowcount == 1}

    def _read_pages(self, contribution: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        first = self._place(contribution)
        found: dict[int, bytes | None] = {}
        for some in _few_or_single(pages):
            query = "SELECT " + ", ".join(["(SELECT counts FROM pages WHERE place = ?)"] * len(some))
            row = self._connection.execute(query, [first + page for page in some]).fetchone()
            found.update(zip(some, row, strict=True))
        return {page: counts for page, counts in found.items() if counts is not None}

    def _write_pages(self, contribution: int, pages: Mapping[int, bytes]) -> None:
        first = self._place(contribution)
        for some in _few_or_single(list(pages)):
            statement = "INSERT OR REPLACE INTO pages VALUES " + ", ".join(["(?, ?)"] * len(some))
            self._connection.execute(statement, [cell for page in some for cell in (first + page, pages[page])])

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into StoreErrors that name the file."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter if a message quotes a damaged schema
            raise StoreError(f"{self.path}: {error}") from error


def _few_or_single(pages: Sequence[int]) -> Iterator[Sequence[int]]:
    """The pages by the hundred, and the rest one by one, so that there are two statements to prepare.

    A statement that takes all pages at once would be quicker still; other threads wait for the interpreter meanwhile.
    """
    whole = len(pages) // _FEW_PAGES * _FEW_PAGES
    for start in range(0, whole, _FEW_PAGES):
        yield pages[start : start + _FEW_PAGES]
    for page in pages[whole:]:
        yield [page]


def _size(path: Path) -> int:
    """The size of a file; 0 if it is missing, such as a log that another process has just deleted."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _create_private(path: Path) -> None:
    """Create a missing file so that only its owner can read it. SQLite gives its log the same permissions."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def _is_blank(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Commit the block, or roll it back if it raises."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk, SQLite has already rolled back
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _query_only(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("PRAGMA query_only=ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA query_only=OFF")


@contextmanager
def _busy_timeout(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Wait at most this long for other connections: a waiting checkpoint blocks all writers."""
    connection.execute(f"PRAGMA busy_timeout={round(1000 * seconds)}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout={round(1000 * _WAIT_SECONDS)}")
