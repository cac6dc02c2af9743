"""The guarantee of a batch: its time for every protocol, whose bound is one second for any number of reports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import settings
from benchmarks.measure import seconds
from benchmarks.results import Result
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue

DOMAIN_SIZE, DELTA = 1024, 1e-10
EPSILONS = (1, 4, 6)
REPORTS = (10**3, 10**4, 10**5, 10**6, 10**9)


def batches(scale: float) -> Iterator[Result]:
    """The slowest guarantee of each protocol among these ε and numbers of reports."""
    rounds = settings.rounds(3, scale)
    for name in catalogue():
        times = {}
        for epsilon in EPSILONS:
            plan = make_plan(name, DOMAIN_SIZE, epsilon)
            for reports in REPORTS:
                times[epsilon, reports] = seconds(partial(plan.batch_guarantee, reports, DELTA), rounds)
        epsilon, reports = max(times, key=times.__getitem__)
        slowest = times[epsilon, reports]
        yield Result(
            f"batches/{name}",
            f"guarantee of a batch of {name}, {DOMAIN_SIZE:,} values: slowest of 10³ to 10⁹ reports and ε = 1, 4 and 6",
            slowest,
            "one second",
            1.0,
            slowest,
            1.0,
            details={"epsilon": epsilon, "reports": reports},
        )
