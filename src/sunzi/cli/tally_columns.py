"""``sunzi tally`` of a column of reports in Parquet, by all cores of this machine or by Spark."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sunzi.cli.streams import check_paths, open_output
from sunzi.cli.terminal import is_terminal, say
from sunzi.cli.waiting import Waiting
from sunzi.cli.words import counted
from sunzi.errors import ParameterError, ReportError

if TYPE_CHECKING:
    from sunzi.columns.sifting import Sifted
    from sunzi.columns.terms import Key
    from sunzi.plan import Plan

PARQUET, SPARK = "parquet", "spark"
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
        return None if arguments.engine == "files" else str(arguments.engine)
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
            raise ParameterError(f"{name} has no meaning for files of reports counted here; it goes with {needed}")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, got {arguments.jobs}")


def run(arguments: argparse.Namespace, plan: Plan, engine: str) -> int:
    """Count, tell what was refused, and write one tally or a folder of them."""
    check_paths([arguments.plan, *arguments.reports], arguments.output)
    folder = _new_folder(arguments.output) if arguments.by else None
    found = _by_spark(arguments, plan) if engine == SPARK else _by_this_machine(arguments, plan)
    _tell(found, fail=arguments.bad_reports == "fail")
    if folder is not None:
        _write_folder(folder, arguments.by, found)
        return 0
    with open_output(arguments.output, "a tally") as stream:
        stream.write((found[()].tally if found else plan.empty_tally()).to_bytes())
    return 0


def _by_this_machine(arguments: argparse.Namespace, plan: Plan) -> dict[Key, Sifted]:
    from sunzi import parquet

    with Waiting() as waiting:
        return parquet.sift_by(
            arguments.reports,
            plan,
            arguments.by or (),
            arguments.column or "report",
            arguments.id_column,
            jobs=arguments.jobs,
            progress=waiting.show,
        )


def _by_spark(arguments: argparse.Namespace, plan: Plan) -> dict[Key, Sifted]:
    from sunzi.spark import session, sift_by

    with session.started(arguments.master, show_progress=is_terminal(sys.stderr)) as spark:
        df = session.read_parquet(spark, arguments.reports)
        return sift_by(df, plan, arguments.by or (), arguments.column or "report", arguments.id_column)


def _tell(found: Mapping[Key, Sifted], *, fail: bool) -> None:
    """What was left out is always said; what was counted, to people."""
    from functools import reduce

    from sunzi.columns.sifting import Refused

    refused = reduce(Refused.__add__, (sifted.refused for sifted in found.values()), Refused())
    message = f"{counted(refused.total, 'cell')} held no report of this plan: {refused}"
    if refused.total and fail:
        raise ReportError(message)
    if refused.total:
        say(f"sunzi: warning: {message}; left out", sys.stderr)
    if is_terminal(sys.stderr):
        repeated = sum(sifted.repeated for sifted in found.values())
        more = f", and {counted(repeated, 'row')} that repeated an id" if repeated else ""
        say(counted(sum(sifted.tally.reports for sifted in found.values()), "report") + more, sys.stderr)


def _new_folder(output: str | None) -> Path:
    if output is None:
        raise ParameterError("--by makes several tallies; give -o FOLDER")
    folder = Path(output)
    if folder.exists():
        raise ParameterError(f"{output} exists; give -o the name of a new folder")
    return folder


def _write_folder(folder: Path, by: list[str], found: Mapping[Key, Sifted]) -> None:
    """``country=DE,day=1.tally`` and so on, and a table of them; the folder appears when all of it is written."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    unfinished.mkdir(parents=True)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", *by, "reports"])
    for key, sifted in sorted(found.items(), key=lambda item: _name(by, item[0])):
        name = _name(by, key)
        sifted.tally.save(unfinished / name)
        rows.writerow([name, *("" if value is None else value for value in key), sifted.tally.reports])
    (unfinished / "groups.csv").write_text(text.getvalue(), encoding="utf-8")
    unfinished.rename(folder)


def _name(by: list[str], key: Key) -> str:
    """A file name that no value can lead out of the folder; a missing value leaves out its ``=``."""
    return ",".join(quote(name, safe="") + _value(value) for name, value in zip(by, key, strict=True)) + ".tally"


def _value(value: object) -> str:
    return "" if value is None else "=" + quote(value.hex() if isinstance(value, bytes) else str(value), safe=" ")
