"""``--group`` of ``sunzi plan``: the public groups that a plan declares."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sunzi.client.errors import ParameterError


def add_group_lists(parser: argparse.ArgumentParser) -> None:
    """Add ``--group``."""
    parser.add_argument(
        "--group",
        metavar="NAME=LIST",
        action="append",
        default=[],
        help="public groups that uploads to a collector may name: country=DE,FR, or country=@FILE with one value per "
        "line; nothing protects them. May be repeated",
    )


def read_group_lists(texts: Sequence[str]) -> dict[str, list[str]]:
    """The groups that ``--group`` declares; the plan checks their names."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        if not separator:
            raise ParameterError(f"--group is NAME=VALUE,VALUE,… or NAME=@FILE, got {text!r}")
        if name in found:
            raise ParameterError(f"--group {name} is given twice; list all of its values once")
        found[name] = _values(values)
    return found


def _values(text: str) -> list[str]:
    if not text.startswith("@"):
        return text.split(",")
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ParameterError(f"{text[1:]} is not UTF-8") from None
    return [line.strip() for line in lines if line.strip()]
