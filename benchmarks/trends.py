"""A trend over a year of daily epochs, as the collector answers it, against one decoding."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks import settings
from benchmarks.efficient import tally_of
from benchmarks.measure import compare
from benchmarks.results import Result
from sunzi.collector import Collector, open_store
from sunzi.collector.epochs import Deposit
from sunzi.collector.trends import TrendCache, TrendProgress
from sunzi.plan import Plan, make_plan
from sunzi.tally import Tally

USERS = 100_000
EPSILON = 2
EPOCHS = 365
BOUND = 30.0
"""The most decodings that a trend may take: less than two seconds where one takes 50 ms."""


def trends(scale: float) -> Iterator[Result]:
    """The ten most frequent values and all alarms as JSON, after the first time, with nothing else kept than the
    estimates of closed epochs. The reference is one decoding with the standard errors.
    """
    epochs = max(3, round(EPOCHS * scale))
    plan = make_plan("mss", settings.domain_size(settings.DOMAIN_SIZE, scale), EPSILON)
    tally, size = tally_of(plan, settings.users(USERS, scale)), plan.domain.size
    with tempfile.TemporaryDirectory() as directory, closing(open_store(Path(directory) / "store.db")) as store:
        collector = Collector(store)
        _fill(collector, plan, tally, epochs)
        cache = TrendCache(collector)
        _answer(cache)
        times = compare(partial(_answer, cache), partial(_decoded, plan, tally), settings.rounds(3, scale))
    yield Result(
        f"trends/mss/k-{size}/epochs-{epochs}",
        f"a trend over {epochs} epochs, mss, {size:,} values",
        times.measured,
        "one decoding with standard errors",
        times.reference,
        times.slowdown,
        BOUND,
        "at most",
        {"domain_size": size, "epsilon": EPSILON, "epochs": epochs},
    )


def _fill(collector: Collector, plan: Plan, tally: Tally, epochs: int) -> None:
    """Closed epochs with the same tally."""
    cells, counts = tally.counters.nonzero()
    for _ in range(epochs):
        epoch = collector.open_next("default", plan)
        collector.store.commit([Deposit(epoch.key, bytes(16), tally.reports, cells, counts)])
    collector.open_next("default", plan)


def _answer(cache: TrendCache) -> None:
    cache._newest = None  # the estimates of closed epochs stay
    found = cache.get("default", EPOCHS, 1, seconds=float("inf"))
    assert not isinstance(found, TrendProgress), "there is no limit"
    json.dumps(found.trend.to_dict(found.trend.most_frequent(10)))


def _decoded(plan: Plan, tally: Tally) -> None:
    plan.estimate(tally).standard_errors("population")
