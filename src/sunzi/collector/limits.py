"""Limits on requests: the size and duration of headers and bodies, and the headers of every response."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sunzi.collector.refusals import RefusalError
from sunzi.collector.settings import Settings

# The live page loads only its own files: no inline or third-party scripts, styles or images.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
_HEADERS = {
    "Content-Security-Policy": _POLICY + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def protocol_for(settings: Settings) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which closes a connection whose headers take too long or too many bytes."""

    class LimitedProtocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _header_bytes = 0
        _buffered_bytes = 0
        _in_body = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            # The parser reports a header or trailer only when it is complete; until then it buffers the bytes.
            self._buffered_bytes += len(data)
            super().data_received(data)
            if self._buffered_bytes > settings.header_bytes:
                self.transport.abort()
            elif self._buffered_bytes and not self._in_body:  # even if the parser has not reported a new request yet
                self._start_timer()

        def on_message_begin(self) -> None:
            self._header_bytes = 0
            self._start_timer()
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._measure(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._measure(len(name) + len(value))
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._stop_timer()
            self._buffered_bytes, self._in_body = 0, True
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._buffered_bytes = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._buffered_bytes, self._in_body = 0, False
            super().on_message_complete()

        def _measure(self, size: int) -> None:
            self._header_bytes += size
            if self._header_bytes > settings.header_bytes:
                self.transport.abort()

        def _start_timer(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(settings.header_seconds, self.transport.abort)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return LimitedProtocol


class LimitedBody:
    """The body of one request. Reading beyond the size or time limit raises RefusalError."""

    def __init__(self, scope: Scope, receive: Receive, settings: Settings) -> None:
        self._receive, self._limit = receive, settings.body_bytes
        self._deadline = asyncio.get_running_loop().time() + settings.body_seconds
        self._declared = self._size = 0
        self.is_complete = True
        for name, value in scope["headers"]:
            if name == b"content-length" and value != b"0":
                self._declared, self.is_complete = int(value), False
            elif name == b"transfer-encoding":
                self.is_complete = False

    async def receive(self) -> Message:
        """The next message."""
        if self.is_complete:
            return await self._receive()
        self._measure(self._declared)
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._next()
        except TimeoutError:
            raise RefusalError(408, "TooSlow", "the body did not arrive in time; send it again") from None
        self._size += len(message.get("body", b""))
        self._measure(self._size)
        return message

    async def discard(self) -> None:
        """Read and drop the rest until the deadline, so that a client that is still sending can read the response."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._deadline):
                while not self.is_complete:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self.is_complete = not message.get("more_body", False)  # a disconnect ends the body too
        return message

    def _measure(self, size: int) -> None:
        if size > self._limit:
            raise RefusalError(413, "TooLarge", f"a body may have at most {self._limit} bytes; send smaller batches")


class Guard:
    """Limits every request's body, adds security headers to every response, and counts refusals.

    Plain ASGI, since it runs on every request. If we respond early, the connection closes at the body deadline.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._raw = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = LimitedBody(scope, receive, self._settings)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                cached = any(name == b"cache-control" for name, _ in own)
                message["headers"] = own + self._raw + ([] if cached else [(b"cache-control", b"no-store")])
                if not body.is_complete:
                    message["headers"].append((b"connection", b"close"))
                _count_refusal(scope, message["status"])
            elif not body.is_complete and not message.get("more_body", False):
                # Send the response now, but delay its end, which closes the connection, until the body is read.
                await send({**message, "more_body": True})
                await body.discard()
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, body.receive, guarded)


def _count_refusal(scope: Scope, status: int) -> None:
    app: Any = scope.get("app")
    service = getattr(app.state, "service", None) if app is not None else None
    if status >= 400 and service is not None:
        service.metrics.refused.labels(str(status)).inc()
