"""Counters for Prometheus. They name collections and outcomes, never a client and nothing of a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sunzi.collector.collector import Collector
from sunzi.collector.writer import Writer


class Metrics:
    """A registry of its own, so that several services may live in one process."""

    def __init__(self, collector: Collector, writer: Writer[Any]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._counters: dict[tuple[str, str], Counter] = {}
        self._uploads = Counter(
            "sunzi_uploads", "Uploads by what became of them", ["collection", "outcome"], registry=self._registry
        )
        self.refused = Counter("sunzi_refused", "Requests refused, by status", ["status"], registry=self._registry)
        self._registry.register(_State(collector, writer))

    def count_upload(self, collection: str, outcome: str) -> None:
        """One upload more."""
        counter = self._counters.get((collection, outcome))
        if counter is None:
            counter = self._counters[collection, outcome] = self._uploads.labels(collection, outcome)
        counter.inc()

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)


class _State:
    """What the collector and the writer know themselves, read when asked for."""

    def __init__(self, collector: Collector, writer: Writer[Any]) -> None:
        self._collector, self._writer = collector, writer

    def collect(self) -> Iterable[Metric]:
        """One reading."""
        reports = GaugeMetricFamily("sunzi_reports", "Reports counted", labels=["collection", "epoch"])
        is_open = GaugeMetricFamily("sunzi_epoch_open", "1 while an epoch is open", labels=["collection", "epoch"])
        for live in self._collector.epochs():
            labels = [live.epoch.collection, str(live.epoch.number)]
            reports.add_metric(labels, live.epoch.reports)
            is_open.add_metric(labels, float(live.epoch.is_open))
        yield reports
        yield is_open
        yield GaugeMetricFamily("sunzi_waiting_deposits", "Uploads that wait to be written", value=self._writer.waiting)
        counts = self._writer.counts
        yield CounterMetricFamily("sunzi_commits", "Transactions", value=counts.groups)
        yield CounterMetricFamily("sunzi_committed_deposits", "Uploads in transactions", value=counts.deposits)
        yield CounterMetricFamily("sunzi_commit_failures", "Transactions that failed", value=counts.failures)
