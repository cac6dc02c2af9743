"""Limits on connections and requests: their number, size and duration; and the headers of every response."""

from __future__ import annotations

import asyncio
import errno
import logging
import sys
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sunzi.collector.refusals import RefusalError, refusal
from sunzi.collector.settings import Settings

if sys.platform != "win32":
    import resource

SMALL_BODY = 1 << 16
"""Bodies up to this size are always read, and decoded before larger ones."""
ACCEPTED_AT_ONCE = 16
"""Connections that the event loop accepts before it turns to open ones."""
# Open files besides connections: libraries, connections that are being closed, and the store, which opens three in
# each of 40 threads.
_OTHER_FILES = 180 + ACCEPTED_AT_ONCE
_RETRY_SECONDS = 2
_DISCARD_SECONDS = 0.01
_MOST_DISCARDING = 4
_LOG_SECONDS = 60.0
_log = logging.getLogger(__name__)

# The live page loads only its own files: no inline or third-party scripts, styles or images.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
_HEADERS = {
    "Content-Security-Policy": _POLICY + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",  # requests that CORS allows are not affected
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def most_requests(settings: Settings) -> int:
    """The number of requests that may be in progress: fewer than set if the process may open too few files."""
    if sys.platform == "win32":
        return settings.connections
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return settings.connections
    return max(1, min(settings.connections, files - _OTHER_FILES - ACCEPTED_AT_ONCE))


def protocol_for(settings: Settings) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which closes a connection whose headers take too long or too many bytes.

    Beyond the limit on connections, it closes the one that has waited longest for a complete request.
    """
    most = most_requests(settings) + ACCEPTED_AT_ONCE  # these few are answered with 503
    return type("LimitedProtocol", (_LimitedProtocol,), {"_settings": settings, "_most": most, "_incomplete": {}})


class _LimitedProtocol(HttpToolsProtocol):
    _settings: Settings
    _most: int
    _incomplete: dict[HttpToolsProtocol, None]  # oldest first
    _timer: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _buffered_bytes = 0
    _in_body = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_timer()
        self._incomplete[self] = None
        if len(self.connections) > self._most:
            oldest = next(iter(self._incomplete))
            del self._incomplete[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._incomplete.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # The parser reports a header or trailer only when it is complete; until then it buffers the bytes.
        self._buffered_bytes += len(data)
        super().data_received(data)
        if self._buffered_bytes > self._settings.header_bytes:
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
        self._incomplete.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._incomplete[self] = None

    def _measure(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self._settings.header_bytes:
            self.transport.abort()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._settings.header_seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class AcceptErrors:
    """An event loop's exception handler that logs a lack of files once a minute: asyncio reports it without end."""

    def __init__(self) -> None:
        self._logged_at = float("-inf")

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the event loop."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif time.monotonic() >= self._logged_at + _LOG_SECONDS:
            self._logged_at = time.monotonic()
            advice = "raise the limit on open files, or lower --connections"
            _log.error("new connections have to wait: %s; %s", error.strerror, advice)


class Load:
    """What all requests use together: large bodies in memory, and requests in progress.

    A request is in progress from the end of its body on, so that slow clients use up none of them.
    """

    def __init__(self, settings: Settings) -> None:
        self._most_bytes, self._most_requests = settings.waiting_bytes, most_requests(settings)
        self._bytes = self._requests = 0
        self.discarding = 0
        """Refused bodies whose rest is being read."""

    def add(self, size: int = 0, requests: int = 0) -> None:
        """Take a share; raise RefusalError if too little is left."""
        if size and self._bytes and self._bytes + size > self._most_bytes:
            raise _overload("too many large bodies are being read")
        if self._requests + requests > self._most_requests:
            raise _overload("too many requests are in progress")
        self._bytes += size
        self._requests += requests

    def remove(self, size: int, requests: int) -> None:
        """Return a share."""
        self._bytes -= size
        self._requests -= requests


def _overload(message: str) -> RefusalError:
    return RefusalError(503, "OverloadError", f"{message}; send it again later", _RETRY_SECONDS)


class LimitedBody:
    """The body of one request. Reading beyond the limits on size, time or load raises RefusalError."""

    def __init__(self, scope: Scope, receive: Receive, settings: Settings, load: Load) -> None:
        self._receive, self._limit = receive, settings.body_bytes
        self._load, self._taken_bytes, self._in_progress = load, 0, 0
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
        if self._size > SMALL_BODY:
            self._load.add(size=self._size - self._taken_bytes)
            self._taken_bytes = self._size
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.start()
        return message

    def start(self) -> None:
        """Count the request as in progress."""
        self._load.add(requests=1)
        self._in_progress = 1

    def end(self) -> None:
        """Return the request's share of the load."""
        self._load.remove(self._taken_bytes, self._in_progress)

    async def discard(self) -> None:
        """Read and drop the rest until the deadline, so that a client that is still sending can read the response.

        Pauses keep a flood of refused bodies from taking all the time, and beyond a few at once the rest is not read:
        then the connection is reset.
        """
        if self._load.discarding >= _MOST_DISCARDING:
            return
        self._load.discarding += 1
        try:
            async with asyncio.timeout_at(self._deadline):
                while not self.is_complete:
                    await self._next()
                    await asyncio.sleep(_DISCARD_SECONDS)
        except TimeoutError:
            pass
        finally:
            self._load.discarding -= 1

    async def _next(self) -> Message:
        message = await self._receive()
        self.is_complete = not message.get("more_body", False)  # a disconnect ends the body too
        return message

    def _measure(self, size: int) -> None:
        if size > self._limit:
            raise RefusalError(413, "TooLarge", f"a body may have at most {self._limit} bytes; send smaller batches")


class Guard:
    """Limits requests and their bodies, adds security headers to every response, and counts refusals.

    Plain ASGI, since it runs on every request. If we respond early, the connection closes at the body deadline.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._load = Load(settings)
        self._raw = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, is_started = LimitedBody(scope, receive, self._settings, self._load), False

        async def guarded(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
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

        try:
            if body.is_complete:
                body.start()
            await self._app(scope, body.receive, guarded)
        except RefusalError as error:
            await refusal(error.status, error.kind, str(error), error.retry_after)(scope, receive, guarded)
        except asyncio.CancelledError:  # the server stops, and this request has taken too long
            if not is_started:
                body.is_complete = True  # do not wait for the rest
                stopping = "the collector is stopping; send it again later"
                await refusal(503, "OverloadError", stopping, _RETRY_SECONDS)(scope, receive, guarded)
        finally:
            body.end()


def _count_refusal(scope: Scope, status: int) -> None:
    app: Any = scope.get("app")
    service = getattr(app.state, "service", None) if app is not None else None
    if status >= 400 and service is not None:
        service.metrics.refused.labels(str(status)).inc()
