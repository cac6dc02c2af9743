"""``sunzi tally``: reports become one tally.

Files are counted all or nothing: with one damaged batch there is no tally. In a column of a table, bad cells are
reported and left out, unless ``--bad-reports fail`` is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, BinaryIO, cast

from sunzi.cli import tally_columns
from sunzi.cli.files import STANDARD, add_plan, check_paths, input_name, open_input, open_output
from sunzi.cli.numbers import counted
from sunzi.cli.terminal import ProgressBar, is_terminal, say
from sunzi.errors import ReportError

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.tally import Tally


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``tally`` to the command line."""
    description = (
        "Count the reports of one plan. If a file of reports is damaged, truncated or of another plan, no tally is "
        "written. Reports may also be a column of Parquet files, counted by all cores of this machine or by Spark."
    )
    parser = commands.add_parser("tally", description=description, allow_abbrev=False)
    add_plan(parser)
    parser.add_argument(
        "reports",
        metavar="REPORTS",
        nargs="+",
        help="files of reports, batches back to back; - is standard input; or Parquet files, or folders of them",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to write the tally (default: standard output, for a pipe)"
    )
    parser.add_argument(
        "--engine",
        choices=(tally_columns.FILES, tally_columns.PARQUET, tally_columns.SPARK),
        help="what counts (default: parquet for folders and names that end in .parquet, else files)",
    )
    tally_columns.add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count every file, or the column of a table, and write the sum."""
    from sunzi.plan import load_plan

    engine = tally_columns.engine_of(arguments)
    tally_columns.refuse_arguments(arguments, engine)
    plan = load_plan(arguments.plan)
    if engine is not None:
        return tally_columns.run(arguments, plan, engine)
    check_paths([arguments.plan, *arguments.reports], arguments.output)
    with open_output(arguments.output, "a tally") as stream:
        total = plan.empty_tally()
        for path in arguments.reports:
            total += count_file(plan, path)
        stream.write(total.to_bytes())
    if is_terminal(sys.stderr):
        say(counted(total.reports, "report"), sys.stderr)
    return 0


def count_file(plan: Plan, path: str) -> Tally:
    """The tally of one file; errors name it."""
    with open_input(path) as stream, ProgressBar("bytes") as progress:
        watched = _Watched(stream, None if path == STANDARD else os.fstat(stream.fileno()).st_size, progress)
        try:
            tally = plan.tally(cast(BinaryIO, watched))
        except ReportError as error:
            raise ReportError(f"{input_name(path)}: {error}") from None
    if not watched.count:
        raise ReportError(
            f"{input_name(path)} is empty; a valid file has at least an empty batch, so it may be truncated"
        )
    return tally


class _Watched:
    """A stream that shows how far it was read."""

    def __init__(self, stream: BinaryIO, size: int | None, progress: ProgressBar) -> None:
        self._stream, self._size, self._progress = stream, size, progress
        self.count = 0

    def read(self, number: int) -> bytes:
        """Read up to this number of bytes."""
        data = self._stream.read(number)
        self.count += len(data)
        self._progress.update(self.count, self.count / self._size if self._size else None)
        return data
