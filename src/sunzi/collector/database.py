"""The interface to a database: connections, transactions, and the statements that differ between databases.

:mod:`sunzi.collector.store` builds the store on it, with all that databases share.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, LiteralString, Protocol, TypeVar

from sunzi.client.errors import ParameterError, StoreError
from sunzi.collector.epochs import Shard
from sunzi.collector.rows import RowReader

SCHEMA_VERSION = 3


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


class Database(ABC):
    """Runs a store's statements. A subclass names its database and implements what differs between databases."""

    shard: Shard
    label: str
    """The store's name in error messages, without secrets."""

    _connections: ThreadConnections[Any]
    _rows: RowReader
    _ROW_LOCK: ClassVar[LiteralString] = ""
    """Appended to a SELECT to lock its rows, where a transaction does not lock the whole database."""

    def close(self) -> None:
        """Close the connections of all threads. Everything committed is already durable."""
        self._connections.close()

    @abstractmethod
    def claim(self) -> None:
        """Keep other collectors from using this store until it is closed, if it cannot be shared.

        Raises StoreError if another one uses it.
        """

    @abstractmethod
    def pages(self, contribution: int) -> Mapping[int, bytes]:
        """All pages of a contribution, by its key."""

    @abstractmethod
    def settle(self) -> bool:
        """Wipe deleted ids and earlier versions of pages.

        Returns False if a reader prevents that now: call it again later.
        """

    @abstractmethod
    def check(self) -> None:
        """Write a small setting durably; raise StoreError if the store cannot be written to."""

    @abstractmethod
    def size(self) -> int:
        """The bytes that the store takes on disk."""

    @abstractmethod
    def transaction(self, *, reading: bool = False) -> AbstractContextManager[None]:
        """Run the block as one durable transaction; with ``reading``, on one consistent snapshot.

        A nested transaction is part of the outer one, and must not write if that one is reading.
        """

    # All of the following runs within a transaction.

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
    def lock_epochs(self) -> None:
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
    def _read_pages(self, contribution: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        """The given pages that exist."""

    @abstractmethod
    def _write_pages(self, contribution: int, pages: Mapping[int, bytes]) -> None: ...

    def _start(self, shard: Shard | None) -> None:
        """Prepare the schema and check the shard; close the store if that fails."""
        self._rows = RowReader(self.label)
        try:
            with self.transaction():
                self._prepare(shard)
            self.shard = self._stored_shard()
            if shard not in (None, self.shard):
                raise StoreError(f"{self.label} belongs to shard {self.shard}, not to {shard}")
        except BaseException:
            self.close()
            raise

    def _setting(self, name: str) -> str:
        rows = self._execute("SELECT value FROM settings WHERE name = ?", (name,))
        if not rows or type(rows[0][0]) is not str:
            raise self._rows.damage(f"the setting {name!r} is missing")
        return str(rows[0][0])

    def _stored_shard(self) -> Shard:
        try:
            return Shard.parse(self._setting("shard"))
        except ParameterError as error:
            raise self._rows.damage(str(error)) from None


def identity_table(key: int) -> str:
    """The name of an epoch's table of ids."""
    return f"identities_{key:d}"
