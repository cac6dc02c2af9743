"""What a request may send: so many bytes within so many seconds, whoever reads them and whether anybody does."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import Message, Receive, Scope

from sunzi.collector.refusals import RefusalError
from sunzi.collector.settings import Settings


class LimitedBody:
    """The receiving end of one request. Reading more than the limits allow raises RefusalError."""

    def __init__(self, scope: Scope, receive: Receive, settings: Settings) -> None:
        self._receive, self._most = receive, settings.body_bytes
        self._deadline = asyncio.get_running_loop().time() + settings.body_seconds
        self._declared = self._size = 0
        self.is_complete = True
        for name, value in scope["headers"]:
            if name == b"content-length" and value != b"0":
                self._declared, self.is_complete = int(value), False
            elif name == b"transfer-encoding":
                self.is_complete = False

    async def receive(self) -> Message:
        """The next part."""
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
        """Read what nobody wanted, for as long as it might have taken: who still sends gets to read the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._deadline):
                while not self.is_complete:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self.is_complete = not message.get("more_body", False)  # a client that went away sends nothing more either
        return message

    def _measure(self, size: int) -> None:
        if size > self._most:
            raise RefusalError(413, "TooLarge", f"a body may have at most {self._most} bytes; send less at once")
