"""Damaged device files are read correctly or refused with a StoreError; no debit is ever credited."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from agreeing import agreed
from damage import damage_bytes, damage_cell, directory_in_memory, outcome

import sunzi
from sunzi.client import Device
from sunzi.client.errors import StoreError

PLAN = sunzi.make_plan("grr", ["yes", "no", "other"], epsilon=1)
URL = "https://collector.example/v1/collections/default/epochs"


NEXT = {("queued", 1), ("kept", 0), ("silent", 0), ("repeated", 0), ("off", 0)}
"""What a damaged ledger may answer: at worst that the budget has ended or that the user has not agreed, never that the
new value was paid before.
"""


def opened(path: Path) -> Device:
    return Device(path, 5, max_epsilon=2)


def fill(path: Path) -> None:
    """A device with debits of two attributes, reports in its outbox and latest reports."""
    device = agreed(path, 5, max_epsilon=2)
    for epoch, (attribute, value) in enumerate([("a", "yes"), ("a", "no"), ("b", "yes"), ("b", "yes")], 1):
        device.queue(PLAN, attribute, value, f"{URL}/{epoch}", token="ab" * 32 if epoch == 1 else None)
    sent = iter(range(4))
    device.flush(lambda _: next(sent) and None)
    for epoch in (5, 6, 7):
        device.queue(PLAN, "b", "yes", f"{URL}/{epoch}", several=True)


@pytest.fixture(scope="module")
def memory():
    with directory_in_memory() as directory:
        yield directory


@pytest.fixture(scope="module")
def filled(memory):
    path = memory / "filled.db"
    fill(path)
    return path


def use(path: Path) -> None:
    """Do everything that a device does."""
    device = opened(path)
    for attribute in ("a", "b"):
        before = device.spent(attribute)
        assert 0 <= before <= 64
        queued = device.queue(PLAN, attribute, "other", f"{URL}/9")
        assert device.spent(attribute) == before + queued.cost
        assert (queued.outcome, queued.cost) in NEXT
    waiting = device.waiting()
    assert device.flush(lambda report: None) == len(waiting)
    assert device.waiting() == []


def try_damage(filled: Path, seed: int, path: Path) -> str:
    """Damage a copy and use it; return the outcome. Anything but success and StoreError is raised."""
    generator = random.Random(seed)
    shutil.copy(filled, path)
    way = generator.choice([damage_bytes, damage_cell])
    done = way(path, generator)
    return f"{way.__name__}: {outcome(use, path, f'seed {seed}: {done}')}"


def test_damaged_device_files_are_refused_with_a_store_error(filled, memory, request):
    many = 4000 if request.config.getoption("--long") else 60
    outcomes = Counter(try_damage(filled, seed, memory / "damaged.db") for seed in range(many))
    assert len(outcomes) >= 4  # some damage is noticed, and some is harmless


@pytest.mark.parametrize("wrong", ["-5", "0", "33", "1/0", "2/2", "1.0", "nan", "1e999999999", b"1", None])
def test_an_edited_debit_is_refused_not_credited(filled, tmp_path, wrong):
    path = tmp_path / "device.db"
    shutil.copy(filled, path)
    device = opened(path)
    assert device.spent("a") == Fraction(2)
    with closing(sqlite3.connect(path)) as connection, connection:
        if wrong is None:
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'epsilon TEXT NOT NULL', 'epsilon TEXT')")
            connection.execute("PRAGMA writable_schema=RESET")
        connection.execute("UPDATE debits SET epsilon = ? WHERE attribute = 'a'", (wrong,))
    before = path.read_bytes()
    for call in (lambda: device.spent("a"), lambda: device.queue(PLAN, "a", "other", f"{URL}/9")):
        with pytest.raises(StoreError, match="a debit is"):
            call()
    assert device.spent("b") == 1
    assert len(device.waiting()) == 3
    assert path.read_bytes() == before
