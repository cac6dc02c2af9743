"""A connection for every thread, opened when it is first needed and closed when its thread is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from sunzi.errors import StoreError


class Closable(Protocol):
    """Whatever can be closed."""

    def close(self) -> None:
        """Let go of it."""


Connection = TypeVar("Connection", bound=Closable)


class ThreadConnections(Generic[Connection]):
    """Hands every thread a connection of its own, so that no transaction of one is seen by another.

    However many threads come and go, there are never more connections than threads that live.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._open: dict[threading.Thread, Connection] = {}
        self._lock = threading.Lock()
        self._ended = False

    def get(self) -> Connection:
        """This thread's connection."""
        thread = threading.current_thread()
        connection = self._open.get(thread)
        if connection is None:
            if self._ended:
                raise StoreError("the store is closed")
            connection = self._connect()
            with self._lock:
                for gone in [other for other in self._open if not other.is_alive()]:
                    self._open.pop(gone).close()
                self._open[thread] = connection
        return connection

    def drop(self) -> None:
        """Close this thread's connection; it gets a new one when it asks again."""
        with self._lock:
            connection = self._open.pop(threading.current_thread(), None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connections of all threads, for good."""
        with self._lock:
            self._ended = True
            for connection in self._open.values():
                connection.close()
            self._open.clear()
