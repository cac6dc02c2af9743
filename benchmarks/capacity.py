"""What a collector of one machine takes, for the capacity tables of docs/running.md.

``python -m benchmarks.capacity --markdown docs/running.md`` measures `sunzi serve` over loopback, on an SQLite store
with every commit flushed, and the bytes of ids in stores of both kinds. These are figures of one machine, not ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

from benchmarks import settings
from benchmarks.collector import EPOCH, REPORTS, requests_per_second
from benchmarks.markdown import machine, replace_between
from sunzi.client.device.uploads import ID_BYTES
from sunzi.collector import open_store
from sunzi.collector.epochs import Deposit
from sunzi.plan import Plan, make_plan

PLANS = (
    ("ss-compact", 100),
    ("ss-compact", 10_000),
    ("ss-compact", 1_000_000),
    ("pgr", 10_000),
    ("mss-compact", 10_000),
    ("mss-compact", 1_000_000),
    ("oue", 10_000),
)
SECONDS = 4.0
BATCH_BYTES = 60_000
"""Larger bodies are decoded one at a time, so 64 connections at once would be refused."""
IDS = 400_000
GROUP = 4096
BEGIN = "<!-- measured: written by benchmarks.capacity --markdown, do not edit by hand -->"
END = "<!-- measured: end -->"


@dataclass(frozen=True)
class Capacity:
    """What a collector of one plan takes. Rates are reports per second of processor time, whatever else runs."""

    plan: Plan
    report_bytes: int
    alone: float
    in_batches: float
    counting_bytes: int
    """The most memory while it counted."""
    estimating_bytes: int
    """The most memory once it has estimated."""


@dataclass(frozen=True)
class Process:
    """`sunzi serve` in a process of its own."""

    address: str
    number: int

    def seconds(self) -> float:
        """The processor time that it has used."""
        fields = Path(f"/proc/{self.number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def most_bytes(self) -> int:
        """The most memory that it has had."""
        lines = Path(f"/proc/{self.number}/status").read_text(encoding="utf-8").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@contextmanager
def serving(plan: Plan) -> Iterator[Process]:
    """Serve a plan from an SQLite file beside this code: /tmp may be in memory, where nothing is flushed."""
    with TemporaryDirectory(dir=Path(__file__).parent, prefix=".collector-") as directory:
        plan.save(Path(directory) / "plan.json")
        command = [sys.executable, "-m", "sunzi", "serve", "plan.json", "--port", "0"]
        with subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("collecting at "))
            try:
                yield Process(line.split()[2].rstrip(";"), process.pid)
            finally:
                process.terminate()


def capacity(plan: Plan, seconds: float) -> Capacity:
    """Measure a collector of this plan."""
    single = plan.client().report_index(1)
    number = min(REPORTS, BATCH_BYTES // len(single))
    batch = plan.client().report_indices(np.arange(number, dtype=np.int64))
    with serving(plan) as process:
        alone = _rate(process, f"{EPOCH}/reports?plan={plan.fingerprint}", single, seconds)
        in_batches = number * _rate(process, f"{EPOCH}/batches", batch, seconds)
        counting = process.most_bytes()
        with urlopen(f"{process.address}{EPOCH}/estimate.json?top=10") as answer:
            answer.read()
        return Capacity(plan, len(single), alone, in_batches, counting, process.most_bytes())


def _rate(process: Process, path: str, body: bytes, seconds: float) -> float:
    """Uploads per second of processor time, on 64 connections; the first of two runs warms up."""
    address = urlsplit(process.address)
    host, port = address.hostname or "", address.port or 0
    asyncio.run(requests_per_second(host, port, path, body, seconds / 4))
    begun, used = time.monotonic(), process.seconds()
    uploads = asyncio.run(requests_per_second(host, port, path, body, seconds)) * (time.monotonic() - begun)
    return uploads / (process.seconds() - used)


def bytes_per_id(address: str, ids: int = IDS) -> float:
    """How much a new store grows with every upload of an open epoch."""
    plan = make_plan("grr", 2, settings.EPSILON)
    cells, counts = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    random = np.random.default_rng(settings.SEED)
    with closing(open_store(address)) as store:
        key = store.open_epoch("default", plan.canonical, 2).key
        store.settle()
        before = store.size()
        for first in range(0, ids, GROUP):
            made = [random.bytes(ID_BYTES) for _ in range(min(GROUP, ids - first))]
            store.commit([Deposit(key, identity, 1, cells, counts) for identity in made])
        store.settle()
        return (store.size() - before) / ids


def section(found: list[Capacity], sizes: dict[str, float]) -> str:
    """The tables as Markdown."""
    lines = [
        "| protocol | values | bytes of a report | reports/s, alone | reports/s, in batches | memory, counting | "
        "memory, estimating |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for each in found:
        cells = (
            f"`{each.plan.protocol.name}`",
            f"{each.plan.domain.size:,}",
            f"{each.report_bytes:,}",
            _rounded(each.alone),
            _rounded(each.in_batches),
            f"{_rounded(each.counting_bytes / (1 << 20))} MiB",
            f"{_rounded(each.estimating_bytes / (1 << 20))} MiB",
        )
        lines.append(f"| {' | '.join(cells)} |")
    ids = ["| store | bytes of an id |", "|---|--:|"]
    ids += [f"| {name} | {size:.0f} |" for name, size in sizes.items()]
    return "\n\n".join([machine(), "\n".join(lines), "\n".join(ids)])


def _rounded(value: float) -> str:
    """Two digits: no machine repeats more of them."""
    return f"{float(f'{value:.2g}'):,.12g}"


def main() -> None:
    """Measure, and print the tables or write them into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="ADDRESS", help="an empty PostgreSQL store to measure too")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load (default: %(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between the marks of a page")
    options = parser.parse_args()
    found = [capacity(make_plan(protocol, size, settings.EPSILON), options.seconds) for protocol, size in PLANS]
    with TemporaryDirectory() as directory:
        sizes = {"SQLite": bytes_per_id(f"{directory}/store.db")}
    if options.postgres:
        sizes["PostgreSQL"] = bytes_per_id(options.postgres)
    tables = section(found, sizes)
    print(tables)
    if options.markdown:
        replace_between(options.markdown, BEGIN, END, tables)


if __name__ == "__main__":
    main()
