"""A store with millions of ids in an open epoch, reopened by a process whose time and memory are measured.

python restarting.py ADDRESS KEY FIRST_ID
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ledger import COUNTERS, Parcel

import sunzi
from sunzi.collector.store import Store
from sunzi.collector.stores import open_store


def ids(number: int) -> Iterator[bytes]:
    """Distinct ids in ascending order, the fastest order to insert them in."""
    chance, step = random.Random(1), (1 << 128) // number
    return ((place * step + chance.randrange(step)).to_bytes(16, "big") for place in range(number))


def fill(store: Store, number: int) -> int:
    """Open an epoch with ``number`` ids. They have no reports, because opening a store does not read reports."""
    key = store.open_epoch("full", b"{}", COUNTERS).key
    with store.transaction():
        store._restore_identities(key, ids(number))
    store.settle()
    return key


def restart(address: str, key: int, number: int) -> dict[str, float | list[str]]:
    """Reopen the store in a new process, commit a known id and an unknown one, and read the tally."""
    source = str(Path(sunzi.__file__).resolve().parents[1])
    here = str(Path(__file__).resolve().parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, here])}
    known = next(ids(number)).hex()
    words = [sys.executable, __file__, address, str(key), known]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout)


def main(address: str, key: str, known: str) -> None:
    began = time.monotonic()
    store = open_store(address, create=False)
    parcels = [Parcel(int(key), bytes.fromhex(known), 1, 1), Parcel(int(key), os.urandom(16), 2, 1)]
    outcomes = [outcome.value for outcome in store.commit([parcel.deposit() for parcel in parcels])]
    reports, _ = store.tally(int(key), COUNTERS)
    seconds = time.monotonic() - began
    store.close()
    # Unlike getrusage, this starts at zero with the program and excludes the memory of the parent process.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps({"seconds": seconds, "peak_kilobytes": int(peak[1]), "outcomes": outcomes, "reports": reports}))


if __name__ == "__main__":
    main(*sys.argv[1:])
