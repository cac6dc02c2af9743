"""Throughput of the collector: requests per second over loopback, from this process to a server in another.

Times are wall-clock times: the server waits for its disk, and group commit exists to share that wait.
"""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import settings
from benchmarks.children import UnavailableError
from benchmarks.results import Result
from sunzi.plan import Plan, make_plan

CONNECTIONS = 64
REPORTS = 100
SECONDS = 4.0
ATTACK_SECONDS = 30.0
HONEST = 10
ATTACKERS = 16
SLOW_CLIENTS = 50
EPOCH = "/v1/collections/default/epochs/1"


def throughput(scale: float) -> Iterator[Result]:
    """Batches against a route that does nothing; reports against one transaction per report."""
    plan = make_plan("ss-compact", 1024, settings.EPSILON)
    batch = plan.client().report_indices(np.arange(REPORTS, dtype=np.int64))
    single = plan.client().report_index(1)
    rounds, seconds = settings.rounds(5, scale), max(0.2, SECONDS * scale)
    with running_collector(plan) as served:
        host, port = served.host, served.port

        def rate(path: str, body: bytes) -> float:
            return asyncio.run(requests_per_second(host, port, path, body, seconds))

        measured = [
            (
                rate("/empty", batch),
                rate(f"{EPOCH}/batches", batch),
                rate("/one-commit", single),
                rate(f"{EPOCH}/reports?plan={plan.fingerprint}", single),
            )
            for _ in range(rounds)
        ]
    empty, batches, alone, singles = (median(column) for column in zip(*measured, strict=True))
    details = {"connections": CONNECTIONS, "reports_per_batch": REPORTS, "single_reports_per_second": singles}
    yield Result(
        "collector/requests",
        f"count a batch of {REPORTS} reports durably, over HTTP",
        1 / batches,
        "a request to a route that does nothing",
        1 / empty,
        median(row[1] / row[0] for row in measured),
        0.5,
        "at least",
        details,
    )
    yield Result(
        "collector/reports",
        f"count one report durably, in batches of {REPORTS}",
        1 / batches / REPORTS,
        "a transaction for each report",
        1 / alone,
        median(REPORTS * row[1] / row[2] for row in measured),
        100,
        "at least",
        details,
    )


def under_attack(scale: float) -> Iterator[Result]:
    """Honest uploads on ten connections that pause between requests, alone and next to clients sending invalid data."""
    plan = make_plan("ss-compact", 1024, settings.EPSILON)
    batch = plan.client().report_indices(np.arange(REPORTS, dtype=np.int64))
    rounds, seconds = settings.rounds(5, scale), max(0.5, ATTACK_SECONDS * scale)
    refused: Counter[str] = Counter()
    with running_collector(plan) as served:
        host, port = served.host, served.port
        measured = [
            (
                asyncio.run(_honest_delay(host, port, batch, seconds / 3, None)),
                asyncio.run(_honest_delay(host, port, batch, seconds, refused)),
            )
            for _ in range(rounds)
        ]
    wrong = {status: count for status, count in refused.items() if not status.startswith("4")}
    if wrong:
        raise RuntimeError(f"malformed uploads were not refused cleanly: {wrong}")
    yield Result(
        "collector/under-attack",
        f"99 of 100 honest uploads are answered within this, beside {sum(refused.values()):,} malformed ones",
        median(attacked for _, attacked in measured),
        "the same without an attack",
        median(alone for alone, _ in measured),
        median(attacked / alone for alone, attacked in measured),
        2,
        "at most",
        {"attackers": ATTACKERS, "slow_clients": SLOW_CLIENTS, "refused": dict(refused)},
    )


async def _honest_delay(host: str, port: int, batch: bytes, seconds: float, refused: Counter[str] | None) -> float:
    """99th percentile of the time of an honest upload."""
    until = time.monotonic() + seconds
    crowd = []
    if refused is not None:
        crowd = [asyncio.create_task(_attack(host, port, batch, until, number, refused)) for number in range(ATTACKERS)]
        crowd += [asyncio.create_task(_dawdle(host, port, until)) for _ in range(SLOW_CLIENTS)]
    delays = await asyncio.gather(*(_honest(host, port, batch, until) for _ in range(HONEST)))
    await asyncio.gather(*crowd)
    return float(np.percentile(np.concatenate(delays), 99))


async def _honest(host: str, port: int, batch: bytes, until: float) -> list[float]:
    reader, writer = await asyncio.open_connection(host, port)
    delays = []
    while time.monotonic() < until:
        begun = time.monotonic()
        status = await exchange(reader, writer, f"{EPOCH}/batches", batch)
        if status != "200":
            raise RuntimeError(f"an honest upload was answered with {status}")
        delays.append(time.monotonic() - begun)
        await asyncio.sleep(0.02)
    writer.close()
    return delays


async def _attack(host: str, port: int, batch: bytes, until: float, number: int, refused: Counter[str]) -> None:
    """Send truncated, damaged and random bodies as fast as the server refuses them."""
    bodies = [batch[:-1], batch[:60] + b"\xff" + batch[61:], secrets.token_bytes(300), batch[:8] + bytes(len(batch))]
    while time.monotonic() < until:
        reader, writer = await asyncio.open_connection(host, port)
        for place in range(50):
            body = bodies[(number + place) % len(bodies)]
            refused[await exchange(reader, writer, f"{EPOCH}/batches", body)] += 1
            if time.monotonic() >= until:
                break
        writer.close()


async def _dawdle(host: str, port: int, until: float) -> None:
    """Send a request that never ends."""
    _, writer = await asyncio.open_connection(host, port)
    writer.write(f"POST {EPOCH}/batches HTTP/1.1\r\nHost: x\r\n".encode())
    await asyncio.sleep(max(0.0, until - time.monotonic()))
    writer.close()


@dataclass(frozen=True)
class Served:
    """A collector in another process."""

    host: str
    port: int
    process: int


@contextmanager
def running_collector(plan: Plan, others: Mapping[str, Plan] | None = None, files: int = 0) -> Iterator[Served]:
    """Serve a plan as the collection ``default`` until the block ends, and others under their names.

    ``files`` limits the number of files that the collector may open.
    """
    try:
        import fastapi  # noqa: F401 - fails here with a clear message instead of in the subprocess
    except ModuleNotFoundError:
        raise UnavailableError("the collector is not installed; it comes with the extra 'serve'") from None
    # Next to the code instead of in /tmp, which may be in memory, where nothing is flushed to disk.
    with TemporaryDirectory(dir=Path(__file__).parent, prefix=".collector-") as name:
        directory = Path(name)
        (directory / "plans").mkdir()
        for collection, each in {"default": plan, **(others or {})}.items():
            each.save(directory / "plans" / f"{collection}.json")
        process = subprocess.Popen([sys.executable, "-m", "benchmarks.collector_server", name, str(files)])
        try:
            while not (directory / "address").exists():
                if process.poll() is not None:
                    raise UnavailableError("the collector did not start")
                time.sleep(0.05)
            host, _, port = (directory / "address").read_text().removeprefix("http://").rpartition(":")
            yield Served(host, int(port), process.pid)
        finally:
            process.terminate()
            process.wait(60)


async def requests_per_second(host: str, port: int, path: str, body: bytes, seconds: float) -> float:
    """Answered requests per second over all connections."""
    begun = time.monotonic()
    counts = await asyncio.gather(*(_requests(host, port, path, body, begun + seconds) for _ in range(CONNECTIONS)))
    return sum(counts) / (time.monotonic() - begun)


async def _requests(host: str, port: int, path: str, body: bytes, until: float) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    count = 0
    while time.monotonic() < until:
        status = await exchange(reader, writer, path, body)
        if status != "200":
            raise RuntimeError(f"the collector answered with {status}")
        count += 1
    writer.close()
    return count


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes) -> str:
    """Upload a body under a new id on an open connection and return the status of the response."""
    body = f"{secrets.token_hex(16)}\n".encode() + body
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
    await reader.readexactly(int(length.partition(b":")[2]))
    return answer[9:12].decode()
