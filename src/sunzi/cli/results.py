"""Results of commands, by the same rules everywhere: a table on a terminal, CSV in a pipe, and ``--format`` for another
format; with ``-o`` the suffix of the file selects the format, and a line on standard error names what was written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sunzi.atomic_files import write_atomically
from sunzi.cli.files import (
    PICTURES,
    TABLES,
    add_force,
    check_new,
    check_suffix,
    is_standard_output,
    need_matplotlib,
    save_picture,
)
from sunzi.cli.terminal import say
from sunzi.client.errors import ParameterError
from sunzi.formatting import lifetime_in_words

if TYPE_CHECKING:
    from sunzi.plan import Plan

Record = Mapping[str, Any]

ALL_SUFFIXES = (*TABLES, *PICTURES, ".html")
"""Of the files that a result with a picture and a page is written to."""


@dataclass(frozen=True)
class Result:
    """What a command found, for people and for programs."""

    table: Callable[[], None]
    """Prints it."""
    document: Callable[[], Record | Sequence[Record]]
    """Everything, for JSON."""
    rows: Callable[[], Sequence[Record]]
    """Records with equal keys, for CSV and Parquet."""
    columns: Sequence[str] = ()
    """The keys, where there may be no record."""
    picture: Callable[[], Any] | None = None
    """Draws a matplotlib figure of it."""
    page: Callable[[], str] | None = None
    """The text of an HTML page about it."""


def add_format(parser: argparse.ArgumentParser, result: str = "the printed result") -> None:
    """Add ``--format``."""
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json"),
        help=f"format of {result} (default: table on a terminal, csv in a pipe)",
    )


def chosen_format(arguments: argparse.Namespace) -> str:
    """Return the format to print."""
    return arguments.format or ("table" if sys.stdout.isatty() else "csv")


def add_output(parser: argparse.ArgumentParser, suffixes: Sequence[str] = TABLES) -> None:
    """Add ``-o`` for files of the result, and ``--force``."""
    extras = ["Parquet needs the extra 'frames'"]
    if set(suffixes) & set(PICTURES):
        extras.append("a picture the extra 'plot'")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help=f"write the result to a file instead; the suffix selects the format: {', '.join(suffixes)}. May be "
        f"repeated. {', '.join(extras)}",
    )
    add_force(parser)


def check_output(arguments: argparse.Namespace, suffixes: Sequence[str] = TABLES) -> bool:
    """Check the names of outputs before any work, and return whether any of them is a picture."""
    found = [check_suffix(path, suffixes) for path in arguments.output]
    for path in arguments.output:
        check_new(path, force=arguments.force)
    if found:
        refuse_format(arguments, arguments.output[0])
    draws = any(suffix in PICTURES for suffix in found)
    if draws:
        need_matplotlib("drawing pictures")
    return draws


def check_page(arguments: argparse.Namespace) -> None:
    """Check ``--top`` and ``--title``."""
    if arguments.top is not None and arguments.top < 1:
        raise ParameterError(f"--top must be at least 1, got {arguments.top}")
    if arguments.title is not None and not any(map(is_page, arguments.output)):
        raise ParameterError("--title is the heading of a page; add -o with a name that ends in .html")


def is_page(path: str) -> bool:
    """Return whether a file's name is that of a page."""
    return path.lower().endswith(".html")


def refuse_format(arguments: argparse.Namespace, path: str) -> None:
    """Refuse ``--format`` together with an output file."""
    if arguments.format is not None:
        raise ParameterError(
            f"--format is for printing, and the suffix of -o {path} selects its format; leave one of them out"
        )


def deliver(arguments: argparse.Namespace, result: Result) -> None:
    """Write the result to all outputs, or print it if there is none."""
    for path in arguments.output:
        write_result(path, result)
    if not arguments.output:
        print_result(arguments, result)


def print_result(arguments: argparse.Namespace, result: Result) -> None:
    """Print the result in the chosen format."""
    chosen = chosen_format(arguments)
    if chosen == "table":
        result.table()
    elif chosen == "json":
        say(json.dumps(result.document(), indent=1, allow_nan=False))
    else:
        from sunzi.tables.writers import records_as

        sys.stdout.buffer.write(records_as("csv", result.rows(), result.columns))


def write_result(path: str, result: Result) -> None:
    """Write the result in the format of the file's suffix."""
    suffix = PurePath(path).suffix.lower()
    if suffix in PICTURES:
        assert result.picture is not None, "check_output allows only suffixes that the command supports"
        save_picture(path, result.picture())
    elif suffix == ".html":
        assert result.page is not None, "check_output allows only suffixes that the command supports"
        write_atomically(path, result.page().encode())
    elif suffix == ".json":
        document = json.dumps(result.document(), indent=1, allow_nan=False, ensure_ascii=False)
        write_atomically(path, f"{document}\n".encode())
    else:
        from sunzi.tables.writers import records_as

        write_atomically(path, records_as(suffix.removeprefix("."), result.rows(), result.columns))
    say_written(path, _WORDS.get(suffix, "the result"))


def deliver_plan(arguments: argparse.Namespace, plan: Plan, result: Result) -> None:
    """Write the plan, or the result's page, to all outputs, and print the result."""
    for path in arguments.output:
        if is_page(path):
            write_result(path, result)
        else:
            plan.save(path)
            say_written(path, f"the plan {plan.fingerprint[:16]}…")
    print_result(arguments, result)
    if plan.lifetime is not None:
        say(lifetime_in_words(plan.epsilon, plan.lifetime), sys.stderr)


_WORDS = dict.fromkeys(PICTURES, "the picture") | {".html": "the page"}


def say_written(path: str | None, what: str) -> None:
    """Say on standard error what was written where; of standard output, only to a person who watches."""
    if not is_standard_output(path):
        say(f"wrote {what} to {path}", sys.stderr)
    elif sys.stderr.isatty():
        say(f"wrote {what}", sys.stderr)
