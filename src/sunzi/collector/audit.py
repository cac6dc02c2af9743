"""The audit log: which operator opened, closed, issued, subtracted or read what, as JSON lines."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from pathlib import Path

from sunzi.errors import StoreError

_SHOWN_DIGITS = 8


class AuditLog:
    """Appends one line per operator's request, and nothing about clients. Only its owner can read the file.

    Parameters
    ----------
    path: the file; it is created if it is missing. None writes nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, token: str | None, action: str, status: int, details: dict[str, object]) -> None:
        """Append a line. An admin token appears as the first digits of its SHA-256; without one it is "local"."""
        if self._path is None:
            return
        operator = "local" if token is None else hashlib.sha256(token.encode()).hexdigest()[:_SHOWN_DIGITS]
        record = {"time": round(time.time(), 3), "operator": operator, "action": action, "status": status, **details}
        line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
        try:
            with self._lock:
                file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    os.write(file, line)
                finally:
                    os.close(file)
        except OSError as error:
            raise StoreError(f"the audit log {self._path} cannot be written: {error.strerror}") from error
