"""Plan and tally of an epoch, from a running collector or from its store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.collector.store import Store
    from sunzi.plan import Plan
    from sunzi.tally import Tally

TOKEN_VARIABLE = "SUNZI_ADMIN_TOKEN"  # the name of a variable, not its value


def read_source(source: str, collection: str | None, number: int | None, labels: str | None) -> tuple[Plan, Tally]:
    """The epoch asked for, or else the newest of the only collection."""
    plan, tally = (
        _from_collector(source, collection, number)
        if source.startswith(("http://", "https://"))
        else _from_store(source, collection, number)
    )
    if plan.domain.has_labels and plan.domain.labels is None:
        if labels is None:
            raise ParameterError(f"the plan of {source} names its labels by their hash: give their file with --labels")
        plan = plan.with_labels(labels)
    return plan, tally


def _from_collector(source: str, collection: str | None, number: int | None) -> tuple[Plan, Tally]:
    from sunzi.collector.remote import RemoteCollector

    address = source if collection is None else f"{source.rstrip('/')}/v1/collections/{collection}"
    remote = RemoteCollector(address, secret=os.environ.get(TOKEN_VARIABLE), patience=10)
    try:
        return remote.tally(number)
    finally:
        remote.close()


def _from_store(source: str, collection: str | None, number: int | None) -> tuple[Plan, Tally]:
    from sunzi.collector.opening import open_store
    from sunzi.collector.transfer import find_epoch, stored_tally
    from sunzi.plan import Plan

    store = open_store(source, create=False)
    try:
        epoch = find_epoch(store, collection or only_collection(store, source), number)
        plan = Plan.from_json(epoch.plan)
        return plan, stored_tally(store, epoch, plan)
    finally:
        store.close()


def only_collection(store: Store, source: str) -> str:
    """The collection that is meant where none is named."""
    names = sorted({epoch.collection for epoch in store.epochs()})
    if len(names) != 1:
        raise ParameterError(f"{source} holds the collections {names}; say which with --collection")
    return names[0]
