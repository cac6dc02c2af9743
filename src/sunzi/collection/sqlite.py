"""A store in one SQLite file: the default, with nothing to install and nothing to run beside it.

Durable before acknowledged: write-ahead log, ``synchronous=FULL``. Freed space is overwritten (``secure_delete``), and
:meth:`SqliteStore.settle` empties the log, which until then holds earlier versions of the tally's pages.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sunzi.collection.records import Epoch, Shard
from sunzi.collection.store import SCHEMA_VERSION, Store
from sunzi.errors import StoreError

APPLICATION_ID = 0x53554E5A  # "SUNZ", by which file(1) and this module know the file
_WAIT_SECONDS = 30.0
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
        if not create and not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._connections_lock = threading.Lock()
        with _speaking_plainly(self.path):
            self._prepare(shard)
        self.shard = Shard.parse(self._setting("shard"))
        if shard is not None and shard != self.shard:
            self.close()
            raise StoreError(f"{self.path} belongs to shard {self.shard}, not to {shard}")

    def _prepare(self, shard: Shard | None) -> None:
        connection = self._connection
        with self.transaction():
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables and application != APPLICATION_ID:
                raise StoreError(f"{self.path} is an SQLite file, but not a store of Sunzi")
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"{self.path} has schema version {version}; this release knows versions up to {SCHEMA_VERSION}"
                )
            if not tables:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                settings = {"shard": str(shard or Shard()), "created_at": str(time.time())}
                connection.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
            else:
                for older in range(version, SCHEMA_VERSION):
                    MIGRATIONS[older](connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @property
    def _connection(self) -> sqlite3.Connection:
        """This thread's own connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            with self._connections_lock:
                self._connections.append(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        # Every thread has its own connection; close() alone touches those of others.
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "cache_size=-65536"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT; one begun within another is part of it."""
        connection = self._connection
        if connection.in_transaction:
            yield
            return
        with _speaking_plainly(self.path):
            connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

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
        if not self._has_identities(key):
            return 0
        with _speaking_plainly(self.path):
            count: int = self._connection.execute(f"SELECT count(*) FROM identities_{key:d}").fetchone()[0]
        return count

    def identities(self, key: int) -> Iterator[bytes]:
        """All ids that are remembered of an epoch."""
        if self._has_identities(key):
            with _speaking_plainly(self.path):
                yield from (row[0] for row in self._connection.execute(f"SELECT id FROM identities_{key:d}"))

    def _has_identities(self, key: int) -> bool:
        """Whether the epoch's own table of ids is there: a table can be dropped at once, rows only one by one."""
        with _speaking_plainly(self.path):
            query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
            return self._connection.execute(query, (f"identities_{key:d}",)).fetchone() is not None

    def tokens(self, key: int) -> Iterator[bytes]:
        """The hashes of an epoch's unspent tokens."""
        with _speaking_plainly(self.path):
            yield from (row[0] for row in self._connection.execute("SELECT hash FROM tokens WHERE epoch = ?", (key,)))

    def settle(self) -> None:
        """Bring the log's pages into the file and cut the log to nothing."""
        with _speaking_plainly(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> None:
        """Take and release the right to write."""
        with self.transaction():
            pass

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._connections_lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        self._local = threading.local()

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


def _roll_back(connection: sqlite3.Connection) -> None:
    """Unless SQLite did so itself, as it does when the disk is full."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@contextmanager
def _speaking_plainly(path: Path) -> Iterator[None]:
    """Errors of SQLite as StoreErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
