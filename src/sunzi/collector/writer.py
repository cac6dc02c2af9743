"""Group commit: one thread writes, and everything that waits when it is free goes into its next transaction.

So a lone deposit is written at once, and under load one flush of the disk serves hundreds. Guarantees: an outcome is
given only after its transaction is durable; at most ``limit`` deposits wait, and the next is refused rather than kept.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sunzi.collector.epochs import Deposit, Outcome
from sunzi.collector.store import Store
from sunzi.errors import StoreError

Result = Outcome | StoreError
Ticket = TypeVar("Ticket")

_log = logging.getLogger(__name__)

_LARGEST_GROUP = 4096
# Where several came together last time, others are on their way: a moment's patience saves flushes and the work around.
_CROWD = 4
_GATHER_SECONDS = 0.004
_SETTLE_SECONDS = 5.0
# After a commit has failed, nobody may come to try another; then only an attempt can tell whether the trouble is over.
_TROUBLE_SECONDS = 10.0


class OverloadError(StoreError):
    """More deposits wait than the writer takes: send it again later."""


@dataclass
class WriterCounts:
    """What a writer has done since it began, for metrics."""

    groups: int = 0
    deposits: int = 0
    failures: int = 0
    largest_group: int = 0


class Writer(Generic[Ticket]):
    """Owns the writing to a store. :meth:`submit` may be called from any thread.

    ``deliver`` is called in the writer's thread once a group, with the ticket and the result of each deposit: its
    outcome, or the error that prevented one. The log of the store is emptied at the beginning, and ``settle_seconds``
    after a commit, when :meth:`settle` asks for it, or as soon as nobody reads from it any more, so that no trace of a
    small group outlives it by long.
    """

    def __init__(
        self,
        store: Store,
        deliver: Callable[[list[tuple[Ticket, Result]]], None],
        limit: int = 10_000,
        settle_seconds: float = _SETTLE_SECONDS,
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._limit = limit
        self._settle_seconds = settle_seconds
        self._settle_at: float | None = time.monotonic()  # a collector that was killed may have left its log behind
        self._waiting: deque[tuple[Deposit, Ticket]] = deque()
        self._changed = threading.Condition()
        self._ending = False
        self._crowded = False
        self._failed_at: float | None = None
        self.counts = WriterCounts()
        self._thread = threading.Thread(target=self._run, name="sunzi-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Deposits that no transaction has taken up yet."""
        return len(self._waiting)

    @property
    def is_alive(self) -> bool:
        """Whether anything that is submitted will be answered."""
        return self._thread.is_alive() and not self._ending

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed, within the last ten seconds."""
        failed_at = self._failed_at
        return failed_at is not None and time.monotonic() < failed_at + _TROUBLE_SECONDS

    def submit(self, deposit: Deposit, ticket: Ticket) -> None:
        """Have a deposit counted; the ticket names it when its result is delivered.

        An id that the store would not take is refused here, so that nobody else's deposit fails with it.
        """
        self._store.check_identities([deposit.identity])
        with self._changed:
            if self._ending:
                raise OverloadError("the collector is stopping; send it again later")
            if len(self._waiting) >= self._limit:
                raise OverloadError(f"{self._limit} deposits are waiting already; send it again later")
            self._waiting.append((deposit, ticket))
            self._changed.notify()

    def settle(self) -> None:
        """Have the store settled soon: an epoch was closed, and somebody who read may have kept its ids from going."""
        with self._changed:
            self._settle_at = time.monotonic()
            self._changed.notify()

    def close(self) -> None:
        """Count what is waiting, then end. Nothing more is taken."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            group = self._next_group()
            if group:
                self._answer([ticket for _, ticket in group], self._commit([deposit for deposit, _ in group]))
                self._settle_at = self._settle_at or time.monotonic() + self._settle_seconds
            if self._is_time_to_settle():
                self._settle()
            if self._ending and not self._waiting:
                return

    def _is_time_to_settle(self) -> bool:
        return self._settle_at is not None and (self._ending or time.monotonic() >= self._settle_at)

    def _next_group(self) -> list[tuple[Deposit, Ticket]]:
        """All that waits, as soon as anything does; nothing when it is time to settle or to end."""
        with self._changed:
            while not (self._waiting or self._ending or self._is_time_to_settle()):
                self._changed.wait(None if self._settle_at is None else self._settle_at - time.monotonic())
        if self._crowded and not self._ending:
            time.sleep(_GATHER_SECONDS)
        with self._changed:
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), _LARGEST_GROUP))]
        self._crowded = len(group) >= _CROWD
        return group

    def _commit(self, deposits: Sequence[Deposit]) -> Sequence[Result]:
        self.counts.groups += 1
        self.counts.deposits += len(deposits)
        self.counts.largest_group = max(self.counts.largest_group, len(deposits))
        try:
            outcomes = self._store.commit(deposits)
            self._failed_at = None
            return outcomes
        except StoreError as error:
            failure = error
        except Exception as error:  # whatever it is, those who wait must be told, and the thread must live
            _log.exception("the store failed in an unforeseen way")
            failure = StoreError(f"the store failed: {type(error).__name__}")
        self.counts.failures += 1
        self._failed_at = time.monotonic()
        return [failure] * len(deposits)

    def _answer(self, tickets: Sequence[Ticket], results: Sequence[Result]) -> None:
        try:
            self._deliver(list(zip(tickets, results, strict=True)))
        except Exception:  # who does not hear of it sends it again; the thread must live for all others
            self.counts.failures += 1
            _log.exception("the results of %d deposits could not be delivered", len(tickets))

    def _settle(self) -> None:
        self._settle_at = None  # what is asked for from now on is for another time
        try:
            settled = self._store.settle()
        except Exception:  # it is durable as it is, and there is a next time
            settled = False
        if not settled:
            self._settle_at = time.monotonic() + self._settle_seconds
