"""A collector over HTTP, for operators: its epochs, groups and tallies, and what devices do. Needs no extra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from urllib.parse import quote

from sunzi.client.device.addresses import check_name
from sunzi.client.device.remote import (
    LARGEST_EPOCH,
    LARGEST_PLAN_BYTES,
    LARGEST_RECEIPT_BYTES,
    RemoteCollection,
    fields_of,
    message_of,
)
from sunzi.client.errors import ParameterError, PlanError, StoreError, whole_number
from sunzi.client.strict_json import parse_json
from sunzi.numerics.checks import real_number
from sunzi.plan import Plan
from sunzi.tally import Tally

_LARGEST_HEADER_BYTES = 1 << 16
_COUNTER_BYTES = 8


class TooFewReportsError(StoreError):
    """The epoch has fewer reports than the collector publishes anything about."""


@dataclass(frozen=True)
class ListedEpoch:
    """An epoch in a collector's list."""

    collection: str
    number: int
    reports: int
    opened_at: float
    """In seconds since 1970."""
    is_open: bool

    @classmethod
    def from_json(cls, fields: Any) -> ListedEpoch:
        """Read an entry of the list; raises ParameterError, TypeError or KeyError if it is malformed."""
        number = whole_number("epoch", fields["epoch"], 1, LARGEST_EPOCH)
        reports = whole_number("reports", fields["reports"], 0)
        opened_at = real_number("opened_at", fields["opened_at"])
        return cls(check_name(fields["collection"]), number, reports, opened_at, fields["open"] is True)


class RemoteCollector(RemoteCollection):
    """One collection of a remote collector.

    Parameters
    ----------
    address: ``http://HOST:PORT`` for the collection ``default``, or ``http://HOST:PORT/v1/collections/NAME``.
    max_epsilon: the largest ε to accept in a plan; None accepts any, for operators and simulations.
    secret: an upload key or the admin token.
    patience: for how many seconds to retry temporary failures: a full queue, a restart, a lost connection. A request
        takes at most 30 seconds of it.
    sleep: called to pause between attempts.

    >>> import sunzi
    >>> from sunzi.collector import serve
    >>> with serve(sunzi.make_plan("grr", ["yes", "no"], epsilon=1)) as collector:
    ...     remote = RemoteCollector(collector.url, max_epsilon=1)
    ...     epoch = remote.current()
    ...     print(remote.upload(epoch, epoch.plan.client().report("yes")))
    ...     remote.close()
    counted
    """

    plan_kind = Plan
    error_kinds: ClassVar[Mapping[str, type[StoreError]]] = {"TooFewReports": TooFewReportsError}

    def served(self) -> list[str]:
        """The addresses of all collections of the collector; needs the admin token, or a local connection."""
        root = self.url.rpartition("/")[0]
        return [f"{root}/{name}" for name in sorted({epoch.collection for epoch in self._listed()})]

    def epochs(self) -> list[ListedEpoch]:
        """The collection's epochs, oldest first; needs the admin token, or a local connection."""
        mine = [epoch for epoch in self._listed() if epoch.collection == self.collection]
        if not mine:
            raise StoreError(f"{self.url} is not served; {self.url.rpartition('/')[0]} lists the collections")
        return sorted(mine, key=lambda epoch: epoch.number)

    def _listed(self) -> list[ListedEpoch]:
        root = self.url.rpartition("/")[0]
        status, answer = self._persist("GET", self._path.rpartition("/")[0], None, LARGEST_PLAN_BYTES)
        if status != 200:
            raise StoreError(f"{root} answers {status}: {message_of(answer)}")
        try:
            return [ListedEpoch.from_json(each) for each in cast(list[Any], parse_json(answer))]
        except (PlanError, ParameterError, TypeError, KeyError):
            raise StoreError(f"{root} is not a collector's response: {message_of(answer)}") from None

    def groups(self, number: int | None = None) -> dict[str, int]:
        """The number of reports of every public group of an epoch, by default the current one, that may be published.

        Groups are named as in ``country=DE``.
        """
        path = f"epochs/{'current' if number is None else number}/groups.json"
        answer = self._get(path, LARGEST_PLAN_BYTES)
        try:
            rows = cast(list[Any], parse_json(answer))
            return {str(row["group"]): whole_number("reports", row["reports"], 0) for row in rows if row["published"]}
        except (PlanError, ParameterError, TypeError, KeyError):
            raise StoreError(f"{self.url}/{path} is not a collector's response: {message_of(answer)}") from None

    def tally(self, number: int | None = None, group: str | None = None) -> tuple[Plan, Tally]:
        """The plan and tally of an epoch, by default the current one.

        Parameters
        ----------
        number: the epoch's number.
        group: only the reports of this public group, such as ``country=DE``.
        """
        which = "current" if number is None else str(number)
        terms = self._get(f"epochs/{which}/plan", LARGEST_PLAN_BYTES)
        if not fields_of(terms):
            raise StoreError(f"{self.url}/epochs/{which}/plan is not a collector's response: {message_of(terms)}")
        plan = Plan.from_json(terms)
        largest = _COUNTER_BYTES * plan.protocol.tally_layout.length + _LARGEST_HEADER_BYTES
        query = "" if group is None else f"?group={quote(group)}"
        return plan, Tally.from_bytes(self._get(f"epochs/{which}/tally{query}", largest))

    def guarantee(self, number: int) -> dict[str, Any]:
        """What readers of an epoch's published results can learn, as ``batch_guarantee`` and ``facts``, or as
        ``no_batch_guarantee``, why nothing is claimed; empty if the answer has neither.

        Parameters
        ----------
        number: the epoch's number.
        """
        found = fields_of(self._get(f"epochs/{number}/guarantee.json", LARGEST_RECEIPT_BYTES))
        claimed = found.get("batch_guarantee")
        if isinstance(claimed, dict) and type(claimed.get("epsilon")) in (int, float) and "meaning" in claimed:
            return {"batch_guarantee": claimed, "facts": found.get("facts")}
        reason = found.get("no_batch_guarantee")
        return {"batch_guarantee": None, "no_batch_guarantee": reason} if isinstance(reason, str) else {}
