"""The whole library: import time, peak memory of a large decoding, and the time from reports to frequencies."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from functools import partial
from time import process_time
from typing import Any

from benchmarks import children, settings
from benchmarks.measure import paired, seconds
from benchmarks.results import Result
from benchmarks.servers import FEW_USERS, batch_of
from sunzi.numerics import kernels
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import Plan, make_plan
from sunzi.results.estimate import Estimate

MANY_VALUES = 10_000_000
_EVERYTHING = "import sunzi\nfor name in sunzi.__all__: getattr(sunzi, name)"


def importing(scale: float) -> Iterator[Result]:
    """Importing the package, which loads names on first use, and loading every name at once."""
    for name, statement, bound in (("sunzi", "import sunzi", 2.0), ("every-name", _EVERYTHING, None)):
        times = paired(
            [
                (children.measured_import(statement), children.measured_import("import numpy"))
                for _ in range(settings.rounds(9, scale))
            ]
        )
        wording = "import sunzi" if bound else "import sunzi and load every public name"
        yield Result(f"import/{name}", wording, times.measured, "import numpy", times.reference, times.slowdown, bound)


def memory(scale: float) -> Iterator[Result]:
    """Peak memory of a process that decodes a compact modular tally of ten million values."""
    found = children.call("whole:decode_many_values", scale)
    yield Result(
        "memory/mss-compact",
        f"decode mss-compact, {found['domain_size']:,} values; the ratio is peak memory, not time",
        found["seconds"],
        "1 GiB of memory",
        None,
        found["peak_bytes"] / 2**30,
        12,
        "at most",
        found,
    )


def decode_many_values(scale: float) -> dict[str, Any]:
    """Decode once; return the time and the peak resident size of this process."""
    size, users = settings.domain_size(MANY_VALUES, scale), settings.users(settings.USERS, scale)
    plan = make_plan("mss-compact", size, settings.EPSILON)
    tally = plan.simulate(settings.values(users, size), seed=settings.SEED)
    start = process_time()
    plan.estimate(tally, weights="planned")
    taken = process_time() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"domain_size": size, "users": users, "seconds": taken, "peak_bytes": peak}


def whole_way(scale: float) -> Iterator[Result]:
    """From reports to frequencies by planned weights, with a warm plan and with numba if it is installed. The library
    chooses between transforms and direct counting.
    """
    kernels.load()
    size = settings.domain_size(settings.DOMAIN_SIZE, scale)
    for name in ("mss-compact", "mss"):
        for full_count in (FEW_USERS, settings.USERS):
            for epsilon in settings.EPSILONS:
                plan, count = make_plan(name, size, epsilon), settings.users(full_count, scale)
                plan.estimate(plan.simulate(settings.values(2000, size), seed=settings.SEED), weights="planned")
                measure = _from_memory if (name, full_count) == ("mss", settings.USERS) else _from_bytes
                label = f"whole-way/{name}/n-{count}/epsilon-{epsilon}"
                yield measure(label, plan, count, settings.rounds(3, scale))


def _from_bytes(label: str, plan: Plan, count: int, rounds: int) -> Result:
    messages = plan.protocol.randomize(settings.values(count, plan.domain.size), ReproducibleSource(settings.SEED))
    batch = batch_of(plan, messages)
    taken = seconds(partial(_read, plan, batch), rounds)
    return Result(label, f"{_setting(plan, count)}, from bytes", taken, details={"start": "bytes", "bytes": len(batch)})


def _from_memory(label: str, plan: Plan, count: int, rounds: int) -> Result:
    """The reports of a million users fill gigabytes, so their subsets are counted as they are drawn; the measured time
    includes drawing them.
    """
    values = settings.values(count, plan.domain.size)
    start = process_time()
    tally = plan.simulate(values, seed=settings.SEED)
    drawn = process_time() - start
    decoded = seconds(partial(plan.estimate, tally, weights="planned"), rounds)
    details = {"start": "values, whose subsets are drawn and counted in memory", "counted": drawn, "decoded": decoded}
    return Result(label, f"{_setting(plan, count)}, simulated: drawn and counted", drawn + decoded, details=details)


def _read(plan: Plan, batch: bytes) -> Estimate:
    return plan.estimate(plan.tally(batch), weights="planned")


def _setting(plan: Plan, count: int) -> str:
    return f"{count:,} reports of {plan.protocol.name}, ε = {plan.epsilon}"
