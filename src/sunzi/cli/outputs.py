"""Outputs of commands: ``--format``, files and pictures by suffix, and standard output under the name ``-``."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import PurePath
from typing import Any, BinaryIO

from sunzi.atomic_files import open_atomically, write_atomically
from sunzi.cli.inputs import STANDARD
from sunzi.cli.terminal import is_terminal, say
from sunzi.errors import MissingExtraError, ParameterError

TABLES = (".csv", ".json", ".parquet")
PICTURES = (".png", ".svg", ".pdf")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``."""
    parser.add_argument(
        "--format",
        choices=("table", "json", "csv"),
        help="output format (default: table on a terminal, json in a pipe)",
    )


def show(
    chosen: str | None,
    *,
    table: Callable[[], None],
    document: Callable[[], Mapping[str, Any]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
) -> None:
    """Print a result in the chosen format: its table, its document as JSON or its rows as CSV."""
    chosen = chosen or ("table" if is_terminal(sys.stdout) else "json")
    if chosen == "table":
        table()
    elif chosen == "json":
        say(json.dumps(document(), indent=1, allow_nan=False))
    else:
        from sunzi.tables.writers import records_as

        sys.stdout.buffer.write(records_as("csv", rows()))


def is_standard_output(path: str | None) -> bool:
    """Return whether the output goes to standard output."""
    return path is None or path == STANDARD


def check_suffix(path: str, suffixes: Sequence[str]) -> str:
    """Return the suffix of an output's name in lower case, if it is one of these."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in suffixes:
        raise ParameterError(f"the output's name must end in one of {', '.join(suffixes)}; got {path!r}")
    return suffix


@contextmanager
def open_output(path: str | None, content: str, cut_mark: bytes = b"") -> Iterator[BinaryIO]:
    """Open a file that appears complete at the end or not at all, or standard output unless that is a terminal.

    Bytes already written to a pipe cannot be taken back. If the block fails, ``cut_mark`` follows them: the beginning
    of another record, so that a reader does not mistake the part for the whole.
    """
    if path is not None and path != STANDARD:
        with open_atomically(path) as stream:
            yield stream
        return
    if is_terminal(sys.stdout):
        raise ParameterError(f"cannot write {content} to the terminal: it is binary; give -o FILE or use a pipe")
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


def need_matplotlib(feature: str) -> None:
    """Raise an error that names the extra to install if matplotlib is missing."""
    try:
        import_module("matplotlib")
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError(feature, "plot") from None


def save_picture(path: str, figure: Any) -> None:
    """Write a matplotlib figure in the format of its suffix."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=PurePath(path).suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, drawn.getvalue())
