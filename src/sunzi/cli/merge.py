"""``sunzi merge``: tallies of one plan, from shards, days or regions, become one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sunzi.cli.files import add_force, check_new, check_paths, input_name, open_output, read_tally
from sunzi.cli.results import say_written
from sunzi.client.errors import ParameterError
from sunzi.errors import TallyError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi.tally import Tally


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``merge``, and add its arguments."""
    parser.description = (
        "Add up tallies of one plan. The result is the tally of all their reports; the order does not matter."
    )
    parser.add_argument("tallies", metavar="TALLY", nargs="+", help="tally files; - is standard input")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to write the sum (default: standard output, for a pipe)"
    )
    add_force(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read all, write the sum. With --force the output may be an input: it is replaced after all have been read."""
    check_paths(arguments.tallies)
    check_new(arguments.output, force=arguments.force)
    with open_output(arguments.output, "a tally") as stream:
        first, *others = arguments.tallies
        total = read_tally(first)
        for path in others:
            total = _added(total, path)
        stream.write(total.to_bytes())
    say_written(arguments.output, f"the tally of {counted(total.reports, 'report')}")
    return 0


def _added(total: Tally, path: str) -> Tally:
    tally = read_tally(path)
    try:
        return total + tally
    except (TallyError, ParameterError) as error:
        raise TallyError(f"{input_name(path)}: {error}") from None
