"""Reports in Parquet files on one machine: counted on all cores, each id once if asked for. The extra ``frames``.

The same functions as :mod:`sunzi.spark`, without Spark. Row groups are counted by processes of their own and added up,
so memory holds a few row groups whatever the number of reports. With an id column the rows are first shared out by id
over temporary files, so that all copies of an id meet in one of them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi.columns import counting, once
from sunzi.columns.sifting import Sifted
from sunzi.columns.terms import BadReports, BadReportsWarning, Key, Terms, check_bad_reports, tallies
from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.processes import pool_of_processes
from sunzi.tables.arrow_reader import arrow_errors, need_pyarrow
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BadReportsWarning", "Sifted", "sift_by", "tally", "tally_by"]

Source = str | Path | Sequence[str | Path]
Progress = Callable[[float], None]
"""Told the share that is done."""

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def tally(
    source: Source,
    plan: Plan,
    report_column: str = "report",
    id_column: str | None = None,
    *,
    bad_reports: BadReports = "warn",
    jobs: int | None = None,
) -> Tally:
    """The tally of a column of reports in a Parquet file, a folder of them, or a list of files.

    With ``id_column`` all rows with the same id count once: a good one if there is one, and of several the least. Cells
    that are no reports are left out with a BadReportsWarning that counts and shows them, or raise ReportError with
    ``bad_reports="fail"``. ``jobs`` processes work side by side, by default one a core; a script that calls this does
    so under ``if __name__ == "__main__":``, as everywhere where Python starts processes.
    """
    check_bad_reports(bad_reports)
    found = tallies(sift_by(source, plan, (), report_column, id_column, jobs=jobs), bad_reports)
    return found.get((), plan.empty_tally())


def tally_by(
    source: Source,
    plan: Plan,
    by: Sequence[str],
    report_column: str = "report",
    id_column: str | None = None,
    *,
    bad_reports: BadReports = "warn",
    jobs: int | None = None,
) -> dict[Key, Tally]:
    """One tally for every combination of values of the columns ``by`` (country, version, day), in one pass.

    The columns may be those that folder names give (``day=2026-11-15/…``).
    """
    check_bad_reports(bad_reports)
    if not by:
        raise ParameterError("by must name at least one column; for one tally of all rows use tally()")
    return tallies(sift_by(source, plan, by, report_column, id_column, jobs=jobs), bad_reports)


def sift_by(
    source: Source,
    plan: Plan,
    by: Sequence[str] = (),
    report_column: str = "report",
    id_column: str | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[Key, Sifted]:
    """For every group its tally, the cells that were no reports by reason, and how many rows repeated an id."""
    need_pyarrow("counting reports in Parquet")
    with arrow_errors():
        dataset = _opened(source)
    terms = Terms.checked(plan, report_column, id_column, by, dataset.schema.names)
    terms.check_owner(_metadata(dataset.schema, report_column))
    with arrow_errors():
        pieces = [piece for fragment in dataset.get_fragments() for piece in fragment.split_by_row_group()]
    jobs = min(jobs or os.cpu_count() or 1, max(len(pieces), 1))
    with _workers(jobs) as mapped:
        return _counted(terms, dataset.schema, pieces, mapped, progress)


Mapped = Callable[..., Iterator[Any]]


def _counted(
    terms: Terms, schema: pa.Schema, pieces: Sequence[Any], mapped: Mapped, progress: Progress | None
) -> dict[Key, Sifted]:
    total: dict[Key, Sifted] = {}
    told = _Told(progress, len(pieces) * (1 if terms.id_column is None else 2))
    if terms.id_column is None:
        for found in mapped(_count_piece, ((terms, schema, piece) for piece in pieces)):
            counting.add(total, found.items())
            told.another()
        return total
    with tempfile.TemporaryDirectory(prefix="sunzi-") as folder:
        shares = once.number_of_shares(sum(piece.count_rows() for piece in pieces))
        work = ((terms, schema, piece, Path(folder), place, shares) for place, piece in enumerate(pieces))
        for found in mapped(_share_piece, work):
            counting.add(total, found.items())
            told.another()
        for found in mapped(_count_share, ((terms, Path(folder), share) for share in range(shares))):
            counting.add(total, found.items())
            told.another(len(pieces) / shares)
    return total


class _Told:
    """Tells the share of the work that is done."""

    def __init__(self, progress: Progress | None, steps: int) -> None:
        self._progress, self._steps, self._done = progress, max(steps, 1), 0.0

    def another(self, steps: float = 1.0) -> None:
        self._done += steps
        if self._progress is not None:
            self._progress(min(self._done / self._steps, 1.0))


def _count_piece(terms: Terms, schema: pa.Schema, piece: Any) -> dict[Key, Sifted]:
    with arrow_errors():
        batches = piece.to_batches(schema=schema, columns=terms.columns, use_threads=False)
        return counting.count(terms.plan, terms.by, terms.report_column, batches)


def _share_piece(
    terms: Terms, schema: pa.Schema, piece: Any, folder: Path, place: int, shares: int
) -> dict[Key, Sifted]:
    with arrow_errors():
        batches = piece.to_batches(schema=schema, columns=terms.columns, use_threads=False)
        return once.share_out(terms, batches, folder, place, shares)


def _count_share(terms: Terms, folder: Path, share: int) -> dict[Key, Sifted]:
    return once.count_share(terms, folder, share)


@contextmanager
def _workers(jobs: int) -> Iterator[Mapped]:
    """A map over tuples of arguments, in this process or in several."""
    if jobs == 1:
        yield lambda function, work: (function(*arguments) for arguments in work)
        return
    with pool_of_processes(jobs) as pool:
        yield lambda function, work: pool.map(function, *zip(*work, strict=True))


def _opened(source: Source) -> Any:
    from pyarrow import dataset

    listed = [source] if isinstance(source, (str, Path)) else list(source)
    paths = [Path(path) for path in listed]
    if not paths:
        raise ParameterError("there are no Parquet files to count: the list is empty")
    for path in paths:
        if not path.exists():
            raise ParameterError(f"there is no file or folder {str(path)!r}")
    whole = str(paths[0]) if len(paths) == 1 else [str(path) for path in paths]
    found = dataset.dataset(whole, format="parquet", partitioning="hive", exclude_invalid_files=False)
    if not found.files:
        raise ParameterError(f"there is no Parquet file in {whole!r}")
    return found


def _metadata(schema: pa.Schema, column: str) -> dict[str, Any]:
    """What the column says of itself: in Arrow's own metadata, or in what Spark writes beside it."""
    own = schema.field(column).metadata or {}
    found: dict[str, Any] = {key.decode(): value.decode(errors="replace") for key, value in own.items()}
    written = (schema.metadata or {}).get(_SPARK_SCHEMA)
    fields = json.loads(written)["fields"] if written else []
    return found | next((field["metadata"] for field in fields if field["name"] == column), {})
