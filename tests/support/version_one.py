"""The store in tests/collector/fixtures, in version 1 of the schema, and its expected content.

    python version_one.py store-v1.db

wrote the SQLite file. The PostgreSQL dump was made from the same content by ``pg_dump --inserts --no-owner
--schema=sunzi``, without the lines that only psql understands.
"""

from __future__ import annotations

import sys

from deposits import a_deposit, an_epoch, an_id, counts, total, values

from sunzi.collector.store import Store
from sunzi.collector.stores import open_store

TOKEN = bytes(range(32))


def fill(store: Store) -> None:
    closed = an_epoch(store, "old")
    store.commit([a_deposit(closed, number) for number in range(10)])
    store.close_epoch(closed.key)
    current = an_epoch(store, "old")
    store.commit([a_deposit(current, number, {number: 2, 1999: 1}) for number in (3, 4, 5)])
    store.add_tokens(current.key, [TOKEN])


def check(store: Store) -> None:
    """The old content is complete, and the store works like a new one."""
    closed, current = store.epochs()
    assert [(e.collection, e.number, e.is_open, e.reports) for e in (closed, current)] == [
        ("old", 1, False, 10),
        ("old", 2, True, 3),
    ]
    assert counts(store, closed)[:11].tolist() == [1] * 10 + [0]
    assert counts(store, current)[[3, 4, 5, 6, 1999]].tolist() == [2, 2, 2, 0, 3]
    assert sorted(store.identities(current.key)) == sorted(map(an_id, (3, 4, 5)))
    assert list(store.tokens(current.key)) == [TOKEN]
    assert sum(reports for _, reports in store.progress(current.key)) == 3
    group = [a_deposit(current, 3), a_deposit(current, 6, token=TOKEN), a_deposit(closed, 3)]
    assert values(store.commit(group)) == ["repeated", "counted", "closed"]
    assert total(store, current) == 4
    assert an_epoch(store, "old").number == 3


if __name__ == "__main__":
    made = open_store(sys.argv[1])
    fill(made)
    made.close()
