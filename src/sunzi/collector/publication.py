"""What readers of published results can learn: which batch guarantee holds for what a collector has published, or why
it claims none (docs/batch.md).

To claim one, a collector publishes only closed epochs, and groups only if the remainder is large enough.
The guarantee is that of a *cell*: the people who are in exactly the same published tallies.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sunzi.batch import BatchGuarantee, honest_reports
from sunzi.client.errors import ParameterError, PrivacyError
from sunzi.collector.collector import Collector, LiveEpoch
from sunzi.collector.epochs import Epoch
from sunzi.collector.refusals import RefusalError
from sunzi.collector.settings import Settings
from sunzi.formatting import counted
from sunzi.plan import Plan

_KEPT_GUARANTEES = 64
_UNTIL_CLOSED = "nothing is published about the values of this epoch until it is closed"


@dataclass(frozen=True)
class Publication:
    """What readers of an epoch's published results can learn."""

    guarantee: BatchGuarantee | None
    reason: str = ""
    """Why no guarantee is claimed."""
    conditions: tuple[str, ...] = ()
    """Further conditions of the guarantee, as sentences."""

    def to_dict(self) -> dict[str, Any]:
        """``batch_guarantee`` with its conditions; if that is null, ``no_batch_guarantee`` is the reason."""
        if self.guarantee is None:
            return {"batch_guarantee": None, "no_batch_guarantee": self.reason}
        return {"batch_guarantee": {**self.guarantee.to_dict(), "conditions": list(self.conditions)}}


class Publisher:
    """Decides what a collector publishes, and computes what its readers can learn.

    Parameters
    ----------
    collector: the collections.
    settings: ``publish_delta`` and the settings that belong to it.
    """

    def __init__(self, collector: Collector, settings: Settings) -> None:
        self._collector, self._settings = collector, settings
        self._computing = threading.Lock()
        # By an epoch's key and its number of reports, which changes if reports are subtracted.
        self._cells: dict[tuple[int, int], int] = {}
        self._fingerprints: dict[int, str] = {}

    @property
    def closed_only(self) -> bool:
        """Whether nothing is published about open epochs."""
        return self._settings.publish_delta is not None

    def check(self, live: LiveEpoch, group: str = "") -> None:
        """Raise RefusalError if nothing is published about an epoch, or about a public group of it."""
        if self._holds_back(live):
            raise RefusalError(409, "OpenEpoch", _UNTIL_CLOSED)
        reports, minimum = self._collector.reports(live, group), self._settings.minimum_reports
        if reports < minimum:
            missing, whose = minimum - reports, f" of {group}" if group else ""
            more = f"{counted(missing, 'more report')}{whose} {'is' if missing == 1 else 'are'} needed"
            message = f"{more}: results about fewer than {minimum:,} are not published"
            raise RefusalError(409, "TooFewReports", message)
        if group and group not in self.groups(live):
            others = f"the total without the published groups would be about fewer than {minimum:,} users"
            raise RefusalError(409, "TooFewReports", f"{group} is held back: {others}")

    def _holds_back(self, live: LiveEpoch) -> bool:
        """Whether nothing is published about this epoch because it is open."""
        if not self.closed_only:
            return False
        epoch = self._collector.store.find_epoch(live.epoch.collection, live.epoch.number)
        return epoch is None or epoch.is_open

    def groups(self, live: LiveEpoch) -> set[str]:
        """The public groups of an epoch about which results are published."""
        counts, minimum = self._collector.store.group_reports(live.epoch.key), self._settings.minimum_reports
        if not self.closed_only:
            return {name for name, reports in counts.items() if reports >= minimum}
        return published_groups(counts, self._collector.reports(live), minimum)

    def publication(self, live: LiveEpoch) -> Publication:
        """What readers of an epoch can learn. Takes up to three seconds if the same was not computed before."""
        if not self.closed_only:
            return Publication(
                None,
                "this collector also shows epochs that are still open. Someone who compares two states sees the few "
                f"reports between them, so only the epsilon of a report, {live.plan.epsilon}, holds. To publish "
                "closed epochs only and have a guarantee computed, start the collector with --publish-delta and "
                "--honest",
            )
        if self._holds_back(live):
            return Publication(None, _UNTIL_CLOSED)
        try:
            guarantee = self._guarantee(live)
        except (PrivacyError, ParameterError) as error:
            return Publication(None, str(error))
        return Publication(guarantee, conditions=tuple(self._conditions(guarantee)))

    def _guarantee(self, live: LiveEpoch) -> BatchGuarantee:
        settings = self._settings
        closed = [epoch for epoch in self._collector.epochs(live.epoch.collection) if not epoch.is_open]
        epochs = [epoch for epoch in closed if epoch.key == live.epoch.key]
        if settings.fresh_noise or settings.cohort is not None:
            epochs += [epoch for epoch in closed if epoch.key != live.epoch.key and self._was_published(epoch)]
        for epoch in epochs:
            if self._fingerprint(epoch) != live.plan.fingerprint:
                raise PrivacyError(
                    f"epochs {epoch.number} and {live.epoch.number} have different plans, and no guarantee is known "
                    "for people who are in both"
                )
        sizes = tuple(sorted(self._smallest_cell(live.plan, epoch) for epoch in epochs))
        return self._compute(live.plan, sizes, settings.cohort if len(epochs) > 1 else None)

    def _was_published(self, epoch: Epoch) -> bool:
        """Whether results about a closed epoch are published, or were before reports were subtracted."""
        minimum = self._settings.minimum_reports
        return epoch.reports >= minimum or epoch.reports + sum(self._corrections(epoch)) >= minimum

    def _fingerprint(self, epoch: Epoch) -> str:
        if epoch.key not in self._fingerprints:
            self._fingerprints[epoch.key] = hashlib.sha256(self._collector.plan_file(epoch)).hexdigest()
        return self._fingerprints[epoch.key]

    def _corrections(self, epoch: Epoch) -> list[int]:
        """How many reports were subtracted from a closed epoch, after it may have been published."""
        closed_at = epoch.closed_at or 0.0
        return [
            each.reports
            for each in self._collector.store.contributions(epoch.key)
            if each.subtracted_at is not None and each.subtracted_at >= closed_at and each.reports
        ]

    def _smallest_cell(self, plan: Plan, epoch: Epoch) -> int:
        key = epoch.key, epoch.reports
        if key not in self._cells:
            self._cells[key] = self._find_smallest_cell(plan, epoch)
        return self._cells[key]

    def _find_smallest_cell(self, plan: Plan, epoch: Epoch) -> int:
        corrections = self._corrections(epoch)
        if corrections and plan.groups:
            raise PrivacyError(
                f"reports were subtracted from epoch {epoch.number} after it was closed, and it has groups: what the "
                "subtraction changed in each group is not known"
            )
        counts, minimum = self._collector.store.group_reports(epoch.key), self._settings.minimum_reports
        try:
            return smallest_cell(epoch.reports, counts, corrections, minimum)
        except PrivacyError as error:
            raise PrivacyError(f"epoch {epoch.number}: {error}") from None

    def _compute(self, plan: Plan, sizes: tuple[int, ...], cohort: int | None) -> BatchGuarantee:
        delta, honest = self._settings.publish_delta, self._settings.honest
        assert delta is not None, "nothing is computed without it"
        assert honest is not None, "the settings were checked"
        users = honest_reports(max(sizes), honest)
        if delta * users >= 1:
            raise PrivacyError(
                f"delta = {delta:g} is not below 1/{users:,}: even publishing one person's report would be allowed. "
                "Use a much smaller --publish-delta, such as 1e-8"
            )
        with self._computing:  # concurrent readers share one computation
            return _computed(plan, sizes, delta, honest, cohort)

    def _conditions(self, guarantee: BatchGuarantee) -> Iterable[str]:
        yield (
            "It holds against readers of published results, on this page or elsewhere. It does not hold against the "
            "operator or anyone else who can see reports, the network traffic or the store."
        )
        yield "Each person sends at most one report per epoch."
        yield from self._about_epochs(guarantee)
        yield (
            "Nothing else about this epoch is disclosed: no result before it was closed, no copy of the store, no "
            "result from a backup. The collector has run with --publish-delta since the epoch was opened."
        )
        yield (
            "The honest share is the operator's estimate, which the collector cannot check. It must hold in each "
            "epoch, in each published group and among reports that are subtracted later: fake reports provide no cover."
        )
        if len(self._collector.collections()) > 1:
            yield "For a person who reports in several collections, the epsilons and the deltas of these add up."

    def _about_epochs(self, guarantee: BatchGuarantee) -> Iterable[str]:
        if self._settings.fresh_noise:
            yield (
                f"People may be in every published epoch of this collection ({guarantee.epochs:,} so far), with fresh "
                "noise in each. Every further epoch makes epsilon larger."
            )
        elif self._settings.cohort is not None and guarantee.cohort is None:
            yield (
                "This is the only published epoch so far. Devices repeat their reports, so from the second one on the "
                f"guarantee is for cohorts of at least {self._settings.cohort:,} people."
            )
        elif guarantee.cohort is not None:
            yield (
                f"Devices repeat their reports, and each person has at least {guarantee.cohort - 1:,} others who "
                "are in exactly the same published epochs and groups. A person whose value changes is not covered."
            )
        else:
            yield (
                "It covers people who report in no other epoch of this collection. If some do, state how: start the "
                "collector with --fresh-noise or --cohort."
            )


@lru_cache(maxsize=_KEPT_GUARANTEES)
def _computed(plan: Plan, sizes: tuple[int, ...], delta: float, honest: float, cohort: int | None) -> BatchGuarantee:
    """The guarantee against readers of the tallies of batches of these sizes, which takes up to three seconds."""
    return plan.batch_guarantee(list(sizes), delta, honest=honest, reader="tally", cohort=cohort)


def published_groups(counts: Mapping[str, int], reports: int, minimum: int) -> set[str]:
    """The public groups to publish, so that nobody can compute a result about fewer than ``minimum`` people.

    The total without the published groups of an attribute is a result about all others. If these are too few, the
    smallest published group is held back as well.

    Parameters
    ----------
    counts: the number of reports of each group, such as ``country=DE``.
    reports: the number of all reports.
    minimum: how many reports a group needs.

    >>> sorted(published_groups({"country=DE": 500, "country=FR": 120, "country=IT": 3}, 623, 100))
    ['country=DE']
    """
    by_attribute = defaultdict(list)
    for name, size in counts.items():
        if size >= minimum:
            by_attribute[name.partition("=")[0]].append((size, name))
    published = set()
    for groups in by_attribute.values():
        groups.sort()
        others = reports - sum(size for size, _ in groups)
        while groups and 0 < others < minimum:
            others += groups.pop(0)[0]
        published |= {name for _, name in groups}
    return published


def smallest_cell(reports: int, groups: Mapping[str, int], corrections: Sequence[int], minimum: int) -> int:
    """The minimum number of people who are in exactly the same published tallies of an epoch.

    Raises PrivacyError if that is unknown, or too small to publish.

    Parameters
    ----------
    reports: the number of all reports.
    groups: the number of reports of each public group.
    corrections: the numbers of reports that were subtracted after the epoch was published, one per subtraction.
    minimum: how many people a cell needs.

    >>> smallest_cell(1000, {"country=DE": 700}, [], 100)
    300
    """
    published = {name for name in published_groups(groups, reports, minimum) if groups[name] < reports}
    attributes = sorted({name.partition("=")[0] for name in published})
    if len(attributes) > 1:
        raise PrivacyError(
            f"groups of {' and '.join(attributes)} are published, and their combinations are not counted: one person "
            "may be the only one in a combination. Declare one attribute"
        )
    sizes = [groups[name] for name in published]
    cells = [*sizes, reports - sum(sizes), *corrections]
    smallest = min([cell for cell in cells if cell], default=0)
    if smallest >= minimum:
        return smallest
    if corrections and min(corrections) == smallest:
        raise PrivacyError(
            f"{counted(smallest, 'report')} were subtracted after it was closed. Someone who kept the earlier result "
            f"knows the difference, and nothing is claimed about fewer than {minimum:,}"
        )
    raise PrivacyError(f"{counted(smallest, 'report')}: nothing is published about fewer than {minimum:,}")
