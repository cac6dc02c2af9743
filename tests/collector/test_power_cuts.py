"""Hundreds of power cuts in a row: no acknowledged report is lost, even if the disk drops unsynchronised writes."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from ledger import COUNTERS, Ledger
from power_cuts import Disk, File, PowerCuts

from sunzi.client.errors import StoreError
from sunzi.collector.sqlite import SqliteStore

CUTS = 400
EPOCHS = 8


class Life:
    """A store on a disk that loses power again and again, and the parcels sent to it."""

    def __init__(self, directory: Path, seed: int, kind: type[SqliteStore] = SqliteStore) -> None:
        self._directory, self._kind = directory, kind
        self.chance = random.Random(seed)
        self._cuts = PowerCuts()
        self.ledger: Ledger | None = None
        self.epochs = 0
        self._acknowledged_before = 0
        self.cut_moments: set[str] = set()
        self._place = self._next_place(0)

    def _next_place(self, number: int) -> Path:
        place = self._directory / str(number)
        place.mkdir(parents=True)
        return place

    def endure(self, cuts: int) -> None:
        with self._cuts.installed():
            for number in range(1, cuts + 1):
                self._cuts.disk = disk = Disk(self._place, cut_after=self.chance.randint(1, 150))
                self._live(disk)
                self._lose_power(disk, number)

    def begin(self, cut_after: int) -> bool:
        """Create a store and count one report with power for a number of operations; return whether that was enough."""
        with self._cuts.installed():
            self._cuts.disk = disk = Disk(self._place, cut_after)
            store = None
            try:
                store = self._kind(self._place / "store.db")
                self._find_epoch(store)
                self._act(store, "committing")
            except StoreError:
                assert disk.is_dead
            finally:
                if store is not None:
                    store.close()
            self._lose_power(disk, 1)
        return self.ledger is not None and self.ledger.acknowledged > 0

    def _lose_power(self, disk: Disk, number: int) -> None:
        """Continue with the directory as the disk holds it now."""
        place = self._next_place(number)
        disk.after_cut(place, self.chance)
        shutil.rmtree(self._place)
        self._place = place

    def _live(self, disk: Disk) -> None:
        """Use the store until the power fails, which shows as a StoreError."""
        store, moment = None, "opening"
        try:
            store = self._kind(self._place / "store.db")
            moment = "opening an epoch"
            self._find_epoch(store)
            while True:
                moment = self.chance.choices(["committing", "settling", "closing"], [20, 4, 1])[0]
                self._act(store, moment)
        except StoreError:
            assert disk.is_dead, f"an error while {moment}, although there was power"
            self.cut_moments.add(moment)
        finally:
            if store is not None:
                store.close()

    def _find_epoch(self, store: SqliteStore) -> None:
        """Check the last epoch; if its closing went through in spite of the cut, continue with a new epoch."""
        if self.ledger is not None:
            assert self.ledger.difference(store) == {}
        opened = [epoch for epoch in store.epochs() if epoch.is_open]
        if self.ledger is None or all(epoch.key != self.ledger.epoch for epoch in opened):
            assert self.ledger is None or self.ledger.is_quiet, "an epoch was lost, or closed by itself"
            epoch = opened[0] if opened else store.open_epoch("torture", b"{}", COUNTERS)
            self._acknowledged_before = self.acknowledged
            self.ledger = Ledger(epoch.key, self.chance)
            self.epochs += 1

    @property
    def acknowledged(self) -> int:
        """Parcels acknowledged so far, in all epochs."""
        return self._acknowledged_before + (self.ledger.acknowledged if self.ledger else 0)

    def _act(self, store: SqliteStore, moment: str) -> None:
        if moment == "committing":
            parcels = self.ledger.next_parcels(self.chance.choice((1, 3, 30)))
            outcomes = store.commit([parcel.deposit() for parcel in parcels])
            self.ledger.record((p.identity, o.value) for p, o in zip(parcels, outcomes, strict=True))
        elif moment == "settling":
            store.settle()
        elif self.ledger.is_quiet:
            store.close_epoch(self.ledger.epoch)
            assert store.identity_count(self.ledger.epoch) == 0
            again = store.commit([parcel.deposit() for parcel in self.ledger.some_acknowledged(5)])
            assert {outcome.value for outcome in again} <= {"closed"}
            self._find_epoch(store)

    def final_difference(self) -> dict[str, int]:
        """Without further cuts: send all unacknowledged parcels, then compare bit by bit."""
        store = self._kind(self._place / "store.db")
        self._find_epoch(store)
        parcels = self.ledger.next_parcels(0, fresh=False)
        outcomes = store.commit([parcel.deposit() for parcel in parcels])
        self.ledger.record((p.identity, o.value) for p, o in zip(parcels, outcomes, strict=True))
        assert self.ledger.is_quiet
        difference = dict(self.ledger.difference(store))
        store.close()
        return difference


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, seed)
    life.endure(CUTS // 2)
    assert life.final_difference() == {}
    assert life.acknowledged > 1000
    assert life.epochs >= EPOCHS // 2
    # There were cuts during every kind of operation.
    assert life.cut_moments >= {"opening an epoch", "committing", "settling", "closing"}


@pytest.mark.slow
def test_a_store_that_was_being_made_is_made_again(tmp_path: Path) -> None:
    """A cut at every single operation from an empty directory to the first acknowledged report."""
    cut_after, acknowledged = 0, False
    while not acknowledged:
        cut_after += 1
        life = Life(tmp_path / str(cut_after), cut_after)
        acknowledged = life.begin(cut_after)
        assert life.final_difference() == {}
    assert cut_after > 20


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_a_store_that_does_not_synchronise_is_caught(tmp_path: Path, synchronous: str) -> None:
    """The same if SQLite does not flush at every commit. If nothing were lost, the test above would prove nothing."""

    class CarelessStore(SqliteStore):
        def _set_up(self, connection) -> None:
            super()._set_up(connection)
            connection.execute(f"PRAGMA synchronous={synchronous}")

    found = []
    for seed in range(24):
        with pytest.raises(AssertionError) as caught:
            Life(tmp_path / str(seed), seed, CarelessStore).endure(CUTS)
        found.append(str(caught.value))
    assert any("'lost'" in message for message in found), found


def test_the_disk_drops_what_was_not_synchronised() -> None:
    file = File(b"a" * 1024)
    file.write(0, b"b" * 1536)
    assert file.after_cut(random.Random(1), 0.0) == b"a" * 1024
    assert file.after_cut(random.Random(1), 1.0) == b"b" * 1536
    torn = {file.after_cut(random.Random(seed), 0.5) for seed in range(64)}
    assert b"b" * 512 + b"a" * 512 in torn
    assert b"a" * 1024 + b"b" * 512 in torn
    file.sync()
    file.truncate(100)
    assert file.after_cut(random.Random(1), 0.0) == b"b" * 1536
    assert file.after_cut(random.Random(1), 1.0) == b"b" * 100
