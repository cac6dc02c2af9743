"""What a command prints: a table for a person, JSON or CSV for a program.

A terminal gets the table and a pipe gets JSON, unless ``--format`` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sunzi.cli.terminal import is_terminal, say

_FORMS = ("table", "json", "csv")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``."""
    parser.add_argument(
        "--format", choices=_FORMS, help="form of the output (default: table on a terminal, json in a pipe)"
    )


def show(
    form: str | None,
    *,
    table: Callable[[], None],
    document: Callable[[], Mapping[str, Any]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
) -> None:
    """Print one of the three: the table, the document as JSON, or the rows as CSV."""
    form = form or ("table" if is_terminal(sys.stdout) else "json")
    if form == "table":
        table()
    elif form == "json":
        say(json.dumps(document(), indent=1, allow_nan=False))
    else:
        from sunzi.tables.records import records_as

        sys.stdout.buffer.write(records_as("csv", rows()))
