"""Limits on every request's body, headers that every answer carries, statuses counted; plain ASGI, because it runs on
every request.
"""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sunzi.collector.bodies import LimitedBody
from sunzi.collector.settings import Settings

# The page is made of its own files alone: no script, style or picture from elsewhere, and none written into it.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
_HEADERS = {
    "Content-Security-Policy": _POLICY + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Wraps the application. Whoever is answered before the body is whole is hung up on when its time is over."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._raw = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Limit what is read, and add the headers to an answer's beginning."""
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
                # The answer is on its way; its end, which closes the connection, waits for the rest of the body.
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
