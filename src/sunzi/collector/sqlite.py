"""A store in one SQLite file: the default, with nothing to install and nothing to run beside it.

Durable before acknowledged: write-ahead log, ``synchronous=FULL``. Freed space is overwritten (``secure_delete``), and
:meth:`SqliteStore.settle` empties the log, which until then holds earlier versions of the tally's pages.

The threads of one process take turns, at writing and at emptying the log: SQLite before 3.51.3 can damage a file when
one connection does the one while another does the other (sqlite.org/wal.html#walresetbug).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sunzi.collector.connections import ThreadConnections
from sunzi.collector.records import Epoch, Shard
from sunzi.collector.store import SCHEMA_VERSION, Store
from sunzi.errors import StoreError

APPLICATION_ID = 0x53554E5A  # "SUNZ", by which file(1) and this module know the file
_WAIT_SECONDS = 30.0
_SETTLE_WAIT_SECONDS = 0.2
_PAUSE_SECONDS = 0.02
_PAGE_BITS = 40
_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE epochs (
    key INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, number INTEGER NOT NULL, plan BLOB NOT NULL,
    page_cells INTEGER NOT NULL, reports INTEGER NOT NULL DEFAULT 0, opened_at REAL NOT NULL, closed_at REAL,
    UNIQUE (collection, number)
);
CREATE TABLE pages (place INTEGER PRIMARY KEY, counts BLOB NOT NULL);
CREATE TABLE progress (
    epoch INTEGER NOT NULL, minute INTEGER NOT NULL, reports INTEGER NOT NULL, PRIMARY KEY (epoch, minute)
) WITHOUT ROWID;
CREATE TABLE tokens (epoch INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (epoch, hash)) WITHOUT ROWID;
"""

MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""For each older version of the schema, the step that leads to the next. Version 1 is the first."""


class SqliteStore(Store):
    """Opens the file, makes it if it is not there, and upgrades it if it is older."""

    def __init__(self, path: str | Path, shard: Shard | None = None, *, create: bool = True) -> None:
        self.path = Path(path)
        self._create = create
        if not create and not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}")
        self._connections = ThreadConnections(self._connect)
        self._turn = threading.RLock()
        try:
            with self.transaction():
                self._prepare(shard)
            self.shard = Shard.parse(self._setting("shard"))
            if shard is not None and shard != self.shard:
                raise StoreError(f"{self.path} belongs to shard {self.shard}, not to {shard}")
        except BaseException:
            self.close()
            raise

    def _prepare(self, shard: Shard | None) -> None:
        """Make the tables, or bring older ones up to date."""
        connection = self._connection
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {version}; this release knows versions up to {SCHEMA_VERSION}"
            )
        if _is_blank(connection):
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            settings = {"shard": str(shard or Shard()), "created_at": str(time.time())}
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif version < 1:
            raise StoreError(f"{self.path} lacks the version of its schema: it is damaged")
        else:
            for older in range(version, SCHEMA_VERSION):
                MIGRATIONS[older](connection)
        if version != SCHEMA_VERSION:
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._connections.get()

    def _connect(self) -> sqlite3.Connection:
        # Every thread has its own connection; closing alone touches those of others.
        with _speaking_plainly(self.path):
            connection = sqlite3.connect(
                self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Refuse a file of somebody else's before anything is changed in it, then ask for durability."""
        # Blank is asked first: tables and mark come in one commit, perhaps another process's between the two questions.
        if _is_blank(connection):
            if not self._create:
                raise StoreError(f"there is no store at {self.path}, only an empty file")
        elif not _is_marked(connection):
            raise StoreError(f"{self.path} is an SQLite file, but not a store of Sunzi")
        self._keep_a_log(connection)
        # fullfsync is for macOS, whose fsync leaves data in the disk's own memory.
        for setting in ("synchronous=FULL", "fullfsync=ON", "secure_delete=ON", "cache_size=-65536"):
            connection.execute(f"PRAGMA {setting}")

    def _keep_a_log(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log. SQLite does not wait its turn for this, if two processes open a new file."""
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)
        if mode != "wal":
            raise StoreError(f"{self.path}: SQLite cannot keep a write-ahead log here, only {mode!r}; use a local disk")

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT; one begun within another is part of it, and may not write within a reading one."""
        with _speaking_plainly(self.path):
            connection = self._connection
            if connection.in_transaction:
                if not reading and connection.execute("PRAGMA query_only").fetchone()[0]:
                    raise StoreError(f"{self.path}: nothing can be written while this thread reads one moment")
                yield
            elif reading:
                with _reading_only(connection), _whole(connection, "BEGIN"):
                    yield
            else:
                with self._turn, _whole(connection, "BEGIN IMMEDIATE"):
                    yield

    def _setting(self, name: str) -> str:
        row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} lacks its setting {name!r}: it is damaged")
        value: str = row[0]
        return value

    def epochs(self) -> list[Epoch]:
        """All epochs, by collection and number."""
        columns = "key, collection, number, plan, page_cells, reports, opened_at, closed_at"
        with _speaking_plainly(self.path):
            rows = self._connection.execute(f"SELECT {columns} FROM epochs ORDER BY collection, number").fetchall()
        return [Epoch(*row) for row in rows]

    def progress(self, key: int) -> list[tuple[int, int]]:
        """Reports of each minute."""
        with _speaking_plainly(self.path):
            return self._connection.execute(
                "SELECT minute, reports FROM progress WHERE epoch = ? ORDER BY minute", (key,)
            ).fetchall()

    def identity_count(self, key: int) -> int:
        """How many ids of an epoch are remembered."""
        with self.transaction(reading=True):
            if not self._has_identities(key):
                return 0
            count: int = self._connection.execute(f"SELECT count(*) FROM identities_{key:d}").fetchone()[0]
        return count

    def identities(self, key: int) -> Iterator[bytes]:
        """All ids that are remembered of an epoch."""
        with self.transaction(reading=True):
            if self._has_identities(key):
                yield from (row[0] for row in self._connection.execute(f"SELECT id FROM identities_{key:d}"))

    def _has_identities(self, key: int) -> bool:
        """Whether the epoch's own table of ids is there: a table can be dropped at once, rows only one by one."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._connection.execute(query, (f"identities_{key:d}",)).fetchone() is not None

    def tokens(self, key: int) -> Iterator[bytes]:
        """The hashes of an epoch's unspent tokens."""
        with _speaking_plainly(self.path):
            yield from (row[0] for row in self._connection.execute("SELECT hash FROM tokens WHERE epoch = ?", (key,)))

    def settle(self) -> bool:
        """Bring the log's pages into the file and cut the log to nothing, unless somebody still reads from it."""
        with _speaking_plainly(self.path), self._turn, _waiting(self._connection, _SETTLE_WAIT_SECONDS):
            in_use: int = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not in_use

    def check(self) -> None:
        """Write down when, which takes a page of the log; SQLite would not write what is there already."""
        with self.transaction():
            self._connection.execute("INSERT OR REPLACE INTO settings VALUES ('checked_at', ?)", (str(time.time()),))

    def close(self) -> None:
        """Close the connections of all threads."""
        self._connections.close()

    def _lock_epochs(self) -> None:
        """BEGIN IMMEDIATE has locked everything already."""

    def _insert_epoch(self, collection: str, number: int, plan: bytes, page_cells: int, opened_at: float) -> int:
        cursor = self._connection.execute(
            "INSERT INTO epochs (collection, number, plan, page_cells, opened_at) VALUES (?, ?, ?, ?, ?)",
            (collection, number, plan, page_cells, opened_at),
        )
        key = int(cursor.lastrowid or 0)
        self._connection.execute(f"CREATE TABLE identities_{key:d} (id BLOB PRIMARY KEY) WITHOUT ROWID")
        return key

    def _lock_if_open(self, key: int) -> int:
        """BEGIN IMMEDIATE has locked everything already."""
        row = self._connection.execute(
            "SELECT page_cells FROM epochs WHERE key = ? AND closed_at IS NULL", (key,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _mark_closed(self, key: int, closed_at: float) -> None:
        self._connection.execute("UPDATE epochs SET closed_at = ? WHERE key = ?", (closed_at, key))

    def _forget(self, key: int) -> None:
        self._connection.execute(f"DROP TABLE identities_{key:d}")
        self._connection.execute("DELETE FROM tokens WHERE epoch = ?", (key,))

    def _insert_identities(self, key: int, identities: Sequence[bytes]) -> set[bytes]:
        execute = self._connection.execute
        statement = f"INSERT OR IGNORE INTO identities_{key:d} VALUES (?)"
        return {identity for identity in identities if execute(statement, (identity,)).rowcount == 1}

    def _remove_identities(self, key: int, identities: Sequence[bytes]) -> None:
        self._connection.executemany(
            f"DELETE FROM identities_{key:d} WHERE id = ?", [(identity,) for identity in identities]
        )

    def _insert_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        self._connection.executemany("INSERT OR IGNORE INTO tokens VALUES (?, ?)", ((key, token) for token in hashes))

    def _spend_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        execute = self._connection.execute
        statement = "DELETE FROM tokens WHERE epoch = ? AND hash = ?"
        return {token for token in hashes if execute(statement, (key, token)).rowcount == 1}

    def _read_pages(self, key: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        execute, first = self._connection.execute, key << _PAGE_BITS
        query = "SELECT counts FROM pages WHERE place = ?"
        found = {page: execute(query, (first + page,)).fetchone() for page in pages}
        return {page: row[0] for page, row in found.items() if row is not None}

    def pages(self, key: int) -> Mapping[int, bytes]:
        """All pages of an epoch's tally."""
        first = key << _PAGE_BITS
        with _speaking_plainly(self.path):
            rows = self._connection.execute(
                "SELECT place, counts FROM pages WHERE place >= ? AND place < ?", (first, (key + 1) << _PAGE_BITS)
            ).fetchall()
        return {place - first: counts for place, counts in rows}

    def _write_pages(self, key: int, pages: Mapping[int, bytes]) -> None:
        first = key << _PAGE_BITS
        self._connection.executemany(
            "INSERT OR REPLACE INTO pages VALUES (?, ?)", ((first + page, counts) for page, counts in pages.items())
        )

    def _add_reports(self, key: int, reports: int, minute: int) -> None:
        self._connection.execute("UPDATE epochs SET reports = reports + ? WHERE key = ?", (reports, key))
        self._connection.execute(
            "INSERT INTO progress VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET reports = reports + excluded.reports",
            (key, minute, reports),
        )


def _is_blank(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0)


def _is_marked(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)


@contextmanager
def _whole(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """All of the block or nothing of it."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # when the disk is full, SQLite has rolled back by itself
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _reading_only(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("PRAGMA query_only=ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA query_only=OFF")


@contextmanager
def _waiting(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Wait for others no longer than this: whoever checkpoints keeps everybody from writing meanwhile."""
    connection.execute(f"PRAGMA busy_timeout={round(1000 * seconds)}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout={round(1000 * _WAIT_SECONDS)}")


@contextmanager
def _speaking_plainly(path: Path) -> Iterator[None]:
    """Errors of SQLite as StoreErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
