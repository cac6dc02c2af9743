"""Headers that every answer carries, and statuses counted; plain ASGI, because it runs on every request."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Wraps the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._raw = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to an answer's beginning."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                cached = any(name == b"cache-control" for name, _ in own)
                message["headers"] = own + self._raw + ([] if cached else [(b"cache-control", b"no-store")])
                _count_refusal(scope, message["status"])
            await send(message)

        await self._app(scope, receive, guarded)


def _count_refusal(scope: Scope, status: int) -> None:
    app: Any = scope.get("app")
    service = getattr(app.state, "service", None) if app is not None else None
    if status >= 400 and service is not None:
        service.metrics.refused.labels(str(status)).inc()
