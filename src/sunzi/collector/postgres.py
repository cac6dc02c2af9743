"""A store in a PostgreSQL database, also for several collectors on one store.

All tables are in a schema of their own. A commit is one transaction: ids and pages arrive by binary COPY, and the
epoch's row is locked meanwhile, so that collectors on one database count exactly. A lost connection raises StoreError;
the next call reconnects.

PostgreSQL keeps earlier versions of a row until VACUUM, which :meth:`PostgresStore.settle` runs, and its write-ahead
log for as long as the server is configured to; docs/durability.md explains the consequences.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, LiteralString

from sunzi.collector.epochs import Shard
from sunzi.collector.store import SCHEMA_VERSION, Store, ThreadConnections, identity_table
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
_ADVISORY_LOCK = 0x53554E5A  # "SUNZ"; held only while a schema is created or upgraded
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
ALTER TABLE pages ALTER COLUMN counts SET STORAGE MAIN; -- in the row itself, compressed where that helps
CREATE TABLE progress (
    epoch integer NOT NULL, minute bigint NOT NULL, reports bigint NOT NULL, PRIMARY KEY (epoch, minute)
);
CREATE TABLE tokens (epoch integer NOT NULL, hash bytea NOT NULL, PRIMARY KEY (epoch, hash));
"""
# Filled by COPY and emptied by the next statement. Temporary tables are not logged and belong to one session.
_STAGING: LiteralString = """
CREATE TEMPORARY TABLE incoming_identities (id bytea) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE incoming_pages (page bigint, counts bytea) ON COMMIT DELETE ROWS;
ALTER TABLE incoming_pages ALTER COLUMN counts SET STORAGE MAIN;
"""

Connection = psycopg.Connection[TupleRow]

MIGRATIONS: dict[int, Callable[[Connection], None]] = {}
"""For each older schema version, the step to the next. Version 1 is the first."""


class PostgresStore(Store):
    """Connects to a PostgreSQL database, creates the schema if it is missing, and upgrades it if it is older.

    Parameters
    ----------
    address: ``postgresql://USER@HOST/DATABASE``, with any parameters of libpq.
    shard: the shard of a new store; an existing store must have the same one.
    create: whether to create a missing schema; otherwise StoreError is raised.
    schema: the schema that holds the tables.
    """

    _ROW_LOCK: ClassVar[LiteralString] = " FOR UPDATE"

    def __init__(self, address: str, shard: Shard | None = None, *, create: bool = True, schema: str = "sunzi") -> None:
        if not _SCHEMA_NAME.fullmatch(schema):
            raise ParameterError(f"a schema's name is a-z, 0-9 and _, starting with a letter or _, got {schema!r}")
        self.schema = schema
        self._create = create
        self._conninfo = _with_defaults(address)
        self.label = _label(self._conninfo, schema)
        self._connections = ThreadConnections(self._connect)
        self._start(shard)

    def _prepare(self, shard: Shard | None) -> None:
        connection = self._connection
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
        if not self._is_there():
            if not self._create:
                raise StoreError(f"there is no store at {self.label}; `sunzi serve` with a plan creates one")
            self._create_schema(shard or Shard())
            return
        version = self._version()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.label} has schema version {version}; this release supports versions up to {SCHEMA_VERSION}"
            )
        for older in range(version, SCHEMA_VERSION):
            MIGRATIONS[older](connection)
        if version != SCHEMA_VERSION:
            query = "UPDATE settings SET value = %s WHERE name = 'schema_version'"
            connection.execute(query, (str(SCHEMA_VERSION),))

    def _version(self) -> int:
        written = self._setting("schema_version")
        if not re.fullmatch("[1-9][0-9]{0,8}", written):
            raise StoreError(f"{self.label} is damaged: its schema version is {written!r}")
        return int(written)

    def _is_there(self) -> bool:
        """Whether the schema holds a store; raise StoreError if it holds anything else."""
        query = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
        names = {row[0] for row in self._connection.execute(query, (self.schema,))}
        if names and not {"settings", "epochs", "pages", "progress", "tokens"} <= names:
            raise StoreError(f"{self.label} holds other tables, not a Sunzi store; choose another schema")
        return bool(names)

    def _create_schema(self, shard: Shard) -> None:
        connection = self._connection
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self.schema,)).fetchone():
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
        connection.execute(_SCHEMA)
        settings = {"schema_version": str(SCHEMA_VERSION), "shard": str(shard), "created_at": str(time.time())}
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO settings VALUES (%s, %s)", list(settings.items()))

    @property
    def _connection(self) -> Connection:
        connection: Connection = self._connections.get()
        if connection.closed:  # it was lost, which an earlier call has reported
            self._connections.drop()
            connection = self._connections.get()
        return connection

    def _connect(self) -> Connection:
        with self._store_errors():
            connection = psycopg.connect(self._conninfo, autocommit=True)
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _set_up(self, connection: Connection) -> None:
        """Turn on durability; refuse a server that does not provide it."""
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.schema)))
        connection.execute(sql.SQL("SET lock_timeout TO {}").format(sql.Literal(f"{_WAIT_SECONDS}s")))
        if _shown(connection, "synchronous_commit") in {"off", "local"}:  # stronger values stay
            connection.execute("SET synchronous_commit TO on")
        for setting in ("synchronous_commit", "fsync"):
            if _shown(connection, setting) == "off":
                raise StoreError(
                    f"{self.label}: {setting} is off, so this server can lose committed reports; turn it on"
                )
        connection.execute(_STAGING)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turn PostgreSQL's errors into StoreErrors that name the store but no stored data."""
        try:
            yield
        except psycopg.Error as error:
            message = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"{self.label}: {message}") from error

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """Run the block as one durable transaction; with ``reading``, on one consistent snapshot."""
        with self._store_errors():
            connection = self._connection
            if connection.info.transaction_status != TransactionStatus.IDLE:
                yield
                return
            # READ COMMITTED even if the server's default differs: after a lock wait, we must see its holder's writes.
            mode = b"REPEATABLE READ, READ ONLY" if reading else b"READ COMMITTED, READ WRITE"
            connection.execute(b"BEGIN ISOLATION LEVEL " + mode)
            try:
                yield
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise StoreError(f"{self.label}: the transaction failed before its commit")
            except BaseException:
                _roll_back(connection)
                raise

    def _has_identities(self, key: int) -> bool:
        """Whether the epoch is open in this snapshot. Raises StoreError if its ids were dropped since.

        Even older snapshots do not see a dropped table; it must not look like an epoch without ids.
        """
        query = "SELECT closed_at, to_regclass(?) IS NOT NULL FROM epochs WHERE key = ?"
        rows = self._execute(query, (identity_table(key), key))
        if not rows or rows[0][0] is not None:
            return False
        if not rows[0][1]:
            raise StoreError(f"{self.label}: the epoch was closed while its ids were being read; start again")
        return True

    def _execute(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        with self._store_errors():
            cursor = self._connection.execute(query.replace("?", "%s").encode(), parameters, binary=True)
            return cursor.fetchall() if cursor.description else []

    def _stream(self, query: str) -> Iterator[bytes]:
        with self._connection.cursor(name="sunzi_stream", binary=True) as cursor:
            cursor.itersize = _STREAM_ROWS
            for row in cursor.execute(query.encode()):
                yield row[0]

    def settle(self) -> bool:
        """Drop the ids of closed epochs that were in use when the epoch closed, and vacuum earlier versions of rows.

        Returns False if ids are still in use. VACUUM keeps versions that another transaction can still see.
        """
        for key in self._closed_with_ids():
            with self.transaction():
                self._forget(key)
        self._execute("VACUUM (SKIP_LOCKED, TRUNCATE off) settings, epochs, pages, progress, tokens")
        return not self._closed_with_ids()

    def _closed_with_ids(self) -> list[int]:
        """The closed epochs whose table of ids still exists."""
        query = "SELECT key FROM epochs WHERE closed_at IS NOT NULL AND to_regclass('identities_' || key) IS NOT NULL"
        return [row[0] for row in self._execute(query)]

    def check(self) -> None:
        """Write a setting unchanged, which PostgreSQL logs like any other write."""
        with self.transaction():
            self._execute("UPDATE settings SET value = value WHERE name = 'shard'")

    def pages(self, key: int) -> Mapping[int, bytes]:
        """All pages of an epoch's tally."""
        return dict(self._execute("SELECT page, counts FROM pages WHERE epoch = ?", (key,)))

    def _lock_epochs(self) -> None:
        self._execute("SELECT 1 FROM settings WHERE name = 'shard' FOR UPDATE")

    def _create_identities(self, key: int) -> None:
        self._execute(f"CREATE TABLE {identity_table(key)} (id bytea PRIMARY KEY)")

    def _forget(self, key: int) -> None:
        self._execute("DELETE FROM tokens WHERE epoch = ?", (key,))
        # Do not wait for readers such as a backup: uploads would wait too. Another process may drop the table first.
        with suppress(_errors.LockNotAvailable, _errors.UndefinedTable), self._connection.transaction():
            self._connection.execute(f"LOCK TABLE {identity_table(key)} NOWAIT".encode())
            self._connection.execute(f"DROP TABLE {identity_table(key)}".encode())

    def _insert_identities(self, key: int, identities: Sequence[bytes]) -> set[bytes]:
        self._copy("incoming_identities", ("bytea",), ((identity,) for identity in identities))
        rows = self._execute(
            f"WITH moved AS (DELETE FROM incoming_identities RETURNING id) INSERT INTO {identity_table(key)}"
            " SELECT id FROM moved ON CONFLICT DO NOTHING RETURNING id"
        )
        return {row[0] for row in rows}

    def _restore_identities(self, key: int, identities: Iterator[bytes]) -> None:
        self._copy(identity_table(key), ("bytea",), ((identity,) for identity in identities))

    def _remove_identities(self, key: int, identities: Sequence[bytes]) -> None:
        self._execute(f"DELETE FROM {identity_table(key)} WHERE id = ANY(?)", (list(identities),))

    def _insert_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        self._copy("incoming_identities", ("bytea",), ((token,) for token in hashes))
        self._execute(
            "WITH moved AS (DELETE FROM incoming_identities RETURNING id) INSERT INTO tokens"
            " SELECT ?, id FROM moved ON CONFLICT DO NOTHING",
            (key,),
        )

    def _spend_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        query = "DELETE FROM tokens WHERE epoch = ? AND hash = ANY(?) RETURNING hash"
        return {row[0] for row in self._execute(query, (key, list(hashes)))}

    def _read_pages(self, key: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        query = "SELECT page, counts FROM pages WHERE epoch = ? AND page = ANY(?)"
        return dict(self._execute(query, (key, list(pages))))

    def _write_pages(self, key: int, pages: Mapping[int, bytes]) -> None:
        self._copy("incoming_pages", ("int8", "bytea"), pages.items())
        self._execute(
            "WITH moved AS (DELETE FROM incoming_pages RETURNING page, counts) INSERT INTO pages"
            " SELECT ?, page, counts FROM moved ON CONFLICT (epoch, page) DO UPDATE SET counts = excluded.counts",
            (key,),
        )

    def _copy(self, table: str, types: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert rows by binary COPY."""
        statement = f"COPY {table} FROM STDIN (FORMAT BINARY)".encode()
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


def _with_defaults(address: str) -> str:
    """The address with the defaults of a collector."""
    try:
        given = conninfo.conninfo_to_dict(address)
    except psycopg.Error as error:
        raise ParameterError(
            f"cannot parse the address of the PostgreSQL store: {' '.join(str(error).split())}"
        ) from None
    return conninfo.make_conninfo("", **{"connect_timeout": "10", "application_name": "sunzi", **given})


def _label(text: str, schema: str) -> str:
    """The store's name in error messages, without user or password."""
    given = conninfo.conninfo_to_dict(text)
    return f"postgresql://{given.get('host', '')}/{given.get('dbname', '')} schema {schema}"


def _shown(connection: Connection, setting: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
    return "" if row is None else str(row[0])


def _roll_back(connection: Connection) -> None:
    """Roll back; if the connection is lost, the server does."""
    with suppress(psycopg.Error):
        if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
            connection.execute("ROLLBACK")
        elif not connection.closed:
            connection.close()  # in an unknown state: reconnecting is simpler than finding out which
