"""``sunzi tally`` of a column of reports in Parquet, by all cores of this machine or by Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sunzi.cli.group_folder import new_folder, write_groups
from sunzi.cli.inputs import check_paths
from sunzi.cli.numbers import counted
from sunzi.cli.outputs import is_standard_output, open_output
from sunzi.cli.terminal import ProgressBar, is_terminal, say
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.tables.sifting import Sifted
    from sunzi.tables.terms import Key

FILES, PARQUET, SPARK = "files", "parquet", "spark"
_SUFFIX = ".parquet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What counting a column takes beyond counting files."""
    columns = parser.add_argument_group("reports in a column of Parquet files (extra 'frames', or 'spark')")
    columns.add_argument("--column", metavar="NAME", help="the column of reports (default: report)")
    columns.add_argument("--id-column", metavar="NAME", help="count rows with the same id once")
    columns.add_argument(
        "--by",
        metavar="NAME",
        action="append",
        help="one tally for every value of this column; may be given several times; -o then names a new folder",
    )
    columns.add_argument(
        "--bad-reports",
        choices=("warn", "fail"),
        help="leave cells that are no reports out and say how many and why, or write no tally (default: warn)",
    )
    columns.add_argument("--jobs", metavar="N", type=int, help="processes on this machine (default: one a core)")
    columns.add_argument(
        "--master", metavar="URL", help="Spark's master (default: what spark-submit says, or this machine)"
    )


def engine_of(arguments: argparse.Namespace) -> str | None:
    """The engine asked for, or the one that the reports' names call for; None for files of reports."""
    if arguments.engine is not None:
        return None if arguments.engine == FILES else str(arguments.engine)
    tables = [path for path in arguments.reports if path.endswith(_SUFFIX) or Path(path).is_dir()]
    if tables and len(tables) < len(arguments.reports):
        raise ParameterError(f"{tables[0]} is a table and others are not; count them by themselves, then merge")
    return PARQUET if tables else None


def refuse_arguments(arguments: argparse.Namespace, engine: str | None) -> None:
    """An option that this engine would ignore is a mistake."""
    given = {
        "--column": (arguments.column, (PARQUET, SPARK)),
        "--id-column": (arguments.id_column, (PARQUET, SPARK)),
        "--by": (arguments.by, (PARQUET, SPARK)),
        "--bad-reports": (arguments.bad_reports, (PARQUET, SPARK)),
        "--jobs": (arguments.jobs, (PARQUET,)),
        "--master": (arguments.master, (SPARK,)),
    }
    for name, (value, engines) in given.items():
        if value is not None and engine not in engines:
            needed = " or ".join(f"--engine {one}" for one in engines)
            raise ParameterError(f"{name} has no meaning with --engine {engine or FILES}; it goes with {needed}")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, got {arguments.jobs}")


def run(arguments: argparse.Namespace, plan: Plan, engine: str) -> int:
    """Count, tell what was refused, and write one tally or a folder of them."""
    check_paths([arguments.plan, *arguments.reports], arguments.output)
    # Where it is to be written is found out first: what would fail at the end should fail before hours of work.
    if arguments.by:
        with new_folder(arguments.output) as folder:
            write_groups(folder, arguments.by, _found(arguments, plan, engine))
    else:
        with open_output(arguments.output, "a tally") as stream:
            found = _found(arguments, plan, engine)
            stream.write((found[()].tally if found else plan.empty_tally()).to_bytes())
    return 0


def _found(arguments: argparse.Namespace, plan: Plan, engine: str) -> dict[Key, Sifted]:
    found = _by_spark(arguments, plan) if engine == SPARK else _by_this_machine(arguments, plan)
    _tell(found, arguments.bad_reports or "warn")
    return found


def _by_this_machine(arguments: argparse.Namespace, plan: Plan) -> dict[Key, Sifted]:
    from sunzi.tables import parquet

    with ProgressBar() as bar:
        return parquet.sift_by(
            arguments.reports,
            plan,
            arguments.by or (),
            arguments.column or "report",
            arguments.id_column,
            jobs=arguments.jobs,
            progress=bar.show,
        )


def _by_spark(arguments: argparse.Namespace, plan: Plan) -> dict[Key, Sifted]:
    from sunzi.tables import spark_session as session
    from sunzi.tables.spark import sift_by

    if session.is_submitted() and is_standard_output(arguments.output):
        raise ParameterError("spark-submit mixes what a job prints with its own messages; give -o FILE")
    with session.spark_errors(), session.started(arguments.master, show_progress=is_terminal(sys.stderr)) as spark:
        df = session.read_parquet(spark, arguments.reports)
        return sift_by(df, plan, arguments.by or (), arguments.column or "report", arguments.id_column)


def _tell(found: Mapping[Key, Sifted], bad_reports: str) -> None:
    """What was left out is always said; what was counted, to people."""
    from sunzi.tables.terms import complaint

    message = complaint(found, bad_reports)
    if message is not None:
        say(f"sunzi: warning: {message}", sys.stderr)
    if is_terminal(sys.stderr):
        repeated = sum(sifted.repeated for sifted in found.values())
        more = f", and {counted(repeated, 'row')} that repeated an id" if repeated else ""
        say(counted(sum(sifted.tally.reports for sifted in found.values()), "report") + more, sys.stderr)
