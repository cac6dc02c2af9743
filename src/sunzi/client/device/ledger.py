"""A device's file: its key, what each attribute has spent and reported, and the outbox of unsent reports.

One durable transaction debits a report's ε and stores its bytes in the outbox before anything is sent, so a crash or
power cut neither loses a debit nor sends a report that was not debited. Several processes may share one file. There is
a key only while the user agrees.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from ..epsilon import parse_epsilon
from ..errors import ParameterError, StoreError, shown
from ..groups import parse_groups
from .addresses import canonical_epoch
from .memoising import KEY_BYTES
from .uploads import ID_BYTES

APPLICATION_ID = 0x53554E44  # "SUND", by which file(1) and this module recognise the file
VERSION = 1
_WAIT_SECONDS = 30.0
# EXTRA also makes the removal of the rollback journal durable: if it reappeared after a power cut, it would undo the
# debit of a report that was sent. On macOS, fsync leaves data in the disk's cache; fullfsync does not.
_SETTINGS = ("synchronous=EXTRA", "fullfsync=ON", "secure_delete=ON")
_SCHEMA = f"""
CREATE TABLE device (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), key BLOB NOT NULL);
CREATE TABLE debits (
    attribute TEXT NOT NULL, entry BLOB NOT NULL, epsilon TEXT NOT NULL, PRIMARY KEY (attribute, entry)
) WITHOUT ROWID;
CREATE TABLE reported (attribute TEXT NOT NULL, epoch TEXT NOT NULL, PRIMARY KEY (attribute, epoch)) WITHOUT ROWID;
CREATE TABLE latest (
    attribute TEXT NOT NULL, fingerprint TEXT NOT NULL, body BLOB, is_spent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (attribute, fingerprint)
) WITHOUT ROWID;
CREATE TABLE outbox (
    place INTEGER PRIMARY KEY, id BLOB NOT NULL, attribute TEXT, destination TEXT NOT NULL, body BLOB NOT NULL,
    fingerprint TEXT NOT NULL, token TEXT, groups TEXT
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION}
"""
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class QueuedReport:
    """A report in the outbox, sent with the same bytes and id until it is acknowledged.

    >>> from sunzi.client import Device, load_plan
    >>> plan = load_plan("plan.json")
    >>> device = Device("device.db", lifetime_epsilon=4, max_epsilon=1)
    >>> device.enable()
    True
    >>> queued = device.queue(plan, "browser", "Firefox", "https://collector.example/v1/collections/default/epochs/1")
    >>> [report.destination for report in device.waiting()]
    ['https://collector.example/v1/collections/default/epochs/1']
    """

    identity: bytes
    destination: str
    """The URL of its epoch."""
    body: bytes
    fingerprint: str
    """The fingerprint of its plan."""
    token: str | None = None
    """The single-use token that it spends."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The public groups that it names."""


class Ledger:
    """A device's SQLite file. It does not exist before the user agrees."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()  # a program may change its directory

    def exists(self) -> bool:
        """Whether the user has ever agreed; an empty file is what a crash in :meth:`enable` leaves."""
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"cannot use the device file {self.path}: {error.strerror}") from error

    def key(self) -> bytes | None:
        """The device's key; None if the user has not agreed."""
        if not self.exists():
            return None
        with self.transaction() as connection:
            row = connection.execute("SELECT key FROM device").fetchone()
        return None if row is None else self._blob("the key", row[0], KEY_BYTES)

    def enable(self, key: bytes) -> None:
        """Store a key, unless there is one."""
        with self.transaction(create=True) as connection:
            connection.execute("INSERT OR IGNORE INTO device VALUES (1, ?)", (key,))

    def disable(self) -> None:
        """Delete the key and every report. What was spent, and in which epochs, is kept."""
        if self.exists():
            with self.transaction() as connection:
                connection.execute("DELETE FROM device")
                connection.execute("DELETE FROM outbox")
                connection.execute("UPDATE latest SET body = NULL")

    @contextmanager
    def transaction(self, *, create: bool = False, keep: bool = True) -> Iterator[sqlite3.Connection]:
        """One durable transaction on a new connection, so that threads, processes and forks share nothing.

        Parameters
        ----------
        create: whether to create a file that is missing.
        keep: whether to keep what it changes.
        """
        try:
            if create and not self.path.exists():
                self.path.touch(mode=0o600)
            self.path.stat()  # SQLite would create the file
        except OSError as error:
            raise StoreError(f"cannot use the device file {self.path}: {error.strerror}") from error
        if not self.path.is_file():  # taking the permissions of /dev/null stops other programs
            raise StoreError(f"cannot use the device file {self.path}: it is not a file")
        try:
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN IMMEDIATE")
            self._prepare(connection)
            yield connection
            connection.execute("COMMIT" if keep else "ROLLBACK")
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last if a message quotes a damaged schema
            raise StoreError(f"{self.path}: {error}") from error
        finally:
            connection.close()  # rolls back an open transaction

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables in a new file; refuse other programs' files unchanged; let nobody else read the key."""
        mark, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        elif mark != APPLICATION_ID:
            raise StoreError(f"{self.path} is an SQLite file, but not a Sunzi device")
        elif version != VERSION:
            raise StoreError(f"{self.path} has version {version}; this release supports version {VERSION}")
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)

    def debits(self, connection: sqlite3.Connection, attribute: str) -> tuple[set[bytes], Fraction]:
        """What an attribute has paid for, and how much."""
        rows = connection.execute("SELECT entry, epsilon FROM debits WHERE attribute = ?", (attribute,)).fetchall()
        return {entry for entry, _ in rows}, self._sum(text for _, text in rows)

    def _sum(self, debits: Iterable[object]) -> Fraction:
        """The sum of debits, each a fraction in lowest terms; a damaged or edited one is refused, not credited."""
        total = Fraction(0)
        for text in debits:
            try:
                debit = parse_epsilon(text if isinstance(text, str) else "")
            except ParameterError:
                debit = None
            if debit is None or str(debit) != text:
                raise self._damage(f"a debit is {shown(text)}")
            total += debit
        return total

    def debit(
        self, connection: sqlite3.Connection, attribute: str, entries: Iterable[bytes], epsilon: Fraction
    ) -> None:
        """Write down what an attribute pays for: ε for each of these entries."""
        rows = [(attribute, entry, str(epsilon)) for entry in entries]
        connection.executemany("INSERT INTO debits VALUES (?, ?, ?)", rows)

    def remember(
        self, connection: sqlite3.Connection, attribute: str, fingerprint: str, body: bytes | None, is_spent: bool
    ) -> None:
        """Keep the latest report of an attribute under a plan, and whether its budget has ended."""
        connection.execute(
            "INSERT OR REPLACE INTO latest VALUES (?, ?, ?, ?)", (attribute, fingerprint, body, is_spent)
        )

    def latest(self, connection: sqlite3.Connection, attribute: str, fingerprint: str) -> tuple[bytes | None, bool]:
        """The bytes of an attribute's latest report under a plan, if they are kept, and whether its budget ended."""
        query = "SELECT body, is_spent FROM latest WHERE attribute = ? AND fingerprint = ?"
        row = connection.execute(query, (attribute, fingerprint)).fetchone() or (None, 0)
        return None if row[0] is None else self._blob("the latest report", row[0]), bool(row[1])

    def waiting(self) -> list[QueuedReport]:
        """The reports that are not acknowledged yet, oldest first."""
        columns = "id, destination, body, fingerprint, token, groups"
        if not self.exists():
            return []
        with self.transaction() as connection:
            rows = connection.execute(f"SELECT {columns} FROM outbox ORDER BY place").fetchall()
        return [self._queued(*row) for row in rows]

    def is_waiting(self, report: QueuedReport) -> bool:
        """Whether a report is still to be sent: the device is on, and was not turned off meanwhile."""
        if not self.exists():
            return False
        with self.transaction() as connection:
            query = "SELECT 1 FROM outbox, device WHERE id = ?"
            return connection.execute(query, (report.identity,)).fetchone() is not None

    def settle(self, report: QueuedReport, *, is_refused: bool) -> None:
        """Delete a report that was acknowledged or refused; refused ones were not counted, so that the epoch may get
        another report.
        """
        with self.transaction() as connection:
            if is_refused:
                connection.execute(
                    "DELETE FROM reported WHERE (attribute, epoch) IN (SELECT attribute, destination FROM outbox"
                    " WHERE id = ?)",
                    (report.identity,),
                )
            connection.execute("DELETE FROM outbox WHERE id = ?", (report.identity,))

    def _queued(
        self, identity: object, destination: object, body: object, fingerprint: object, token: object, groups: object
    ) -> QueuedReport:
        """A row of the outbox, checked."""
        for name, text in (("the fingerprint", fingerprint), ("the token", token)):
            if text is not None and not (isinstance(text, str) and _DIGEST.fullmatch(text)):
                raise self._damage(f"{name} of a report is {shown(text)}")
        try:
            if canonical_epoch(str(destination)) != destination:
                raise ParameterError
        except ParameterError:
            raise self._damage(f"the destination of a report is {shown(destination)}") from None
        try:
            named = {} if groups is None else parse_groups(str(groups))
        except ParameterError:
            raise self._damage(f"the groups of a report are {shown(groups)}") from None
        identity, body = self._blob("the id of a report", identity, ID_BYTES), self._blob("a report", body)
        return QueuedReport(identity, destination, body, str(fingerprint), None if token is None else str(token), named)

    def _damage(self, what: str) -> StoreError:
        return StoreError(f"the device file {self.path} is damaged: {what}")

    def _blob(self, name: str, value: object, size: int | None = None) -> bytes:
        if not isinstance(value, bytes) or size not in (None, len(value)):
            raise self._damage(f"{name} is not a blob of {'some' if size is None else size} bytes")
        return value
