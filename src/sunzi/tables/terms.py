"""What is to be counted: which plan, which column, which id, which groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from sunzi.errors import ParameterError, PlanError, ReportError
from sunzi.plan import Plan
from sunzi.tables.sifting import Refused, Sifted
from sunzi.tally import Tally

Key = tuple[Any, ...]
"""The values of the group columns; empty where there are none."""

BadReports = Literal["warn", "fail"]

FINGERPRINT_KEY = "sunzi_plan"
"""A column of reports may name the plan it belongs to under this key of its metadata; then another plan is refused."""


OWN_PREFIX = "sunzi_"
"""Columns that engines add on their way begin with this, so none that is counted may."""


class BadReportsWarning(UserWarning):
    """Some cells were no reports of the plan and were left out; the message says how many, why, and shows a few."""


@dataclass(frozen=True)
class Terms:
    """What is to be counted, checked against the columns that there are."""

    plan: Plan
    report_column: str
    id_column: str | None = None
    by: tuple[str, ...] = ()

    @classmethod
    def checked(
        cls, plan: Plan, report_column: str, id_column: str | None, by: Sequence[str], columns: Iterable[str]
    ) -> Terms:
        """The terms, if every column exists and serves one purpose."""
        if isinstance(by, str):
            raise ParameterError(f"the group columns are a list of names, got {by!r}; write [{by!r}]")
        terms, known = cls(plan, report_column, id_column, tuple(by)), list(columns)
        for name in terms.columns:
            if name not in known:
                raise ParameterError(f"there is no column {name!r}; the columns are {', '.join(map(repr, known))}")
            if known.count(name) > 1:
                raise ParameterError(f"there are {known.count(name)} columns {name!r}; rename all but one")
            if name.startswith(OWN_PREFIX):
                raise ParameterError(
                    f"names that begin with {OWN_PREFIX!r} are Sunzi's own; rename the column {name!r}"
                )
            if terms.columns.count(name) > 1:
                raise ParameterError(f"the column {name!r} is asked for twice")
        return terms

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.by, self.report_column, *([] if self.id_column is None else [self.id_column])]

    def check_owner(self, metadata: Mapping[Any, Any] | None) -> None:
        """A column that names its plan must name this one."""
        owner = dict(metadata or {}).get(FINGERPRINT_KEY)
        if owner is not None and owner != self.plan.fingerprint:
            raise PlanError(
                f"the column {self.report_column!r} holds reports of the plan {str(owner)[:16]}…, not of "
                f"{self.plan.fingerprint[:16]}…"
            )


def check_bad_reports(bad_reports: str) -> None:
    """Before any work is done."""
    if bad_reports not in ("warn", "fail"):
        raise ParameterError(f"bad_reports must be 'warn' or 'fail', got {bad_reports!r}")


def complaint(found: Mapping[Key, Sifted], bad_reports: str) -> str | None:
    """What to say of the cells that were no reports, if there were any; with ``"fail"``, raised as ReportError."""
    refused = reduce(Refused.__add__, (sifted.refused for sifted in found.values()), Refused())
    if not refused.total:
        return None
    cells = "1 cell holds" if refused.total == 1 else f"{refused.total:,} cells hold"
    if bad_reports == "fail":
        raise ReportError(f"{cells} no report of this plan: {refused}")
    return f"{cells} no report of this plan, left out of the tally: {refused}"


def tallies(found: Mapping[Key, Sifted], bad_reports: BadReports) -> dict[Key, Tally]:
    """The tallies alone; cells that were no reports raise ReportError or a warning, as asked for."""
    message = complaint(found, bad_reports)
    if message is not None:
        warnings.warn(message, BadReportsWarning, stacklevel=3)
    return {key: sifted.tally for key, sifted in found.items()}
