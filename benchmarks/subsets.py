"""Reports of plain subsets: making them, counting them, and all the way from bytes to frequencies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from shutil import which
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import children, settings
from benchmarks.measure import Comparison, compare, paired
from benchmarks.results import Result
from sunzi.numerics import kernels
from sunzi.plan import Plan, make_plan
from sunzi.results.estimate import Estimate

REPORTS = 2_000
MANY_REPORTS = 100_000
SINGLE_REPORTS = 50
EPSILONS = (1, 5)
PROTOCOLS = ("mss", "ss")
CLIENT = children.ROOT / "clients" / "javascript"


def subsets(scale: float) -> Iterator[Result]:
    """Making and counting reports with and without `fast`, and in JavaScript, against a bitmap of as many points."""
    yield from (Result.from_json(entry) for entry in coded(scale))
    plain = children.call("subsets:coded", scale, {"SUNZI_NO_NUMBA": "1"})
    yield from (Result.from_json(entry) for entry in plain)
    yield from _javascript(scale)
    yield from _from_bytes(scale)


def _javascript(scale: float) -> Iterator[Result]:
    """Single reports by the JavaScript client, where Node.js and the built client are there."""
    node, size = which("node"), settings.domain_size(settings.DOMAIN_SIZE, scale)
    if node is None or not (CLIENT / "dist" / "subsets.js").exists():
        return
    for name in PROTOCOLS:
        for epsilon in EPSILONS:
            plan = make_plan(name, size, epsilon)
            points = round(plan.protocol.tally_layout.length / len(plan.protocol.responses))
            command = [node, "benchmark/single.js", str(points), str(SINGLE_REPORTS), str(settings.rounds(5, scale))]
            done = subprocess.run(command, cwd=CLIENT, input=plan.canonical, check=True, stdout=subprocess.PIPE)
            times = paired([(mine, theirs) for mine, theirs in json.loads(done.stdout)])
            yield Result(
                f"subsets/single/{name}/epsilon-{epsilon}/javascript",
                f"make one report of {name} alone, ε = {epsilon}, in JavaScript",
                times.measured,
                "packing a bitmap",
                times.reference,
                times.slowdown,
                details={"domain_size": size, "epsilon": epsilon, "points": points, "bits": plan.report_bits},
            )


def coded(scale: float) -> list[dict[str, Any]]:
    """All rows of this process, with numba if it is installed."""
    kernels.load()
    settled = [(name, epsilon) for name in PROTOCOLS for epsilon in EPSILONS]
    return [result.to_json() for name, epsilon in settled for result in _coded(name, epsilon, scale)]


def _coded(name: str, epsilon: int, scale: float) -> Iterator[Result]:
    count, size = settings.users(REPORTS, scale), settings.domain_size(settings.DOMAIN_SIZE, scale)
    fast, rounds = kernels.load() is not None, settings.rounds(5, scale)
    plan = make_plan(name, size, epsilon)
    client, values = plan.client(), settings.values(count, size)
    points = round(plan.protocol.tally_layout.length / len(plan.protocol.responses))
    table = np.random.default_rng(settings.SEED).random((count, points)) < 0.5
    bitmaps = np.packbits(table, axis=1)
    batch = client.report_batch(values)
    packing, summing = partial(np.packbits, table, axis=1), partial(_sum_bitmaps, bitmaps)

    def result(step: str, wording: str, each: int, times: Comparison, reference: str, bound: float | None) -> Result:
        engine = "with" if fast else "without"
        details = {
            "reports": count,
            "domain_size": size,
            "epsilon": epsilon,
            "points": points,
            "bits": plan.report_bits,
        }
        return Result(
            f"subsets/{step}/{name}/epsilon-{epsilon}/{'fast' if fast else 'plain'}",
            f"{wording.format(name)}, ε = {epsilon}, {engine} numba",
            times.measured / each,
            reference,
            times.reference / count,
            times.slowdown * count / each,
            bound,
            "at most",
            details,
        )

    made = compare(partial(client.report_batch, values), packing, rounds)
    yield result("make", "make one report of {} in a batch", count, made, "packing a bitmap", None)
    singly = compare(partial(_one_by_one, client.report_index, values[:SINGLE_REPORTS]), packing, rounds)
    yield result("single", "make one report of {} alone", SINGLE_REPORTS, singly, "packing a bitmap", None)
    counted = compare(partial(plan.tally, batch), summing, rounds)
    bound = 20 if fast else 60 if name == "ss" else None  # numpy needs hundreds of reports per modulus
    yield result("count", "count one report of {}", count, counted, "summing bitmaps", bound)


def _one_by_one(report: Any, values: NDArray[np.int64]) -> None:
    for value in values.tolist():
        report(value)


def _sum_bitmaps(bitmaps: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many of the bitmaps have each bit, a few rows at a time."""
    step = 64
    parts = (np.unpackbits(bitmaps[first : first + step], axis=1) for first in range(0, len(bitmaps), step))
    return np.sum([part.sum(axis=0, dtype=np.int64) for part in parts], axis=0)


def _from_bytes(scale: float) -> Iterator[Result]:
    """From bytes to frequencies against simulating the same reports in memory; both grow with the reports."""
    kernels.load()
    count, size = settings.users(MANY_REPORTS, scale), settings.domain_size(settings.DOMAIN_SIZE, scale)
    values = settings.values(count, size)
    for epsilon in EPSILONS:
        plan = make_plan("mss", size, epsilon)
        batch = plan.client().report_batch(values)
        times = compare(partial(_read, plan, batch), partial(_simulate, plan, values), settings.rounds(3, scale))
        yield Result(
            f"subsets/from-bytes/mss/epsilon-{epsilon}",
            f"{count:,} reports of mss, ε = {epsilon}, from bytes to frequencies",
            times.measured,
            "simulating them in memory",
            times.reference,
            times.slowdown,
            10 if epsilon == 1 else None,
            "at most",
            {"reports": count, "domain_size": size, "epsilon": epsilon, "bytes": len(batch)},
        )


def _read(plan: Plan, batch: bytes) -> Estimate:
    return plan.estimate(plan.tally(batch), weights="planned")


def _simulate(plan: Plan, values: NDArray[np.int64]) -> Estimate:
    return plan.estimate(plan.simulate(values, seed=settings.SEED), weights="planned")
