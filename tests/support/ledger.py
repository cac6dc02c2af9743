"""Parcels sent to a store and acknowledged by it: the expected tally, to be compared bit by bit.

Every report has its own counter, so a 2 anywhere proves a double count and a 0 a loss. All reports share counter 0, so
their sum is checked too, and all commits write to one common page.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sunzi.collector.epochs import Deposit
from sunzi.collector.store import Store

COUNTERS = 2_000_000
LARGEST_BATCH = 5
ACKNOWLEDGED = ("counted", "repeated")


@dataclass(frozen=True)
class Parcel:
    """A deposit as plain numbers: ``reports`` reports, each with its own counter, starting at ``first``."""

    epoch: int
    identity: bytes
    first: int
    reports: int

    def deposit(self) -> Deposit:
        own = np.arange(self.first, self.first + self.reports, dtype=np.int64)
        cells = np.concatenate([np.zeros(1, dtype=np.int64), own])
        counts = np.concatenate([np.array([self.reports]), np.ones(self.reports, dtype=np.int64)])
        return Deposit(self.epoch, self.identity, self.reports, cells, counts)

    def line(self) -> str:
        return f"{self.epoch} {self.identity.hex()} {self.first} {self.reports}\n"

    @classmethod
    def from_line(cls, line: str) -> Parcel:
        epoch, identity, first, reports = line.split()
        return cls(int(epoch), bytes.fromhex(identity), int(first), int(reports))


class Ledger:
    """The parcels of one epoch. :meth:`record` fails at once if a store claims to have counted a parcel twice."""

    def __init__(self, epoch: int, chance: random.Random) -> None:
        self.epoch = epoch
        self._chance = chance
        self._next_counter = 1
        self._unacknowledged: dict[bytes, Parcel] = {}
        self._acknowledged: dict[bytes, Parcel] = {}
        self._counted: set[bytes] = set()
        self.duplicates = 0

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    @property
    def is_quiet(self) -> bool:
        """Whether every parcel sent so far is acknowledged."""
        return not self._unacknowledged

    def next_parcels(self, number: int, *, fresh: bool = True) -> list[Parcel]:
        """All unacknowledged parcels, new ones up to ``number``, and half as many duplicates, in random order."""
        while fresh and len(self._unacknowledged) < number:
            self._send_another()
        parcels = list(self._unacknowledged.values())
        again = [parcel for parcel in parcels if self._chance.random() < 0.25]
        old = list(self._acknowledged.values())
        again += [self._chance.choice(old) for _ in range(len(parcels) // 4) if old]
        self.duplicates += len(again)
        everything = parcels + again
        self._chance.shuffle(everything)
        return everything

    def _send_another(self) -> None:
        reports = self._chance.randint(2, LARGEST_BATCH) if self._chance.random() < 0.2 else 1
        parcel = Parcel(self.epoch, self._chance.randbytes(16), self._next_counter, reports)
        self._next_counter += reports
        assert self._next_counter < COUNTERS
        self._unacknowledged[parcel.identity] = parcel

    def record(self, answers: Iterable[tuple[bytes, str]]) -> None:
        """Record answers; an error acknowledges nothing."""
        for identity, outcome in answers:
            if outcome == "counted":
                assert identity not in self._counted, f"{identity.hex()} was counted twice"
                assert identity not in self._acknowledged, f"{identity.hex()} was forgotten and counted again"
                self._counted.add(identity)
            if outcome in ACKNOWLEDGED and identity in self._unacknowledged:
                self._acknowledged[identity] = self._unacknowledged.pop(identity)
            assert outcome != "closed", f"{identity.hex()} was refused by an epoch that is open"

    def some_acknowledged(self, number: int) -> list[Parcel]:
        return list(self._acknowledged.values())[-number:]

    def difference(self, store: Store) -> Mapping[str, int]:
        """Acknowledged reports that an epoch's tally lacks, and counts it should not have; empty if the store is
        correct.
        """
        must = self._counts(self._acknowledged.values())
        may = must + self._counts(self._unacknowledged.values())
        reports, counters = store.tally(self.epoch, COUNTERS)
        cells, values = counters.nonzero()
        found = np.zeros_like(must)
        sent = cells < found.size
        found[cells[sent]] = values[sent]
        wrong = {
            "lost": int(np.count_nonzero(found[1:] < must[1:])),
            "too many": int(np.count_nonzero(found[1:] > may[1:])) + int(np.count_nonzero(~sent)),
            "sum of counters": abs(int(found[0]) - int(found[1:].sum())),
            "reports": abs(reports - int(found[0])),
        }
        return {what: number for what, number in wrong.items() if number}

    def _counts(self, parcels: Iterable[Parcel]) -> np.ndarray:
        counts = np.zeros(self._next_counter, dtype=np.int64)
        for parcel in parcels:
            counts[0] += parcel.reports
            counts[parcel.first : parcel.first + parcel.reports] += 1
        return counts
