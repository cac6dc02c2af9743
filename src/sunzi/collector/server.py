"""The server: uvicorn with limits on slow and long headers, and no log of who came."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sunzi.collector.settings import Settings

# A commit asks for the interpreter a few dozen times; while requests keep it busy, each would wait five milliseconds.
_SWITCH_SECONDS = 0.0005


def protocol_for(settings: Settings) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, which closes a connection whose request takes too long, or too many bytes, to begin."""

    class PatientProtocol(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None
        _header_bytes = 0
        _kept_bytes = 0
        _in_body = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            # The parser tells of a header, or of a trailer, when it is whole; until then it keeps what comes.
            self._kept_bytes += len(data)
            super().data_received(data)
            if self._kept_bytes > settings.header_bytes:
                self.transport.abort()
            elif self._kept_bytes and not self._in_body:  # also if it is too little to be called a beginning
                self._start_waiting()

        def on_message_begin(self) -> None:
            self._header_bytes = 0
            self._start_waiting()
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._measure(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._measure(len(name) + len(value))
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            self._kept_bytes, self._in_body = 0, True
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._kept_bytes = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._kept_bytes, self._in_body = 0, False
            super().on_message_complete()

        def _measure(self, size: int) -> None:
            self._header_bytes += size
            if self._header_bytes > settings.header_bytes:
                self.transport.abort()

        def _start_waiting(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(settings.header_seconds, self.transport.abort)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return PatientProtocol


def make_server(app: FastAPI, settings: Settings, started: Callable[[str], None] | None = None) -> uvicorn.Server:
    """A server that is ready to run; ``started`` is called with its address once it listens."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol_for(settings),
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies) or None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )
    return _Server(config, started)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: Any = None) -> None:
        """Listen, then say where: port 0 means any that is free."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        await super().startup(sockets)
        if self._tell is not None and self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._tell(f"http://{f'[{host}]' if ':' in host else host}:{port}")
