"""A store in a PostgreSQL database, for those who run one anyway or want several collectors on one store.

All tables lie in a schema of their own. A commit is one transaction: ids and pages come in by binary COPY, and the row
of the epoch is locked meanwhile, so that collectors on one database stay exact together. A connection that is lost
raises StoreError, and the next call opens another.

PostgreSQL keeps earlier versions of a row until VACUUM removes them, which :meth:`PostgresStore.settle` asks for, and
its write-ahead log for as long as the server is set to; docs/durability.md says what follows from this.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import LiteralString

from sunzi.collector.connections import ThreadConnections
from sunzi.collector.records import Epoch, Shard
from sunzi.collector.store import SCHEMA_VERSION, Store
from sunzi.errors import MissingExtraError, ParameterError, StoreError

try:
    import psycopg
    from psycopg import conninfo, sql
    from psycopg import errors as _errors
    from psycopg.pq import TransactionStatus
    from psycopg.rows import TupleRow
except ImportError as missing:
    raise MissingExtraError("a PostgreSQL store", "postgres") from missing

_WAIT_SECONDS = 30
_STREAM_ROWS = 10_000
_SCHEMA_NAME = re.compile("[a-z_][a-z0-9_]{0,62}")
_ADVISORY_LOCK = 0x53554E5A  # "SUNZ"; taken only while a schema is made or upgraded
_SCHEMA: LiteralString = """
CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE epochs (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection text NOT NULL, number integer NOT NULL,
    plan bytea NOT NULL, page_cells integer NOT NULL, reports bigint NOT NULL DEFAULT 0,
    opened_at double precision NOT NULL, closed_at double precision, UNIQUE (collection, number)
);
CREATE TABLE pages (
    epoch integer NOT NULL, page bigint NOT NULL, counts bytea NOT NULL, PRIMARY KEY (epoch, page)
);
ALTER TABLE pages ALTER COLUMN counts SET STORAGE MAIN; -- in the row itself, packed where that helps
CREATE TABLE progress (
    epoch integer NOT NULL, minute bigint NOT NULL, reports bigint NOT NULL, PRIMARY KEY (epoch, minute)
);
CREATE TABLE tokens (epoch integer NOT NULL, hash bytea NOT NULL, PRIMARY KEY (epoch, hash));
"""
# What COPY fills, emptied by the statement that moves it on. Temporary tables are not logged and belong to a session.
_STAGING: LiteralString = """
CREATE TEMPORARY TABLE incoming_identities (id bytea) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE incoming_pages (page bigint, counts bytea) ON COMMIT DELETE ROWS;
ALTER TABLE incoming_pages ALTER COLUMN counts SET STORAGE MAIN;
"""

Connection = psycopg.Connection[TupleRow]

MIGRATIONS: dict[int, Callable[[Connection], None]] = {}
"""For each older version of the schema, the step that leads to the next. Version 1 is the first."""


class PostgresStore(Store):
    """Connects to ``postgresql://…``, makes the schema if it is not there, and upgrades it if it is older."""

    def __init__(self, address: str, shard: Shard | None = None, *, create: bool = True, schema: str = "sunzi") -> None:
        if not _SCHEMA_NAME.fullmatch(schema):
            raise ParameterError(f"a schema's name has a-z, 0-9 and _, and begins with a letter or _, got {schema!r}")
        self.schema = schema
        self._conninfo = _with_defaults(address)
        self._label = _label(self._conninfo, schema)
        self._connections = ThreadConnections(self._connect)
        try:
            with self.transaction():
                self._prepare(shard, create)
            self.shard = Shard.parse(self._setting("shard"))
            if shard is not None and shard != self.shard:
                raise StoreError(f"{self._label} belongs to shard {self.shard}, not to {shard}")
        except BaseException:
            self.close()
            raise

    def _prepare(self, shard: Shard | None, create: bool) -> None:
        """Make the schema, or bring an older one up to date, while others who open it wait."""
        connection = self._connection
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
        if not self._is_there():
            if not create:
                raise StoreError(f"there is no store at {self._label}")
            self._create(shard or Shard())
            return
        version = self._version()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self._label} has schema version {version}; this release knows versions up to {SCHEMA_VERSION}"
            )
        for older in range(version, SCHEMA_VERSION):
            MIGRATIONS[older](connection)
        if version != SCHEMA_VERSION:
            query = "UPDATE settings SET value = %s WHERE name = 'schema_version'"
            connection.execute(query, (str(SCHEMA_VERSION),))

    def _version(self) -> int:
        written = self._setting("schema_version")
        if not re.fullmatch("[1-9][0-9]{0,8}", written):
            raise StoreError(f"{self._label} has the schema version {written!r}: it is damaged")
        return int(written)

    def _is_there(self) -> bool:
        """Whether the schema holds a store; if it holds anything else, that is left alone."""
        query = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
        names = {row[0] for row in self._connection.execute(query, (self.schema,))}
        if names and not {"settings", "epochs", "pages", "progress", "tokens"} <= names:
            raise StoreError(f"{self._label} is in use, but not by a store of Sunzi")
        return bool(names)

    def _create(self, shard: Shard) -> None:
        connection = self._connection
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self.schema,)).fetchone():
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
        connection.execute(_SCHEMA)
        settings = {"schema_version": str(SCHEMA_VERSION), "shard": str(shard), "created_at": str(time.time())}
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO settings VALUES (%s, %s)", list(settings.items()))

    @property
    def _connection(self) -> Connection:
        connection = self._connections.get()
        if connection.closed:  # it was lost: whoever used it has been told
            self._connections.drop()
            connection = self._connections.get()
        return connection

    def _connect(self) -> Connection:
        with self._speaking_plainly():
            connection = psycopg.connect(self._conninfo, autocommit=True)
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _set_up(self, connection: Connection) -> None:
        """Ask for durability, and refuse a server that does not give it."""
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.schema)))
        connection.execute(sql.SQL("SET lock_timeout TO {}").format(sql.Literal(f"{_WAIT_SECONDS}s")))
        if _shown(connection, "synchronous_commit") in {"off", "local"}:  # whatever is stronger than on may stay
            connection.execute("SET synchronous_commit TO on")
        for setting in ("synchronous_commit", "fsync"):
            if _shown(connection, setting) == "off":
                raise StoreError(
                    f"{self._label}: {setting} is off at this server, so that what it calls committed can be lost; "
                    f"turn it on"
                )
        connection.execute(_STAGING)

    @contextmanager
    def _speaking_plainly(self) -> Iterator[None]:
        """Errors of PostgreSQL as StoreErrors that name the store, and never what was written to it."""
        try:
            yield
        except psycopg.Error as error:
            message = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"{self._label}: {message}") from error

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """BEGIN … COMMIT; one begun within another is part of it, and may not write within a reading one."""
        with self._speaking_plainly():
            connection = self._connection
            if connection.info.transaction_status != TransactionStatus.IDLE:
                yield
                return
            # Whatever the server's default is: a lock that was waited for must show what its holder wrote.
            mode = b"REPEATABLE READ, READ ONLY" if reading else b"READ COMMITTED, READ WRITE"
            connection.execute(b"BEGIN ISOLATION LEVEL " + mode)
            try:
                yield
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise StoreError(f"{self._label}: the transaction had failed before it could be committed")
            except BaseException:
                _roll_back(connection)
                raise

    def _setting(self, name: str) -> str:
        row = self._connection.execute("SELECT value FROM settings WHERE name = %s", (name,)).fetchone()
        if row is None:
            raise StoreError(f"{self._label} lacks its setting {name!r}: it is damaged")
        return str(row[0])

    def epochs(self) -> list[Epoch]:
        """All epochs, by collection and number."""
        query = """SELECT key, collection, number, plan, page_cells, reports, opened_at, closed_at
            FROM epochs ORDER BY collection COLLATE "C", number"""
        with self._speaking_plainly():
            rows = self._connection.execute(query).fetchall()
        return [Epoch(*row) for row in rows]

    def progress(self, key: int) -> list[tuple[int, int]]:
        """Reports of each minute."""
        query = "SELECT minute, reports FROM progress WHERE epoch = %s ORDER BY minute"
        with self._speaking_plainly():
            return self._connection.execute(query, (key,)).fetchall()

    def identity_count(self, key: int) -> int:
        """How many ids of an epoch are remembered."""
        with self.transaction(reading=True):
            if not self._is_open(key):
                return 0
            row = self._connection.execute(_naming("SELECT count(*) FROM {identities}", key)).fetchone()
        return int(row[0]) if row else 0

    def identities(self, key: int) -> Iterator[bytes]:
        """All ids that are remembered of an epoch."""
        with self.transaction(reading=True):
            if self._is_open(key):
                yield from self._stream(_naming("SELECT id FROM {identities}", key))

    def _is_open(self, key: int) -> bool:
        """Whether the epoch is open at the moment that this transaction sees, and its ids can still be read.

        A dropped table is gone for older snapshots too: it must not look like an epoch without ids.
        """
        query = "SELECT closed_at, to_regclass(%s) FROM epochs WHERE key = %s"
        row = self._connection.execute(query, (f"identities_{key:d}", key)).fetchone()
        if row is None or row[0] is not None:
            return False
        if row[1] is None:
            raise StoreError(f"{self._label}: the epoch was closed while its ids were read; begin again")
        return True

    def tokens(self, key: int) -> Iterator[bytes]:
        """The hashes of an epoch's unspent tokens."""
        with self.transaction(reading=True):
            yield from self._stream(sql.SQL("SELECT hash FROM tokens WHERE epoch = {}").format(sql.Literal(key)))

    def _stream(self, query: sql.Composed) -> Iterator[bytes]:
        """The one column of a query, a piece at a time."""
        with self._connection.cursor(name="sunzi_stream", binary=True) as cursor:
            cursor.itersize = _STREAM_ROWS
            for row in cursor.execute(query):
                yield row[0]

    def settle(self) -> bool:
        """Drop the ids of closed epochs that somebody read when they were to be dropped, and remove earlier versions of
        rows, except those that another transaction can still see.
        """
        for key in self._closed_with_ids():
            with self.transaction():
                self._forget(key)
        with self._speaking_plainly():
            self._connection.execute("VACUUM (SKIP_LOCKED, TRUNCATE off) settings, epochs, pages, progress, tokens")
        return not self._closed_with_ids()

    def _closed_with_ids(self) -> list[int]:
        """The epochs that are closed but whose table of ids is still there."""
        query = "SELECT key FROM epochs WHERE closed_at IS NOT NULL AND to_regclass('identities_' || key) IS NOT NULL"
        with self._speaking_plainly():
            return [row[0] for row in self._connection.execute(query)]

    def check(self) -> None:
        """Write a setting as it is, which PostgreSQL takes for a change."""
        with self.transaction():
            self._connection.execute("UPDATE settings SET value = value WHERE name = 'shard'")

    def close(self) -> None:
        """Close the connections of all threads."""
        self._connections.close()

    def _insert_epoch(self, collection: str, number: int, plan: bytes, page_cells: int, opened_at: float) -> int:
        row = self._connection.execute(
            "INSERT INTO epochs (collection, number, plan, page_cells, opened_at) VALUES (%s, %s, %s, %s, %s)"
            " RETURNING key",
            (collection, number, plan, page_cells, opened_at),
        ).fetchone()
        key = int(row[0]) if row else 0
        self._connection.execute(_naming("CREATE TABLE {identities} (id bytea PRIMARY KEY)", key))
        return key

    def _lock_epochs(self) -> None:
        self._connection.execute("SELECT 1 FROM settings WHERE name = 'shard' FOR UPDATE")

    def _lock_if_open(self, key: int) -> int:
        query = "SELECT page_cells FROM epochs WHERE key = %s AND closed_at IS NULL FOR UPDATE"
        row = self._connection.execute(query, (key,)).fetchone()
        return 0 if row is None else int(row[0])

    def _mark_closed(self, key: int, closed_at: float) -> None:
        self._connection.execute("UPDATE epochs SET closed_at = %s WHERE key = %s", (closed_at, key))

    def _forget(self, key: int) -> None:
        self._connection.execute("DELETE FROM tokens WHERE epoch = %s", (key,))
        # Whoever still reads the ids, as a backup does, is not waited for: those who upload would wait as well.
        # Somebody else who settles may have dropped them meanwhile.
        with suppress(_errors.LockNotAvailable, _errors.UndefinedTable), self._connection.transaction():
            self._connection.execute(_naming("LOCK TABLE {identities} NOWAIT", key))
            self._connection.execute(_naming("DROP TABLE {identities}", key))

    def _insert_identities(self, key: int, identities: Sequence[bytes]) -> set[bytes]:
        self._copy(sql.SQL("incoming_identities"), ("bytea",), ((identity,) for identity in identities))
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(
                _naming(
                    "WITH moved AS (DELETE FROM incoming_identities RETURNING id) INSERT INTO {identities}"
                    " SELECT id FROM moved ON CONFLICT DO NOTHING RETURNING id",
                    key,
                )
            )
            return {row[0] for row in cursor}

    def _restore_identities(self, key: int, identities: Iterator[bytes]) -> None:
        self._copy(_naming("{identities}", key), ("bytea",), ((identity,) for identity in identities))

    def _remove_identities(self, key: int, identities: Sequence[bytes]) -> None:
        self._connection.execute(_naming("DELETE FROM {identities} WHERE id = ANY(%s)", key), (list(identities),))

    def _insert_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        self._copy(sql.SQL("incoming_identities"), ("bytea",), ((token,) for token in hashes))
        self._connection.execute(
            "WITH moved AS (DELETE FROM incoming_identities RETURNING id) INSERT INTO tokens"
            " SELECT %s, id FROM moved ON CONFLICT DO NOTHING",
            (key,),
        )

    def _spend_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        query = "DELETE FROM tokens WHERE epoch = %s AND hash = ANY(%s) RETURNING hash"
        with self._connection.cursor(binary=True) as cursor:
            return {row[0] for row in cursor.execute(query, (key, list(hashes)))}

    def _read_pages(self, key: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        query = "SELECT page, counts FROM pages WHERE epoch = %s AND page = ANY(%s)"
        with self._connection.cursor(binary=True) as cursor:
            return dict(cursor.execute(query, (key, list(pages))))

    def pages(self, key: int) -> Mapping[int, bytes]:
        """All pages of an epoch's tally."""
        query = "SELECT page, counts FROM pages WHERE epoch = %s"
        with self._speaking_plainly(), self._connection.cursor(binary=True) as cursor:
            return dict(cursor.execute(query, (key,)))

    def _write_pages(self, key: int, pages: Mapping[int, bytes]) -> None:
        self._copy(sql.SQL("incoming_pages"), ("int8", "bytea"), pages.items())
        self._connection.execute(
            "WITH moved AS (DELETE FROM incoming_pages RETURNING page, counts) INSERT INTO pages"
            " SELECT %s, page, counts FROM moved ON CONFLICT (epoch, page) DO UPDATE SET counts = excluded.counts",
            (key,),
        )

    def _add_reports(self, key: int, reports: int, minute: int) -> None:
        self._connection.execute("UPDATE epochs SET reports = reports + %s WHERE key = %s", (reports, key))
        self._connection.execute(
            "INSERT INTO progress VALUES (%s, %s, %s)"
            " ON CONFLICT (epoch, minute) DO UPDATE SET reports = progress.reports + excluded.reports",
            (key, minute, reports),
        )

    def _copy(self, table: sql.Composable, types: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows into a table by binary COPY."""
        statement = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(table)
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


def _naming(statement: LiteralString, key: int) -> sql.Composed:
    """A statement on an epoch's own table of ids: a table can be dropped at once, rows only one by one."""
    return sql.SQL(statement).format(identities=sql.Identifier(f"identities_{key:d}"))


def _with_defaults(address: str) -> str:
    """The address with what a collector needs and its user did not say."""
    try:
        given = conninfo.conninfo_to_dict(address)
    except psycopg.Error as error:
        raise ParameterError(
            f"the address of a PostgreSQL store cannot be read: {' '.join(str(error).split())}"
        ) from None
    return conninfo.make_conninfo("", **{"connect_timeout": "10", "application_name": "sunzi", **given})


def _label(text: str, schema: str) -> str:
    """The store's name in messages: no password, nor anything else that only the server needs to know."""
    given = conninfo.conninfo_to_dict(text)
    return f"postgresql://{given.get('host', '')}/{given.get('dbname', '')} schema {schema}"


def _shown(connection: Connection, setting: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
    return "" if row is None else str(row[0])


def _roll_back(connection: Connection) -> None:
    """Unless the connection is lost; then the server does so."""
    with suppress(psycopg.Error):
        if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
            connection.execute("ROLLBACK")
        elif not connection.closed:
            connection.close()  # in the middle of something: a new one is quicker than to find out what
