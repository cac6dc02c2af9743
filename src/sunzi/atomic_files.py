"""Files that are either whole or absent."""

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
    """Write beside the target, flush to disk, then rename over it: a reader or a crash never meets half a file."""
    with open_atomically(path) as stream:
        stream.write(data)


@contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """A stream whose bytes stand under ``path`` once the block ends well, all at once and on the disk.

    If the block fails, whatever the reason, an older file stays untouched and nothing is left beside it. A device or a
    pipe has nothing to replace and is written to as it is. Errors name ``path``.
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays one, what it leads to is replaced
    _check_target(path, target)
    if target.exists() and not target.is_file():
        with _buffered(os.open(target, os.O_WRONLY | getattr(os, "O_BINARY", 0)), path) as stream:
            yield stream
        return
    with _naming(path, instead=True):
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with _buffered(handle, path) as stream:
            yield stream
            stream.flush()
            with _naming(path):
                os.fsync(stream.fileno())
        with _naming(path, instead=True):
            Path(temporary).chmod(0o666 & ~_mask())
            Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _check_target(path: str | Path, target: Path) -> None:
    """What would fail at the end should fail before hours of work."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a directory; name a file to write", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no directory {target.parent} to write it in", str(path))


class _NamedFile(io.FileIO):
    """A file whose errors say which file the user asked for."""

    def __init__(self, handle: int, path: str | Path) -> None:
        super().__init__(handle, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        """Write, as any file does."""
        with _naming(self._path):
            return super().write(data)


def _buffered(handle: int, path: str | Path) -> BinaryIO:
    return io.BufferedWriter(_NamedFile(handle, path), buffer_size=1 << 16)


@contextmanager
def _naming(path: str | Path, *, instead: bool = False) -> Iterator[None]:
    """Give errors the file's name where they have none, or ``instead`` of the temporary one."""
    try:
        yield
    except OSError as error:
        if instead or error.filename is None:
            error.filename, error.filename2 = str(path), None
        raise


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_directory(directory: Path) -> None:
    """Make the new name last through a power cut, where the system lets one ask for that; Windows does not."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
