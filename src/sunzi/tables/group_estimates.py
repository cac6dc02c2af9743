"""One estimate per group, with a minimum number of reports: smaller groups are merged or held back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sunzi._typing import Integers
from sunzi.client.errors import ParameterError, whole_number
from sunzi.domains.ranges import OrderedDomain
from sunzi.errors import EstimateError, needing_matplotlib
from sunzi.formatting import counted
from sunzi.plan import Plan
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import Row, data_frame
from sunzi.results.ordered import OrderedEstimate
from sunzi.results.uncertainty import Target
from sunzi.tables.group_counts import Key
from sunzi.tables.writers import HistogramTable, Note, histogram_table
from sunzi.tally import Tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Small = Literal["merge", "hold"]
SMALL: tuple[Small, ...] = get_args(Small)
MINIMUM_REPORTS = 100
OTHER = "other"
"""The name of the group that small groups are merged into."""


@dataclass(frozen=True)
class GroupEstimates:
    """The estimates of several groups of one plan, largest group first, and what became of small groups.

    Groups are named by their public values, as in ``country=DE, release=124``. A missing value is ``none``; a text that
    could be mistaken for something else, such as "none" or one with a comma, is quoted.

    >>> import sunzi
    >>> from sunzi.tables import estimate_groups
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> sizes = {"DE": 500, "LU": 40, "MT": 70}
    >>> tallies = {(name,): plan.simulate(["yes"] * size, seed=1) for name, size in sizes.items()}
    >>> groups = estimate_groups(plan, tallies, ["country"])
    >>> {name: estimate.reports for name, estimate in groups.estimates.items()}
    {'country=DE': 500, 'other': 110}
    >>> groups.merged
    2
    """

    estimates: Mapping[str, Estimate]
    minimum: int
    """The minimum number of reports of a group that is shown."""
    merged: int = 0
    """The number of smaller groups that are merged into the group ``other``."""
    held_back: int = 0
    """The number of smaller groups that are not shown."""
    without_estimate: int = 0
    """The number of larger groups that are not shown, because none of their reports covers some of the values."""
    in_order: bool = False
    """Whether tables and charts keep the values in their order, as bins of a range."""

    def small_groups(self) -> str | None:
        """What became of groups with too few reports, as a sentence; None if there are none."""
        number, found = self.merged or self.held_back, []
        if number:
            fate = f"merged into {OTHER!r}" if self.merged else "held back"
            verb = "is" if number == 1 else "are"
            found.append(f"{counted(number, 'group')} with fewer than {self.minimum:,} reports {verb} {fate}")
        if self.without_estimate:
            verb = "has" if self.without_estimate == 1 else "have"
            found.append(f"{counted(self.without_estimate, 'group')} {verb} too few reports for an estimate")
        return "; ".join(found) or None

    def for_display(self, most: int) -> GroupEstimates:
        """The estimates that a table or chart of at most ``most`` values shows: for ranges wider bins, in their order.

        Parameters
        ----------
        most: the number of values.
        """
        binned = {
            name: estimate.histogram(max(most, 2))
            for name, estimate in self.estimates.items()
            if isinstance(estimate, OrderedEstimate) and isinstance(estimate.domain, OrderedDomain)
        }
        return replace(self, estimates=binned, in_order=True) if binned else self

    def common_top(self, number: int | None = None) -> Integers:
        """The indices of the values with the most users in all groups together, largest first; all without a number."""
        if self.in_order:
            return np.arange(next(iter(self.estimates.values())).domain.size)[:number]
        counts = np.sum([estimate.counts for estimate in self.estimates.values()], axis=0)
        return np.argsort(-counts, kind="stable")[:number]

    def common_rows(self, top: int, confidence: float, target: Target) -> dict[str, list[Row]]:
        """For every group the rows of the same values, those of :meth:`common_top`."""
        indices = self.common_top(top)
        return {name: estimate.rows(indices, confidence, target) for name, estimate in self.estimates.items()}

    def table(
        self,
        *,
        confidence: float = 0.95,
        target: Target = "reporters",
        top: int | None = None,
        notes: Mapping[str, Note] | None = None,
    ) -> HistogramTable:
        """All estimates as one table, with the columns ``group`` and ``reports``.

        Parameters
        ----------
        confidence, target: of the intervals.
        top: only the values that are most frequent in all groups together; by default all in the domain's order.
        notes: further notes, for formats that can carry them.
        """
        chosen = None if top is None else self.common_top(top)
        columns: dict[str, list[Any]] = {}
        indices = []
        for name, estimate in self.estimates.items():
            part = histogram_table(estimate, confidence=confidence, target=target, among=chosen)
            indices.append(part.indices)
            own: dict[str, list[Any]] = {"group": [name] * len(part), "reports": [estimate.reports] * len(part)}
            for column, cells in (own | dict(part.columns)).items():
                columns.setdefault(column, []).extend(cells)
            notes = {**(notes or {}), "confidence": confidence, "target": target, "weights": estimate.weights}
        about = {
            "minimum_reports": self.minimum,
            "groups_merged": self.merged,
            "groups_held_back": self.held_back,
            "groups_without_estimate": self.without_estimate,
        }
        return HistogramTable(np.concatenate(indices), columns, {**(notes or {}), **about})

    def to_frame(self, library: str | None = None, confidence: float = 0.95) -> Any:
        """A data frame of all groups: group, reports, label, frequency, interval, standard error and count.

        Parameters
        ----------
        library: "pandas" or "polars"; by default pandas if it is installed, else polars.
        confidence: the coverage of the intervals.
        """
        return data_frame(dict(self.table(confidence=confidence).columns), library)

    def to_html(
        self, title: str | None = None, *, top: int = 10, confidence: float = 0.95, target: Target = "reporters"
    ) -> str:
        """One self-contained web page with a small chart per group, all on one scale.

        Parameters
        ----------
        title: the heading; by default the number of groups and reports.
        top: the number of values, the same in all charts: the most frequent in all groups together, or for ranges wider
            bins.
        confidence, target: of the intervals.
        """
        from sunzi.display.group_page import GroupPage

        return GroupPage(self.for_display(top), top, confidence, target).page(title)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 10,
        confidence: float = 0.95,
        target: Target = "reporters",
    ) -> Figure:
        """A small bar chart per group, all on one scale; needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        top: the number of bars of each chart; for ranges, of wider bins.
        confidence, target: of the intervals.
        """
        with needing_matplotlib():
            from sunzi.display.group_plots import plot_groups
        return plot_groups(self.for_display(top), path, top=top, confidence=confidence, target=target)


def estimate_groups(
    plan: Plan,
    tallies: Mapping[Key, Tally],
    by: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    min_reports: int = MINIMUM_REPORTS,
    small: Small = "merge",
    **options: Any,
) -> GroupEstimates:
    """One estimate per group of reports.

    Parameters
    ----------
    plan: the plan of the reports.
    tallies: one tally per group, as from :func:`tally` with ``by`` or :func:`load_groups`.
    by: the names of the columns that the keys of ``tallies`` hold values of.
    columns: which of these columns to keep; the tallies of groups that differ in others only are added up. By default
        all.
    min_reports: groups with fewer reports are not estimated on their own.
    small: whether such groups are merged into one named ``other``, or held back. If all of them together have too few
        reports, they are held back in both cases. So are larger groups whose reports do not suffice for an estimate,
        as can happen if each report covers one of many tables; EstimateError is raised if this holds for all.
    options: as for :meth:`Plan.estimate`.

    >>> import sunzi
    >>> from sunzi.tables import estimate_groups
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> sizes = {"DE": 500, "FR": 300, "LU": 40, "MT": 70}
    >>> tallies = {(name,): plan.simulate(["yes"] * size, seed=1) for name, size in sizes.items()}
    >>> groups = estimate_groups(plan, tallies, ["country"])
    >>> list(groups.estimates), groups.small_groups()
    (['country=DE', 'country=FR', 'other'], "2 groups with fewer than 100 reports are merged into 'other'")
    """
    least = whole_number("min_reports", min_reports, 1)
    if small not in SMALL:
        raise ParameterError(f"small must be merge or hold, got {small!r}")
    named = _named_tallies(tallies, by, by if columns is None else columns)
    large = {name: tally for name, tally in named.items() if tally.reports >= least}
    rest = [tally for name, tally in named.items() if name not in large]
    together = reduce(add, rest) if rest and small == "merge" else None
    if together is not None and together.reports >= least:
        large[OTHER] = together
    if not large:
        most = max((tally.reports for tally in rest), default=0)
        raise ParameterError(
            f"no group has {least:,} reports, the minimum; the largest of {len(rest):,} has {most:,}. Group by fewer "
            "columns, or lower the minimum"
        )
    estimates = _estimates(plan, large, options)
    without_estimate = sum(name not in estimates for name in large if name != OTHER)
    merged, held_back = (len(rest), 0) if OTHER in estimates else (0, len(rest))
    return GroupEstimates(estimates, least, merged, held_back, without_estimate)


def _estimates(plan: Plan, tallies: Mapping[str, Tally], options: Mapping[str, Any]) -> dict[str, Estimate]:
    """The estimates of the groups whose reports suffice; raises the error of the largest group if there are none."""
    found, refused = {}, []
    for name, tally in tallies.items():
        try:
            found[name] = plan.estimate(tally, **options)
        except EstimateError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _named_tallies(tallies: Mapping[Key, Tally], by: Sequence[str], columns: Sequence[str]) -> dict[str, Tally]:
    """The tallies by name, largest first, added up over columns that are not kept."""
    for name in columns:
        if name not in by:
            raise ParameterError(f"the groups have no column {name!r}; they have {', '.join(map(repr, by))}")
    if len(set(columns)) < max(len(columns), 1):
        raise ParameterError(f"give one or more columns to group by, each once; got {list(columns)}")
    places = [list(by).index(name) for name in columns]
    found: dict[str, Tally] = {}
    for key, tally in tallies.items():
        name = ", ".join(f"{by[place]}={_shown(key[place])}" for place in places)
        found[name] = found[name] + tally if name in found else tally
    return dict(sorted(found.items(), key=lambda item: (-item[1].reports, item[0])))


def _shown(value: object) -> str:
    """A value as text, different for different values."""
    if value is None or value == "":
        return "none"
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if text == "none" or "," in text or '"' in text else text
