"""A collector under steady load, which samples its own memory and counts the ids it stores.

python soaking.py ADDRESS SECONDS SECONDS_PER_EPOCH DEPOSITS_PER_SECOND
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from ledger import LARGEST_BATCH, Parcel

import sunzi
from sunzi.collector.epochs import Outcome
from sunzi.collector.store import Store
from sunzi.collector.stores import open_store
from sunzi.collector.writer import Result, Writer

_TICK_SECONDS = 0.05
_COUNTERS = 50_000


def resident_kilobytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


class Soak:
    """Counts outcomes and samples memory once per second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._answered = threading.Condition()
        self._waiting = 0
        self.outcomes: dict[str, int] = {}
        self.samples: list[int] = []

    def deliver(self, results: list[tuple[None, Result]]) -> None:
        with self._answered:
            for _, result in results:
                name = result.value if isinstance(result, Outcome) else "error"
                self.outcomes[name] = self.outcomes.get(name, 0) + 1
            self._waiting -= len(results)
            self._answered.notify()

    def run(self, seconds: float, seconds_per_epoch: float, rate: float) -> None:
        writer = Writer(self._store, self.deliver, settle_seconds=1.0)
        chance, until = random.Random(1), time.monotonic() + seconds
        while time.monotonic() < until:
            epoch = self._store.open_epoch("soak", b"{}", _COUNTERS)
            self._run_epoch(writer, epoch.key, min(until, time.monotonic() + seconds_per_epoch), rate, chance)
            self._store.close_epoch(epoch.key)
        writer.close()

    def _run_epoch(self, writer: Writer[None], key: int, until: float, rate: float, chance: random.Random) -> None:
        sample_at, sent = time.monotonic(), []
        while (now := time.monotonic()) < until:
            fresh = [self._parcel(key, chance) for _ in range(int(rate * _TICK_SECONDS))]
            again = chance.sample(sent, min(len(sent), len(fresh) // 2))
            with self._answered:
                self._waiting += len(fresh) + len(again)
            for parcel in fresh + again:
                writer.submit(parcel.deposit(), None)
            sent = fresh
            with self._answered:
                self._answered.wait_for(lambda: self._waiting == 0)
            if now >= sample_at:
                self.samples.append(resident_kilobytes())
                sample_at += 1.0
            time.sleep(max(0.0, now + _TICK_SECONDS - time.monotonic()))

    @staticmethod
    def _parcel(key: int, chance: random.Random) -> Parcel:
        reports = chance.randint(1, LARGEST_BATCH)
        return Parcel(key, chance.randbytes(16), chance.randrange(1, _COUNTERS - LARGEST_BATCH), reports)


def start_soak(address: str, seconds: float, seconds_per_epoch: float, rate: float) -> subprocess.Popen[str]:
    """Start this file in a subprocess, which prints its findings."""
    source = str(Path(sunzi.__file__).resolve().parents[1])
    here = str(Path(__file__).resolve().parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, here]), "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, __file__, address, str(seconds), str(seconds_per_epoch), str(rate)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)


def growth_kilobytes(samples: list[int]) -> int:
    """Peak memory of the last third minus that of the second third; the first third is warm-up."""
    third = len(samples) // 3
    return max(samples[2 * third :]) - max(samples[third : 2 * third])


def main(address: str, seconds: str, seconds_per_epoch: str, rate: str) -> None:
    store = open_store(address)
    soak = Soak(store)
    soak.run(float(seconds), float(seconds_per_epoch), float(rate))
    epochs = store.epochs()
    ids = sum(store.identity_count(epoch.key) for epoch in epochs)
    store.close()
    findings = {"outcomes": soak.outcomes, "epochs": len(epochs), "ids_left": ids, "resident_kilobytes": soak.samples}
    print(json.dumps(findings))


if __name__ == "__main__":
    main(*sys.argv[1:])
