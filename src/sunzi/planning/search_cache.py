"""Results of searches, cached on disk between runs.

An entry is one JSON file, named by the hash of everything that the result depends on, and written atomically. An entry
that is damaged, unreadable, or of another key is ignored; if the directory cannot be written, nothing is cached and no
error is raised.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sunzi._version import __version__
from sunzi.atomic_files import write_atomically

VARIABLE = "SUNZI_CACHE"
"""The environment variable that names the cache directory; if it is empty, the cache is off."""


def directory() -> Path | None:
    """The cache directory: $SUNZI_CACHE, or the platform's cache directory; None if the cache is off."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    try:
        return _platform_directory() / "sunzi"
    except RuntimeError:  # the home directory is unknown
        return None


def _platform_directory() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def load(key: Mapping[str, Any]) -> Any | None:
    """The result cached under a key, or None."""
    path = _path(key)
    if path is None:
        return None
    try:
        entry = json.loads(path.read_bytes())
        if entry["key"] == _full_key(key) and entry["checksum"] == _checksum(entry["result"]):
            return entry["result"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def store(key: Mapping[str, Any], result: Any) -> None:
    """Cache a result that JSON can represent."""
    path = _path(key)
    if path is None:
        return
    entry = {"key": _full_key(key), "checksum": _checksum(result), "result": result}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(entry).encode())
    except OSError:
        pass


def _full_key(key: Mapping[str, Any]) -> dict[str, Any]:
    full: dict[str, Any] = json.loads(json.dumps({"sunzi": __version__, **key}))
    return full


def _path(key: Mapping[str, Any]) -> Path | None:
    place = directory()
    return None if place is None else place / "moduli" / f"{_checksum(_full_key(key))[:40]}.json"


def _checksum(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
