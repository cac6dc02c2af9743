"""``sunzi store``: show, back up, restore or merge a collector's store, open or close an epoch, or subtract a key."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import add_force, check_new, open_output
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver, say_written
from sunzi.cli.sources import only_collection
from sunzi.cli.terminal import print_table, say
from sunzi.formatting import counted, printable

if TYPE_CHECKING:
    from sunzi.collector.epochs import Epoch
    from sunzi.collector.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``store``, and add its actions."""
    parser.description = "Manage a collector's store: an SQLite file or postgresql://USER@HOST/DATABASE."
    actions = parser.add_subparsers(title="actions", metavar="ACTION", help="each has its own --help")

    def add_action(name: str, run: Callable[[argparse.Namespace], int], summary: str) -> argparse.ArgumentParser:
        description = f"{summary[0].upper()}{summary[1:]}."
        added = actions.add_parser(name, help=summary, description=description)
        added.set_defaults(run=run)
        return added

    store = "SQLite file or postgresql://USER@HOST/DATABASE"
    show = add_action("show", _show, "list collections and epochs")
    show.add_argument("store", metavar="STORE", help=store)
    add_output(show)
    add_format(show)
    backup = add_action("backup", _backup, "copy a store to a new SQLite file, even while a collector uses it")
    backup.add_argument("store", metavar="STORE", help=store)
    backup.add_argument("file", metavar="FILE", help="new SQLite file")
    restore = add_action("restore", _restore, "copy a backup into a new or empty store")
    restore.add_argument("file", metavar="FILE", help="SQLite file that backup wrote")
    restore.add_argument("store", metavar="STORE", help=store)
    merge = add_action("merge", _merge, "add up a closed epoch of all shards into one tally")
    merge.add_argument("stores", metavar="STORE", nargs="+", help=f"stores of all shards: {store}")
    _add_epoch(merge)
    merge.add_argument(
        "--group", metavar="NAME=VALUE", help="only the reports of this public group, such as country=DE"
    )
    merge.add_argument("-o", "--output", metavar="FILE", help="tally file (default: standard output)")
    add_force(merge)
    opening = add_action("open", _open, "open a new epoch of a collection, with its own or a new plan")
    opening.description = (
        f"{opening.description} Older epochs are closed, unless --keep. While a collector uses an SQLite store, send "
        "the request to the collector instead, POST /v1/collections/NAME/epochs, or let it rotate its epochs."
    )
    opening.add_argument("store", metavar="STORE", help=store)
    opening.add_argument("plan", metavar="PLAN", nargs="?", help="plan file (default: the plan of the newest epoch)")
    opening.add_argument("--collection", metavar="NAME", help="collection (default: the only one)")
    opening.add_argument("--keep", action="store_true", help="keep older epochs open, to count late reports")
    _add_audit_log(opening)
    close = add_action("close", _close, "close an epoch permanently and delete its ids")
    close.description = (
        f"{close.description} While a collector uses an SQLite store, send the request to the collector instead: "
        "POST /v1/collections/NAME/epochs/N/close."
    )
    close.add_argument("store", metavar="STORE", help=store)
    _add_epoch(close)
    _add_audit_log(close)
    subtract = add_action("subtract", _subtract, "subtract the reports of a compromised upload key from an epoch")
    subtract.description = (
        f"{subtract.description} The epoch may be open or closed. While a collector uses an SQLite store, send the "
        "request to the collector instead: POST /v1/collections/NAME/epochs/N/subtract."
    )
    subtract.add_argument("store", metavar="STORE", help=store)
    _add_epoch(subtract)
    subtract.add_argument("--key", metavar="NAME", required=True, help="name of the upload key")
    _add_audit_log(subtract)


def _add_epoch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--collection", metavar="NAME", help="collection (default: the only one)")
    parser.add_argument("--epoch", metavar="N", type=int, required=True, help="number of the epoch")


def _add_audit_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--audit-log", metavar="FILE", help="append a line about it, as `sunzi serve` does")


def _audit(arguments: argparse.Namespace, action: str, **details: object) -> None:
    from sunzi.collector.audit_log import AuditLog

    AuditLog(Path(arguments.audit_log) if arguments.audit_log else None).write(None, action, 200, details)


def _opened(address: str) -> AbstractContextManager[Store]:
    """Open an existing store; leaving the context closes it."""
    from sunzi.collector.stores import open_store

    return closing(open_store(address, create=False))


def _show(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    with _opened(arguments.store) as store:
        epochs = store.epochs()
        fingerprints = [hashlib.sha256(store.plan(epoch.key)).hexdigest() for epoch in epochs]
        remembered = [store.identity_count(epoch.key) for epoch in epochs]
        contributions = [store.contributions(epoch.key) for epoch in epochs]
        groups = [store.group_reports(epoch.key) for epoch in epochs]
    records: list[dict[str, Any]] = [
        {
            "collection": epoch.collection,
            "epoch": epoch.number,
            "open": epoch.is_open,
            "reports": epoch.reports,
            "ids": ids,
            "opened_at": _moment(epoch.opened_at),
            "closed_at": None if epoch.closed_at is None else _moment(epoch.closed_at),
            "plan": fingerprint,
            "keys": [
                {"key": each.uploader, "reports": each.reports, "subtracted": each.subtracted_at is not None}
                for each in contributed
            ],
            "groups": dict(sorted(in_groups.items())),
        }
        for epoch, fingerprint, ids, contributed, in_groups in zip(
            epochs, fingerprints, remembered, contributions, groups, strict=True
        )
    ]
    result = Result(
        table=partial(_print_epochs, str(store.shard), records),
        document=lambda: {"shard": str(store.shard), "epochs": records},
        rows=lambda: [
            {
                "shard": str(store.shard),
                **record,
                "keys": " ".join(str(each["key"]) for each in record["keys"]),
                "groups": " ".join(record["groups"]),
            }
            for record in records
        ],
    )
    deliver(arguments, result)
    return 0


def _print_epochs(shard: str, records: list[dict[str, Any]]) -> None:
    say(f"shard {shard}, {counted(len(records), 'epoch')}")
    header = ["collection", "epoch", "state", "reports", "ids", "opened", "plan"]
    cells = [
        [
            printable(record["collection"]),
            str(record["epoch"]),
            "open" if record["open"] else "closed",
            f"{record['reports']:,}",
            f"{record['ids']:,}",
            record["opened_at"].removesuffix("+00:00") + "Z",
            record["plan"][:8] + "…",
        ]
        for record in records
    ]
    print_table(header, cells)


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")


def _backup(arguments: argparse.Namespace) -> int:
    from sunzi.collector.stores import backup

    with _opened(arguments.store) as store:
        epochs = backup(store, Path(arguments.file))
    say_written(arguments.file, counted(epochs, "epoch"))
    return 0


def _restore(arguments: argparse.Namespace) -> int:
    from sunzi.collector.stores import copy_store, open_store

    with _opened(arguments.file) as source, closing(open_store(arguments.store, source.shard)) as target:
        epochs = copy_store(source, target)
    say_written(arguments.store, counted(epochs, "epoch"))
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    from sunzi.collector.stores import merge_shards

    check_new(arguments.output, force=arguments.force)
    with ExitStack() as stack, open_output(arguments.output, "a tally") as stream:
        stores = [stack.enter_context(_opened(address)) for address in arguments.stores]
        collection = arguments.collection or only_collection(stores[0], arguments.stores[0])
        tally = merge_shards(stores, collection, arguments.epoch, arguments.group)
        stream.write(tally.to_bytes())
    reports, shards = counted(tally.reports, "report"), counted(len(stores), "shard")
    say_written(arguments.output, f"the tally of {reports} from {shards}")
    return 0


def _open(arguments: argparse.Namespace) -> int:
    from sunzi.collector.collector import Collector
    from sunzi.plan import load_plan

    plan = load_plan(arguments.plan) if arguments.plan else None
    with _opened(arguments.store) as store:
        collection = arguments.collection or only_collection(store, arguments.store)
        store.claim()
        were_open = [epoch.number for epoch in store.epochs(collection) if epoch.is_open]
        opened = Collector(store).open_next(collection, plan, old="keep" if arguments.keep else "close")
        _audit(arguments, "open_epoch", collection=collection, epoch=opened.number)
    say(f"opened epoch {opened.number} of {collection}", sys.stderr)
    for number in were_open:
        state = "stays open for late reports" if arguments.keep else "is closed"
        say(f"epoch {number} {state}", sys.stderr)
    return 0


@contextmanager
def _claimed_epoch(arguments: argparse.Namespace) -> Iterator[tuple[Store, Epoch]]:
    """The epoch that the arguments name, and its store, which no collector may use meanwhile."""
    from sunzi.collector.stores import find_epoch

    with _opened(arguments.store) as store:
        epoch = find_epoch(store, arguments.collection or only_collection(store, arguments.store), arguments.epoch)
        store.claim()
        yield store, epoch


def _close(arguments: argparse.Namespace) -> int:
    with _claimed_epoch(arguments) as (store, epoch):
        settled = store.close_epoch(epoch.key)
        _audit(arguments, "close_epoch", collection=epoch.collection, epoch=epoch.number)
    say(f"closed epoch {epoch.number} of {epoch.collection} with {counted(epoch.reports, 'report')}", sys.stderr)
    if not settled:
        say("traces of the ids remain, because the store is being read; run this again afterwards", sys.stderr)
    return 0


def _subtract(arguments: argparse.Namespace) -> int:
    with _claimed_epoch(arguments) as (store, epoch):
        reports = store.subtract(epoch.key, arguments.key)
        details = {"collection": epoch.collection, "epoch": epoch.number, "key": arguments.key, "reports": reports}
        _audit(arguments, "subtract_key", **details)
    left = counted(epoch.reports - reports, "report")
    say(f"subtracted {counted(reports, 'report')} of the key {arguments.key}; {left} left", sys.stderr)
    return 0
