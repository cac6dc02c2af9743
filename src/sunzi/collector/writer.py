"""Group commit: one thread writes all waiting deposits in one transaction, then starts the next.

A single deposit is written at once; under load, one disk flush serves hundreds. Guarantees: an outcome is delivered
only after its transaction is durable; at most ``limit`` deposits of ``limit_bytes`` in total wait, and further ones
are refused.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sunzi.client.errors import StoreError
from sunzi.collector.epochs import Deposit, Outcome
from sunzi.collector.store import Store

Result = Outcome | StoreError
Ticket = TypeVar("Ticket")

_log = logging.getLogger(__name__)

_LARGEST_GROUP = 4096
# Larger deposits are committed in separate groups of a megabyte, so that small ones never wait for many of them.
_LARGE_DEPOSIT = 1 << 16
_GROUP_BYTES = 1 << 20
# If the last group was large, more deposits are on their way: waiting briefly saves flushes.
_LARGE_GROUP = 4
_GATHER_SECONDS = 0.004
_SETTLE_SECONDS = 5.0
# After a failed commit, wait this long before reporting ready again: only another commit shows whether the store works.
_FAILING_SECONDS = 10.0
_STUCK_SECONDS = 10.0


class OverloadError(StoreError):
    """Too many deposits are waiting: send it again later.

    >>> issubclass(OverloadError, StoreError)
    True
    """


@dataclass
class WriterCounts:
    """What a writer has done since it started, for metrics."""

    groups: int = 0
    deposits: int = 0
    failures: int = 0
    seconds: float = 0.0
    """The time that commits took, also those that failed."""
    largest_group: int = 0


class Writer(Generic[Ticket]):
    """Commits deposits to a store on its own thread. :meth:`submit` may be called from any thread.

    The store is settled at the start, ``settle_seconds`` after a commit, and on :meth:`settle`; if a reader prevents
    that, it is retried. So the log does not keep traces of small groups for long.

    Parameters
    ----------
    store: the store.
    deliver: called on the writer's thread once per group, with each deposit's ticket and its outcome or error.
    limit: the number of deposits that may wait.
    limit_bytes: their total size; a single deposit may be larger.
    settle_seconds: the delay between a commit and settling.
    """

    def __init__(
        self,
        store: Store,
        deliver: Callable[[list[tuple[Ticket, Result]]], None],
        limit: int = 10_000,
        limit_bytes: int = 128 << 20,
        settle_seconds: float = _SETTLE_SECONDS,
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._settle_seconds = settle_seconds
        self._settle_at: float | None = time.monotonic()  # a killed collector may have left its log behind
        self._small: deque[tuple[Deposit, Ticket]] = deque()
        self._large: deque[tuple[Deposit, Ticket]] = deque()
        self._turn_of_large = False
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._ending = False
        self._is_busy = False
        self._failed_at: float | None = None
        self._busy_since: float | None = None
        self.counts = WriterCounts()
        self._thread = threading.Thread(target=self._run, name="sunzi-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of deposits that are not in a transaction yet."""
        return len(self._small) + len(self._large)

    @property
    def is_alive(self) -> bool:
        """Whether submitted deposits will be processed."""
        return self._thread.is_alive() and not self._ending

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed, within the last ten seconds."""
        failed_at = self._failed_at
        return failed_at is not None and time.monotonic() < failed_at + _FAILING_SECONDS

    @property
    def is_stuck(self) -> bool:
        """Whether the store has been working on one commit for more than ten seconds."""
        since = self._busy_since
        return since is not None and time.monotonic() > since + _STUCK_SECONDS

    def submit(self, deposit: Deposit, ticket: Ticket) -> None:
        """Queue a deposit; its result is delivered with the ticket.

        Invalid ids are refused here, so that they cannot fail a group with other deposits.
        """
        self._store.check_identities([deposit.identity])
        with self._changed:
            if self._ending:
                raise OverloadError("the collector is stopping; send it again later")
            if self.is_stuck:
                raise OverloadError("the store does not answer; send it again later")
            if self.waiting >= self._limit:
                raise OverloadError(f"{self._limit} deposits are waiting already; send it again later")
            if self.waiting and self._waiting_bytes + deposit.size > self._limit_bytes:
                raise OverloadError(f"{self._waiting_bytes} bytes are waiting already; send it again later")
            (self._large if deposit.size > _LARGE_DEPOSIT else self._small).append((deposit, ticket))
            self._waiting_bytes += deposit.size
            self._changed.notify()

    def settle(self) -> None:
        """Settle the store soon, because an epoch was closed while a reader may have kept its ids."""
        with self._changed:
            self._settle_at = time.monotonic()
            self._changed.notify()

    def close(self, seconds: float | None = None) -> None:
        """Commit all waiting deposits, then stop; new ones are refused.

        Parameters
        ----------
        seconds: how long to wait for a store that does not answer. The deposits that it has not committed by then are
            not acknowledged, so their clients send them again.
        """
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(seconds)
        if self._thread.is_alive():
            _log.error("the store did not answer for %g s; %d deposits still wait", seconds, self.waiting)

    def _run(self) -> None:
        while True:
            group = self._next_group()
            if group:
                self._busy_since = time.monotonic()
                results = self._commit([deposit for deposit, _ in group])
                self.counts.seconds += time.monotonic() - self._busy_since
                self._busy_since = None
                self._answer([ticket for _, ticket in group], results)
                self._settle_at = self._settle_at or time.monotonic() + self._settle_seconds
            if self._is_time_to_settle():
                self._settle()
            if self._ending and not self.waiting:
                return

    def _is_time_to_settle(self) -> bool:
        return self._settle_at is not None and (self._ending or time.monotonic() >= self._settle_at)

    def _next_group(self) -> list[tuple[Deposit, Ticket]]:
        """Wait for deposits and return them; empty when it is time to settle or to stop."""
        with self._changed:
            while not (self.waiting or self._ending or self._is_time_to_settle()):
                self._changed.wait(None if self._settle_at is None else self._settle_at - time.monotonic())
        if self._is_busy and not self._ending:
            time.sleep(_GATHER_SECONDS)
        with self._changed:
            group = self._take_group()
        self._is_busy = len(group) >= _LARGE_GROUP
        return group

    def _take_group(self) -> list[tuple[Deposit, Ticket]]:
        """The next deposits, small and large ones in turn."""
        group: list[tuple[Deposit, Ticket]] = []
        size, is_large = 0, bool(self._large) and (self._turn_of_large or not self._small)
        queue, self._turn_of_large = self._large if is_large else self._small, not is_large
        while queue and len(group) < _LARGEST_GROUP and size < _GROUP_BYTES:
            group.append(queue.popleft())
            size += group[-1][0].size
        self._waiting_bytes -= size
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
        except Exception as error:  # report any error to the waiting clients, and keep the thread running
            _log.exception("unexpected error in the store")
            failure = StoreError(f"the store failed: {type(error).__name__}")
        self.counts.failures += 1
        self._failed_at = time.monotonic()
        return [failure] * len(deposits)

    def _answer(self, tickets: Sequence[Ticket], results: Sequence[Result]) -> None:
        try:
            self._deliver(list(zip(tickets, results, strict=True)))
        except Exception:  # clients without an answer send again; keep the thread running
            self.counts.failures += 1
            _log.exception("the results of %d deposits could not be delivered", len(tickets))

    def _settle(self) -> None:
        self._settle_at = None  # requests from now on are for the next time
        try:
            settled = self._store.settle()
        except Exception:  # everything is durable already; retry later
            settled = False
        if not settled:
            self._settle_at = time.monotonic() + self._settle_seconds
