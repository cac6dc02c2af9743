"""A disk that can lose power: an SQLite VFS that tracks which writes were synchronised and drops others at random.

It is registered as the default VFS, so the product runs on it unchanged. It passes every call on to the real VFS and
records it. A power cut copies the directory in a state that a disk could be in: everything that was synchronised, and
an arbitrary set of 512-byte sectors of everything else, even from the middle of a write. Creating or removing a
directory entry is durable only once the directory was synchronised.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import random
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path

SECTOR = 512

_OK, _CANTOPEN = 0, 14
_IOERR_WRITE, _IOERR_FSYNC, _IOERR_TRUNCATE, _IOERR_DELETE = (10 | code << 8 for code in (3, 4, 6, 10))
_OPEN_MAIN_DB, _OPEN_MAIN_JOURNAL, _OPEN_WAL = 0x100, 0x800, 0x80000

# Pass the name as a pointer: SQLite keeps that pointer and derives the name of its shared memory from it.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_Close = CFUNCTYPE(c_int, c_void_p)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("delete", _Delete),
        ("others", c_void_p * 14),  # passed on as they are
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", c_int),
        ("close", _Close),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("others", c_void_p * 13),
    )


class File:
    """The synchronised content of a file, and the writes since."""

    def __init__(self, content: bytes = b"", *, names_journal: bool = False) -> None:
        self._certain = bytearray(content)
        self._pending: list[tuple[int, bytes | None]] = []
        self.syncs_directory = names_journal

    def write(self, offset: int, data: bytes) -> None:
        self._pending.append((offset, data))

    def truncate(self, size: int) -> None:
        self._pending.append((size, None))

    def sync(self) -> None:
        for offset, data in self._pending:
            _apply(self._certain, offset, data)
        self._pending.clear()

    def after_cut(self, chance: random.Random, share: float) -> bytes:
        """The synchronised content plus about this share of the other sectors."""
        content = bytearray(self._certain)
        for offset, data in self._pending:
            if data is None:
                if chance.random() < share:
                    _apply(content, offset, None)
                continue
            for start in range(-(offset % SECTOR), len(data), SECTOR):
                if chance.random() < share:
                    begin = max(start, 0)
                    _apply(content, offset + begin, data[begin : start + SECTOR])
        return bytes(content)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    """Apply a write, or a truncation if ``data`` is None."""
    if data is None:
        del content[offset:]
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class Disk:
    """The files of one directory. After ``cut_after`` modifying operations, nothing changes any more."""

    def __init__(self, directory: Path, cut_after: int | None = None) -> None:
        self.directory = directory
        self.operations = 0
        self._cut_after = cut_after
        self._now = {path: File(path.read_bytes()) for path in directory.iterdir()}
        self._certain = dict(self._now)

    @property
    def is_dead(self) -> bool:
        return self._cut_after is not None and self.operations >= self._cut_after

    def operate(self) -> bool:
        """Count one operation; return whether there is still power for it."""
        alive = not self.is_dead
        self.operations += 1
        return alive and not self.is_dead

    def opened(self, path: Path, names_journal: bool) -> File:
        if path not in self._now:
            self._now[path] = File(names_journal=names_journal)
        return self._now[path]

    def deleted(self, path: Path) -> None:
        self._now.pop(path, None)

    def sync_directory(self) -> None:
        self._certain = dict(self._now)

    def sync(self, file: File) -> None:
        """SQLite synchronises the directory when it first synchronises a new journal."""
        file.sync()
        if file.syncs_directory:
            file.syncs_directory = False
            self.sync_directory()

    def after_cut(self, target: Path, chance: random.Random) -> None:
        """Write the directory in a state in which it may be found after the cut."""
        share = chance.choice((0.0, 0.05, 0.5, 0.95, 1.0))
        for path in sorted(self._now.keys() | self._certain.keys()):
            file = self._certain.get(path) if chance.random() < 0.5 else self._now.get(path)
            if file is not None:
                (target / path.name).write_bytes(file.after_cut(chance, share))


class PowerCuts:
    """The VFS. It observes one :class:`Disk` at a time and ignores files elsewhere."""

    def __init__(self) -> None:
        # Symbol lookup includes linked libraries, so this is the SQLite that Python uses.
        self._library = ctypes.CDLL(_sqlite3.__file__)
        self._library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        self._library.sqlite3_vfs_find.argtypes = [c_char_p]
        self._real = self._library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._real.contents)
        self._vfs.next, self._vfs.name = None, b"powercut"
        self._vfs.open, self._vfs.delete = _Open(self._open), _Delete(self._delete)
        self._methods: dict[int, tuple[_Methods, _Methods]] = {}
        self._files: dict[int, tuple[File, Disk, _Methods]] = {}
        self.disk: Disk | None = None

    @contextmanager
    def installed(self) -> Iterator[PowerCuts]:
        assert self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == _OK
        try:
            yield self
        finally:
            self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
            self._library.sqlite3_vfs_register(self._real, 1)

    def _observed(self, name: bytes | None) -> Path | None:
        path = Path(name.decode()) if name else None
        return path if path and self.disk and path.parent == self.disk.directory else None

    def _open(self, _: int, name: int | None, handle: int, flags: int, flags_out: object) -> int:
        path = self._observed(ctypes.string_at(name) if name else None)
        if path and self.disk.is_dead:
            ctypes.cast(handle, POINTER(c_void_p))[0] = None  # otherwise SQLite would close a file that is not open
            return _CANTOPEN
        outcome = self._real.contents.open(ctypes.addressof(self._real.contents), name, handle, flags, flags_out)
        if outcome == _OK and path and flags & (_OPEN_MAIN_DB | _OPEN_MAIN_JOURNAL | _OPEN_WAL):
            slot = ctypes.cast(handle, POINTER(c_void_p))
            real, ours = self._wrapped(slot[0])
            file = self.disk.opened(path, bool(flags & (_OPEN_MAIN_JOURNAL | _OPEN_WAL)))
            self._files[handle] = (file, self.disk, real)
            slot[0] = ctypes.addressof(ours)
        return outcome

    def _wrapped(self, address: int) -> tuple[_Methods, _Methods]:
        """The real methods of a file, and a copy in which some are replaced by ours."""
        if address not in self._methods:
            real = _Methods.from_address(address)
            ours = _Methods.from_buffer_copy(real)
            ours.close, ours.write = _Close(self._close), _Write(self._write)
            ours.truncate, ours.sync = _Truncate(self._truncate), _Sync(self._sync)
            self._methods[address] = (real, ours)
        return self._methods[address]

    def _delete(self, _: int, name: bytes, sync_directory: int) -> int:
        path = self._observed(name)
        if path and not self.disk.operate():
            return _IOERR_DELETE
        outcome = self._real.contents.delete(ctypes.addressof(self._real.contents), name, sync_directory)
        if path and outcome == _OK:
            self.disk.deleted(path)
            if sync_directory:
                self.disk.sync_directory()
        return outcome

    def _close(self, handle: int) -> int:
        _, _, real = self._files.pop(handle)
        return real.close(handle)

    def _write(self, handle: int, data: int, length: int, offset: int) -> int:
        file, disk, real = self._files[handle]
        if disk.is_dead:
            return _IOERR_WRITE
        file.write(offset, ctypes.string_at(data, length))  # the write that meets the cut may be partly there
        return real.write(handle, data, length, offset) if disk.operate() else _IOERR_WRITE

    def _truncate(self, handle: int, size: int) -> int:
        file, disk, real = self._files[handle]
        if disk.is_dead:
            return _IOERR_TRUNCATE
        file.truncate(size)
        return real.truncate(handle, size) if disk.operate() else _IOERR_TRUNCATE

    def _sync(self, handle: int, flags: int) -> int:
        file, disk, _ = self._files[handle]
        if not disk.operate():
            return _IOERR_FSYNC
        disk.sync(file)  # no need to synchronise the real disk: the cut is simulated
        return _OK
