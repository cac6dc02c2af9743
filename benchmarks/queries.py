"""Sums, differences and comparisons of estimates, against one decoding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import sunzi
from benchmarks import settings
from benchmarks.efficient import tally_of
from benchmarks.measure import Comparison, compare
from benchmarks.results import Result
from sunzi.plan import Plan, make_plan
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally

USERS = 100_000
EPSILON = 2
BOUNDS = {"mss": 2.0, "mss-compact": 2.0, "ss-compact": 1.0, "pgr": 1.0}
"""The most decodings that one question may take."""


def queries(scale: float) -> Iterator[Result]:
    """The sum of a tenth of all values, and the difference of two, on an estimate with efficient weights."""
    rounds = settings.rounds(5, scale)
    for name, bound in BOUNDS.items():
        plan = make_plan(name, settings.domain_size(settings.DOMAIN_SIZE, scale), EPSILON)
        tally = tally_of(plan, settings.users(USERS, scale))
        estimate, decode = plan.estimate(tally), partial(plan.estimate, tally)
        some = np.arange(0, plan.domain.size, 10)
        yield _row(plan, "sum", compare(partial(estimate.sum, some), decode, rounds), bound)
        yield _row(plan, "difference", compare(partial(estimate.difference, 1, 2), decode, rounds), bound)


def _row(plan: Plan, question: str, times: Comparison, bound: float) -> Result:
    name, size = plan.protocol.name, plan.domain.size
    wording = {"sum": "the sum of a tenth of all values", "difference": "the difference of two values"}[question]
    return Result(
        f"queries/{name}/k-{size}/{question}",
        f"{wording}, {name}, {size:,} values",
        times.measured,
        "one decoding with efficient weights",
        times.reference,
        times.slowdown,
        bound,
        "at most",
        {"domain_size": size, "epsilon": EPSILON},
    )


def changes(scale: float) -> Iterator[Result]:
    """What changed between two estimates whose errors are known: the clearest changes with intervals and verdicts, and
    the p-value of no change. The reference is one decoding with the interval of every value.
    """
    rounds = settings.rounds(3, scale)
    for name in BOUNDS:
        plan = make_plan(name, settings.domain_size(settings.DOMAIN_SIZE, scale), EPSILON)
        tally = tally_of(plan, settings.users(USERS, scale))
        sides = [plan.estimate(tally), plan.estimate(tally)]
        times = compare(partial(_compared, *sides), partial(_decoded, plan, tally), rounds)
        size = plan.domain.size
        yield Result(
            f"changes/{name}/k-{size}",
            f"all changes between two estimates, {name}, {size:,} values",
            times.measured,
            "one decoding with intervals",
            times.reference,
            times.slowdown,
            details={"domain_size": size, "epsilon": EPSILON},
        )


def _decoded(plan: Plan, tally: Tally) -> None:
    plan.estimate(tally).interval()


def _compared(before: Estimate, after: Estimate) -> None:
    found = sunzi.difference(before, after)
    found.top()
    found.p_value()
