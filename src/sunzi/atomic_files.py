"""Atomic writes: a file is either complete or not there."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a temporary file, flush it to disk and rename it: no reader and no crash ever sees half a file."""
    with open_atomically(path) as stream:
        stream.write(data)


@contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """A stream whose bytes appear under ``path`` when the block succeeds, all at once and on disk.

    If the block fails, an older file is untouched and no temporary file is left. A device or a pipe is written to
    directly. Errors name ``path``.
    """
    target = Path(os.path.realpath(path))  # a symbolic link is kept, its target is replaced
    _check_target(path, target)
    if target.exists() and not target.is_file():
        with _buffered(os.open(target, os.O_WRONLY | getattr(os, "O_BINARY", 0)), path) as stream:
            yield stream
        return
    with _errors_naming(path, replace=True):
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with _buffered(handle, path) as stream:
            yield stream
            stream.flush()
            with _errors_naming(path):
                os.fsync(stream.fileno())
        with _errors_naming(path, replace=True):
            Path(temporary).chmod(0o666 & ~_mask())
            Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _check_target(path: str | Path, target: Path) -> None:
    """Fail now, rather than after hours of work."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a directory; name a file to write", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no directory {target.parent} to write it in", str(path))


class _NamedFile(io.FileIO):
    """A file whose errors name the requested path."""

    def __init__(self, handle: int, path: str | Path) -> None:
        super().__init__(handle, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        """Write, as any file does."""
        with _errors_naming(self._path):
            return super().write(data)


def _buffered(handle: int, path: str | Path) -> BinaryIO:
    return io.BufferedWriter(_NamedFile(handle, path), buffer_size=1 << 16)


@contextmanager
def _errors_naming(path: str | Path, *, replace: bool = False) -> Iterator[None]:
    """Put the path into errors without a file name; with ``replace``, also in place of the temporary name."""
    try:
        yield
    except OSError as error:
        if replace or error.filename is None:
            error.filename, error.filename2 = str(path), None
        raise


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_directory(directory: Path) -> None:
    """Make a new file name survive a power cut, on systems that support it (not Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
