"""The audit log: which operator opened, closed, issued, subtracted or read what, and who was refused, as JSON lines."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from sunzi.client.errors import StoreError

_SHOWN_DIGITS = 8
_REFUSAL_SECONDS = 60.0


@dataclass
class _Refusals:
    """Refused requests of one kind: how many since the last line, and when that was written."""

    times: int = 0
    written_at: float = float("-inf")


class AuditLog:
    """Appends one line per operator's request, and nothing about clients. Only its owner can read the file.

    Parameters
    ----------
    path: the file; it is created if it is missing. None writes nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._refused: defaultdict[tuple[int, str, str, str | None], _Refusals] = defaultdict(_Refusals)

    def write(self, token: str | None, action: str, status: int, details: dict[str, object]) -> None:
        """Append a line. An admin token appears as the first digits of its SHA-256; without one it is "local"."""
        operator = "local" if token is None else hashlib.sha256(token.encode()).hexdigest()[:_SHOWN_DIGITS]
        with self._lock:
            self._append(operator, action, status, details)

    def write_scheduled(self, action: str, details: dict[str, object]) -> None:
        """Append a line about something that no operator requested at this time."""
        with self._lock:
            self._append("schedule", action, 200, details)

    def write_refusal(self, status: int, method: str, route: str, key: str | None) -> None:
        """Count a request without the operator's secret; write a line unless the same was written a minute ago.

        Parameters
        ----------
        status: how it was answered.
        method, route: what was requested; the route as a template, without the names that a stranger chose.
        key: the name of the upload key whose secret was sent, if any.
        """
        kind = status, method, route, key
        with self._lock:
            self._refused[kind].times += 1
            if time.time() >= self._refused[kind].written_at + _REFUSAL_SECONDS:
                self._append_refusals(kind)

    def close(self) -> None:
        """Write the refusals that are not in the log yet."""
        with self._lock:
            for kind, refusals in self._refused.items():
                if refusals.times:
                    self._append_refusals(kind)

    def _append_refusals(self, kind: tuple[int, str, str, str | None]) -> None:
        (status, method, route, key), refusals = kind, self._refused[kind]
        self._append(None, "refused", status, {"method": method, "route": route, "key": key, "times": refusals.times})
        refusals.times, refusals.written_at = 0, time.time()

    def _append(self, operator: str | None, action: str, status: int, details: dict[str, object]) -> None:
        if self._path is None:
            return
        record = {"time": round(time.time(), 3), "operator": operator, "action": action, "status": status, **details}
        line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            raise StoreError(f"the audit log {self._path} cannot be written: {error.strerror}") from error
