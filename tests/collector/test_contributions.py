"""Counts of upload keys and public groups, tested with each kind of store."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from deposits import LENGTH, a_deposit, an_epoch, an_id, counts, total, values

from sunzi.client.errors import StoreError
from sunzi.collector.epochs import Deposit


def with_key(epoch, number, uploader="app", quota=None, **options):
    return replace(a_deposit(epoch, number, **options), uploader=uploader, reports_per_minute=quota)


def test_progress_adds_up(store):
    epoch, other = an_epoch(store), an_epoch(store)
    began = int(time.time())
    for number in range(5):
        store.commit([a_deposit(epoch, number), a_deposit(other, number)])
    progress = store.progress(epoch.key)
    assert sum(reports for _, reports in progress) == 5
    assert all(minute % 60 == 0 and began - 60 < minute <= time.time() for minute, _ in progress)


@pytest.mark.parametrize("counters", [1, 500, 501, 123_457, 9_000_000_000])
def test_counters_of_any_number(store, counters):
    """Also with more counters than reports, which makes pages small."""
    epoch = an_epoch(store, counters=counters)
    chance = np.random.default_rng(counters)
    expected: dict[int, int] = {}
    for number in range(3):
        cells = np.unique(np.append(chance.integers(0, counters, 40), counters - 1))
        added = chance.integers(1, 1000, cells.size)
        store.commit([Deposit(epoch.key, an_id(number), 1, cells, added)])
        for cell, count in zip(cells.tolist(), added.tolist(), strict=True):
            expected[cell] = expected.get(cell, 0) + count
    cells, found = store.tally(epoch.key, counters)[1].nonzero()
    assert dict(zip(cells.tolist(), found.tolist(), strict=True)) == expected


def test_a_group_that_touches_hundreds_of_pages(store):
    length = 120_123
    epoch, chance, expected = (
        an_epoch(store, counters=length),
        np.random.default_rng(1),
        np.zeros(length, dtype=np.int64),
    )
    for first in (0, 10):
        group = []
        for number in (first, first + 1, first + 2):
            cells = np.flatnonzero(chance.random(length) < 0.3)
            added = chance.integers(1, 1000, cells.size)
            expected[cells] += added
            group.append(Deposit(epoch.key, an_id(number), 1, cells, added))
        store.commit(group)
    reports, found = store.tally(epoch.key, length)
    assert reports == 6
    cells, counted = found.nonzero()
    assert np.array_equal(cells, np.flatnonzero(expected))
    assert np.array_equal(counted, expected[cells])


def test_large_counts_stay_exact(store):
    epoch = an_epoch(store)
    for number in range(2):
        store.commit([Deposit(epoch.key, an_id(number), 1 << 45, np.array([3]), np.array([(1 << 61) + 1]))])
    assert store.tally(epoch.key, LENGTH)[0] == 1 << 46
    assert int(counts(store, epoch)[3]) == (1 << 62) + 2


def in_groups(epoch, number, *groups, **options):
    return replace(a_deposit(epoch, number, **options), groups=groups)


def test_groups_have_tallies_of_their_own(store):
    epoch, other = an_epoch(store), an_epoch(store)
    deposits = [
        in_groups(epoch, 1, "country=DE", "release=1"),
        in_groups(epoch, 2, "country=DE"),
        in_groups(epoch, 3, "country=FR"),
        in_groups(epoch, 4),
        in_groups(other, 5, "country=DE"),
        in_groups(epoch, 3, "country=DE"),  # a repeated id
    ]
    for expected in (["counted"] * 5 + ["repeated"], ["repeated"] * 6):
        assert values(store.commit(deposits)) == expected
        assert store.group_reports(epoch.key) == {"country=DE": 2, "country=FR": 1, "release=1": 1}
        assert (total(store, epoch), [each.reports for each in store.epochs()]) == (4, [4, 1])
        assert np.flatnonzero(counts(store, epoch)).tolist() == [1, 2, 3, 4]
        assert np.flatnonzero(counts(store, epoch, group="country=DE")).tolist() == [1, 2]
        assert np.flatnonzero(counts(store, epoch, group="release=1")).tolist() == [1]
        assert store.tally(epoch.key, LENGTH, "country=IT")[0] == 0
        assert sum(reports for _, reports in store.progress(epoch.key)) == 4
    assert [each.group for each in store.contributions(epoch.key)] == [""]
    assert len(store.contributions(epoch.key, None)) == 4


def test_a_refused_deposit_is_in_no_group(store):
    epoch = an_epoch(store)
    store.add_tokens(epoch.key, [bytes(32)])
    known, unknown = bytes(32), bytes([1]) * 32
    deposits = [in_groups(epoch, 1, "country=DE", token=known), in_groups(epoch, 2, "country=DE", token=unknown)]
    assert values(store.commit(deposits)) == ["counted", "token refused"]
    assert store.group_reports(epoch.key) == {"country=DE": 1}
    store.close_epoch(epoch.key)
    assert values(store.commit([in_groups(epoch, 3, "country=DE")])) == ["closed"]
    assert store.group_reports(epoch.key) == {"country=DE": 1}


def test_a_subtracted_key_leaves_its_groups(store):
    epoch = an_epoch(store)
    store.commit([replace(in_groups(epoch, 1, "country=DE"), uploader="good")])
    stolen = [replace(in_groups(epoch, number, "country=DE", "release=1"), uploader="stolen") for number in (2, 3)]
    store.commit(stolen)
    assert store.subtract(epoch.key, "stolen") == 2
    assert store.group_reports(epoch.key) == {"country=DE": 1}
    assert np.flatnonzero(counts(store, epoch, group="country=DE")).tolist() == [1]
    store.commit([replace(in_groups(epoch, 4, "country=DE"), uploader="stolen")])
    assert store.group_reports(epoch.key) == {"country=DE": 2}


def test_a_failure_counts_neither_the_epoch_nor_its_groups(store, monkeypatch):
    epoch = an_epoch(store)
    add, calls = store._add, []

    def fail_at_the_group(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise StoreError("in the middle")
        add(*arguments)

    monkeypatch.setattr(store, "_add", fail_at_the_group)
    deposit = in_groups(epoch, 1, "country=DE")
    with pytest.raises(StoreError, match="in the middle"):
        store.commit([deposit])
    assert (total(store, epoch), store.group_reports(epoch.key), store.identity_count(epoch.key)) == (0, {}, 0)
    assert values(store.commit([deposit])) == ["counted"]
    assert store.group_reports(epoch.key) == {"country=DE": 1}


def test_a_group_of_a_huge_domain_writes_only_its_pages(store):
    epoch = an_epoch(store, counters=1 << 40)
    deposit = Deposit(epoch.key, an_id(1), 2, np.array([5, 1 << 39]), np.array([1, 1]), groups=("country=DE",))
    store.commit([deposit])
    (group,) = store.contributions(epoch.key, "country=DE")
    assert len(store.pages(group.key)) == 2
    reports, counters = store.tally(epoch.key, 1 << 40, "country=DE")
    assert (reports, [each.tolist() for each in counters.nonzero()]) == (2, [[5, 1 << 39], [1, 1]])


def test_the_tally_is_the_sum_of_its_contributions(store):
    epoch = an_epoch(store)
    chance = random.Random(1)
    group = [with_key(epoch, number, chance.choice(["a", "b", "c"])) for number in range(200)]
    for start in range(0, 200, 40):
        store.commit(group[start : start + 40])
    parts = store.contributions(epoch.key)
    assert sorted(each.uploader for each in parts) == ["a", "b", "c"]
    assert sum(each.reports for each in parts) == total(store, epoch) == counts(store, epoch).sum() == 200


@pytest.mark.parametrize(
    "page", [b"", bytes(4001), np.full(500, -5, dtype="<i8").tobytes()], ids=["empty", "long", "-5"]
)
def test_a_damaged_page_is_refused_and_stays(store, page):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1)])
    with store.transaction():
        store._execute("UPDATE pages SET counts = ?", (page,))
    for read in (lambda: store.tally(epoch.key, LENGTH), lambda: store.commit([a_deposit(epoch, 2)])):
        with pytest.raises(StoreError, match="is damaged"):
            read()
    (contribution,) = store.contributions(epoch.key)
    assert dict(store.pages(contribution.key)) == {0: page}
    assert (contribution.reports, store.identity_count(epoch.key)) == (1, 1)


def test_a_tally_has_the_counters_of_its_plan(store):
    epoch = an_epoch(store)
    store.commit([a_deposit(epoch, 1, {1999: 1})])
    with pytest.raises(StoreError, match="it has a counter 1999, and its plan has 1999 counters"):
        store.tally(epoch.key, 1999)
