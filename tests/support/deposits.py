"""Short helpers to make deposits."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from sunzi.client.errors import StoreError
from sunzi.collector.epochs import Deposit, Epoch
from sunzi.collector.store import Store

LENGTH = 2_000  # four pages


def an_epoch(store: Store, name: str = "web", counters: int = LENGTH) -> Epoch:
    return store.open_epoch(name, b'{"plan":1}', counters)


def an_id(number: int) -> bytes:
    """A distinct id per number that looks random."""
    return random.Random(number).randbytes(16)


def a_deposit(epoch: Epoch, number: int, cells: dict[int, int] | None = None, token: bytes | None = None) -> Deposit:
    """One report that adds 1 to the counter ``number``, or adds ``cells``."""
    added = cells or {number % LENGTH: 1}
    return Deposit(
        epoch.key,
        an_id(number),
        1,
        np.array(list(added), dtype=np.int64),
        np.array(list(added.values()), dtype=np.int64),
        token,
    )


def values(outcomes: list) -> list[str]:
    return [outcome.value for outcome in outcomes]


def counts(store: Store, epoch: Epoch, length: int = LENGTH, group: str = "") -> np.ndarray:
    return store.tally(epoch.key, length, group)[1].dense()


def total(store: Store, epoch: Epoch) -> int:
    return store.tally(epoch.key, LENGTH)[0]


def commit_until_refused(store: Store, make: Callable[[int], Deposit], first: int, limit: int) -> tuple[int, str]:
    """Commit deposits one by one until one is refused; return its number and the error message."""
    for number in range(first, limit):
        try:
            store.commit([make(number)])
        except StoreError as error:
            return number, str(error)
    raise AssertionError(f"{limit - first} deposits were accepted")
