"""What strangers can do to a collector's resources: honest delays and memory under attack, goodput, many epochs."""

from __future__ import annotations

import asyncio
import io
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import numpy as np

from benchmarks import settings
from benchmarks.collector import EPOCH, Served, exchange, running_collector
from benchmarks.results import Result
from sunzi import wire
from sunzi.collector import Collector, open_store
from sunzi.plan import Plan, make_plan

SECONDS = 4.0
ROUNDS = 2
HONEST = 10
ATTACKERS = 16
WARM_UP_SECONDS = 2.0
HALF_OPEN = 1100
OPEN_FILES = 1024
WIDE_VALUES = 520_000
FEW, MANY = 16, (256, 1024)
EPOCHS = 1000
LABELS = 22_000
MEBIBYTE = 1 << 20
WIDE_CONNECTIONS = 800
_GENTLE = 10

Attack = Callable[[Served, float], Awaitable[None]]


def resources(scale: float) -> Iterator[Result]:
    """Honest reports on ten connections, alone and beside each attack; and the memory that the collector took."""
    plan = make_plan("oue", 2, settings.EPSILON)
    labels = [f"label number {number}" for number in range(settings.domain_size(LABELS, scale))]
    others = {
        "wide": make_plan("oue", settings.domain_size(WIDE_VALUES, scale), settings.EPSILON),
        "labels": make_plan("mss-compact", labels, settings.EPSILON),
    }
    seconds, rounds = max(0.5, SECONDS * scale), settings.rounds(ROUNDS, scale)
    for name in ATTACKS:
        with running_collector(plan, others, OPEN_FILES) as served:
            measured = [_alone_and_attacked(name, served, plan, seconds) for _ in range(rounds)]
            memory = _most_memory(served.process)
        alone, attacked = (median(column) for column in zip(*measured, strict=True))
        yield Result(
            f"collector/{name}",
            f"99 of 100 honest reports are answered within this, beside {name.replace('-', ' ')}",
            attacked,
            "the same without an attack",
            alone,
            median(attacked / alone for alone, attacked in measured),
            3,
            "at most",
            {"attackers": ATTACKERS},
        )
        yield Result(
            f"collector/{name}-memory",
            f"memory of the collector beside {name.replace('-', ' ')}, as a share of 1 GiB",
            attacked,
            ratio=memory / (1 << 30),
            bound=1,
            details={"bytes": memory},
        )


def _alone_and_attacked(name: str, served: Served, plan: Plan, seconds: float) -> tuple[float, float]:
    alone = asyncio.run(_honest_delay(served, plan, seconds))
    with _crowd(name, served, seconds):
        return alone, asyncio.run(_honest_delay(served, plan, seconds))


@contextmanager
def _crowd(name: str, served: Served, seconds: float) -> Iterator[None]:
    """Attackers in another process, so that they do not slow down the honest clients' own event loop."""
    context = get_context("spawn")
    begun = context.Event()
    attackers = context.Process(target=_attack, args=(name, served, seconds + WARM_UP_SECONDS, begun))
    attackers.start()
    begun.wait(60)
    time.sleep(WARM_UP_SECONDS)
    try:
        yield
    finally:
        attackers.join()


def _attack(name: str, served: Served, seconds: float, begun: Event) -> None:
    os.nice(_GENTLE)  # attackers have machines of their own: they get what the collector leaves of this one
    begun.set()
    asyncio.run(_attack_together(ATTACKS[name], served, seconds))


async def _attack_together(attack: Attack, served: Served, seconds: float) -> None:
    until = time.monotonic() + seconds
    await asyncio.gather(*(_repeat(attack, served, until) for _ in range(ATTACKERS)))


async def _honest_delay(served: Served, plan: Plan, seconds: float) -> float:
    """99th percentile of the time of an honest report."""
    until = time.monotonic() + seconds
    delays = await asyncio.gather(*(_honest(served, plan, until) for _ in range(HONEST)))
    return float(np.percentile(np.concatenate(delays), 99))


async def _repeat(attack: Attack, served: Served, until: float) -> None:
    while time.monotonic() < until:
        with suppress(OSError, asyncio.IncompleteReadError):  # the collector may cut an attacker off
            await attack(served, until)


async def _honest(served: Served, plan: Plan, until: float) -> list[float]:
    """Send single reports with pauses; connect again, as clients do, if the connection was closed."""
    report, delays = plan.client().report_index(0), []
    path = f"{EPOCH}/reports?plan={plan.fingerprint}"
    while time.monotonic() < until:
        begun = time.monotonic()
        reader, writer = await asyncio.open_connection(served.host, served.port)
        status = await exchange(reader, writer, path, report)
        if status != "200":
            raise RuntimeError(f"an honest report was answered with {status}")
        delays.append(time.monotonic() - begun)
        writer.close()
        await asyncio.sleep(0.02)
    return delays


async def _operator_bodies(served: Served, _until: float) -> None:
    """Send megabytes of JSON to an operator route without knowing the admin token."""
    reader, writer = await asyncio.open_connection(served.host, served.port)
    await exchange(reader, writer, "/v1/collections/default/epochs", b"[" + b"[]," * MEBIBYTE + b"[]]")
    writer.close()


async def _tiny_reports(served: Served, _until: float) -> None:
    """Send a batch of 4 MiB that holds 16 million reports."""
    reader, writer = await asyncio.open_connection(served.host, served.port)
    await exchange(reader, writer, f"{EPOCH}/batches", _large_batch())
    writer.close()


async def _wide_reports(served: Served, until: float) -> None:
    """Send reports of 65 kB, each of which takes a megabyte once it is decoded, on fifty connections."""
    plan = _fetched(served, "wide")
    report, path = plan.client().report_index(0), f"/v1/collections/wide/epochs/1/reports?plan={plan.fingerprint}"

    async def send() -> None:
        reader, writer = await asyncio.open_connection(served.host, served.port)
        while time.monotonic() < until:
            await exchange(reader, writer, path, report)
        writer.close()

    await asyncio.gather(*(send() for _ in range(WIDE_CONNECTIONS // ATTACKERS)))


async def _half_open(served: Served, until: float) -> None:
    """Open connections, more than the collector has files, and send half a request on each."""
    opened = [await asyncio.open_connection(served.host, served.port) for _ in range(-(-HALF_OPEN // ATTACKERS))]
    for _, writer in opened:
        writer.write(f"POST {EPOCH}/batches HTTP/1.1\r\nHost: x\r\n".encode())
    await asyncio.sleep(min(2.0, max(0.0, until - time.monotonic())))
    for _, writer in opened:
        writer.close()


async def _plans(served: Served, _until: float) -> None:
    """Fetch a plan with many labels again and again."""
    reader, writer = await asyncio.open_connection(served.host, served.port)
    for _ in range(50):
        writer.write(b"GET /v1/collections/labels/plan HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
    writer.close()


ATTACKS: dict[str, Attack] = {
    "bodies-for-operators": _operator_bodies,
    "millions-of-tiny-reports": _tiny_reports,
    "wide-reports": _wide_reports,
    "half-open-connections": _half_open,
    "plan-downloads": _plans,
}


@cache
def _fetched(served: Served, collection: str) -> Plan:
    with urlopen(f"http://{served.host}:{served.port}/v1/collections/{collection}/epochs/1/plan") as answer:
        return Plan.from_json(answer.read())


@cache
def _large_batch() -> bytes:
    """A valid batch of nearly 4 MiB."""
    plan = make_plan("oue", 2, settings.EPSILON)
    layout, fingerprint = plan.protocol.report_layout, bytes.fromhex(plan.fingerprint)
    reports = plan.client().report_indices(np.zeros(1000, dtype=np.int64))
    (piece,) = wire.read_batches(io.BytesIO(reports), layout, fingerprint)
    copies = int(31 * MEBIBYTE / wire.mean_bits(layout)) // 1000
    many = wire.EncodedReports(np.tile(piece.selectors, copies), (np.concatenate([piece.payloads[0]] * copies),))
    return wire.encode_batch(layout, fingerprint, many)


def _most_memory(process: int) -> int:
    """The largest memory that a process has used so far, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def connections(scale: float) -> Iterator[Result]:
    """Reports that a collector counts in a second, over 16 connections, over 256 and over 1,024."""
    rounds = settings.rounds(ROUNDS, scale)
    for name in ("ss-compact", "oue", "rappor", "mss"):
        plan = make_plan(name, settings.domain_size(4096, scale), settings.EPSILON)
        with running_collector(plan) as served:
            measured = [
                [asyncio.run(_goodput(served, plan, number, SECONDS * scale)) for number in (FEW, *MANY)]
                for _ in range(rounds)
            ]
        for column, number in enumerate(MANY, start=1):
            yield Result(
                f"collector/{name}-connections-{number}",
                f"count one report of `{name}` over {number:,} connections",
                1 / median(row[column] for row in measured),
                f"over {FEW} connections",
                1 / median(row[0] for row in measured),
                median(row[column] / row[0] for row in measured),
                0.8,
                "at least",
                {"domain_size": plan.domain.size},
            )


async def _goodput(served: Served, plan: Plan, number: int, seconds: float) -> float:
    """Counted reports per second over connections that are open before."""
    client, answers = plan.client(seed=settings.SEED), Counter[str]()
    reports = cycle([client.report_index(0) for _ in range(100)])
    path = f"{EPOCH}/reports?plan={plan.fingerprint}"
    opened = [await asyncio.open_connection(served.host, served.port) for _ in range(number)]
    begun = time.monotonic()

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while time.monotonic() < begun + seconds:
            answers[await exchange(reader, writer, path, next(reports))] += 1
        writer.close()

    await asyncio.gather(*(send(reader, writer) for reader, writer in opened))
    return answers["200"] / (time.monotonic() - begun)


def many_epochs(scale: float) -> Iterator[Result]:
    """Start a collector on a store of a thousand epochs of 22,000 labels, and on one with a single epoch."""
    count, rounds = max(2, round(EPOCHS * scale)), settings.rounds(5, scale)
    labels = [f"label number {number}" for number in range(settings.domain_size(LABELS, scale))]
    plan = make_plan("mss-compact", labels, settings.EPSILON)
    taken = {}
    with TemporaryDirectory() as directory:
        for epochs in (1, count):
            path = Path(directory) / f"{epochs}.db"
            store = open_store(path)
            for _ in range(epochs - 1):
                store.close_epoch(store.open_epoch("default", plan.canonical, 1).key)
            store.open_epoch("default", plan.canonical, plan.protocol.tally_layout.length)
            store.close()
            taken[epochs] = median(_start_seconds(path) for _ in range(rounds))
    yield Result(
        "collector/epochs",
        f"start with {count:,} epochs of {len(labels):,} labels and load one plan; the ratio is a share of 2 s",
        taken[count],
        "the same with one epoch",
        taken[1],
        taken[count] / 2.0,
        1,
        "at most",
        {"epochs": count, "bound_seconds": 2.0},
    )


def _start_seconds(path: Path) -> float:
    begun = time.perf_counter()
    store = open_store(path)
    Collector(store).find("default")
    taken = time.perf_counter() - begun
    store.close()
    return taken
