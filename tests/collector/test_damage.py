"""Damaged SQLite stores are read correctly or refused with a StoreError, and what is in them stays.

SQLite keeps no checksums: damage that leaves a consistent store cannot be noticed.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from damage import damage_bytes, damage_cell, directory_in_memory, outcome
from deposits import an_id

import sunzi
from sunzi.client.errors import StoreError
from sunzi.collector import Collector, UploadKey, backup, merge_shards, open_store

PLANS = {
    "web": sunzi.make_plan("grr", ["Firefox", "Chrome", "other"], epsilon=2, groups={"country": ["DE", "FR"]}),
    "mobile": sunzi.make_plan("mss", 40, epsilon=1),
}
KEYS = (None, UploadKey("partner", bytes(32), 1000))


def fill(path: Path) -> None:
    """A store with open and closed epochs, upload keys, quotas and tokens."""
    store = open_store(path)
    collector, number = Collector(store), 0
    for is_closed in (True, False):
        for name, plan in PLANS.items():
            live = collector.open(name, plan)
            collector.make_tokens(live, 3)
            client = plan.client(seed=1)
            for key in KEYS:
                for index in range(20):
                    number += 1
                    groups = {"country": "DE"} if plan.groups and index < 5 else None
                    report = client.report_index(index % 3)
                    store.commit([collector.deposit(live, an_id(number), report, key=key, groups=groups)])
            if name == "mobile":
                collector.subtract(live, "partner")
            if is_closed:
                collector.close(name, live.epoch.number)
    store.close()


def read(path: Path) -> None:
    """Read all that a store has."""
    store = open_store(path, create=False)
    try:
        collector = Collector(store)
        for epoch in collector.epochs():
            store.contributions(epoch.key, None)
            store.progress(epoch.key)
            store.identity_count(epoch.key)
            list(store.identities(epoch.key))
            list(store.tokens(epoch.key))
            live = collector.find(epoch.collection, epoch.number)
            collector.tally(live)
            for group in store.group_reports(epoch.key):
                collector.tally(live, group)
        backup(store, path.with_name("backup"))
    finally:
        store.close()


def write(path: Path) -> None:
    """Count reports, add and revoke tokens, subtract, close and open epochs."""
    store = open_store(path, create=False)
    try:
        collector = Collector(store)
        for epoch in collector.epochs():
            live = collector.find(epoch.collection, epoch.number)
            if epoch.is_open:
                report = live.plan.client(seed=2).report_index(1)
                for number, key in enumerate(KEYS):
                    store.commit([collector.deposit(live, an_id(1000 + number), report, key=key)])
                collector.make_tokens(live, 2)
            collector.tally(live)
            store.subtract(epoch.key, "partner")
            store.revoke_tokens(epoch.key)
            collector.close(epoch.collection, epoch.number)
            collector.open(epoch.collection, live.plan)
        store.check()
        store.settle()
    finally:
        store.close()


@pytest.fixture(scope="module")
def memory():
    with directory_in_memory() as directory:
        yield directory


@pytest.fixture(scope="module")
def filled(memory):
    """A store that was closed in good order, and one that was killed with reports in its log."""
    directory = memory / "filled"
    directory.mkdir()
    closed, killed = directory / "closed.db", directory / "killed.db"
    fill(closed)
    store = open_store(closed)
    live = Collector(store).find("web")
    deposit = Collector(store).deposit(live, an_id(0), live.plan.client(seed=3).report_index(0))
    for number in range(500, 510):
        store.commit([replace(deposit, identity=an_id(number))])
    for suffix in ("", "-wal"):
        shutil.copy(f"{closed}{suffix}", f"{killed}{suffix}")
    store.close()
    return closed, killed


def try_damage(filled, seed: int, directory: Path) -> str:
    """Damage a copy, read and use it; return the outcome. Anything but success and StoreError is raised."""
    generator = random.Random(seed)
    source = generator.choice(filled)
    path = directory / "store.db"
    for old in directory.glob("*"):
        old.unlink()
    for suffix in ("", "-wal"):
        if Path(f"{source}{suffix}").exists():
            shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
    log = Path(f"{path}-wal")
    way = generator.choice(["bytes", "cell", "log"])
    has_log = log.exists()
    done = (
        damage_cell(path, generator)
        if way == "cell"
        else damage_bytes(log if way == "log" and log.exists() else path, generator)
    )
    before = path.read_bytes()
    found = outcome(read, path, f"seed {seed}: {done}")
    if not has_log:  # SQLite may write to its header, the first 100 bytes
        assert path.read_bytes()[100:] == before[100:], f"seed {seed}: {done}, and reading changed the file"
    return f"{way}: read {found}, write {outcome(write, path, f'seed {seed}: {done}')}"


@pytest.mark.slow
def test_damaged_stores_are_refused_with_a_store_error(filled, memory, request):
    directory = memory / "damaged"
    directory.mkdir()
    outcomes = Counter(
        try_damage(filled, seed, directory) for seed in range(5000 if request.config.getoption("--long") else 30)
    )
    assert len(outcomes) >= 5  # some damage is noticed, and some is harmless


def test_an_emptied_file_does_not_delete_its_log(filled, tmp_path):
    """SQLite would."""
    path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    shutil.copy(f"{filled[1]}-wal", log)
    for _ in range(2):
        with pytest.raises(StoreError, match="missing or empty, but its log"):
            open_store(path)
        path.touch()
    assert log.read_bytes() == Path(f"{filled[1]}-wal").read_bytes()


def test_a_damaged_plan_is_refused_wherever_it_is_read(filled, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(filled[0], path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE epochs SET plan = CAST('{}' AS BLOB)")
    with closing(open_store(path, create=False)) as store:
        collector = Collector(store)
        for read in (
            lambda: collector.find("web"),
            lambda: collector.find_open("web", 2),
            lambda: collector.open("web", PLANS["web"]),
            lambda: merge_shards([store], "web", 1),
        ):
            with pytest.raises(StoreError, match=r"is damaged: epoch . of web"):
                read()


@pytest.mark.parametrize("key", [-(1 << 63), -1, 0, 1 << 62])
def test_a_damaged_key_of_a_contribution_is_refused(filled, tmp_path, key):
    path = tmp_path / "store.db"
    shutil.copy(filled[0], path)
    with closing(sqlite3.connect(path)) as connection, connection:
        epoch = connection.execute("SELECT max(epoch) FROM contributions").fetchone()[0]
        connection.execute("UPDATE contributions SET key = ? WHERE epoch = ? AND uploader = ''", (key, epoch))
    with pytest.raises(StoreError, match="key of a contribution"):
        write(path)
