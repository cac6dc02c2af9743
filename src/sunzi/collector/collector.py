"""The collector without its network: collections, their epochs brought to life, and what uploads become.

The plan of an epoch never changes; a new plan is a new epoch. A report names its epoch, so that one which arrives after
the closing is refused, never counted in the next.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from dataclasses import dataclass

from sunzi.collector.epochs import ID_BYTES, TOKEN_BYTES, Deposit, Epoch
from sunzi.collector.store import Store
from sunzi.collector.stores import find_epoch, stored_tally
from sunzi.errors import DomainError, ParameterError, ReportError, StoreError
from sunzi.estimate import Estimate
from sunzi.plan import Plan
from sunzi.tally import Tally
from sunzi.wire import is_batch


class UnknownEpochError(StoreError):
    """There is no such collection or epoch."""


class ClosedEpochError(StoreError):
    """The epoch takes no reports any more, and never will."""


class MisdirectedError(StoreError):
    """The id belongs to another shard of this collection."""


@dataclass(frozen=True)
class LiveEpoch:
    """An epoch and its plan, ready to count reports."""

    epoch: Epoch
    plan: Plan

    @property
    def is_quick(self) -> bool:
        """Whether reports are counted in microseconds: those that are one small integer each."""
        return self.plan.protocol.report_layout.is_narrow


class Collector:
    """A store brought to life: its collections and their open epochs, and what an upload becomes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._live: dict[tuple[str, int], LiveEpoch] = {}
        self._lock = threading.Lock()
        self._estimates: dict[int, tuple[Tally, Estimate]] = {}
        self._estimating = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Learn of epochs that were opened or closed meanwhile, here or by another process."""
        with self._lock:
            for epoch in self.store.epochs():
                known = self._live.get((epoch.collection, epoch.number))
                plan = Plan.from_json(epoch.plan) if known is None else known.plan
                self._live[epoch.collection, epoch.number] = LiveEpoch(epoch, plan)

    def collections(self) -> list[str]:
        """Their names, in alphabetical order."""
        return sorted({collection for collection, _ in self._live})

    def epochs(self, collection: str | None = None) -> list[LiveEpoch]:
        """All epochs, or those of one collection, as the store has them now."""
        self.refresh()
        return [live for key, live in sorted(self._live.items()) if collection in (None, key[0])]

    def known(self, collection: str, number: int) -> LiveEpoch | None:
        """An epoch, if it was met before: a look into memory, which never waits for the store."""
        return self._live.get((collection, number))

    def find(self, collection: str, number: int | None = None) -> LiveEpoch:
        """An epoch by number; without one, the newest that is open, or else the newest."""
        found = None if number is None else self.known(collection, number)
        if found is not None:
            return found
        epochs = self.epochs(collection)
        wanted = [live for live in epochs if number in (None, live.epoch.number)]
        if not wanted:
            what = f"epoch {number} of {collection!r}" if epochs else f"collection {collection!r}"
            raise UnknownEpochError(f"there is no {what} here")
        return next((live for live in reversed(wanted) if live.epoch.is_open), wanted[-1])

    def open(self, collection: str, plan: Plan) -> LiveEpoch:
        """The open epoch of a collection that has this plan; a new one if there is none.

        A plan that names its labels by their hash is kept as it is given, with the labels that it was loaded with.
        """
        counters = plan.protocol.tally_layout.length
        epoch = self.store.ensure_epoch(collection, plan.contract.canonical, counters)
        with self._lock:
            live = self._live[collection, epoch.number] = LiveEpoch(epoch, plan)
        return live

    def close(self, collection: str, number: int) -> LiveEpoch:
        """Close an epoch for good."""
        self.store.close_epoch(self.find(collection, number).epoch.key)
        self.refresh()
        return self._live[collection, number]

    def deposit(self, live: LiveEpoch, identity: bytes, body: bytes, token: bytes | None = None) -> Deposit:
        """What an upload adds: one report, or one batch. Raises for anything that is not wholly in order."""
        if not live.epoch.is_open:
            raise ClosedEpochError(f"epoch {live.epoch.number} of {live.epoch.collection} is closed; it takes nothing")
        if len(identity) != ID_BYTES:
            raise ParameterError(f"an id has {ID_BYTES} bytes, got {len(identity)}")
        if not self.store.shard.takes(identity):
            raise MisdirectedError(f"this collector is shard {self.store.shard}; the id belongs to another one")
        reports, counters = live.plan._count(body)
        if not reports:
            raise ReportError("the batch holds no report")
        cells, counts = counters.nonzero()
        hashed = None if token is None else hashlib.sha256(token).digest()
        return Deposit(live.epoch.key, identity, reports, cells, counts, hashed)

    def make_tokens(self, live: LiveEpoch, count: int) -> list[str]:
        """Single-use upload tokens; the store keeps their hashes alone."""
        tokens = [secrets.token_hex(TOKEN_BYTES) for _ in range(count)]
        self.store.add_tokens(live.epoch.key, [hashlib.sha256(bytes.fromhex(token)).digest() for token in tokens])
        return tokens

    def tally(self, live: LiveEpoch) -> Tally:
        """The epoch's tally as it stands, its invariants checked."""
        return stored_tally(self.store, live.epoch, live.plan)

    def estimate(self, live: LiveEpoch) -> tuple[Tally, Estimate]:
        """The tally as it stands and its estimate, which is kept until another report is counted."""
        key = live.epoch.key
        with self._estimating:  # several readers of one epoch wait for one computation
            current = find_epoch(self.store, live.epoch.collection, live.epoch.number)
            kept = self._estimates.get(key)
            if kept is None or kept[0].reports != current.reports:
                tally = self.tally(live)
                kept = self._estimates[key] = (tally, live.plan.estimate(tally))
            return kept


def matching_labels(plan: Plan, text: str, limit: int) -> list[int]:
    """The places of the labels that contain a text, whatever its case; at most ``limit`` of them."""
    domain, wanted = plan.domain, text.casefold()
    if not domain.has_labels:
        try:
            return [domain.index(int(text))]
        except (ValueError, DomainError):
            return []
    found = (place for place in range(domain.size) if wanted in domain.shown(place).casefold())
    return [place for place, _ in zip(found, range(limit), strict=False)]


def is_single(body: bytes) -> bool:
    """Whether an upload is one report rather than a batch."""
    return not is_batch(body)
