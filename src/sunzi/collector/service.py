"""The state that all routes of a running service share: its collector and writer, quotas, metrics and access checks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from sunzi.client.errors import StoreError
from sunzi.collector.audit_log import AuditLog
from sunzi.collector.collector import Collector
from sunzi.collector.discoveries import DiscoveryCache
from sunzi.collector.epochs import Outcome
from sunzi.collector.publication import Publisher
from sunzi.collector.refusals import RefusalError
from sunzi.collector.rotation import Rotation, Rotator, Step
from sunzi.collector.settings import LiveSettings, Settings, is_local
from sunzi.collector.store import Store
from sunzi.collector.trends import TrendCache
from sunzi.collector.writer import OverloadError, Result, Writer
from sunzi.results.trends import EPOCHS_PER_FALSE_ALARM

Ticket = asyncio.Future[Outcome]
Returned = TypeVar("Returned")

_CHECK_SECONDS = 1.0
_WRONG_TOKEN_SECONDS = 1.0
_CHECK_WAIT_SECONDS = 5.0
_CLOSE_SECONDS = 15.0
_ROTATION_SECONDS = 1.0  # a rotation that is cut off is undone, and done at the next start
_TREND_SECONDS = 0.5
_WAITING_SEARCHES = 8  # each takes seconds


class ThreadQueue:
    """Runs blocking work in threads: ``workers`` at a time, ``waiting`` more in a queue, and refuses the rest."""

    def __init__(self, workers: int, waiting: int) -> None:
        self._workers, self._limit, self._inside = asyncio.Semaphore(workers), workers + waiting, 0

    async def run(self, work: Callable[..., Returned], *arguments: object) -> Returned:
        """Return the result of the work, or raise OverloadError if the queue is full."""
        if self._inside >= self._limit:
            raise OverloadError("too many requests are waiting already; send it again later")
        self._inside += 1
        try:
            async with self._workers:
                return await run_in_threadpool(work, *arguments)
        finally:
            self._inside -= 1


class Readiness:
    """Whether reports can be counted now. The store is checked at most once per second, on a separate thread."""

    def __init__(self, store: Store, writer: Writer[Ticket]) -> None:
        self._store, self._writer = store, writer
        self._lock, self._checked_until = threading.Lock(), 0.0
        self._result: Future[None] | None = None

    def check(self) -> None:
        """Raise unless reports can be counted. A store that does not answer within five seconds is not ready."""
        if not self._writer.is_alive:
            raise _not_ready("the writer has stopped")
        if self._writer.is_stuck:
            raise _not_ready("the store does not answer")
        if self._writer.is_failing:
            raise _not_ready("the last commit failed")
        if time.monotonic() < self._checked_until:
            return
        try:
            self._current_check().result(_CHECK_WAIT_SECONDS)
        except TimeoutError:
            raise _not_ready("the store does not answer") from None
        self._checked_until = time.monotonic() + _CHECK_SECONDS

    def _current_check(self) -> Future[None]:
        """The check that is running, or a new one."""
        with self._lock:
            if self._result is None or self._result.done():
                self._result = Future()
                threading.Thread(target=self._run, args=(self._result,), name="sunzi-check", daemon=True).start()
            return self._result

    def _run(self, result: Future[None]) -> None:
        try:
            self._store.check()
        except BaseException as error:  # for the requests that wait for it
            result.set_exception(error)
        else:
            result.set_result(None)


def _not_ready(message: str) -> RefusalError:
    return RefusalError(503, "NotReady", message, 5)


class Metrics:
    """Prometheus metrics, labelled by collection and outcome, never by client.

    Each service has its own registry, so several can run in one process.
    """

    def __init__(self, collector: Collector, writer: Writer[Ticket], trends: TrendCache, minimum_reports: int) -> None:
        self._collector, self._writer, self._trends = collector, writer, trends
        self._minimum_reports = minimum_reports
        self._registry = CollectorRegistry(auto_describe=False)
        self._counters: dict[tuple[str, str], Counter] = {}
        self._uploads = Counter(
            "sunzi_uploads", "Uploads by outcome", ["collection", "outcome"], registry=self._registry
        )
        self.refused = Counter("sunzi_refused", "Refused requests by status", ["status"], registry=self._registry)
        self._registry.register(self)

    def count_upload(self, collection: str, outcome: str) -> None:
        """Count one upload."""
        counter = self._counters.get((collection, outcome))
        if counter is None:
            counter = self._counters[collection, outcome] = self._uploads.labels(collection, outcome)
        counter.inc()

    def page(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """The current state of the collector and the writer; called by the registry."""
        reports = GaugeMetricFamily("sunzi_reports", "Reports counted", labels=["collection", "epoch"])
        is_open = GaugeMetricFamily("sunzi_epoch_open", "1 while an epoch is open", labels=["collection", "epoch"])
        epochs = self._collector.epochs()
        for epoch in epochs:
            labels = [epoch.collection, str(epoch.number)]
            reports.add_metric(labels, epoch.reports)
            is_open.add_metric(labels, float(epoch.is_open))
        yield reports
        yield is_open
        yield from self._alarms(sorted({epoch.collection for epoch in epochs}))
        yield GaugeMetricFamily("sunzi_waiting_deposits", "Uploads waiting for a commit", value=self._writer.waiting)
        counts = self._writer.counts
        yield CounterMetricFamily("sunzi_commits", "Transactions", value=counts.groups)
        yield CounterMetricFamily("sunzi_committed_deposits", "Uploads in transactions", value=counts.deposits)
        yield CounterMetricFamily("sunzi_commit_failures", "Failed transactions", value=counts.failures)
        yield CounterMetricFamily("sunzi_commit_seconds", "Time that transactions took", value=counts.seconds)
        yield GaugeMetricFamily("sunzi_store_bytes", "Size of the store on disk", value=self._collector.store.size())

    def _alarms(self, collections: Iterable[str]) -> Iterable[Metric]:
        """Values that changed. A collection is missing until all its closed epochs are estimated, some per scrape."""
        alarms = GaugeMetricFamily(
            "sunzi_alarms",
            f"Values that changed, by the newest closed epoch; by chance, one in {EPOCHS_PER_FALSE_ALARM} epochs",
            labels=["collection", "direction"],
        )
        for name in collections:
            found = self._trends.newest_alarms(name, self._minimum_reports, _TREND_SECONDS)
            for direction in ("up", "down") if found is not None else ():
                alarms.add_metric([name, direction], sum(alarm.direction == direction for alarm in found or ()))
        yield alarms


@dataclass(frozen=True)
class Service:
    """A running collector."""

    live_settings: LiveSettings
    audit: AuditLog
    collector: Collector
    publisher: Publisher
    trends: TrendCache
    discoveries: DiscoveryCache
    writer: Writer[Ticket]
    metrics: Metrics
    decoding: ThreadQueue
    large_decoding: ThreadQueue
    lookups: ThreadQueue
    plans: ThreadQueue
    searching: ThreadQueue
    readiness: Readiness
    rotator: Rotator | None

    @classmethod
    def start(cls, settings: Settings, collector: Collector) -> Service:
        """Start the writer; called in the event loop that serves the requests."""
        loop = asyncio.get_running_loop()

        def deliver(results: list[tuple[Ticket, Result]]) -> None:
            if not loop.is_closed():  # else the store answered after the service had given up on it
                loop.call_soon_threadsafe(_resolve, results)

        writer: Writer[Ticket] = Writer(collector.store, deliver, settings.waiting_deposits, settings.waiting_bytes)
        trends, audit = TrendCache(collector), AuditLog(settings.audit_log)
        return cls(
            LiveSettings(settings),
            audit,
            collector,
            Publisher(collector, settings),
            trends,
            DiscoveryCache(),
            writer,
            Metrics(collector, writer, trends, settings.minimum_reports),
            decoding=ThreadQueue(workers=1, waiting=settings.connections),
            large_decoding=ThreadQueue(workers=1, waiting=32),
            lookups=ThreadQueue(workers=1, waiting=settings.connections),
            plans=ThreadQueue(workers=1, waiting=settings.connections),
            searching=ThreadQueue(workers=1, waiting=_WAITING_SEARCHES),
            readiness=Readiness(collector.store, writer),
            rotator=_rotator(settings, collector, writer, audit),
        )

    @property
    def settings(self) -> Settings:
        """The settings with the secrets as they are now."""
        return self.live_settings.current

    def stop(self) -> None:
        """Commit all accepted reports and close the store; give up on a store that does not answer."""
        if self.rotator is not None:
            self.rotator.stop(_ROTATION_SECONDS)
        self.writer.close(_CLOSE_SECONDS)
        self.audit.close()
        self.collector.store.close()


def _rotator(settings: Settings, collector: Collector, writer: Writer[Ticket], audit: AuditLog) -> Rotator | None:
    """Start to rotate epochs, if the settings say so."""
    if settings.rotate is None:
        return None

    def stepped(step: Step) -> None:
        audit.write_scheduled(step.action, {"collection": step.collection, "epoch": step.epoch})
        if step.action == "close_epoch":
            writer.settle()  # a concurrent reader may have kept the ids from being wiped

    return Rotator(Rotation(collector, settings.rotate, settings.grace_seconds), stepped)


def _resolve(results: list[tuple[Ticket, Result]]) -> None:
    for ticket, result in results:
        if ticket.done():  # the client disconnected; its report stays counted
            continue
        if isinstance(result, Outcome):
            ticket.set_result(result)
        else:
            ticket.set_exception(StoreError(*result.args))


def service_of(request: Request) -> Service:
    """The service that handles a request."""
    service: Service = request.app.state.service
    return service


def bearer(request: Request) -> str | None:
    """The secret in a request's Authorization header."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


async def require_admin(request: Request) -> None:
    """Refuse a request that lacks the admin token, and a wrong one only after a second.

    Without an admin token, any local process has operator access; other web origins are refused.
    """
    settings = service_of(request).settings
    if not settings.is_admin(bearer(request)):
        if bearer(request) is not None:
            await asyncio.sleep(_WRONG_TOKEN_SECONDS)  # so that guessing is slow
        raise RefusalError(401, "Unauthorized", "send the admin token, as Authorization: Bearer TOKEN")
    if settings.admin_token is None:
        _refuse_other_origins(request)


def _refuse_other_origins(request: Request) -> None:
    """Refuse web pages of other origins, which a browser on this machine would let in.

    Browsers send the page's Origin with writes. The Host check stops DNS rebinding: a foreign name that resolves to
    this machine would give its pages the same origin as the service.
    """
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if not is_local(host):
        raise RefusalError(403, "ForeignHost", "without an admin token, use the host 127.0.0.1 or localhost")
    if origin is not None and origin.partition("://")[2] != host:
        raise RefusalError(403, "ForeignOrigin", "pages of other origins may only fetch the plan and upload")
