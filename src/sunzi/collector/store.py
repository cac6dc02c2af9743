"""What a store owes, and the one transaction that makes every report count exactly once.

Guarantees of every store, whatever the moment it is killed at: a deposit's id and its counts are made durable by one
transaction, before :meth:`Store.commit` returns; an id that is there already adds nothing; a closed epoch adds nothing
and forgets its ids, for good. Two processes that write to one store keep all of this; in an SQLite file they need a
version of SQLite that docs/durability.md names.

A tally lies in *pages* of ``page_cells`` counters, so that a commit writes only what it changed. No report is kept:
what reaches a page is the sum of a group of deposits.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice

import numpy as np

from sunzi.collector.records import Deposit, Epoch, Outcome, Shard, check_identities, check_name
from sunzi.errors import StoreError
from sunzi.numerics.counters import Counters

SCHEMA_VERSION = 1

_FULL_PAGE = 500
_THIN_PAGE = 8
_MOST_FULL_PAGES = 1 << 14
_MINUTE = 60
_PIECE = 10_000


def page_cells_for(counters: int) -> int:
    """Counters of a page: 4,000 bytes, or a few where counters by far outnumber what reports will ever touch."""
    return _FULL_PAGE if counters <= _FULL_PAGE * _MOST_FULL_PAGES else _THIN_PAGE


class Store(ABC):
    """Collections, their epochs and tallies, and the ids that were counted in open epochs."""

    shard: Shard

    # What users of a store call.

    @abstractmethod
    def epochs(self) -> list[Epoch]:
        """All epochs, by collection and number."""

    def open_epoch(self, collection: str, plan: bytes, counters: int) -> Epoch:
        """A new epoch of a collection, numbered after its last; ``plan`` is the canonical text of its plan."""
        check_name(collection)
        with self.transaction():
            self._lock_epochs()
            number = 1 + max((epoch.number for epoch in self.epochs() if epoch.collection == collection), default=0)
            key = self._insert_epoch(collection, number, plan, page_cells_for(counters), time.time())
        return next(epoch for epoch in self.epochs() if epoch.key == key)

    def ensure_epoch(self, collection: str, plan: bytes, counters: int) -> Epoch:
        """The newest open epoch of a collection that has this plan; a new one if there is none.

        However many ask for it at the same time, in whatever process, they all get the same one.
        """
        with self.transaction():
            self._lock_epochs()
            known = [epoch for epoch in self.epochs() if epoch.collection == collection]
            same = [epoch for epoch in known if epoch.is_open and epoch.plan == plan]
            return same[-1] if same else self.open_epoch(collection, plan, counters)

    def require_empty(self) -> None:
        """Raise StoreError if there is any epoch; within a transaction, others open none until it ends."""
        with self.transaction():
            self._lock_epochs()
            if self.epochs():
                raise StoreError("a store is copied into an empty one only, this one has epochs already")

    def close_epoch(self, key: int) -> bool:
        """Refuse all further reports of an epoch, and forget its ids and unspent tokens. Closing twice is no error.

        False if some of what is forgotten cannot be wiped yet: the epoch is closed all the same, and :meth:`settle`
        does the rest as soon as it can.
        """
        with self.transaction():
            if self._lock_if_open(key):
                self._mark_closed(key, time.time())
                self._forget(key)
        try:
            return self.settle()
        except StoreError:  # what was asked for is done and durable
            return False

    def commit(self, deposits: Sequence[Deposit]) -> list[Outcome]:
        """Count deposits, all in one durable transaction, and say what became of each, in order.

        If this raises, nothing was counted, or the store cannot tell; sending the same ids again is safe either way.
        """
        self.check_identities([deposit.identity for deposit in deposits])
        outcomes = [Outcome.CLOSED] * len(deposits)
        positions = defaultdict(list)
        for position, deposit in enumerate(deposits):
            positions[deposit.epoch].append(position)
        with self.transaction():
            for key in sorted(positions):  # one order for all writers, so that none waits for another in a circle
                page_cells = self._lock_if_open(key)
                if page_cells:
                    mine = [deposits[position] for position in positions[key]]
                    for position, outcome in zip(positions[key], self._admit(key, mine), strict=True):
                        outcomes[position] = outcome
                    counted = [deposits[at] for at in positions[key] if outcomes[at] is Outcome.COUNTED]
                    self._fold(key, page_cells, counted)
        return outcomes

    def check_identities(self, identities: Sequence[bytes]) -> None:
        """Raise unless every id has 16 bytes and belongs to this store's shard, whatever was asked of its callers.

        That no id is in two shards is what makes adding up their tallies right.
        """
        check_identities(identities)
        foreign = next((identity for identity in identities if not self.shard.takes(identity)), None)
        if foreign is not None:
            raise StoreError(f"the id {foreign.hex()} does not belong to shard {self.shard}; send it to its own")

    def tally(self, key: int, length: int) -> tuple[int, Counters]:
        """The number of reports and the counters of an epoch, of one moment."""
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

    @abstractmethod
    def progress(self, key: int) -> list[tuple[int, int]]:
        """How many reports were counted in each minute, as (seconds since 1970 at its beginning, reports)."""

    def add_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        """Let each of these tokens, named by its SHA-256, be spent once in an open epoch."""
        with self.transaction():
            if not self._lock_if_open(key):
                raise StoreError("this epoch is closed: tokens for it could never be spent")
            self._insert_tokens(key, hashes)

    @abstractmethod
    def identity_count(self, key: int) -> int:
        """How many ids of an epoch are remembered."""

    @abstractmethod
    def identities(self, key: int) -> Iterator[bytes]:
        """All ids that are remembered of an epoch."""

    @abstractmethod
    def tokens(self, key: int) -> Iterator[bytes]:
        """The hashes of an epoch's unspent tokens."""

    @abstractmethod
    def pages(self, key: int) -> Mapping[int, bytes]:
        """All pages of an epoch's tally."""

    def restore_epoch(self, epoch: Epoch, source: Store) -> None:
        """Take over an epoch of another store as it is, ids and all; the caller keeps both stores still meanwhile."""
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

    @abstractmethod
    def settle(self) -> bool:
        """Bring what is durable already into its final place, and wipe the way it took there and what was forgotten.

        False if that cannot be finished now, because somebody still reads: ask again later.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise StoreError unless the store can be written to now: something small is written, durably."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store. Nothing durable is waiting: there is nothing to lose."""

    # What a store must be able to do within a transaction.

    @abstractmethod
    def transaction(self, *, reading: bool = False) -> AbstractContextManager[None]:
        """All of the block or nothing of it, durable at its end; a reading one sees a single moment."""

    @abstractmethod
    def _insert_epoch(self, collection: str, number: int, plan: bytes, page_cells: int, opened_at: float) -> int:
        """A new epoch's key."""

    @abstractmethod
    def _lock_epochs(self) -> None:
        """Keep others from opening epochs until the transaction ends."""

    @abstractmethod
    def _lock_if_open(self, key: int) -> int:
        """Keep others from writing to this epoch until the transaction ends; its page size, or 0 if it is closed."""

    @abstractmethod
    def _mark_closed(self, key: int, closed_at: float) -> None: ...

    @abstractmethod
    def _forget(self, key: int) -> None:
        """Remove a closed epoch's ids and tokens; what cannot be removed at once is left to :meth:`settle`."""

    @abstractmethod
    def _insert_identities(self, key: int, identities: Sequence[bytes]) -> set[bytes]:
        """Remember distinct ids; return those that were new."""

    def _restore_identities(self, key: int, identities: Iterator[bytes]) -> None:
        """Remember all ids of another store, however many they are, in an epoch that has none."""
        for piece in _pieces(identities):
            self._insert_identities(key, piece)

    @abstractmethod
    def _remove_identities(self, key: int, identities: Sequence[bytes]) -> None: ...

    @abstractmethod
    def _insert_tokens(self, key: int, hashes: Iterable[bytes]) -> None: ...

    @abstractmethod
    def _spend_tokens(self, key: int, hashes: Sequence[bytes]) -> set[bytes]:
        """Remove distinct tokens; return those that were there."""

    @abstractmethod
    def _read_pages(self, key: int, pages: Sequence[int]) -> Mapping[int, bytes]:
        """Those of the pages that exist."""

    @abstractmethod
    def _write_pages(self, key: int, pages: Mapping[int, bytes]) -> None: ...

    @abstractmethod
    def _add_reports(self, key: int, reports: int, minute: int) -> None: ...

    # The transaction itself, the same for every store.

    def _admit(self, key: int, deposits: Sequence[Deposit]) -> list[Outcome]:
        """Decide on the deposits of one open epoch. Of equal ids the first decides; a token is spent by the first."""
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
        """The ids of those deposits whose token is unknown or spent."""
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


def _pieces(identities: Iterator[bytes]) -> Iterator[list[bytes]]:
    while piece := list(islice(identities, _PIECE)):
        yield piece
