"""Epochs that commands read from a collector or its store: ``--from``, ``--collection`` and ``--epoch``."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sunzi.cli.files import TOKEN_VARIABLE, with_labels
from sunzi.cli.terminal import say
from sunzi.client.errors import ParameterError, StoreError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi.collector.remote import RemoteCollector
    from sunzi.collector.store import Store
    from sunzi.plan import Plan
    from sunzi.tally import Tally


class Numbered(Protocol):
    """An epoch, of a store or of a remote collector."""

    @property
    def number(self) -> int:
        """Its number in the collection."""


AnEpoch = TypeVar("AnEpoch", bound=Numbered)


@dataclass(frozen=True)
class EpochChoice:
    """Some epochs of a collection: ``7``, ``1:7``, ``3:``, ``:7``, ``all``, ``last``, or ``last:30``, the newest 30."""

    text: str = "last"
    first: int = 1
    last: float = math.inf
    newest: int | None = 1

    @classmethod
    def parse(cls, text: str) -> EpochChoice:
        """Read a choice, as the type of an argument."""
        if text == "all":
            return cls(text, newest=None)
        if matched := re.fullmatch("last(?::([1-9][0-9]{0,9}))?", text):
            return cls(text, newest=int(matched[1] or 1))
        matched = re.fullmatch("([0-9]{0,10})(?:(:)([0-9]{0,10}))?", text)
        if matched is None or not (matched[1] or matched[3]):
            raise argparse.ArgumentTypeError(
                f"epochs are a number such as 7, a range such as 1:7 or 3:, all, last, or last:30 for the newest 30; "
                f"got {text!r}"
            )
        first = int(matched[1] or 1)
        last = int(matched[3]) if matched[3] else (math.inf if matched[2] else first)
        if last < first:
            raise argparse.ArgumentTypeError(f"the range {text} ends before it starts; the first epoch comes first")
        return cls(text, first, last, None)

    def choose(self, epochs: Sequence[AnEpoch]) -> list[AnEpoch]:
        """The chosen ones of a collection's epochs, oldest first; StoreError if there are none."""
        ordered = sorted(epochs, key=lambda epoch: epoch.number)
        chosen = [each for each in ordered if self.first <= each.number <= self.last]
        if self.newest is not None:
            chosen = chosen[-self.newest :]
        if not chosen:
            known = f"its epochs are {ordered[0].number} to {ordered[-1].number}" if ordered else "it has no epochs"
            raise StoreError(f"there is no epoch {self.text} in this collection; {known}")
        return chosen


@dataclass(frozen=True)
class CollectedEpoch:
    """An epoch with its plan and tally."""

    collection: str
    number: int
    opened_at: float
    """In seconds since 1970."""
    is_open: bool
    plan: Plan
    tally: Tally


def add_collection(parser: argparse.ArgumentParser) -> None:
    """Add ``--from`` and ``--collection``."""
    parser.add_argument(
        "--from",
        dest="source",
        metavar="URL|STORE",
        help="read plan and tally from a collector (http://…; the environment variable SUNZI_ADMIN_TOKEN holds its "
        "admin token) or from its store (a file or postgresql://…) instead of from files",
    )
    parser.add_argument("--collection", metavar="NAME", help="collection, with --from (default: the only one)")


def add_source(parser: argparse.ArgumentParser, default: str = "last", note: str = "") -> None:
    """Add ``--from``, ``--collection`` and ``--epoch``.

    Parameters
    ----------
    parser: the command's parser.
    default: the choice of epochs without ``--epoch``, for the help.
    note: what to add to the help of ``--epoch``.
    """
    add_collection(parser)
    parser.add_argument(
        "--epoch",
        metavar="EPOCHS",
        type=EpochChoice.parse,
        help=f"epochs, with --from: N, a range such as 1:7 or 3:, all, last, or last:30 for the newest 30 (default: "
        f"{default}){note}",
    )


def check_source(arguments: argparse.Namespace) -> None:
    """Refuse ``--collection`` and ``--epoch`` without ``--from``."""
    if not arguments.source and (arguments.collection or arguments.epoch):
        raise ParameterError("--collection and --epoch need --from")


def given_files(arguments: argparse.Namespace) -> list[str]:
    """Return the plan and the tally, or nothing with ``--from``."""
    given = [path for path in (arguments.plan, arguments.tally) if path is not None]
    if len(given) != (0 if arguments.source else 2):
        raise ParameterError(f"give a plan and a tally, or --from without them; got {given or 'neither'}")
    check_source(arguments)
    return given


def read_epochs(
    source: str,
    collection: str | None,
    chosen: EpochChoice | None,
    labels: str | None,
    *,
    skip_small: bool = False,
    group: str | None = None,
) -> list[CollectedEpoch]:
    """Read epochs from a collector's URL or store, oldest first.

    Parameters
    ----------
    source: the URL, file or postgresql:// address.
    collection: its name; None is the only one.
    chosen: which epochs; None is the last.
    labels: the label file, if the plans identify it by its hash.
    skip_small: leave out epochs without reports, or with fewer than the collector publishes, and say so.
    group: only the reports of this public group, such as ``country=DE``.
    """
    read = _from_collector if is_url(source) else _from_store
    return read(source, collection, chosen or EpochChoice(), labels, skip_small, group)


def is_url(source: str) -> bool:
    """Whether a source is a collector, not a store."""
    return source.startswith(("http://", "https://"))


def read_epoch(
    source: str,
    collection: str | None,
    chosen: EpochChoice | None,
    labels: str | None,
    group: str | None = None,
) -> tuple[Plan, Tally, str]:
    """Read epochs of one plan: that plan, the sum of their tallies, and their name. Parameters as above."""
    epochs = read_epochs(source, collection, chosen, labels, group=group)
    name, numbers = epochs[0].collection, [epoch.number for epoch in epochs]
    if group is not None:
        name = f"{name}, {group}"
    if chosen is not None:
        which = f"epoch {numbers[0]}" if len(numbers) == 1 else f"epochs {numbers[0]} to {numbers[-1]}"
        name = f"{name}, {which}"
    tally = summed(epochs)
    say_if_summed(len(epochs))
    return epochs[0].plan, tally, name


def read_guarantee(source: str, collection: str | None, chosen: EpochChoice | None) -> dict[str, Any]:
    """What a collector says that readers of these epochs can learn: the weakest of their guarantees, or why there is
    none; empty if it does not tell, as a store. Parameters as above.
    """
    if not is_url(source):
        return {}
    with closing(connect(source, collection)) as remote:
        found = [remote.guarantee(epoch.number) for epoch in (chosen or EpochChoice()).choose(remote.epochs())]
    return max(found, key=lambda each: each["batch_guarantee"]["epsilon"] if each.get("batch_guarantee") else math.inf)


def guarantee_in_words(found: dict[str, Any]) -> str:
    """The answer of :func:`read_guarantee` as a text with all conditions; empty if there is none."""
    claimed = found.get("batch_guarantee")
    if not claimed:
        return f"No guarantee is claimed for readers: {found['no_batch_guarantee']}." if found else ""
    facts = found["facts"] if isinstance(found["facts"], list) else []
    named = [
        f"{fact['name']}: {fact['text']}" for fact in facts if isinstance(fact, dict) and {"name", "text"} <= set(fact)
    ]
    conditions = claimed.get("conditions")
    others = " ".join(map(str, conditions)) if isinstance(conditions, list) else ""
    return f"{claimed['meaning']} The collector's guarantee and its conditions: {'; '.join(named)}. {others}".strip()


def say_if_summed(epochs: int) -> None:
    """Say what the interval of a sum of this number of epochs assumes, if there are several."""
    if epochs > 1:
        say("sunzi: note: the interval assumes different users or fresh noise in each epoch", sys.stderr)


def summed(epochs: Sequence[CollectedEpoch]) -> Tally:
    """The sum of the tallies of epochs, which must have one plan."""
    first = epochs[0]
    other = next((each for each in epochs if each.plan.fingerprint != first.plan.fingerprint), None)
    if other is not None:
        raise ParameterError(
            f"epochs {first.number} and {other.number} of {first.collection} have different plans, so their tallies do "
            "not add up; choose epochs of one plan, or compare them with `sunzi diff` or `sunzi trend`"
        )
    return sum((each.tally for each in epochs[1:]), start=first.tally)


def _from_collector(
    source: str, collection: str | None, chosen: EpochChoice, labels: str | None, skip_small: bool, group: str | None
) -> list[CollectedEpoch]:
    from sunzi.collector.remote import TooFewReportsError

    found, plans = [], dict[str, "Plan"]()
    with closing(connect(source, collection)) as remote:
        for epoch in chosen.choose(remote.epochs()):
            try:
                plan, tally = remote.tally(epoch.number, group)
            except TooFewReportsError:
                if not skip_small:
                    raise
                _say_skipped(epoch.number, epoch.reports, group)
                continue
            if plan.fingerprint not in plans:  # equal plans share what they have computed
                plans[plan.fingerprint] = with_labels(plan, f"the plan of {source}", labels)
            plan = plans[plan.fingerprint]
            found.append(CollectedEpoch(remote.collection, epoch.number, epoch.opened_at, epoch.is_open, plan, tally))
    return found


def connect(source: str, collection: str | None) -> RemoteCollector:
    """A connection to a collection of a collector, by default the only one, as its operator."""
    from sunzi.collector.remote import RemoteCollector

    address = f"{source.rstrip('/')}/v1/collections/{collection}" if collection else find_collection(source)
    return RemoteCollector(address, max_epsilon=None, secret=os.environ.get(TOKEN_VARIABLE), patience=10)


def find_collection(url: str) -> str:
    """Return the address of the collection that a collector's URL names, or of the only one that it serves.

    A collector lists its collections for its operator only. To others, a URL without a name means ``default``.
    """
    from sunzi.collector.remote import RemoteCollector

    secret = os.environ.get(TOKEN_VARIABLE)
    with closing(RemoteCollector(url, max_epsilon=None, secret=secret, patience=10)) as remote:
        if remote.is_named:
            return url
        try:
            served = remote.served()
        except StoreError:  # the request for the plan or the tally says what is wrong
            return url
    if len(served) > 1:
        raise ParameterError(f"{url} serves several collections; choose one: {', '.join(served)}")
    return served[0] if served else url


def _say_skipped(number: int, reports: int, group: str | None = None) -> None:
    few = counted(reports, "report") if group is None else f"too few reports of {group}"
    say(f"sunzi: note: epoch {number} is skipped: it has {few}", sys.stderr)


def groups_with_reports(source: str, collection: str | None, chosen: EpochChoice | None) -> list[str]:
    """The public groups, such as ``country=DE``, of which any of the epochs has reports; of a collector, enough to
    publish.
    """
    epochs, found = chosen or EpochChoice(), set[str]()
    if is_url(source):
        with closing(connect(source, collection)) as remote:
            for listed in epochs.choose(remote.epochs()):
                found |= set(remote.groups(listed.number))
        return sorted(found)
    from sunzi.collector.stores import open_store

    with closing(open_store(source, create=False)) as store:
        for epoch in epochs.choose(store.epochs(collection or only_collection(store, source))):
            found |= set(store.group_reports(epoch.key))
    return sorted(found)


def _from_store(
    source: str, collection: str | None, chosen: EpochChoice, labels: str | None, skip_small: bool, group: str | None
) -> list[CollectedEpoch]:
    from sunzi.collector.stores import find_epoch, open_store, stored_plan, stored_tally
    from sunzi.groups import parse_group

    found, plans = [], dict[bytes, "Plan"]()
    with closing(open_store(source, create=False)) as store:
        name = collection or only_collection(store, source)
        find_epoch(store, name)  # an unknown collection is an error that names the known ones
        for epoch in chosen.choose(store.epochs(name)):
            if skip_small and not epoch.reports:
                _say_skipped(epoch.number, epoch.reports)
                continue
            data = store.plan(epoch.key)
            if data not in plans:  # equal plans share what they have computed
                plans[data] = with_labels(stored_plan(store, epoch), f"the plan of {source}", labels)
            name_of_group = "" if group is None else parse_group(plans[data].groups, group)
            tally = stored_tally(store, epoch, plans[data], name_of_group)
            found.append(CollectedEpoch(name, epoch.number, epoch.opened_at, epoch.is_open, plans[data], tally))
    return found


def only_collection(store: Store, source: str) -> str:
    """Return the name of a store's only collection."""
    names = sorted({epoch.collection for epoch in store.epochs()})
    if len(names) != 1:
        raise ParameterError(f"{source} holds the collections {names}; choose one with --collection")
    return names[0]
