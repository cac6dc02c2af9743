"""A collection by files: the command line turns a Parquet column into reports, and the reports into a tally."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import settings
from benchmarks.children import UnavailableError
from benchmarks.measure import compare
from benchmarks.results import Result
from sunzi.cli.main import main
from sunzi.client.randomness import SystemSource
from sunzi.numerics.randomness import word_array
from sunzi.plan import Plan, make_plan
from sunzi.tables.column_rows import ROWS_AT_ONCE

ROWS = 2_000_000


def by_files(scale: float) -> Iterator[Result]:
    """``sunzi privatize`` and ``sunzi tally``, against reading the column and drawing the random words alone."""
    count, size = settings.users(ROWS, scale), settings.domain_size(settings.DOMAIN_SIZE, scale)
    labels = [f"word {index}" for index in range(size)]
    plans = {kind: make_plan("ss-compact", domain, settings.EPSILON) for kind, domain in _kinds(size, labels)}
    with TemporaryDirectory() as name:
        directory = Path(name)
        _write_table(directory / "table.parquet", labels, count)
        for kind, plan in plans.items():
            plan.save(directory / "plan.json")
            times = compare(
                partial(_collect, directory, kind), partial(_read_and_draw, directory, kind, plan), _rounds(scale)
            )
            yield Result(
                f"by-files/{kind}",
                f"privatise and tally {count:,} rows of {kind} by ss-compact, from Parquet to a tally",
                times.measured,
                "reading the column with pyarrow, and its random words",
                times.reference,
                times.slowdown,
                3,
                "at most",
                {"users": count, "domain_size": size, "epsilon": settings.EPSILON},
            )


def _kinds(size: int, labels: list[str]) -> list[tuple[str, int | list[str]]]:
    return [("integers", size), ("labels", labels)]


def _rounds(scale: float) -> int:
    return settings.rounds(5, scale)


def _write_table(path: Path, labels: list[str], count: int) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise UnavailableError("pyarrow is not installed; it comes with the extra 'frames'") from None
    values = settings.values(count, len(labels))
    columns = {"integers": pyarrow.array(values), "labels": pyarrow.array(labels).take(pyarrow.array(values))}
    parquet.write_table(pyarrow.table(columns), path)


def _collect(directory: Path, column: str) -> None:
    """Run both commands in this process: their start-up time does not depend on the table."""
    plan, table, reports, tally = (
        str(directory / name) for name in ("plan.json", "table.parquet", "reports.bin", "tally.bin")
    )
    codes = (
        main(["privatize", plan, table, "--column", column, "--force", "-o", reports]),
        main(["tally", plan, reports, "--force", "-o", tally]),
    )
    assert codes == (0, 0)


def _read_and_draw(directory: Path, column: str, plan: Plan) -> None:
    from pyarrow import parquet

    rows = len(parquet.read_table(directory / "table.parquet", columns=[column], use_threads=False))
    source, words = SystemSource(), round(plan.protocol.words_per_report)
    for start in range(0, rows, ROWS_AT_ONCE):
        word_array(source, words * min(ROWS_AT_ONCE, rows - start))
