"""Reports in Parquet files on one machine: counted on all cores, each id once if asked for. The extra ``frames``.

The same functions as :mod:`sunzi.tables.spark`, without Spark. Row groups are counted by processes of their own and
added up, so memory holds a few row groups whatever the number of reports. With an id column the rows are first shared
out by id over temporary files, so that all copies of an id meet in one of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi._typing import Progress
from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.processes import number_of_cores, pool_of_processes
from sunzi.tables import counting, once
from sunzi.tables.arrow_reader import need_pyarrow
from sunzi.tables.files import Source, check_kinds, names_of, opened, pieces_of, reading, rows_of, schema_of
from sunzi.tables.sifting import Refused, Sifted
from sunzi.tables.terms import BadReports, BadReportsWarning, Key, Terms, check_bad_reports, tallies
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BadReportsWarning", "Refused", "Sifted", "sift_by", "tally", "tally_by"]

"""Told the share that is done."""


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
    if jobs is not None and jobs < 1:
        raise ParameterError(f"jobs must be at least 1, got {jobs}")
    with reading():
        dataset = opened(source)
        terms = Terms.checked(plan, report_column, id_column, by, names_of(dataset))
        schema = schema_of(terms, dataset)
        check_kinds(terms, schema)
        pieces = pieces_of(terms, dataset)
    # The folder goes last, when nobody can write to it any more.
    with _folder_of_shares(terms, pieces) as shares:
        jobs = min(jobs or number_of_cores(), max(len(pieces), len(shares), 1))
        with _workers(jobs) as mapped:
            return _counted(terms, schema, pieces, shares, mapped, progress)


Mapped = Callable[..., Iterator[Any]]


@contextmanager
def _folder_of_shares(terms: Terms, pieces: Sequence[Any]) -> Iterator[list[Path]]:
    """Temporary folders to share rows out over; none if no ids are asked for."""
    if terms.id_column is None:
        yield []
        return
    number = once.number_of_shares(terms.plan, sum(map(rows_of, pieces)))
    with tempfile.TemporaryDirectory(prefix="sunzi-") as folder:
        shares = [Path(folder, str(share)) for share in range(number)]
        for share in shares:
            share.mkdir()
        yield shares


def _counted(
    terms: Terms,
    schema: pa.Schema,
    pieces: Sequence[Any],
    shares: list[Path],
    mapped: Mapped,
    progress: Progress | None,
) -> dict[Key, Sifted]:
    total: dict[Key, Sifted] = {}
    told = _Told(progress, len(pieces) * (2 if shares else 1))

    def collect(function: Callable[..., dict[Key, Sifted]], work: Iterable[tuple[Any, ...]], steps: float) -> None:
        for found in mapped(function, work):
            counting.add(total, found.items())
            told.another(steps)

    if shares:
        collect(_share_piece, ((terms, schema, piece, shares, place) for place, piece in enumerate(pieces)), 1)
        collect(once.count_share, ((terms, share) for share in shares), len(pieces) / len(shares))
    else:
        collect(_count_piece, ((terms, schema, piece) for piece in pieces), 1)
    return total


class _Told:
    """Tells the share of the work that is done."""

    def __init__(self, progress: Progress | None, steps: int) -> None:
        self._progress, self._steps, self._done = progress, max(steps, 1), 0.0

    def another(self, steps: float) -> None:
        self._done += steps
        if self._progress is not None:
            self._progress(min(self._done / self._steps, 1.0))


def _count_piece(terms: Terms, schema: pa.Schema, piece: Any) -> dict[Key, Sifted]:
    return counting.count(terms, _batches(terms, schema, piece))


def _share_piece(terms: Terms, schema: pa.Schema, piece: Any, shares: list[Path], place: int) -> dict[Key, Sifted]:
    return once.share_out(terms, _batches(terms, schema, piece), shares, place)


def _batches(terms: Terms, schema: pa.Schema, piece: Any) -> Iterator[pa.RecordBatch]:
    with reading(piece.path):
        yield from piece.to_batches(schema=schema, columns=terms.columns, use_threads=False)


@contextmanager
def _workers(jobs: int) -> Iterator[Mapped]:
    """A map over tuples of arguments, in this process or in several."""
    if jobs == 1:
        yield lambda function, work: (function(*arguments) for arguments in work)
        return
    with pool_of_processes(jobs) as pool:
        yield lambda function, work: _results({pool.submit(function, *some) for some in work})


def _results(waiting: set[Future[Any]]) -> Iterator[Any]:
    """As they come, each dropped when it was told, since sums do not care for order. Not ``map``: that cancels the rest
    if the block fails, and a pool whose processes end while work is cancelled complains of it.
    """
    try:
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            while done:
                yield done.pop().result()
    except BrokenProcessPool:
        raise ParameterError(
            "a process that counted was killed, most likely because memory ran out; try with fewer jobs"
        ) from None
