"""A device that reports over months: its key, the ledger of spent ε, the outbox of unsent reports, and sending them.

The first three are in one SQLite file. One durable transaction debits a report's ε and stores its bytes in the outbox
before anything is sent, so a crash or power cut neither loses a debit nor sends a report that was not debited. Several
processes may share one file.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from sunzi.collector.addresses import canonical_epoch, parse_epoch
from sunzi.collector.epochs import parse_token
from sunzi.collector.remote import RemoteCollector, UnauthorizedError
from sunzi.device.memoising import ID_BYTES, KEY_BYTES, MemoisingClient
from sunzi.errors import BudgetError, DomainError, ParameterError, ReportError, StoreError
from sunzi.groups import chosen_groups, parse_groups
from sunzi.numerics.checks import shown
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.plan import Plan

Epsilon = int | float | str | Decimal | Fraction
Upload = Callable[["QueuedReport"], object]
OnRefused = Callable[["QueuedReport", ReportError], object]

APPLICATION_ID = 0x53554E44  # "SUND", by which file(1) and this module recognise the file
VERSION = 3
_WAIT_SECONDS = 30.0
# EXTRA also makes the removal of the rollback journal durable: if it reappeared after a power cut, it would undo the
# debit of a report that was sent. On macOS, fsync leaves data in the disk's cache; fullfsync does not.
_SETTINGS = ("synchronous=EXTRA", "fullfsync=ON", "secure_delete=ON")
_UNMARKED_TABLES = {"device", "debits", "outbox"}
_SCHEMA = """
CREATE TABLE device (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), key BLOB NOT NULL);
CREATE TABLE debits (
    attribute TEXT NOT NULL, entry BLOB NOT NULL, epsilon TEXT NOT NULL, PRIMARY KEY (attribute, entry)
) WITHOUT ROWID;
CREATE TABLE outbox (
    id BLOB PRIMARY KEY, destination TEXT NOT NULL, body BLOB NOT NULL, queued_at REAL NOT NULL,
    fingerprint TEXT, token TEXT, groups TEXT
) WITHOUT ROWID;
CREATE TABLE reported (id BLOB PRIMARY KEY) WITHOUT ROWID;
"""
# Files of version 0 have no application id, and their reports do not name a plan. Those of version 1 do not record the
# ids of their reports, and those of version 2 have no groups.
_UPGRADES = (
    "ALTER TABLE outbox ADD COLUMN fingerprint TEXT; ALTER TABLE outbox ADD COLUMN token TEXT",
    "CREATE TABLE reported (id BLOB PRIMARY KEY) WITHOUT ROWID",
    "ALTER TABLE outbox ADD COLUMN groups TEXT",
)
_PATIENCE_SECONDS = 1.0
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class QueuedReport:
    """A report in the outbox, sent with the same bytes and id until it is acknowledged.

    >>> import sunzi
    >>> from sunzi.device import Device
    >>> plan = sunzi.make_plan("grr", ["yes", "no"], epsilon=1)
    >>> device = Device("device.db", lifetime_epsilon=3, max_epsilon=1)
    >>> queued = device.queue(plan, "answer", "yes", "https://collector.example/v1/collections/default/epochs/1")
    >>> [report.destination for report in device.waiting()]
    ['https://collector.example/v1/collections/default/epochs/1']
    """

    identity: bytes
    destination: str
    """The URL of its epoch."""
    body: bytes
    fingerprint: str | None = None
    """The fingerprint of its plan; None if an older release queued it."""
    token: str | None = None
    """The single-use token that it spends."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The public groups that it names."""


@dataclass(frozen=True)
class QueueResult:
    """The result of :meth:`Device.queue`."""

    identity: bytes
    outside: bool
    """Whether the value was outside the domain."""
    cost: Fraction
    """The ε spent on this report."""
    is_repeated: bool = False
    """Whether the attribute had already reported in this epoch, so that nothing was queued."""


class Device:
    """A device that never spends more ε than its caps, and keeps every report until a collector acknowledges it.

    Parameters
    ----------
    path: the device's SQLite file, created if it is missing.
    lifetime_epsilon: the most that each attribute may ever spend, over all plans and collections.
    max_epsilon: the largest ε to accept in a plan. A plan from the network can be valid and still have ε = 32.
    caps: different caps for some attributes.

    >>> import sunzi
    >>> device = Device("device.db", lifetime_epsilon=3, max_epsilon=1)
    >>> plan = sunzi.make_plan("grr", ["yes", "no"], epsilon=1)
    >>> url = "https://collector.example/v1/collections/default/epochs"
    >>> queued = [device.queue(plan, "answer", "yes", f"{url}/{day}") for day in range(1, 6)]
    >>> device.spent("answer")
    Fraction(1, 1)
    >>> device.queue(plan, "answer", "yes", f"{url}/1").is_repeated
    True
    """

    def __init__(
        self,
        path: str | Path,
        lifetime_epsilon: Epsilon,
        *,
        max_epsilon: Epsilon,
        caps: Mapping[str, Epsilon] | None = None,
    ) -> None:
        self.path = Path(path)
        self._cap, self._max_epsilon = parse_epsilon(lifetime_epsilon), parse_epsilon(max_epsilon)
        self._caps = {attribute: parse_epsilon(cap) for attribute, cap in (caps or {}).items()}
        try:
            if not self.path.exists():
                self.path.touch(mode=0o600)  # the key is in it
        except OSError as error:
            raise StoreError(f"cannot create the device file {self.path}: {error.strerror}") from error
        with self._transaction() as connection:
            self._prepare(connection)
            connection.execute("INSERT OR IGNORE INTO device VALUES (1, ?)", (secrets.token_bytes(KEY_BYTES),))
            self._key = self._blob("the key", connection.execute("SELECT key FROM device").fetchone()[0], KEY_BYTES)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the tables, or upgrade older ones. Other programs' files are refused unchanged."""
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        is_unmarked = (mark, version, tables) == (0, 0, _UNMARKED_TABLES)
        if tables and mark != APPLICATION_ID and not is_unmarked:
            raise StoreError(f"{self.path} is an SQLite file, but not a Sunzi device")
        if version > VERSION:
            raise StoreError(f"{self.path} has version {version}; this release supports versions up to {VERSION}")
        if version < VERSION or not tables:
            for statement in ";".join(_UPGRADES[version:] if tables else [_SCHEMA]).split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")

    def client(self, plan: Plan, attribute: str) -> MemoisingClient:
        """A memoising client with this device's key. It does not debit reports: prefer :meth:`queue`."""
        return MemoisingClient(plan, self._key, attribute, max_epsilon=self._max_epsilon)

    def queue(
        self,
        plan: Plan,
        attribute: str,
        value: object,
        destination: str,
        *,
        token: str | None = None,
        groups: Mapping[str, str] | None = None,
        several: bool = False,
    ) -> QueueResult:
        """Make a report, debit its ε, and queue it for an epoch.

        An attribute reports once per epoch: a second call with the same epoch spends and queues nothing, whatever the
        value, and returns ``is_repeated``. The report's id is derived from the device key, the attribute and the
        epoch, so the collector would not count it again either.

        A value that this attribute has already reported under the same plan costs nothing, since its bytes are the
        same; under plans of numbers, ranges, tables and texts, nor does one with the same answer to the question that
        the device keeps. A value outside the domain is reported as "other" if the plan has that, else as a background
        report: sending nothing would reveal it.

        Raises BudgetError if too little ε is left, PrivacyError if the plan's ε exceeds the device's ``max_epsilon``,
        and ParameterError if the plan was loaded without its label file. Then nothing is spent or queued.

        Parameters
        ----------
        plan: the plan of the epoch.
        attribute: what is measured, with the same name in all collections.
        value: a label or index of the plan's domain, a number or date of its range, a record, or any text if the domain
            is open.
        destination: the epoch's URL, :attr:`sunzi.collector.RemoteEpoch.url`; stored in its canonical spelling.
        token: the single-use token to spend, if the collector requires one.
        groups: the user's public groups, such as ``{"country": "DE"}``: at most one value per attribute that the plan
            declares. Nothing protects them.
        several: queue this report under a random id even if the attribute has already reported in this epoch. Such a
            device weighs more than others, and intervals assume one report per device.
        """
        destination = canonical_epoch(destination)
        if token is not None:
            parse_token(token)
        named = ",".join(chosen_groups(plan.groups, groups)) or None
        client = self.client(plan, attribute)
        try:
            index: int | None = plan.domain.index(value)
        except DomainError:
            index = None
        entry = hmac.digest(client.derive(index), b"ledger entry", "sha256")
        identity = secrets.token_bytes(ID_BYTES) if several else client.report_id(destination)
        body = client.report_index(index)
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM reported WHERE id = ?", (identity,)).fetchone():
                return QueueResult(identity, index is None, Fraction(0), is_repeated=True)
            cost = self._debit(connection, attribute, entry, plan.epsilon)
            connection.execute("INSERT INTO reported VALUES (?)", (identity,))
            row = (identity, destination, body, time.time(), plan.fingerprint, token, named)
            connection.execute("INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return QueueResult(identity, index is None, cost)

    def _debit(self, connection: sqlite3.Connection, attribute: str, entry: bytes, epsilon: Fraction) -> Fraction:
        rows = connection.execute("SELECT entry, epsilon FROM debits WHERE attribute = ?", (attribute,)).fetchall()
        if any(known == entry for known, _ in rows):
            return Fraction(0)
        spent, cap = self._sum(text for _, text in rows), self._caps.get(attribute, self._cap)
        if spent + epsilon > cap:
            raise BudgetError(
                f"{attribute!r} has spent epsilon {spent} of {cap} in its lifetime; this report would cost {epsilon}"
            )
        connection.execute("INSERT INTO debits VALUES (?, ?, ?)", (attribute, entry, str(epsilon)))
        return epsilon

    def spent(self, attribute: str) -> Fraction:
        """The ε that an attribute has spent so far."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT epsilon FROM debits WHERE attribute = ?", (attribute,)).fetchall()
        return self._sum(text for (text,) in rows)

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

    def _damage(self, what: str) -> StoreError:
        return StoreError(f"the device file {self.path} is damaged: {what}")

    def _blob(self, name: str, value: object, size: int | None = None) -> bytes:
        if not isinstance(value, bytes) or size not in (None, len(value)):
            raise self._damage(f"{name} is not a blob of {'some' if size is None else size} bytes")
        return value

    def waiting(self) -> list[QueuedReport]:
        """The reports that are not acknowledged yet, oldest first."""
        columns = "id, destination, body, fingerprint, token, groups"
        with self._transaction() as connection:
            rows = connection.execute(f"SELECT {columns} FROM outbox ORDER BY queued_at, id").fetchall()
        return [self._queued(row) for row in rows]

    def _queued(self, row: tuple[object, ...]) -> QueuedReport:
        """A row of the outbox, checked."""
        identity, destination, body, fingerprint, token, named = row
        for name, text in (("the fingerprint", fingerprint), ("the token", token)):
            if text is not None and not (isinstance(text, str) and _DIGEST.fullmatch(text)):
                raise self._damage(f"{name} of a report is {shown(text)}")
        try:
            if not isinstance(destination, str) or (fingerprint and canonical_epoch(destination) != destination):
                raise ParameterError
        except ParameterError:
            raise self._damage(f"the destination of a report is {shown(destination)}") from None
        identity, body = self._blob("the id of a report", identity, ID_BYTES), self._blob("a report", body)
        queued = QueuedReport(identity, destination, body, fingerprint, token)  # type: ignore[arg-type]  # checked above
        return replace(queued, groups=self._named_groups(named))

    def _named_groups(self, named: object) -> dict[str, str]:
        try:
            return {} if named is None else parse_groups(named if isinstance(named, str) else "")
        except ParameterError:
            raise self._damage(f"the groups of a report are {shown(named)}") from None

    def flush(self, upload: Upload | None = None, on_refused: OnRefused | None = None) -> int:
        """Send every queued report to its epoch, and delete the acknowledged ones; return how many these are.

        Parameters
        ----------
        upload: sends one report, by default a :class:`~sunzi.device.Sender`. It returns once the report is
            acknowledged. It raises ReportError if the report is refused for good, which deletes it, and StoreError if
            it may succeed later: then the other reports for this destination wait for the next flush.
        on_refused: called with every report that is refused for good, and the error; by default it is logged as a
            warning of ``sunzi.device``.
        """
        if upload is None:
            with closing(Sender()) as sender:
                return self.flush(sender, on_refused)
        done, waits = 0, set()
        for report in self.waiting():
            if report.destination in waits:
                continue
            is_refused = False
            try:
                upload(report)
                done += 1
            except ReportError as error:
                is_refused = True
                (on_refused or _log_refusal)(report, error)
            except StoreError as error:
                # An unknown token affects only this report, an unknown key the whole destination.
                if report.token is None or not isinstance(error, UnauthorizedError):
                    waits.add(report.destination)
                continue
            with self._transaction() as connection:
                connection.execute("DELETE FROM outbox WHERE id = ?", (report.identity,))
                if is_refused:  # it was not counted, so this epoch may get another report
                    connection.execute("DELETE FROM reported WHERE id = ?", (report.identity,))
        return done

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction on a new connection, so that threads, processes and forks share nothing."""
        try:
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter if a message quotes a damaged schema
            raise StoreError(f"{self.path}: {error}") from error
        finally:
            connection.close()  # rolls back an open transaction


def _log_refusal(report: QueuedReport, error: ReportError) -> None:
    logging.getLogger("sunzi.device").warning("the report for %s is deleted: %s", report.destination, error)


class Sender:
    """Uploads queued reports over HTTP, with one connection per collection.

    Parameters
    ----------
    secret: an upload key; it is sent to every collector that has queued reports.
    patience: for how many seconds to retry temporary failures, per report.

    >>> from sunzi.device import Device
    >>> Device("device.db", lifetime_epsilon=3, max_epsilon=1).flush(Sender(secret="upload-key"))
    0
    """

    def __init__(self, *, secret: str | None = None, patience: float = _PATIENCE_SECONDS) -> None:
        self._secret, self._patience = secret, patience
        self._remotes: dict[str, RemoteCollector] = {}

    def __call__(self, report: QueuedReport) -> str:
        """Send one report; return ``counted`` or ``repeated``, and raise as :meth:`RemoteCollector.upload` does.

        The collector refuses the report if its epoch has another plan.
        """
        if report.fingerprint is None:
            raise StoreError(
                f"the report for {report.destination!r} was queued by a release that did not store its plan; "
                "pass an upload function of your own"
            )
        collection, number = parse_epoch(report.destination)
        if collection not in self._remotes:
            self._remotes[collection] = RemoteCollector(
                collection, max_epsilon=None, secret=self._secret, patience=self._patience
            )
        return self._remotes[collection].send(
            number, report.fingerprint, report.body, report.identity, report.token, report.groups
        )

    def close(self) -> None:
        """Close all connections."""
        for remote in self._remotes.values():
            remote.close()
        self._remotes.clear()
