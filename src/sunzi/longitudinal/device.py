"""One device that reports over months: its key, the ledger of what it has spent, and the reports still to be sent.

All three live in one SQLite file and change together: a report is made, its ε debited and its bytes put into the outbox
by one durable transaction, before anything is sent. Several processes may use one file. A crash at any moment neither
loses a debit nor sends a report that was not paid for.
"""

from __future__ import annotations

import hmac
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from sunzi.errors import BudgetError, DomainError, ReportError, StoreError
from sunzi.longitudinal.memoising import KEY_BYTES, MemoisingClient
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.plan import Plan

Epsilon = int | float | str | Decimal | Fraction
Upload = Callable[["Waiting"], object]

_ID_BYTES = 16
_WAIT_SECONDS = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS device (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS debits (
    attribute TEXT NOT NULL, entry BLOB NOT NULL, epsilon TEXT NOT NULL, PRIMARY KEY (attribute, entry)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
    id BLOB PRIMARY KEY, destination TEXT NOT NULL, body BLOB NOT NULL, queued_at REAL NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Waiting:
    """A report in the outbox: the same bytes under the same id until it is acknowledged."""

    identity: bytes
    destination: str
    body: bytes


@dataclass(frozen=True)
class Queued:
    """What became of one value: whether it lay outside the domain, and what this report cost."""

    identity: bytes
    outside: bool
    cost: Fraction


class Device:
    """``lifetime_epsilon`` caps what each attribute may ever spend, over all plans and collections; ``caps`` sets other
    caps for some.
    """

    def __init__(self, path: str | Path, lifetime_epsilon: Epsilon, caps: Mapping[str, Epsilon] | None = None) -> None:
        self.path = Path(path)
        self._cap = parse_epsilon(lifetime_epsilon)
        self._caps = {attribute: parse_epsilon(cap) for attribute, cap in (caps or {}).items()}
        if not self.path.exists():
            self.path.touch(mode=0o600)  # the key is in it
        with self._transaction() as connection:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute("INSERT OR IGNORE INTO device VALUES (1, ?)", (secrets.token_bytes(KEY_BYTES),))
            self._key: bytes = connection.execute("SELECT key FROM device").fetchone()[0]

    def client(self, plan: Plan, attribute: str, *, max_epsilon: Epsilon | None = None) -> MemoisingClient:
        """A memoising client with this device's key. Its reports are not debited: prefer :meth:`queue`."""
        return MemoisingClient(plan, self._key, attribute, max_epsilon=max_epsilon)

    def queue(
        self, plan: Plan, attribute: str, value: object, destination: str, *, max_epsilon: Epsilon | None = None
    ) -> Queued:
        """Make the report of a value, debit it, and keep it for sending. Raises BudgetError if too little is left, and
        PrivacyError if the plan asks for more than ``max_epsilon``: then nothing was spent and nothing made.

        A value that this attribute reported before under the same plan costs nothing: its bytes are the same. A value
        outside the domain is sent as "other" where the plan has that; else as the background report, since silence
        would speak.
        """
        client = self.client(plan, attribute, max_epsilon=max_epsilon)
        try:
            index: int | None = plan.domain.index(value)
        except DomainError:
            index = None
        entry = hmac.digest(client.derive(index), b"ledger entry", "sha256")
        identity, body = secrets.token_bytes(_ID_BYTES), client.report_index(index)
        with self._transaction() as connection:
            cost = self._debit(connection, attribute, entry, plan.epsilon)
            connection.execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", (identity, destination, body, time.time()))
        return Queued(identity, index is None, cost)

    def _debit(self, connection: sqlite3.Connection, attribute: str, entry: bytes, epsilon: Fraction) -> Fraction:
        rows = connection.execute("SELECT entry, epsilon FROM debits WHERE attribute = ?", (attribute,)).fetchall()
        if any(known == entry for known, _ in rows):
            return Fraction(0)
        spent, cap = sum((Fraction(text) for _, text in rows), Fraction(0)), self._caps.get(attribute, self._cap)
        if spent + epsilon > cap:
            raise BudgetError(
                f"{attribute!r} has spent epsilon {spent} of {cap} in its lifetime; this report would cost {epsilon}"
            )
        connection.execute("INSERT INTO debits VALUES (?, ?, ?)", (attribute, entry, str(epsilon)))
        return epsilon

    def spent(self, attribute: str) -> Fraction:
        """What an attribute has spent so far."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT epsilon FROM debits WHERE attribute = ?", (attribute,)).fetchall()
        return sum((Fraction(text) for (text,) in rows), Fraction(0))

    def waiting(self) -> list[Waiting]:
        """The reports that no collector has acknowledged yet, oldest first."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT id, destination, body FROM outbox ORDER BY queued_at, id").fetchall()
        return [Waiting(*row) for row in rows]

    def flush(self, upload: Upload) -> int:
        """Send all that waits; return how many were acknowledged. What is acknowledged is deleted at once.

        ``upload`` sends one and returns if it is acknowledged; it raises ReportError if it is refused for good, which
        deletes it too, and StoreError if it may succeed later, which ends the flush.
        """
        done = 0
        for report in self.waiting():
            try:
                upload(report)
                done += 1
            except ReportError:
                pass
            except StoreError:
                break
            with self._transaction() as connection:
                connection.execute("DELETE FROM outbox WHERE id = ?", (report.identity,))
        return done

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction on a connection of its own: threads, processes and forks share nothing."""
        try:
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error
        finally:
            connection.close()  # rolls back what is not committed
