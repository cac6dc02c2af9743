"""Stores as a whole: open one by its address, copy it, back it up, and merge the tallies of shards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sunzi.atomic_files import sync_directory
from sunzi.client.errors import ParameterError, PlanError, StoreError
from sunzi.collector.epochs import Epoch, Shard
from sunzi.collector.sqlite import SqliteStore
from sunzi.collector.store import Store
from sunzi.errors import TallyError
from sunzi.groups import parse_group
from sunzi.plan import Plan
from sunzi.tally import Tally

_POSTGRES = ("postgresql://", "postgres://")
_SCHEMA = "schema="


def open_store(address: str | Path, shard: Shard | None = None, create: bool = True) -> Store:
    """Open a store, and create it if it is missing.

    Parameters
    ----------
    address: a path (SQLite) or ``postgresql://USER@HOST/DATABASE``. ``?schema=NAME`` selects a PostgreSQL schema other
        than ``sunzi``.
    shard: the shard of a new store; an existing store must have the same one.
    create: whether to create a missing store; otherwise StoreError is raised.

    >>> store = open_store("collector.db")
    >>> store.epochs()
    []
    >>> store.close()
    """
    if not str(address).startswith(_POSTGRES):
        return SqliteStore(address, shard, create=create)
    from sunzi.collector.postgres import PostgresStore

    server, schema = _take_schema(str(address))
    return PostgresStore(server, shard, create=create, schema=schema)


def _take_schema(address: str) -> tuple[str, str]:
    """Split an address into the address without its schema, and the schema."""
    base, _, query = address.partition("?")
    parameters = [parameter for parameter in query.split("&") if parameter]
    rest = [parameter for parameter in parameters if not parameter.startswith(_SCHEMA)]
    named = [parameter.removeprefix(_SCHEMA) for parameter in parameters if parameter.startswith(_SCHEMA)]
    return base + ("?" + "&".join(rest) if rest else ""), (named or ["sunzi"])[-1]


def copy_store(source: Store, target: Store) -> int:
    """Copy all epochs with their ids, and quotas, from one snapshot of the source; return the number of epochs.

    Parameters
    ----------
    source: the store to read; it may be in use.
    target: an empty store of the same shard, of either kind.

    >>> source, target = open_store("collector.db"), open_store("restored.db")
    >>> copy_store(source, target)
    0
    >>> source.close(), target.close()
    (None, None)
    """
    if target.shard != source.shard:
        raise StoreError(f"the source is shard {source.shard}, the target is shard {target.shard}; they must be equal")
    with source.transaction(reading=True), target.transaction():
        target.require_empty()
        epochs = source.epochs()
        for epoch in epochs:
            target.restore_epoch(epoch, source)
        target.restore_quotas(source)
    return len(epochs)


def backup(source: Store, path: Path) -> int:
    """Copy one snapshot of a store to a new SQLite file; return the number of epochs.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    source: the store to read; it may be in use.
    path: the new file; an existing one is never overwritten.

    >>> store = open_store("collector.db")
    >>> backup(store, Path("backup.db"))
    0
    >>> store.close()
    """
    if path.exists():
        raise StoreError(f"{path} exists already; choose a new name for the backup")
    parent = path.resolve().parent
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=f".{path.name}.") as directory:
            beside = Path(directory) / path.name
            count = _copy_to_file(source, beside)
            os.link(beside, path)  # unlike a rename, this fails if the file exists by now
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    sync_directory(parent)
    return count


def _copy_to_file(source: Store, path: Path) -> int:
    """Copy a store to a new SQLite file without a separate log."""
    target = SqliteStore(path, source.shard)
    try:
        count = copy_store(source, target)
        if not target.settle():
            raise StoreError(f"{path} is in use by another process before it is complete")
    finally:
        target.close()
    return count


def merge_shards(stores: Sequence[Store], collection: str, number: int, group: str | None = None) -> Tally:
    """Add up the tallies of one closed epoch over all shards of a collection.

    Parameters
    ----------
    stores: every shard exactly once; otherwise a report could be missing or counted twice, and StoreError is raised.
    collection: the collection's name.
    number: the epoch's number. It must be closed, with the same plan, in all stores.
    group: only the reports of this public group, such as ``country=DE``.

    >>> import sunzi
    >>> from sunzi.collector import Collector
    >>> shards = [Collector(open_store(f"shard{index}.db", Shard(index, 2))) for index in range(2)]
    >>> for shard in shards:
    ...     epoch = shard.open("default", sunzi.make_plan("grr", 4, epsilon=1))
    ...     epoch = shard.close("default", 1)
    >>> merge_shards([shard.store for shard in shards], "default", 1).reports
    0
    >>> for shard in shards:
    ...     shard.store.close()
    """
    shards = [store.shard for store in stores]
    expected = list(range(shards[0].of)) if shards else []
    if sorted(shard.index for shard in shards) != expected or len({shard.of for shard in shards}) != 1:
        named = ", ".join(map(str, shards)) or "none"
        raise StoreError(f"a merge needs every shard of one collection exactly once, got {named}")
    epochs = [find_epoch(store, collection, number) for store in stores]
    still_open = [str(store.shard) for store, epoch in zip(stores, epochs, strict=True) if epoch.is_open]
    if still_open:
        raise StoreError(f"epoch {number} of {collection} is still open in shard {', '.join(still_open)}; close it")
    plans = {store.plan(epoch.key) for store, epoch in zip(stores, epochs, strict=True)}
    if len(plans) != 1:
        raise StoreError(f"epoch {number} of {collection} has different plans in these stores")
    plan = stored_plan(stores[0], epochs[0])
    name = "" if group is None else parse_group(plan.groups, group)
    tallies = [stored_tally(store, epoch, plan, name) for store, epoch in zip(stores, epochs, strict=True)]
    return sum(tallies[1:], start=tallies[0])


def find_epoch(store: Store, collection: str, number: int | None = None) -> Epoch:
    """One epoch of a collection: by number, or the last."""
    found = store.epochs(collection)
    chosen = [epoch for epoch in found if number is None or epoch.number == number]
    if not found:
        known = sorted({epoch.collection for epoch in store.epochs()})
        raise StoreError(f"there is no collection {collection!r} here; the collections are {known}")
    if not chosen:
        numbers = f"{found[0].number} to {found[-1].number}"
        raise StoreError(f"there is no epoch {number} of {collection!r} here; its epochs are {numbers}")
    return chosen[-1]


def stored_plan(store: Store, epoch: Epoch) -> Plan:
    """An epoch's plan; raises StoreError if it is damaged."""
    try:
        return Plan.from_json(store.plan(epoch.key))
    except (PlanError, ParameterError) as error:
        raise StoreError(f"{store.label} is damaged: epoch {epoch.number} of {epoch.collection}: {error}") from error


def stored_tally(store: Store, epoch: Epoch, plan: Plan, group: str = "") -> Tally:
    """The tally of an epoch, or of a public group of it, with its invariants checked; StoreError if it breaks one."""
    reports, counters = store.tally(epoch.key, plan.protocol.tally_layout.length, group)
    try:
        return Tally(plan.digest, plan.protocol.tally_layout, reports, counters)
    except TallyError as error:
        raise StoreError(f"{store.label} is damaged: epoch {epoch.number} of {epoch.collection}: {error}") from error
