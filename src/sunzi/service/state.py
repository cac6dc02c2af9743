"""What all routes of one running service share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from sunzi.collection.collector import Collector
from sunzi.collection.records import Outcome
from sunzi.collection.writer import OverloadError, Result, Writer
from sunzi.errors import StoreError
from sunzi.service.metrics import Metrics
from sunzi.service.quotas import Quotas
from sunzi.service.refusals import RefusalError
from sunzi.service.settings import Settings

Ticket = asyncio.Future[Outcome]
Returned = TypeVar("Returned")


class Workroom:
    """Work too long for the event loop: a few pieces at a time in threads, some waiting, the rest refused."""

    def __init__(self, places: int = 2, most_waiting: int = 32) -> None:
        self._places, self._most, self._inside = asyncio.Semaphore(places), places + most_waiting, 0

    async def run(self, work: Callable[..., Returned], *arguments: object) -> Returned:
        """Do it, or raise OverloadError."""
        if self._inside >= self._most:
            raise OverloadError("too many uploads are being decoded; send it again later")
        self._inside += 1
        try:
            async with self._places:
                return await run_in_threadpool(work, *arguments)
        finally:
            self._inside -= 1


@dataclass(frozen=True)
class Service:
    """A collector, its writer and its limits."""

    settings: Settings
    collector: Collector
    writer: Writer[Ticket]
    metrics: Metrics
    quotas: Quotas
    workroom: Workroom

    @classmethod
    def start(cls, settings: Settings, collector: Collector) -> Service:
        """Begin to write; called in the event loop that will serve."""
        loop = asyncio.get_running_loop()

        def deliver(results: list[tuple[Ticket, Result]]) -> None:
            loop.call_soon_threadsafe(_settle, results)

        writer: Writer[Ticket] = Writer(collector.store, deliver, settings.waiting_deposits)
        return cls(settings, collector, writer, Metrics(collector, writer), Quotas(), Workroom())


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
    """Let only those pass who know the admin token, if there is one."""
    if not service_of(request).settings.is_admin(bearer(request)):
        raise RefusalError(401, "Unauthorized", "this needs the admin token, as Authorization: Bearer TOKEN")
