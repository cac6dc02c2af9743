"""Stores copied and shards added up: backup, restore, a move to another kind of store, one tally of many collectors."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sunzi.atomic_files import sync_directory
from sunzi.collector.records import Epoch
from sunzi.collector.sqlite import SqliteStore
from sunzi.collector.store import Store
from sunzi.errors import StoreError
from sunzi.plan import Plan
from sunzi.tally import Tally


def copy_store(source: Store, target: Store) -> int:
    """Copy all epochs, ids included, as of one moment of the source; return how many. The target must be empty."""
    if target.shard != source.shard:
        raise StoreError(f"the source is shard {source.shard} and the target shard {target.shard}; make them the same")
    with source.transaction(reading=True), target.transaction():
        target.require_empty()
        epochs = source.epochs()
        for epoch in epochs:
            target.restore_epoch(epoch, source)
    return len(epochs)


def backup(source: Store, path: Path) -> int:
    """Copy a store, as of one moment, to a new SQLite file, which appears when it is whole; return its epochs."""
    if path.exists():
        raise StoreError(f"{path} exists already; a backup never overwrites anything")
    parent = path.resolve().parent
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=f".{path.name}.") as directory:
            beside = Path(directory) / path.name
            count = _copy_to_file(source, beside)
            os.link(beside, path)  # unlike a renaming this fails if somebody else made the file meanwhile
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    sync_directory(parent)
    return count


def _copy_to_file(source: Store, path: Path) -> int:
    """Copy a store to a new SQLite file that needs no other file beside it."""
    target = SqliteStore(path, source.shard)
    try:
        count = copy_store(source, target)
        if not target.settle():
            raise StoreError(f"{path}: somebody else uses this file, which is not finished")
    finally:
        target.close()
    return count


def merge_shards(stores: Sequence[Store], collection: str, number: int) -> Tally:
    """The sum of one closed epoch over different shards of one collection: all of them, each once.

    Refused unless no report can be in two of them, and none is missing: the shards' numbers must be 0 to n − 1.
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
    if len({epoch.plan for epoch in epochs}) != 1:
        raise StoreError(f"epoch {number} of {collection} has different plans in these stores")
    plan = Plan.from_json(epochs[0].plan)
    tallies = [stored_tally(store, epoch, plan) for store, epoch in zip(stores, epochs, strict=True)]
    return sum(tallies[1:], start=tallies[0])


def find_epoch(store: Store, collection: str, number: int | None = None) -> Epoch:
    """One epoch of a collection: by number, or the last."""
    found = [epoch for epoch in store.epochs() if epoch.collection == collection]
    chosen = [epoch for epoch in found if number is None or epoch.number == number]
    if not chosen:
        known = sorted({epoch.collection for epoch in store.epochs()})
        what = f"epoch {number} of {collection!r}" if found else f"collection {collection!r}"
        raise StoreError(f"there is no {what} here; the collections are {known}")
    return chosen[-1]


def stored_tally(store: Store, epoch: Epoch, plan: Plan) -> Tally:
    """An epoch's tally, its invariants checked."""
    reports, counters = store.tally(epoch.key, plan.protocol.tally_layout.length)
    return Tally(plan.contract.fingerprint, plan.protocol.tally_layout, reports, counters)
