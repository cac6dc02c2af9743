"""Trends over the epochs of a collection. The estimates of closed epochs are computed once and kept in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sunzi.collector.collector import Collector
from sunzi.collector.epochs import Epoch
from sunzi.collector.recently_used import RecentlyUsed
from sunzi.collector.stores import stored_plan, stored_tally
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError
from sunzi.plan import Plan
from sunzi.results.estimate import Estimate
from sunzi.results.trends import Alarm, Trend, opening_moments, population_variances

LARGEST_BYTES = 256 << 20
"""The memory for estimates of closed epochs."""
_ALARM_EPOCHS = 365

_Key = tuple[int, int]
"""An epoch's key and its number of reports, which changes if the reports of an upload key are subtracted."""


@dataclass(frozen=True)
class CollectionTrend:
    """The trend of a collection, and the epochs that it covers."""

    trend: Trend
    epochs: Sequence[Epoch]
    """The epochs of the trend, oldest first."""
    held_back: Sequence[int]
    """The numbers of epochs with too few reports to publish or to estimate."""
    other_domain: Sequence[int]
    """The numbers of epochs whose values differ from those of the newest."""


@dataclass(frozen=True)
class TrendProgress:
    """How many of the epochs are estimated so far."""

    computed: int
    epochs: int


@dataclass(frozen=True)
class _Row:
    domain: Domain
    frequencies: NDArray[np.float32]
    variances: NDArray[np.float32]
    plan: str
    """Its fingerprint."""

    @property
    def size(self) -> int:
        return self.frequencies.nbytes + self.variances.nbytes


class TrendCache:
    """Computes the trends of a collector's collections.

    Parameters
    ----------
    collector: the collections.
    largest_bytes: the memory for estimates of closed epochs. A trend is over as many of the newest epochs as fit.
    """

    def __init__(self, collector: Collector, largest_bytes: int = LARGEST_BYTES) -> None:
        self._collector, self._largest_bytes = collector, largest_bytes
        # Of closed epochs; None if its tally determines no estimate.
        self._rows: RecentlyUsed[_Key, _Row | None]
        self._rows = RecentlyUsed(largest_bytes, lambda row: 0 if row is None else row.size)
        self._plan_used_last: tuple[bytes, Plan] | None = None
        self._newest: tuple[tuple[tuple[_Key, bool], ...], Trend] | None = None
        self._alarms: dict[str, tuple[tuple[_Key, ...], list[Alarm]]] = {}
        self._lock = threading.Lock()

    def get(
        self, collection: str, last: int, minimum_reports: int, seconds: float, *, closed_only: bool = False
    ) -> CollectionTrend | TrendProgress:
        """The trend over the newest epochs, or the progress if that takes longer than ``seconds``: then call it again.

        Raises EstimateError if fewer than two epochs have enough reports.

        Parameters
        ----------
        collection: its name.
        last: the number of epochs.
        minimum_reports: the number of reports below which an epoch is left out.
        seconds: how long to compute estimates.
        closed_only: leave out open epochs.
        """
        self._collector.find_epoch(collection)  # an unknown collection is an error
        known = [epoch for epoch in self._collector.epochs(collection) if not (closed_only and epoch.is_open)][-last:]
        enough = [epoch for epoch in known if epoch.reports >= max(1, minimum_reports)]
        deadline = time.monotonic() + seconds
        held_back = [epoch.number for epoch in known if epoch not in enough]
        with self._lock:
            rows: dict[int, _Row] = {}
            size = computed = 0
            for epoch in reversed(enough):
                is_new = not epoch.is_open and self._key(epoch) not in self._rows
                if is_new and computed and time.monotonic() > deadline:
                    return TrendProgress(sum(self._key(each) in self._rows for each in enough), len(enough))
                computed += is_new
                row = self._row(epoch)
                if row is None:
                    held_back.append(epoch.number)
                    continue
                size += row.size
                if rows and size > self._largest_bytes:
                    break
                rows[epoch.key] = row
            considered = [epoch for epoch in enough if epoch.key in rows]
            return self._made(considered, rows, sorted(held_back), minimum_reports)

    def newest_alarms(self, collection: str, minimum_reports: int, seconds: float) -> list[Alarm] | None:
        """The alarms that the newest closed epoch raised; None if not all closed epochs are estimated yet.

        Parameters
        ----------
        collection, minimum_reports, seconds: as in :meth:`get`.
        """
        closed = [epoch for epoch in self._collector.epochs(collection) if not epoch.is_open]
        keys = tuple(map(self._key, closed[-_ALARM_EPOCHS:]))
        known = self._alarms.get(collection)
        if known is None or known[0] != keys:
            try:
                found = self.get(collection, _ALARM_EPOCHS, minimum_reports, seconds, closed_only=True)
            except EstimateError:  # too few epochs
                return []
            if isinstance(found, TrendProgress):
                return None
            newest = found.trend.moments[-1]
            alarms = [alarm for alarm in found.trend.alarms() if alarm.moment == newest]
            known = self._alarms[collection] = keys, alarms if found.epochs[-1] == closed[-1] else []
        return known[1]

    def _made(
        self, considered: Sequence[Epoch], rows: dict[int, _Row], held_back: Sequence[int], minimum_reports: int
    ) -> CollectionTrend:
        domain = rows[considered[-1].key].domain if considered else None
        same = [epoch for epoch in considered if rows[epoch.key].domain is domain or rows[epoch.key].domain == domain]
        if len(same) < 2:
            raise EstimateError(
                f"a trend needs two epochs of the same values with at least {minimum_reports:,} reports; there is "
                f"{len(same) or 'none'}"
            )
        keys = tuple((self._key(epoch), epoch.is_open) for epoch in same)
        if self._newest is None or self._newest[0] != keys:
            frequencies = np.stack([rows[epoch.key].frequencies for epoch in same])
            variances = np.stack([rows[epoch.key].variances for epoch in same])
            reports = tuple(epoch.reports for epoch in same)
            assert domain is not None, "there are two epochs"
            moments = opening_moments([epoch.opened_at for epoch in same], [epoch.number for epoch in same])
            still_open = frozenset(moment for moment, epoch in zip(moments, same, strict=True) if epoch.is_open)
            plans = tuple(rows[epoch.key].plan for epoch in same)
            self._newest = keys, Trend(domain, moments, reports, frequencies, variances, plans, still_open)
        others = [epoch.number for epoch in considered if epoch not in same]
        return CollectionTrend(self._newest[1], same, held_back, others)

    @staticmethod
    def _key(epoch: Epoch) -> _Key:
        return epoch.key, epoch.reports

    def _row(self, epoch: Epoch) -> _Row | None:
        """An epoch's frequencies and variances, if its tally determines them; those of a closed one are kept."""
        key = self._key(epoch)
        if key in self._rows:
            return self._rows[key]
        try:
            estimate = self._estimate(epoch)
            variances = population_variances(estimate)
            columns = estimate.frequencies.astype(np.float32), variances.astype(np.float32)
            assert estimate.plan is not None, "a plan has estimated"
            row = _Row(estimate.domain, *columns, estimate.plan.fingerprint)
        except EstimateError:
            row = None
        if not epoch.is_open:
            self._rows[key] = row
        return row

    def _estimate(self, epoch: Epoch) -> Estimate:
        if epoch.is_open:
            return self._collector.estimate(self._collector.find(epoch.collection, epoch.number))[1]
        plan = self._plan(epoch)
        return plan.estimate(stored_tally(self._collector.store, epoch, plan))

    def _plan(self, epoch: Epoch) -> Plan:
        """A closed epoch's plan. The collector keeps those that uploads use; here, most epochs have the same."""
        live = self._collector.known(epoch.collection, epoch.number)
        if live is not None:
            return live.plan
        content = self._collector.store.plan(epoch.key)
        if self._plan_used_last is None or self._plan_used_last[0] != content:
            self._plan_used_last = content, stored_plan(self._collector.store, epoch)
        return self._plan_used_last[1]
