"""The store interface, and the transaction that counts every report exactly once.

Guarantees of every store, even if the process is killed at any moment:

- One transaction makes a deposit's id and its counts durable before :meth:`Store.commit` returns.
- A known id adds nothing.
- A closed epoch adds nothing, and its ids are deleted for good.

They also hold for several processes on one store; for SQLite, docs/durability.md names the required version.

A tally is stored in *pages* of ``page_cells`` counters, so that a commit writes only the pages it changed. No report is
stored: a page holds the sum of a group of deposits.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, ClassVar, Generic, LiteralString, Protocol, TypeVar

import numpy as np

from sunzi.collector.epochs import Deposit, Epoch, Outcome, Shard, check_identities, check_name
from sunzi.errors import StoreError
from sunzi.numerics.counters import Counters

SCHEMA_VERSION = 1

_FULL_PAGE = 500
_SMALL_PAGE = 8
_MAX_FULL_PAGES = 1 << 14
_MINUTE = 60
_CHUNK = 10_000


class Closable(Protocol):
    """A connection that can be closed."""

    def close(self) -> None:
        """Close the connection."""


Connection = TypeVar("Connection", bound=Closable)


class ThreadConnections(Generic[Connection]):
    """One database connection per thread, so that threads do not share transactions.

    Connections open on first use; those of finished threads are closed when another thread connects.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._open: dict[threading.Thread, Connection] = {}
        self._lock = threading.Lock()
        self._closed = False

    def get(self) -> Connection:
        """This thread's connection."""
        thread = threading.current_thread()
        connection = self._open.get(thread)
        if connection is None:
            if self._closed:
                raise StoreError("the store is closed")
            connection = self._connect()
            with self._lock:
                for finished in [other for other in self._open if not other.is_alive()]:
                    self._open.pop(finished).close()
                self._open[thread] = connection
        return connection

    def drop(self) -> None:
        """Close this thread's connection; the next :meth:`get` opens a new one."""
        with self._lock:
            connection = self._open.pop(threading.current_thread(), None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connections of all threads, for good."""
        with self._lock:
            self._closed = True
            for connection in self._open.values():
                connection.close()
            self._open.clear()


class Store(ABC):
    """Collections, their epochs and tallies, and the ids counted in open epochs.

    A subclass names its database, runs statements, and implements those that differ between databases.
    """

    shard: Shard
    label: str
    """The store's name in error messages, without secrets."""

    _connections: ThreadConnections[Any]
    _ROW_LOCK: ClassVar[LiteralString] = ""
    """Appended to a SELECT to lock its rows, where a transaction does not lock the whole database."""

    # What users of a store call.

    def epochs(self) -> list[Epoch]:
        """All epochs, sorted by collection and number."""
        rows = self._execute(
            "SELECT key, collection, number, plan, page_cells, reports, opened_at, closed_at FROM epochs"
        )
        return sorted((Epoch(*row) for row in rows), key=lambda epoch: (epoch.collection, epoch.number))

    def open_epoch(self, collection: str, plan: bytes, counters: int) -> Epoch:
        """Open a new epoch, numbered after the collection's last.

        Parameters
        ----------
        collection: the collection's name.
        plan: the plan's canonical JSON.
        counters: the length of the plan's tally.
        """
        check_name(collection)
        with self.transaction():
            self._lock_epochs()
            number = 1 + max((epoch.number for epoch in self.epochs() if epoch.collection == collection), default=0)
            page_cells = _SMALL_PAGE if counters > _FULL_PAGE * _MAX_FULL_PAGES else _FULL_PAGE
            key = self._insert_epoch(collection, number, plan, page_cells, time.time())
            return next(epoch for epoch in self.epochs() if epoch.key == key)

    def ensure_epoch(self, collection: str, plan: bytes, counters: int) -> Epoch:
        """Return the newest open epoch with this plan, or open one. Concurrent callers get the same epoch."""
        with self.transaction():
            self._lock_epochs()
            known = [epoch for epoch in self.epochs() if epoch.collection == collection]
            same = [epoch for epoch in known if epoch.is_open and epoch.plan == plan]
            return same[-1] if same else self.open_epoch(collection, plan, counters)

    def require_empty(self) -> None:
        """Raise StoreError if there is any epoch. Within a transaction, no other process can open one until it ends."""
        with self.transaction():
            self._lock_epochs()
            if self.epochs():
                raise StoreError(f"{self.label} has epochs already; copy into an empty store")

    def close_epoch(self, key: int) -> bool:
        """Close an epoch: refuse further reports, and delete its ids and unspent tokens. Closing twice is no error.

        Returns False if some deleted data cannot be wiped yet; :meth:`settle` wipes it later.
        """
        with self.transaction():
            if self._lock_if_open(key):
                self._mark_closed(key, time.time())
                self._forget(key)
        try:
            return self.settle()
        except StoreError:  # the epoch is durably closed
            return False

    def commit(self, deposits: Sequence[Deposit]) -> list[Outcome]:
        """Count deposits in one durable transaction and return their outcomes, in order.

        If this raises, nothing was counted or the store cannot tell; it is safe to send the same ids again.
        """
        self.check_identities([deposit.identity for deposit in deposits])
        outcomes = [Outcome.CLOSED] * len(deposits)
        positions = defaultdict(list)
        for position, deposit in enumerate(deposits):
            positions[deposit.epoch].append(position)
        with self.transaction():
            for key in sorted(positions):  # every writer locks in the same order, which prevents deadlocks
                page_cells = self._lock_if_open(key)
                if page_cells:
                    mine = [deposits[position] for position in positions[key]]
                    for position, outcome in zip(positions[key], self._admit(key, mine), strict=True):
                        outcomes[position] = outcome
                    counted = [deposits[at] for at in positions[key] if outcomes[at] is Outcome.COUNTED]
                    self._fold(key, page_cells, counted)
        return outcomes

    def check_identities(self, identities: Sequence[bytes]) -> None:
        """Raise unless every id has 16 bytes and belongs to this store's shard.

        Adding up the tallies of shards is correct only if no id is in two of them.
        """
        check_identities(identities)
        foreign = next((identity for identity in identities if not self.shard.takes(identity)), None)
        if foreign is not None:
            raise StoreError(f"the id {foreign.hex()} does not belong to shard {self.shard}; send it to its own shard")

    def tally(self, key: int, length: int) -> tuple[int, Counters]:
        """An epoch's number of reports and its counters, read in one transaction."""
        with self.transaction(reading=True):
            epoch = next((epoch for epoch in self.epochs() if epoch.key == key), None)
            if epoch is None:
                raise StoreError(f"there is no epoch with the key {key}")
            pages = self.pages(key)
        if not pages:
            return epoch.reports, Counters.zeros(length)
        numbers = np.array(sorted(pages), dtype=np.int64)
        values = np.frombuffer(b"".join(pages[page] for page in numbers.tolist()), dtype="<i8").astype(np.int64)
        cells = (numbers[:, np.newaxis] * epoch.page_cells + np.arange(epoch.page_cells)).reshape(-1)
        filled = np.flatnonzero(values)
        return epoch.reports, Counters(length, cells[filled], values[filled])

    def progress(self, key: int) -> list[tuple[int, int]]:
        """Reports per minute, as (start of the minute in seconds since 1970, reports)."""
        return self._execute("SELECT minute, reports FROM progress WHERE epoch = ? ORDER BY minute", (key,))

    def add_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        """Add single-use tokens, as SHA-256 hashes, to an open epoch."""
        with self.transaction():
            if not self._lock_if_open(key):
                raise StoreError("this epoch is closed, so its tokens could never be spent")
            self._insert_tokens(key, hashes)

    def identity_count(self, key: int) -> int:
        """The number of ids stored for an epoch; 0 once it is closed."""
        with self.transaction(reading=True):
            if not self._has_identities(key):
                return 0
            return int(self._execute(f"SELECT count(*) FROM {identity_table(key)}")[0][0])

    def identities(self, key: int) -> Iterator[bytes]:
        """All ids stored for an epoch."""
        with self.transaction(reading=True):
            if self._has_identities(key):
                yield from self._stream(f"SELECT id FROM {identity_table(key)}")

    def tokens(self, key: int) -> Iterator[bytes]:
        """The hashes of an epoch's unspent tokens."""
        with self.transaction(reading=True):
            yield from self._stream(f"SELECT hash FROM tokens WHERE epoch = {key:d}")

    def restore_epoch(self, epoch: Epoch, source: Store) -> None:
        """Copy an epoch with its ids from another store. The caller holds a transaction on both stores."""
        with self.transaction():
            key = self._insert_epoch(epoch.collection, epoch.number, epoch.plan, epoch.page_cells, epoch.opened_at)
            self._write_pages(key, source.pages(epoch.key))
            for minute, reports in source.progress(epoch.key):
                self._add_reports(key, reports, minute)
            self._restore_identities(key, source.identities(epoch.key))
            self._insert_tokens(key, source.tokens(epoch.key))
            if epoch.closed_at is not None:
                self._mark_closed(key, epoch.closed_at)
                self._forget(key)

    def close(self) -> None:
        """Close the connections of all threads. Everything committed is already durable."""
        self._connections.close()

    @abstractmethod
    def pages(self, key: int) -> Mapping[int, bytes]:
        """All pages of an epoch's tally."""

    @abstractmethod
    def settle(self) -> bool:
        """Wipe deleted ids and earlier versions of pages.

        Returns False if a reader prevents that now: call it again later.
        """

    @abstractmethod
    def check(self) -> None:
        """Write a small setting durably; raise StoreError if the store cannot be written to."""

    @abstractmethod
    def transaction(self, *, reading: bool = False) -> AbstractContextManager[None]:
        """Run the block as one durable transaction; with ``reading``, on one consistent snapshot.

        A nested transaction is part of the outer one, and must not write if that one is reading.
        """

    # What a database must implement; all of it runs within a transaction.

    @abstractmethod
    def _execute(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Run a statement with ``?`` placeholders and return its rows; database errors become StoreError."""

    @abstractmethod
    def _stream(self, query: str) -> Iterator[bytes]:
        """The single column of a query, fetched in chunks."""

    @abstractmethod
    def _prepare(self, shard: Shard | None) -> None:
        """Create the schema, or upgrade an older one."""

    @abstractmethod
    def _lock_epochs(self) -> None:
        """Keep others from opening epochs until the transaction ends."""

    @abstractmethod
    def _create_identities(self, key: int) -> None:
        """Create an epoch's own table of ids, which can be dropped at once."""

    @abstractmethod
    def _has_identities(self, key: int) -> bool:
        """Whether an epoch's table of ids exists."""

    @abstractmethod
    def _forget(self, key: int) -> None:
        """Delete a closed epoch's ids and tokens; what is in use is left to :meth:`settle`."""

    @abstractmethod
    def _insert_identities(self, key: int, identities: Sequence[bytes]) -> set[bytes]:
        """Insert distinct ids; return the new ones."""

    @abstractmethod
    def _remove_identities(self, key: int, identities: Sequence[bytes]) -> None: ...

    @abstractmethod
    def _insert_tokens(self, key: int, hashes: Iterable[bytes]) -> None: ...

    @abstractmethod
    def _spend_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        """Delete distinct tokens; return those that existed."""

    @abstractmethod
    def _read_pages(self, key: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        """Those of the pages that exist."""

    @abstractmethod
    def _write_pages(self, key: int, pages: Mapping[int, bytes]) -> None: ...

    # Shared by all databases.

    def _start(self, shard: Shard | None) -> None:
        """Prepare the schema and check the shard; close the store if that fails."""
        try:
            with self.transaction():
                self._prepare(shard)
            self.shard = Shard.parse(self._setting("shard"))
            if shard not in (None, self.shard):
                raise StoreError(f"{self.label} belongs to shard {self.shard}, not to {shard}")
        except BaseException:
            self.close()
            raise

    def _setting(self, name: str) -> str:
        rows = self._execute("SELECT value FROM settings WHERE name = ?", (name,))
        if not rows:
            raise StoreError(f"{self.label} is damaged: the setting {name!r} is missing")
        return str(rows[0][0])

    def _insert_epoch(self, collection: str, number: int, plan: bytes, page_cells: int, opened_at: float) -> int:
        self._execute(
            "INSERT INTO epochs (collection, number, plan, page_cells, opened_at) VALUES (?, ?, ?, ?, ?)",
            (collection, number, plan, page_cells, opened_at),
        )
        rows = self._execute("SELECT key FROM epochs WHERE collection = ? AND number = ?", (collection, number))
        key = int(rows[0][0])
        self._create_identities(key)
        return key

    def _lock_if_open(self, key: int) -> int:
        """Keep others from writing to this epoch until the transaction ends. Returns its page size, 0 if closed."""
        query = "SELECT page_cells FROM epochs WHERE key = ? AND closed_at IS NULL" + self._ROW_LOCK
        rows = self._execute(query, (key,))
        return int(rows[0][0]) if rows else 0

    def _mark_closed(self, key: int, closed_at: float) -> None:
        self._execute("UPDATE epochs SET closed_at = ? WHERE key = ?", (closed_at, key))

    def _restore_identities(self, key: int, identities: Iterator[bytes]) -> None:
        """Insert the ids of another store into an epoch that has none."""
        while chunk := list(islice(identities, _CHUNK)):
            self._insert_identities(key, chunk)

    def _add_reports(self, key: int, reports: int, minute: int) -> None:
        self._execute("UPDATE epochs SET reports = reports + ? WHERE key = ?", (reports, key))
        self._execute(
            "INSERT INTO progress VALUES (?, ?, ?)"
            " ON CONFLICT (epoch, minute) DO UPDATE SET reports = progress.reports + excluded.reports",
            (key, minute, reports),
        )

    def _admit(self, key: int, deposits: Sequence[Deposit]) -> list[Outcome]:
        """Decide the outcomes in one open epoch. The first of equal ids counts; the first user of a token spends it."""
        first: dict[bytes, Deposit] = {}
        for deposit in deposits:
            first.setdefault(deposit.identity, deposit)
        fresh = self._insert_identities(key, list(first))
        refused = self._refused_tokens(key, [first[identity] for identity in first if identity in fresh])
        if refused:
            self._remove_identities(key, sorted(refused))
        outcomes = []
        for deposit in deposits:
            if deposit.identity in refused:
                outcomes.append(Outcome.TOKEN_REFUSED)
            else:
                outcomes.append(Outcome.COUNTED if deposit.identity in fresh else Outcome.REPEATED)
                fresh.discard(deposit.identity)
        return outcomes

    def _refused_tokens(self, key: int, deposits: Sequence[Deposit]) -> set[bytes]:
        """The ids of the deposits whose token is unknown or spent."""
        claims: dict[bytes, bytes] = {}
        for deposit in deposits:
            if deposit.token is not None:
                claims.setdefault(deposit.token, deposit.identity)
        if not claims:
            return set()
        spent = self._spend_tokens(key, list(claims))
        entitled = {claims[token] for token in spent}
        return {d.identity for d in deposits if d.token is not None and d.identity not in entitled}

    def _fold(self, key: int, page_cells: int, deposits: Sequence[Deposit]) -> None:
        """Add deposits to the tally's pages."""
        if not deposits:
            return
        cells = np.concatenate([deposit.cells for deposit in deposits])
        pages, rows = np.unique(cells // page_cells, return_inverse=True)
        stored = self._read_pages(key, pages.tolist())
        counts = np.zeros((pages.size, page_cells), dtype=np.int64)
        for row, page in enumerate(pages.tolist()):
            if page in stored:
                counts[row] = np.frombuffer(stored[page], dtype="<i8")
        np.add.at(counts, (rows, cells % page_cells), np.concatenate([deposit.counts for deposit in deposits]))
        written = counts.astype("<i8", copy=False)
        self._write_pages(key, {page: written[row].tobytes() for row, page in enumerate(pages.tolist())})
        minute = int(time.time()) // _MINUTE * _MINUTE
        self._add_reports(key, sum(deposit.reports for deposit in deposits), minute)


def identity_table(key: int) -> str:
    """The name of an epoch's table of ids."""
    return f"identities_{key:d}"
