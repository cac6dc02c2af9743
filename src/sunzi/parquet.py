"""Reports in Parquet files on one machine: counted on all cores, each id once if asked for. The extra ``frames``.

The same functions as :mod:`sunzi.spark`, without Spark. Row groups are counted by processes of their own and added up,
so memory holds a few row groups whatever the number of reports. With an id column the rows are first shared out by id
over temporary files, so that all copies of an id meet in one of them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi.columns import counting, once
from sunzi.columns.binary import plain
from sunzi.columns.sifting import Sifted
from sunzi.columns.terms import BadReports, BadReportsWarning, Key, Terms, check_bad_reports, tallies
from sunzi.errors import ParameterError, PlanError
from sunzi.plan import Plan
from sunzi.processes import number_of_cores, pool_of_processes
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
    if jobs is not None and jobs < 1:
        raise ParameterError(f"jobs must be at least 1, got {jobs}")
    with _reading():
        dataset = _opened(source)
        terms = Terms.checked(plan, report_column, id_column, by, _names(dataset))
        schema = _schema(terms, dataset)
        _check_kinds(terms, schema)
        pieces = _pieces(terms, dataset)
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
    number = once.number_of_shares(terms.plan, sum(piece.count_rows() for piece in pieces))
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
    with _reading(piece.path):
        yield from piece.to_batches(schema=schema, columns=terms.columns, use_threads=False)


@contextmanager
def _reading(path: str | None = None) -> Iterator[None]:
    """pyarrow's complaints as ours, with the file's name."""
    import pyarrow

    try:
        with arrow_errors():
            try:
                yield
            except pyarrow.ArrowTypeError as error:  # files whose columns are of different types
                raise ValueError(str(error)) from None
    except ParameterError as error:
        raise ParameterError(str(error) if path is None or path in str(error) else f"{path}: {error}") from None


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


def _opened(source: Source) -> Any:
    from pyarrow import dataset

    listed = [source] if isinstance(source, (str, Path)) else list(source)
    paths = [Path(path) for path in listed]
    if not paths:
        raise ParameterError("there are no Parquet files to count: the list is empty")
    for path in paths:
        if not path.exists():
            raise ParameterError(f"there is no file or folder {str(path)!r}")
    files = [str(path) for path in paths if not path.is_dir()]
    sources: list[Any] = [*([files] if files else []), *(str(path) for path in paths if path.is_dir())]
    parts = []
    for one in sources:
        parts.append(dataset.dataset(one, format="parquet", partitioning="hive", exclude_invalid_files=False))
        if not parts[-1].files:
            raise ParameterError(f"there is no Parquet file in {one!r}")
    return parts[0] if len(parts) == 1 else dataset.dataset(parts)


def _names(dataset: Any) -> list[str]:
    """The columns of all files: those of the first, and what others have besides."""
    besides = {name for fragment in dataset.get_fragments() for name in fragment.physical_schema.names}
    return [*dataset.schema.names, *sorted(besides - set(dataset.schema.names))]


def _schema(terms: Terms, dataset: Any) -> pa.Schema:
    """The columns that are counted, over all files: one that lacks a column has nulls there, and of kinds that differ
    in width the widest serves.
    """
    import pyarrow

    def counted(schema: pa.Schema) -> pa.Schema:
        return pyarrow.schema([field for field in schema if field.name in terms.columns])

    found = counted(dataset.schema)
    for fragment in dataset.get_fragments():
        with _reading(fragment.path):
            found = pyarrow.unify_schemas([found, counted(fragment.physical_schema)], promote_options="permissive")
    return found


def _check_kinds(terms: Terms, schema: pa.Schema) -> None:
    """Every column holds what it is asked for."""
    from pyarrow import types

    def kind_of(name: str) -> Any:
        return plain(schema.empty_table().column(name)).type

    def require(good: bool, name: str, needed: str) -> None:
        if not good:
            raise ParameterError(f"the column {name!r} must hold {needed}, it holds {schema.field(name).type}")

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))

    require(is_bytes(kind_of(terms.report_column)), terms.report_column, "binary values")
    if terms.id_column is not None:
        kind = kind_of(terms.id_column)
        is_text = types.is_string(kind) or types.is_large_string(kind)
        require(is_bytes(kind) or is_text or types.is_integer(kind), terms.id_column, "bytes, texts or integers")
    for name in terms.by:
        kind = kind_of(name)
        unsorted = types.is_nested(kind) or types.is_float16(kind) or types.is_interval(kind)
        require(not unsorted, name, "values that can be told apart and sorted")


def _pieces(terms: Terms, dataset: Any) -> list[Any]:
    """The row groups of all files, none of them twice, and each of this plan as far as it says."""
    seen, pieces = set(), []
    for fragment in dataset.get_fragments():
        path = os.path.realpath(fragment.path)
        if path in seen:
            raise ParameterError(f"{fragment.path} is named twice, and would be counted twice")
        seen.add(path)
        try:
            terms.check_owner(_metadata(fragment.physical_schema, terms.report_column))
        except PlanError as error:
            raise PlanError(f"{fragment.path}: {error}") from None
        pieces += fragment.split_by_row_group()
    return pieces


def _metadata(schema: pa.Schema, column: str) -> dict[str, Any]:
    """What the column says of itself: in Arrow's own metadata, or in what Spark writes beside it."""
    place = schema.get_field_index(column)
    own = (schema.field(place).metadata or {}) if place >= 0 else {}
    found: dict[str, Any] = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in own.items()}
    written = (schema.metadata or {}).get(_SPARK_SCHEMA)
    fields = json.loads(written)["fields"] if written else []
    return found | next((field["metadata"] for field in fields if field["name"] == column), {})
