"""What all routes of one running service share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from sunzi.collector.collector import Collector
from sunzi.collector.metrics import Metrics
from sunzi.collector.quotas import Quotas
from sunzi.collector.records import Outcome
from sunzi.collector.refusals import RefusalError
from sunzi.collector.settings import Settings, is_local
from sunzi.collector.store import Store
from sunzi.collector.writer import OverloadError, Result, Writer
from sunzi.errors import StoreError

Ticket = asyncio.Future[Outcome]
Returned = TypeVar("Returned")

_TRY_SECONDS = 1.0


class Workroom:
    """Work too long for the event loop: a few pieces at a time in threads, some waiting, the rest refused."""

    def __init__(self, places: int = 2, most_waiting: int = 32) -> None:
        self._places, self._most, self._inside = asyncio.Semaphore(places), places + most_waiting, 0

    async def run(self, work: Callable[..., Returned], *arguments: object) -> Returned:
        """Do it, or raise OverloadError."""
        if self._inside >= self._most:
            raise OverloadError("too many uploads wait to be worked on; send it again later")
        self._inside += 1
        try:
            async with self._places:
                return await run_in_threadpool(work, *arguments)
        finally:
            self._inside -= 1


class Readiness:
    """Whether reports can be counted now. The store is tried once a second at most, however many ask."""

    def __init__(self, store: Store, writer: Writer[Ticket]) -> None:
        self._store, self._writer = store, writer
        self._lock, self._fine_until = threading.Lock(), 0.0

    def check(self) -> None:
        """Raise unless they can."""
        if not self._writer.is_alive:
            raise RefusalError(503, "NotReady", "the writer has stopped", 5)
        if self._writer.is_failing:
            raise RefusalError(503, "NotReady", "the last reports could not be written", 5)
        with self._lock:
            if time.monotonic() >= self._fine_until:
                self._store.check()
                self._fine_until = time.monotonic() + _TRY_SECONDS


@dataclass(frozen=True)
class Service:
    """A collector, its writer and its limits."""

    settings: Settings
    collector: Collector
    writer: Writer[Ticket]
    metrics: Metrics
    quotas: Quotas
    workroom: Workroom
    lookups: Workroom
    readiness: Readiness

    @classmethod
    def start(cls, settings: Settings, collector: Collector) -> Service:
        """Begin to write; called in the event loop that will serve."""
        loop = asyncio.get_running_loop()

        def deliver(results: list[tuple[Ticket, Result]]) -> None:
            loop.call_soon_threadsafe(_settle, results)

        writer: Writer[Ticket] = Writer(collector.store, deliver, settings.waiting_deposits)
        return cls(
            settings,
            collector,
            writer,
            Metrics(collector, writer),
            Quotas(),
            workroom=Workroom(),
            lookups=Workroom(places=1, most_waiting=1000),
            readiness=Readiness(collector.store, writer),
        )


def _settle(results: list[tuple[Ticket, Result]]) -> None:
    for ticket, result in results:
        if ticket.done():  # its client went away; the outcome stands all the same
            continue
        if isinstance(result, Outcome):
            ticket.set_result(result)
        else:
            ticket.set_exception(StoreError(*result.args))


def service_of(request: Request) -> Service:
    """The service that a request belongs to."""
    service: Service = request.app.state.service
    return service


def bearer(request: Request) -> str | None:
    """The secret that a request carries."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


def require_admin(request: Request) -> None:
    """Let only those pass who know the admin token; without one, those on this machine, but no page of others."""
    settings = service_of(request).settings
    if not settings.is_admin(bearer(request)):
        raise RefusalError(401, "Unauthorized", "this needs the admin token, as Authorization: Bearer TOKEN")
    if settings.admin_token is None:
        _refuse_foreign_pages(request)


def _refuse_foreign_pages(request: Request) -> None:
    """A browser on this machine reaches the service for any page that it shows.

    It says whose page it is (Origin) when one writes, and by which name it came (Host): a name of somebody else's that
    leads here would make their page the service's own.
    """
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if not is_local(host):
        raise RefusalError(403, "ForeignHost", "without an admin token this answers to 127.0.0.1 and localhost only")
    if origin is not None and origin.partition("://")[2] != host:
        raise RefusalError(403, "ForeignOrigin", "pages of other origins may fetch the plan and upload, no more")
