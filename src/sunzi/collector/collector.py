"""The collector without HTTP: open and close epochs, turn uploads into deposits, and estimate.

An epoch's plan never changes; a new plan needs a new epoch. Every report names its epoch, so a late report is refused
rather than counted in the next epoch.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from sunzi import wire
from sunzi.client.device.addresses import DEFAULT_COLLECTION
from sunzi.client.device.uploads import TOKEN_BYTES
from sunzi.client.errors import ParameterError, ReportError, StoreError, shown
from sunzi.client.groups import chosen_groups
from sunzi.collector.epochs import Deposit, Epoch, check_identities
from sunzi.collector.recently_used import RecentlyUsed
from sunzi.collector.settings import UploadKey
from sunzi.collector.store import Store
from sunzi.collector.stores import find_epoch, stored_plan, stored_tally
from sunzi.errors import EstimateError
from sunzi.plan import Plan
from sunzi.protocols.counting import count_reports
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally

OldPlan = Literal["close", "keep"]
"""What to do with an open epoch of another plan: close it, or keep it open for late reports."""

_KEPT_PLANS = 16
# A page asks for many groups at once, most of them with few values.
_KEPT_ESTIMATES = 64
_SMALL_DOMAIN = 1000
_LARGE_ESTIMATE = 16
_SHOWN_LABELS = 3


class UnknownEpochError(StoreError):
    """There is no such collection or epoch.

    >>> from sunzi.collector import open_store
    >>> collector = Collector(open_store("collector.db"))
    >>> collector.find("fruit", 1)
    Traceback (most recent call last):
        ...
    sunzi.collector.collector.UnknownEpochError: there is no collection 'fruit' here
    >>> collector.store.close()
    """


class ClosedEpochError(StoreError):
    """The epoch is closed, for good.

    >>> import sunzi
    >>> from sunzi.collector import open_store
    >>> collector = Collector(open_store("collector.db"))
    >>> epoch = collector.open("fruit", sunzi.make_plan("grr", ["apple", "pear"], epsilon=1))
    >>> epoch = collector.close("fruit", 1)
    >>> collector.find_open("fruit", 1)
    Traceback (most recent call last):
        ...
    sunzi.collector.collector.ClosedEpochError: epoch 1 of fruit is closed
    >>> collector.store.close()
    """


class AnotherPlanError(StoreError):
    """The collection's open epoch has another plan.

    >>> import sunzi
    >>> from sunzi.collector import open_store
    >>> collector = Collector(open_store("collector.db"))
    >>> epoch = collector.open("fruit", sunzi.make_plan("grr", ["apple", "pear"], epsilon=1))
    >>> collector.open("fruit", sunzi.make_plan("grr", ["apple", "fig"], epsilon=1))
    Traceback (most recent call last):
        ...
    sunzi.collector.collector.AnotherPlanError: epoch 1 of fruit is open with another plan (new 'fig', removed ...
    >>> collector.store.close()
    """


class MisdirectedError(StoreError):
    """The id belongs to another shard of this collection.

    >>> import sunzi
    >>> from sunzi.collector import Shard, open_store
    >>> collector = Collector(open_store("collector.db", shard=Shard(0, of=2)))
    >>> plan = sunzi.make_plan("grr", ["apple", "pear"], epsilon=1)
    >>> epoch = collector.open("fruit", plan)
    >>> collector.deposit(epoch, bytes([1] * 16), plan.client().report("pear"))
    Traceback (most recent call last):
        ...
    sunzi.collector.collector.MisdirectedError: this collector is shard 0/2; send this id to its own shard
    >>> collector.store.close()
    """


@dataclass(frozen=True)
class LiveEpoch:
    """An epoch with its parsed plan."""

    epoch: Epoch
    plan: Plan

    @property
    def is_quick(self) -> bool:
        """Whether decoding takes microseconds, because each report is one small integer."""
        return wire.is_narrow(self.plan.protocol.report_layout)


class Collector:
    """The collections of a store.

    Parameters
    ----------
    store: an open store; the caller closes it.

    >>> import sunzi
    >>> from sunzi.collector import open_store
    >>> collector = Collector(open_store("collector.db"))
    >>> collector.open("browsers", sunzi.make_plan("grr", ["Firefox", "other"], epsilon=1)).epoch.number
    1
    >>> collector.store.close()
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._epochs: dict[tuple[str, int], Epoch] = {}
        self._plans: RecentlyUsed[int, Plan] = RecentlyUsed(_KEPT_PLANS)  # by the epoch's key
        self._with_own_labels: dict[int, Plan] = {}
        self._lock = threading.Lock()
        self._estimates: RecentlyUsed[tuple[int, str], tuple[Tally, Estimate]]
        self._estimates = RecentlyUsed(_KEPT_ESTIMATES, _size)
        self._estimating = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Reload the list of epochs, which another process may have opened or closed; plans are loaded when used."""
        self._epochs = {(epoch.collection, epoch.number): epoch for epoch in self.store.epochs()}

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        return sorted({collection for collection, _ in self._epochs})

    def epochs(self, collection: str | None = None) -> list[Epoch]:
        """All epochs, or those of one collection, reloaded from the store."""
        self.refresh()
        return [epoch for key, epoch in sorted(self._epochs.items()) if collection in (None, key[0])]

    def known(self, collection: str, number: int) -> LiveEpoch | None:
        """An epoch from memory, without asking the store; None if it or its plan is not loaded."""
        epoch = self._epochs.get((collection, number))
        plan = None if epoch is None else self._known_plan(epoch.key)
        return None if epoch is None or plan is None else LiveEpoch(epoch, plan)

    def find(self, collection: str, number: int | None = None) -> LiveEpoch:
        """An epoch by number; without a number, the newest open one, or the newest if all are closed."""
        return self._loaded(self.find_epoch(collection, number))

    def find_open(self, collection: str, number: int) -> LiveEpoch:
        """An epoch by number; ClosedEpochError if it is closed, whose plan is then not loaded."""
        epoch = self.find_epoch(collection, number)
        if not epoch.is_open:
            raise ClosedEpochError(f"epoch {number} of {collection} is closed")
        return self._loaded(epoch)

    def find_epoch(self, collection: str, number: int | None = None) -> Epoch:
        """Like :meth:`find`, without the plan."""
        found = None if number is None else self._epochs.get((collection, number))
        found = found or self.store.find_epoch(collection, number)
        if found is None:
            is_known = number is not None and self.store.find_epoch(collection) is not None
            what = f"epoch {number} of {collection!r}" if is_known else f"collection {collection!r}"
            raise UnknownEpochError(f"there is no {what} here")
        self._epochs[collection, found.number] = found
        return found

    def plan_file(self, epoch: Epoch) -> bytes:
        """The plan of an epoch as canonical JSON, without parsing it."""
        plan = self._known_plan(epoch.key)
        return self.store.plan(epoch.key) if plan is None else plan.canonical

    def _known_plan(self, key: int) -> Plan | None:
        with self._lock:
            return self._with_own_labels.get(key) or self._plans.get(key)

    def _loaded(self, epoch: Epoch) -> LiveEpoch:
        plan = self._known_plan(epoch.key)
        if plan is None:
            data = self.store.plan(epoch.key)
            with self._lock:
                known = chain(self._with_own_labels.values(), self._plans.values())
                plan = next((each for each in known if each.canonical == data), None)
            plan = plan or stored_plan(self.store, epoch)
            with self._lock:
                self._plans[epoch.key] = plan
        return LiveEpoch(epoch, plan)

    def unnamed(self) -> str:
        """The collection of a plan without a name: the only one, or ``default`` if there are none or it is there."""
        names = self.collections()
        if len(names) == 1:
            return names[0]
        if names and DEFAULT_COLLECTION not in names:
            raise ParameterError(f"the store holds the collections {names}; name the plan's: NAME=FILE")
        return DEFAULT_COLLECTION

    def open(self, collection: str, plan: Plan, *, old_plan: OldPlan | None = None) -> LiveEpoch:
        """Return the collection's open epoch with this plan, or open a new one.

        Parameters
        ----------
        collection: a name of a-z, 0-9, - and _.
        plan: the plan. If it refers to its labels by hash, the labels it was loaded with stay in memory.
        old_plan: what to do if the collection's open epoch has another plan: "close" it, or "keep" it open to count
            late reports. By default this raises AnotherPlanError, which says what would change, and nothing is opened.
        """
        return self.open_all({collection: plan}, old_plan=old_plan)[0]

    def open_all(self, plans: Mapping[str, Plan], *, old_plan: OldPlan | None = None) -> list[LiveEpoch]:
        """:meth:`open` for several collections: all of them, or none if one is refused."""
        with self.store.transaction():
            self.store.lock_epochs()
            others = {name: self._with_another_plan(name, plan) for name, plan in plans.items()}
            opened = [LiveEpoch(self._opened(name, plan, others[name], old_plan), plan) for name, plan in plans.items()]
        if old_plan == "close":
            for epoch in chain.from_iterable(others.values()):
                self.store.close_epoch(epoch.key)
            self.refresh()
        for live in opened:
            self._epochs[live.epoch.collection, live.epoch.number] = live.epoch
            with self._lock:
                self._plans[live.epoch.key] = live.plan
            if live.plan.domain.labels is not None and live.plan.domain.labels_sha256 is not None:
                self._with_own_labels[live.epoch.key] = live.plan
        return opened

    def open_next(self, collection: str, plan: Plan | None = None, *, old: OldPlan = "close") -> Epoch:
        """Open a new epoch, also if the open one has the same plan.

        Parameters
        ----------
        collection: a name of a-z, 0-9, - and _.
        plan: the plan; None takes that of the newest epoch.
        old: "close" the older epochs that are open, or "keep" them open for late reports.
        """
        with self.store.transaction():
            self.store.lock_epochs()
            plan = plan or stored_plan(self.store, find_epoch(self.store, collection))
            older = [epoch for epoch in self.store.epochs(collection) if epoch.is_open]
            opened = self.store.open_epoch(collection, plan.canonical, _most_counters(plan))
        for epoch in older if old == "close" else ():
            self.store.close_epoch(epoch.key)
        self.refresh()
        return opened

    def _opened(self, collection: str, plan: Plan, others: Sequence[Epoch], old_plan: OldPlan | None) -> Epoch:
        if others and old_plan is None:
            raise _another_plan(others[-1], stored_plan(self.store, others[-1]), plan)
        # An older open epoch with this plan must not be joined while a newer one stays open: clients fetch the newest.
        opening = self.store.open_epoch if others and old_plan == "keep" else self.store.ensure_epoch
        return opening(collection, plan.canonical, _most_counters(plan))

    def _with_another_plan(self, collection: str, plan: Plan) -> list[Epoch]:
        """The open epochs with another plan, if the newest open one is among them: clients fetch that one's plan."""
        still_open = [epoch for epoch in self.store.epochs(collection) if epoch.is_open]
        others = [epoch for epoch in still_open if self.store.plan(epoch.key) != plan.canonical]
        return others if others and others[-1] is still_open[-1] else []

    def close(self, collection: str, number: int) -> LiveEpoch:
        """Close an epoch permanently. Closing twice is not an error."""
        self.store.close_epoch(self.find(collection, number).epoch.key)
        self.refresh()
        return self.find(collection, number)

    def deposit(
        self,
        live: LiveEpoch,
        identity: bytes,
        body: bytes,
        token: bytes | None = None,
        key: UploadKey | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> Deposit:
        """Decode an upload, a report or a batch, into a deposit. Raises if anything in it is invalid.

        Parameters
        ----------
        live: the epoch that the upload names.
        identity: the upload's 16-byte id.
        body: a report or a batch.
        token: the single-use token to spend, or None.
        key: the upload key that was sent with it, or None.
        groups: the public groups that it names: at most one value per attribute that the plan declares.
        """
        if not live.epoch.is_open:
            raise ClosedEpochError(f"epoch {live.epoch.number} of {live.epoch.collection} is closed")
        check_identities([identity])
        if not self.store.shard.takes(identity):
            raise MisdirectedError(f"this collector is shard {self.store.shard}; send this id to its own shard")
        named = chosen_groups(live.plan.groups, groups)
        reports, counters = count_reports(live.plan.protocol, live.plan.digest, body)
        if not reports:
            raise ReportError("the batch holds no reports")
        cells, counts = counters.nonzero()
        hashed = None if token is None else hashlib.sha256(token).digest()
        made = Deposit(live.epoch.key, identity, reports, cells, counts, hashed, groups=named)
        return made if key is None else replace(made, uploader=key.name, reports_per_minute=key.reports_per_minute)

    def subtract(self, live: LiveEpoch, uploader: str) -> int:
        """Take all reports that were uploaded with one key out of an epoch, open or closed; return their number."""
        reports = self.store.subtract(live.epoch.key, uploader)
        with self._estimating:
            for cached in [cached for cached in self._estimates if cached[0] == live.epoch.key]:
                del self._estimates[cached]
        return reports

    def make_tokens(self, live: LiveEpoch, count: int) -> list[str]:
        """Create single-use upload tokens; the store keeps only their hashes."""
        tokens = [secrets.token_hex(TOKEN_BYTES) for _ in range(count)]
        self.store.add_tokens(live.epoch.key, [hashlib.sha256(bytes.fromhex(token)).digest() for token in tokens])
        return tokens

    def reports(self, live: LiveEpoch, group: str = "") -> int:
        """The current number of reports of an epoch, or of a public group of it such as ``country=DE``."""
        if group:
            return self.store.group_reports(live.epoch.key).get(group, 0)
        return find_epoch(self.store, live.epoch.collection, live.epoch.number).reports

    def tally(self, live: LiveEpoch, group: str = "") -> Tally:
        """The current tally of an epoch, or of a public group of it, with its invariants checked."""
        return stored_tally(self.store, live.epoch, live.plan, group)

    def estimate(self, live: LiveEpoch, group: str = "") -> tuple[Tally, Estimate]:
        """The current tally of an epoch or group and its estimate, cached until another report is counted."""
        if live.plan.domain.is_open:
            raise EstimateError(
                "this plan has no list of values: …/discover.json finds the frequent texts, and POST …/discover.json "
                "with use=count estimates texts that you name"
            )
        key = live.epoch.key, group
        with self._estimating:  # concurrent readers share one computation
            kept = self._estimates.get(key)
            if kept is None or kept[0].reports != self.reports(live, group):
                tally = self.tally(live, group)
                kept = self._estimates[key] = (tally, live.plan.estimate(tally))
            return kept


def _size(kept: tuple[Tally, Estimate]) -> int:
    return _LARGE_ESTIMATE if kept[1].domain.size > _SMALL_DOMAIN else 1


def _most_counters(plan: Plan) -> int:
    """The number of counters of an epoch's tally and of those of all its groups."""
    return plan.protocol.tally_layout.length * (1 + sum(map(len, plan.groups.values())))


def _another_plan(epoch: Epoch, old: Plan, new: Plan) -> AnotherPlanError:
    return AnotherPlanError(
        f"epoch {epoch.number} of {epoch.collection} is open with another plan ({plan_changes(old, new)}); for a new "
        "epoch with the new plan, give old_plan or --old-plan: 'close' closes the old epoch, 'keep' keeps it open for "
        "late reports"
    )


def plan_changes(old: Plan, new: Plan) -> str:
    """What differs between two plans, for people: epsilon, protocol, domain."""
    changes = [
        f"{name} {before} → {after}"
        for name, before, after in (
            ("epsilon", old.epsilon, new.epsilon),
            ("protocol", old.protocol.name, new.protocol.name),
            ("values", f"{old.domain.size:,}", f"{new.domain.size:,}"),
            ("other", repr(old.domain.other), repr(new.domain.other)),
            ("groups", " ".join(old.groups) or "none", " ".join(new.groups) or "none"),
        )
        if before != after
    ]
    changes += _label_changes(old, new)
    if old.groups != new.groups and set(old.groups) == set(new.groups):
        changes.append("other values of groups")
    return ", ".join(changes) or "other parameters of the protocol"


def _label_changes(old: Plan, new: Plan) -> list[str]:
    before, after = old.domain.labels, new.domain.labels
    if old.domain.has_labels != new.domain.has_labels:
        return ["labels → numbers" if old.domain.has_labels else "numbers → labels"]
    if before is None or after is None:
        is_same = old.domain.labels_sha256 == new.domain.labels_sha256
        return [] if is_same else ["another label file"]
    found = []
    for what, one, other in (("new", after, before), ("removed", before, after)):
        known = set(other)
        labels = [label for label in one if label not in known]
        if labels:
            more = ", …" if len(labels) > _SHOWN_LABELS else ""
            found.append(f"{what} {', '.join(map(shown, labels[:_SHOWN_LABELS]))}{more}")
    return found or ([] if before == after else ["labels in another order"])
