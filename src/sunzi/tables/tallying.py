"""Tallies of a column of reports, in Parquet files or in a Spark data frame."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, overload

from sunzi._typing import Progress
from sunzi.client.errors import ParameterError, ReportError
from sunzi.plan import Plan
from sunzi.tables.group_counts import Key
from sunzi.tables.parquet_files import Source, sift_parquet
from sunzi.tables.report_cells import Refused, Sifted
from sunzi.tables.spark import is_spark_frame, sift_frame
from sunzi.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NoColumns = tuple[()]
BadReports = Literal["warn", "fail"]


class BadReportsWarning(UserWarning):
    """Some cells were not reports of the plan and were left out; the message counts them by reason and shows a few.

    >>> import pyarrow.parquet, sunzi.tables, warnings
    >>> plan = sunzi.make_plan("grr", 10, epsilon=1)
    >>> pyarrow.parquet.write_table(pyarrow.table({"report": [plan.client().report(3), None]}), "reports.parquet")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     counted = sunzi.tables.tally("reports.parquet", plan, jobs=1)
    >>> print(caught[0].message)
    1 cell holds no report of this plan, left out of the tally: 1 missing
    """


@overload
def tally(
    source: Source | DataFrame,
    plan: Plan,
    by: Sequence[str],
    report_column: str = ...,
    id_column: str | None = ...,
    *,
    bad_reports: BadReports = ...,
    jobs: int | None = ...,
) -> dict[Key, Tally]: ...


@overload
def tally(
    source: Source | DataFrame,
    plan: Plan,
    by: NoColumns = ...,
    report_column: str = ...,
    id_column: str | None = ...,
    *,
    bad_reports: BadReports = ...,
    jobs: int | None = ...,
) -> Tally: ...


def tally(
    source: Source | DataFrame,
    plan: Plan,
    by: Sequence[str] = (),
    report_column: str = "report",
    id_column: str | None = None,
    *,
    bad_reports: BadReports = "warn",
    jobs: int | None = None,
) -> Tally | dict[Key, Tally]:
    """Count a column of reports, in one pass: one tally, or with ``by`` one tally per group.

    Parameters
    ----------
    source: a Parquet file, a folder of them, a list of files and folders (the extra ``frames``), or a Spark data frame
        (the extra ``spark``).
    plan: the plan of the reports.
    by: the columns to group by, such as country or day; folder names such as ``day=2026-11-15`` are columns, too. The
        keys of the result are tuples of their values.
    report_column: the column of reports: binary cells that hold one report or one batch each.
    id_column: count rows with the same id once, over all groups: a good report rather than a bad cell, and of several
        the least, so that every run counts the same row.
    bad_reports: whether cells that are not reports are left out with a :class:`BadReportsWarning`, or raise ReportError
        ("fail").
    jobs: the number of processes for Parquet files, by default one per core. Call it under
        ``if __name__ == "__main__":``, as usual where Python starts processes.

    >>> import pyarrow.parquet
    >>> import sunzi.tables
    >>> plan = sunzi.make_plan("grr", 10, epsilon=1)
    >>> table = pyarrow.table({"report": plan.client().reports([3, 1, 4]), "country": ["DE", "FR", "DE"]})
    >>> pyarrow.parquet.write_table(table, "reports.parquet")
    >>> sunzi.tables.tally("reports.parquet", plan, jobs=1).reports
    3
    >>> sunzi.tables.tally("reports.parquet", plan, by=["country"], jobs=1)["DE",].reports
    2
    """
    if bad_reports not in ("warn", "fail"):
        raise ParameterError(f"bad_reports must be 'warn' or 'fail', got {bad_reports!r}")
    found = _sift_groups(source, plan, by, report_column, id_column, jobs)
    message = bad_reports_message(found.values(), bad_reports)
    if message is not None:
        warnings.warn(message, BadReportsWarning, stacklevel=2)
    tallies = {key: sifted.tally for key, sifted in found.items()}
    return tallies if by else tallies.get((), plan.empty_tally())


@overload
def sift(
    source: Source | DataFrame,
    plan: Plan,
    by: Sequence[str],
    report_column: str = ...,
    id_column: str | None = ...,
    *,
    jobs: int | None = ...,
    progress: Progress | None = ...,
) -> dict[Key, Sifted]: ...


@overload
def sift(
    source: Source | DataFrame,
    plan: Plan,
    by: NoColumns = ...,
    report_column: str = ...,
    id_column: str | None = ...,
    *,
    jobs: int | None = ...,
    progress: Progress | None = ...,
) -> Sifted: ...


def sift(
    source: Source | DataFrame,
    plan: Plan,
    by: Sequence[str] = (),
    report_column: str = "report",
    id_column: str | None = None,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Sifted | dict[Key, Sifted]:
    """Like :func:`tally`, with the bad cells by reason and the number of rows that repeat an id for each tally.

    Parameters
    ----------
    source, plan, by, report_column, id_column, jobs: as for :func:`tally`.
    progress: called with the fraction done so far, for Parquet files.

    >>> import pyarrow.parquet
    >>> import sunzi.tables
    >>> plan = sunzi.make_plan("grr", 10, epsilon=1)
    >>> table = pyarrow.table({"report": [*plan.client().reports([3, 1, 4]), None], "id": [1, 2, 2, 3]})
    >>> pyarrow.parquet.write_table(table, "reports.parquet")
    >>> sifted = sunzi.tables.sift("reports.parquet", plan, id_column="id", jobs=1)
    >>> print(sifted.tally.reports, sifted.repeated, sifted.refused)
    2 1 1 missing
    """
    found = _sift_groups(source, plan, by, report_column, id_column, jobs, progress)
    return found if by else found.get((), Sifted(plan.empty_tally()))


def _sift_groups(
    source: Any,
    plan: Plan,
    by: Sequence[str],
    report_column: str,
    id_column: str | None,
    jobs: int | None,
    progress: Progress | None = None,
) -> dict[Key, Sifted]:
    if is_spark_frame(source):
        if jobs is not None:
            raise ParameterError(f"jobs={jobs} is for Parquet files; Spark decides itself how many tasks run")
        return sift_frame(source, plan, by, report_column, id_column)
    return sift_parquet(source, plan, by, report_column, id_column, jobs=jobs, progress=progress)


def bad_reports_message(found: Iterable[Sifted], bad_reports: BadReports) -> str | None:
    """How many cells are not reports and why, or None if there are none; raised as ReportError with "fail"."""
    refused = reduce(Refused.__add__, (sifted.refused for sifted in found), Refused())
    if not refused.total:
        return None
    cells = "1 cell holds" if refused.total == 1 else f"{refused.total:,} cells hold"
    if bad_reports == "fail":
        raise ReportError(f"{cells} no report of this plan: {refused}")
    return f"{cells} no report of this plan, left out of the tally: {refused}"
