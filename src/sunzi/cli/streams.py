"""Where commands read from and write to: files, and standard input and output under the name ``-``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from sunzi.atomic_files import open_atomically
from sunzi.cli.terminal import is_terminal
from sunzi.errors import ParameterError

STANDARD = "-"


def name_of_input(path: str) -> str:
    """How messages call it."""
    return "standard input" if path == STANDARD else path


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """A file, or standard input."""
    if path == STANDARD:
        yield sys.stdin.buffer
        return
    with open(path, "rb") as stream:
        yield stream


def goes_to_standard_output(path: str | None) -> bool:
    """Whether nothing else was asked for."""
    return path is None or path == STANDARD


@contextmanager
def open_output(path: str | None, what: str, cut_mark: bytes = b"") -> Iterator[BinaryIO]:
    """A file that appears whole at the end or not at all, or standard output, unless that is a terminal.

    What has gone down a pipe cannot be taken back, so if the block fails, ``cut_mark`` follows it: bytes that begin
    another record and never end it, so that no reader takes the part for the whole.
    """
    if path is not None and path != STANDARD:
        with open_atomically(path) as stream:
            yield stream
        return
    if is_terminal(sys.stdout):
        raise ParameterError(f"{what} would be written to this terminal, as bytes; give -o FILE, or pipe it on")
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        raise
    except BaseException:
        with suppress(OSError):
            sys.stdout.buffer.write(cut_mark)
            sys.stdout.buffer.flush()
        raise
    sys.stdout.buffer.flush()


def check_paths(inputs: Sequence[str], output: str | None = None) -> None:
    """No input is read twice, and none is overwritten by what is made of it."""
    seen: list[str] = []
    for path in inputs:
        if any(_is_same(path, other) for other in seen):
            raise ParameterError(f"{name_of_input(path)} is named twice, and would be counted twice")
        seen.append(path)
    if output is not None and output != STANDARD and any(_is_same(path, output) for path in inputs):
        raise ParameterError(f"{output} is read, so it must not be overwritten; give another name to -o")


def _is_same(path: str, other: str) -> bool:
    if STANDARD in (path, other):
        return path == other
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them does not exist, which is told when it is opened
        return False
