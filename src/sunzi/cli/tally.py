"""``sunzi tally``: reports become one tally.

Files are counted all or nothing: with one damaged batch there is no tally. In a column of a table, bad cells are
reported and left out, unless ``--bad-reports fail`` is given; with ``--by`` the result is a folder with one tally per
group, and a table that lists them.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sunzi.atomic_files import sync_directory
from sunzi.cli.files import (
    STANDARD,
    add_by,
    add_force,
    add_plan,
    check_order,
    check_paths,
    columns_by,
    input_name,
    is_standard_output,
    open_input,
    open_output,
    refuse_options,
)
from sunzi.cli.results import say_written
from sunzi.cli.terminal import ProgressBar, say
from sunzi.client.errors import ParameterError, ReportError
from sunzi.errors import TallyError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.tables import Sifted
    from sunzi.tables.group_counts import Key
    from sunzi.tally import Tally

_FILES, _PARQUET, _SPARK = "files", "parquet", "spark"
_SUFFIX = ".parquet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``tally``, and add its arguments."""
    parser.description = (
        "Count the reports of one plan. If a file of reports is damaged, truncated or of another plan, no tally is "
        "written. Reports may also be a column of Parquet files, counted by all cores of this machine or by Spark, or "
        "counts that a secure aggregation returned."
    )
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
    add_force(parser)
    parser.add_argument(
        "--engine",
        choices=(_FILES, _PARQUET, _SPARK),
        help="engine that counts (default: parquet for folders and names that end in .parquet, else files)",
    )
    _add_columns(parser)
    _add_counts(parser)


def run(arguments: argparse.Namespace) -> int:
    """Count every file, or the column of a table, and write the sum."""
    from sunzi.plan import load_plan

    if arguments.counts_of is not None:
        return _import_counts(arguments)
    engine = _engine_of(arguments)
    _refuse_arguments(arguments, engine)
    check_order("tally", arguments.plan, arguments.reports)
    is_folder = bool(arguments.by)  # which must be new in any case
    check_paths([arguments.plan, *arguments.reports], arguments.output, force=arguments.force or is_folder)
    plan = load_plan(arguments.plan)
    if engine is not None:
        return _count_columns(arguments, plan, engine)
    with open_output(arguments.output, "a tally") as stream:
        total = plan.empty_tally()
        for path in arguments.reports:
            total += _count_file(plan, path)
        stream.write(total.to_bytes())
    say_written(arguments.output, f"the tally of {counted(total.reports, 'report')}")
    return 0


def _count_file(plan: Plan, path: str) -> Tally:
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


def _add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options for counting a column, beyond those for counting files."""
    columns = parser.add_argument_group("reports in a column of Parquet files (extra 'frames', or 'spark')")
    columns.add_argument("--column", metavar="NAME", help="the column of reports (default: report)")
    columns.add_argument("--id-column", metavar="NAME", help="count rows with the same id once")
    add_by(columns, "one tally for every value of this column; -o then names a new folder")
    columns.add_argument(
        "--bad-reports",
        choices=("warn", "fail"),
        help="skip cells that are not reports and say how many and why, or write no tally (default: warn)",
    )
    columns.add_argument("--jobs", metavar="N", type=int, help="processes on this machine (default: one per core)")
    columns.add_argument(
        "--master", metavar="URL", help="Spark's master (default: what spark-submit says, or this machine)"
    )


def _add_counts(parser: argparse.ArgumentParser) -> None:
    """Add the option for counts of a secure aggregation."""
    counts = parser.add_argument_group("counts of a secure aggregation (docs/aggregation.md)")
    counts.add_argument(
        "--counts-of",
        metavar="N",
        type=int,
        help="REPORTS is one file with the counts of N reports that were summed elsewhere: a JSON list, or whole "
        "numbers separated by commas or line breaks",
    )


def _import_counts(arguments: argparse.Namespace) -> int:
    """Make the tally from counts, and write it."""
    from sunzi.aggregation import tally_from_counts
    from sunzi.plan import load_plan

    others = ("engine", "column", "id_column", "by", "bad_reports", "jobs", "master")
    refuse_options(arguments, others, "cannot be used with --counts-of, which reads no reports")
    if len(arguments.reports) > 1:
        raise ParameterError("--counts-of takes one file of counts; make a tally of each, then merge")
    (path,) = arguments.reports
    check_order("tally", arguments.plan, arguments.reports)
    check_paths([arguments.plan, path], arguments.output, force=arguments.force)
    plan, reports = load_plan(arguments.plan), arguments.counts_of
    with open_output(arguments.output, "a tally") as stream:
        try:
            tally = tally_from_counts(plan, _read_counts(path), reports)
        except TallyError as error:
            raise TallyError(f"{input_name(path)}: {error}") from None
        stream.write(tally.to_bytes())
    say_written(arguments.output, f"the tally of {counted(tally.reports, 'report')}")
    return 0


def _read_counts(path: str) -> list[Any]:
    """The numbers of a JSON list, or those between commas and line breaks."""
    with open_input(path) as stream:
        data = stream.read()
    try:
        text = data.decode().strip()
        found = json.loads(text) if text.startswith("[") else [int(word) for word in text.replace(",", " ").split()]
    except (ValueError, RecursionError) as error:
        expected = "a JSON list, or whole numbers separated by commas or line breaks"
        raise TallyError(f"expected {expected}: {error}") from None
    return list(found)


def _engine_of(arguments: argparse.Namespace) -> str | None:
    """The requested engine, or the one for these names of reports; None for files of reports."""
    if arguments.engine is not None:
        return None if arguments.engine == _FILES else str(arguments.engine)
    tables = [path for path in arguments.reports if path.endswith(_SUFFIX) or Path(path).is_dir()]
    if tables and len(tables) < len(arguments.reports):
        raise ParameterError(f"{tables[0]} is a table and others are not; count them separately, then merge")
    return _PARQUET if tables else None


def _refuse_arguments(arguments: argparse.Namespace, engine: str | None) -> None:
    """Refuse options that this engine would ignore."""
    given = {
        "--column": (arguments.column, (_PARQUET, _SPARK)),
        "--id-column": (arguments.id_column, (_PARQUET, _SPARK)),
        "--by": (arguments.by, (_PARQUET, _SPARK)),
        "--bad-reports": (arguments.bad_reports, (_PARQUET, _SPARK)),
        "--jobs": (arguments.jobs, (_PARQUET,)),
        "--master": (arguments.master, (_SPARK,)),
    }
    for name, (value, engines) in given.items():
        if value is not None and engine not in engines:
            needed = " or ".join(f"--engine {one}" for one in engines)
            raise ParameterError(f"{name} cannot be used with --engine {engine or _FILES}; use it with {needed}")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, got {arguments.jobs}")


def _count_columns(arguments: argparse.Namespace, plan: Plan, engine: str) -> int:
    """Count, report what was refused, and write one tally or a folder of them."""
    from sunzi.tables.group_folders import save_groups

    # The output is opened first, so that a bad name fails before hours of work.
    if arguments.by:
        with _new_folder(arguments.output) as folder:
            found = _sift(arguments, plan, engine)
            save_groups(folder, columns_by(arguments), {key: sifted.tally for key, sifted in found.items()})
    else:
        with open_output(arguments.output, "a tally") as stream:
            found = _sift(arguments, plan, engine)
            stream.write(found[()].tally.to_bytes())
    _say_sifted(arguments.output, found)
    return 0


def _sift(arguments: argparse.Namespace, plan: Plan, engine: str) -> Mapping[Key, Sifted]:
    """The content of each group, under the key () if there are no groups."""
    from sunzi.tables.tallying import bad_reports_message

    sifted = _sift_spark(arguments, plan) if engine == _SPARK else _sift_parquet(arguments, plan)
    found = sifted if isinstance(sifted, Mapping) else {(): sifted}
    message = bad_reports_message(found.values(), arguments.bad_reports or "warn")
    if message is not None:
        say(f"sunzi: warning: {message}", sys.stderr)
    return found


def _say_sifted(output: str | None, found: Mapping[Key, Sifted]) -> None:
    repeated = sum(group.repeated for group in found.values())
    more = f", without {counted(repeated, 'row')} that repeated an id," if repeated else ""
    tallies = "the tally" if () in found else f"{len(found):,} {'tally' if len(found) == 1 else 'tallies'}"
    reports = counted(sum(group.tally.reports for group in found.values()), "report")
    say_written(output, f"{tallies} of {reports}{more}")


def _columns(arguments: argparse.Namespace) -> dict[str, Any]:
    report_column = arguments.column or "report"
    return {"by": columns_by(arguments), "report_column": report_column, "id_column": arguments.id_column}


def _sift_parquet(arguments: argparse.Namespace, plan: Plan) -> Sifted | Mapping[Key, Sifted]:
    from sunzi.tables import sift

    with ProgressBar() as bar:
        return sift(arguments.reports, plan, **_columns(arguments), jobs=arguments.jobs, progress=bar.show)


def _sift_spark(arguments: argparse.Namespace, plan: Plan) -> Sifted | Mapping[Key, Sifted]:
    from sunzi.tables import sift, spark_session

    if spark_session.is_submitted() and is_standard_output(arguments.output):
        raise ParameterError("spark-submit mixes the job's output with its own messages; give -o FILE")
    session = spark_session.start_session(arguments.master, show_progress=sys.stderr.isatty())
    with spark_session.spark_errors(), session as started:
        return sift(spark_session.read_parquet(started, arguments.reports), plan, **_columns(arguments))


@contextmanager
def _new_folder(output: str | None) -> Iterator[Path]:
    """A hidden folder that gets its name when the block succeeds, and is removed if it fails.

    Its hidden name is random, so that one left behind by a power cut does not matter.
    """
    if output is None or is_standard_output(output):
        raise ParameterError("--by makes several tallies; give -o FOLDER")
    folder = Path(output)
    if os.path.lexists(folder):
        raise ParameterError(f"{output} exists; give -o the name of a new folder")
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.unfinished")
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    sync_directory(folder.parent)
