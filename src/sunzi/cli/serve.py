"""``sunzi serve``: an HTTP collector with a live page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sunzi.cli.files import TOKEN_VARIABLE, add_labels
from sunzi.cli.terminal import say
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, privacy_bound
from sunzi.processes import deferred_signals

if TYPE_CHECKING:
    from sunzi.collector import Collector
    from sunzi.collector.collector import OldPlan
    from sunzi.collector.schedules import Schedule
    from sunzi.collector.settings import Settings
    from sunzi.plan import Plan

_GRACE_SECONDS = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``serve``, and add its arguments."""
    parser.description = (
        "Collect reports over HTTP and show the histogram on a live page. Each report is counted exactly once and "
        "acknowledged after it is on disk. Without an admin token, the collector accepts only local connections."
    )
    for add in (_add_collections, _add_rotation, _add_access, _add_upload_limits, _add_publication, _add_queue_limits):
        add(parser)


def _add_collections(parser: argparse.ArgumentParser) -> None:
    """What is collected, and where it is stored."""
    parser.add_argument(
        "plans",
        metavar="PLAN",
        nargs="*",
        help="plan file, or NAME=FILE to name its collection (default: the store's only one; 'default' in a new store)",
    )
    parser.add_argument(
        "--store",
        metavar="STORE",
        default="sunzi.db",
        help="SQLite file, created if missing, or postgresql://USER@HOST/DATABASE (default: %(default)s)",
    )
    parser.add_argument(
        "--old-plan",
        choices=("close", "keep"),
        help="what to do if a collection's open epoch has another plan: close it, or keep it open to count late "
        "reports; clients fetch the new plan (default: an error that says what would change)",
    )


def _add_rotation(parser: argparse.ArgumentParser) -> None:
    """When new epochs open."""
    parser.add_argument(
        "--rotate",
        metavar="SCHEDULE",
        help="open a new epoch of every collection by a schedule: daily, weekly (on Mondays), or five fields of cron, "
        "such as '0 4 * * *'; rotations missed while no collector was running are done once (default: never)",
    )
    parser.add_argument(
        "--rotate-at", metavar="HH:MM", help="time of day for --rotate daily and weekly (default: 00:00)"
    )
    parser.add_argument(
        "--time-zone", metavar="ZONE", help="time zone of --rotate, such as Europe/Berlin (default: UTC)"
    )
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=float,
        help="how long the old epoch still counts late reports after a rotation; then it is closed (default: 3600)",
    )


def _add_access(parser: argparse.ArgumentParser) -> None:
    """Who may send and read, and where."""
    parser.add_argument("--shard", metavar="I/N", help="accept only ids of shard I of N, such as 0/4")
    add_labels(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to bind to (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8765, help="port; 0 selects a free one (default: %(default)s)")
    parser.add_argument(
        "--admin-token-file",
        metavar="FILE",
        help=f"file with the admin token, needed for everything but uploads (default: the environment variable "
        f"{TOKEN_VARIABLE})",
    )
    parser.add_argument(
        "--audit-log", metavar="FILE", help="append a line per operator's request: who opened, closed or read what"
    )
    parser.add_argument(
        "--upload-keys", metavar="FILE", help="file of upload keys with their quotas; see docs/collector.md"
    )
    parser.add_argument("--single-use-tokens", action="store_true", help="require a single-use token for each upload")
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="allow uploads from web pages of this origin (CORS); may be repeated",
    )
    parser.add_argument(
        "--trust-proxy",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="trust the forwarded headers of this proxy; may be repeated",
    )


def _add_upload_limits(parser: argparse.ArgumentParser) -> None:
    """How large uploads may be."""
    parser.add_argument(
        "--body-bytes",
        metavar="N",
        type=int,
        default=4 << 20,
        help="maximum size of an upload in bytes (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-reports",
        metavar="N",
        type=int,
        default=10_000,
        help="maximum number of reports in a batch (default: %(default)s)",
    )


def _add_publication(parser: argparse.ArgumentParser) -> None:
    """What is published, and what its readers can learn."""
    parser.add_argument(
        "--minimum-reports",
        metavar="N",
        type=int,
        default=100,
        help="publish no estimate or tally of an epoch with fewer reports (default: %(default)s)",
    )
    parser.add_argument(
        "--publish-delta",
        metavar="DELTA",
        type=float,
        help="publish closed epochs only, and compute what readers of the results can learn about one person, with "
        "this probability of failure, such as 1e-8; see docs/batch.md (default: open epochs are shown too, and nothing "
        "is claimed about readers)",
    )
    parser.add_argument(
        "--honest",
        metavar="SHARE",
        type=float,
        help="with --publish-delta: your estimate of the share of reports whose clients follow the plan, such as 0.9",
    )
    repeating = parser.add_mutually_exclusive_group()
    repeating.add_argument(
        "--fresh-noise",
        action="store_true",
        help="with --publish-delta: people may be in every epoch, with fresh noise in each; devices of Sunzi repeat "
        "their noise instead (default: the guarantee covers people who report in one epoch only)",
    )
    repeating.add_argument(
        "--cohort",
        metavar="N",
        type=int,
        help="with --publish-delta: devices repeat their reports, and at least N people are in exactly the same epochs "
        "and groups",
    )


def _add_queue_limits(parser: argparse.ArgumentParser) -> None:
    """How much may wait."""
    parser.add_argument(
        "--waiting",
        metavar="N",
        type=int,
        default=10_000,
        help="maximum number of queued uploads; more are refused (default: %(default)s)",
    )
    parser.add_argument(
        "--waiting-bytes",
        metavar="N",
        type=int,
        default=128 << 20,
        help="maximum memory of queued uploads and of large bodies that are being read (default: %(default)s)",
    )
    parser.add_argument(
        "--connections",
        metavar="N",
        type=int,
        default=2000,
        help="maximum number of requests in progress; the limit on open files may lower it (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    with deferred_signals():  # an exception in the midst of these imports would be shown as an error in them
        from sunzi.collector import Collector, Shard, open_store
        from sunzi.collector.server import create_app, listen, make_server
        from sunzi.plan import load_plan

    settings = _settings(arguments)
    plans = {name: load_plan(path, labels=arguments.labels) for name, path in _named(arguments.plans).items()}
    shard = Shard.parse(arguments.shard) if arguments.shard else None
    with (
        listen(settings.host, settings.port) as listening,  # first: if the port is taken, the store stays as it is
        closing(open_store(arguments.store, shard, create=bool(plans))) as store,
    ):
        collector = Collector(store)
        _open(collector, plans, arguments.old_plan)
        if not collector.collections():
            raise ParameterError(f"{arguments.store} holds no collection yet; give a plan file")

        def started(address: str) -> None:
            if settings.rotate is not None:
                following = settings.rotate.following(datetime.now(UTC)).astimezone(settings.rotate.zone)
                say(f"epochs rotate {settings.rotate.text}, next on {following:%Y-%m-%d at %H:%M %Z}", sys.stderr)
            say(f"collecting at {address}; press Ctrl+C to stop", sys.stderr)

        server = make_server(create_app(collector, settings), settings, started)
        server.run(sockets=[listening])
    return 0 if server.started else 1


def _open(collector: Collector, plans: Mapping[str | None, Plan], old_plan: OldPlan | None) -> None:
    named = {collector.unnamed() if name is None else name: plan for name, plan in plans.items()}
    if len(named) < len(plans):
        raise ParameterError(f"two plans for the collection {collector.unnamed()!r}; give each its own name: NAME=FILE")
    were_open = {epoch.key for epoch in collector.store.epochs() if epoch.is_open}
    for live in collector.open_all(named, old_plan=old_plan):
        name, epoch = live.epoch.collection, live.epoch
        for old in collector.store.epochs(name):
            if old.key in were_open and old.key != epoch.key:
                state = "stays open for late reports" if old.is_open else "is closed"
                say(f"{name}: epoch {old.number} {state}", sys.stderr)
        say(f"{name}: epoch {epoch.number}, {counted(epoch.reports, 'report')} so far", sys.stderr)
        say(f"{name}: {privacy_bound(live.plan.epsilon)}", sys.stderr)


def _settings(arguments: argparse.Namespace) -> Settings:
    from sunzi.collector.settings import Settings, read_secret, read_upload_keys

    token = read_secret(arguments.admin_token_file) if arguments.admin_token_file else os.environ.get(TOKEN_VARIABLE)
    return Settings(
        host=arguments.host,
        port=arguments.port,
        body_bytes=arguments.body_bytes,
        batch_reports=arguments.batch_reports,
        minimum_reports=arguments.minimum_reports,
        publish_delta=arguments.publish_delta,
        honest=arguments.honest,
        fresh_noise=arguments.fresh_noise,
        cohort=arguments.cohort,
        waiting_deposits=arguments.waiting,
        waiting_bytes=arguments.waiting_bytes,
        connections=arguments.connections,
        admin_token=token,
        upload_keys=read_upload_keys(arguments.upload_keys) if arguments.upload_keys else (),
        admin_token_file=Path(arguments.admin_token_file) if arguments.admin_token_file else None,
        upload_keys_file=Path(arguments.upload_keys) if arguments.upload_keys else None,
        audit_log=Path(arguments.audit_log) if arguments.audit_log else None,
        single_use_tokens=arguments.single_use_tokens,
        allow_origins=tuple(arguments.allow_origin),
        trusted_proxies=tuple(arguments.trust_proxy),
        rotate=_schedule(arguments),
        grace_seconds=_GRACE_SECONDS if arguments.grace is None else arguments.grace,
    )


def _schedule(arguments: argparse.Namespace) -> Schedule | None:
    from sunzi.collector.schedules import Schedule

    if arguments.rotate is not None:
        return Schedule.parse(arguments.rotate, arguments.rotate_at, arguments.time_zone or "UTC")
    given = {"--rotate-at": arguments.rotate_at, "--time-zone": arguments.time_zone, "--grace": arguments.grace}
    extra = next((name for name, value in given.items() if value is not None), None)
    if extra is not None:
        raise ParameterError(f"{extra} is about --rotate; add --rotate daily, weekly or a schedule of cron")
    return None


def _named(plans: list[str]) -> dict[str | None, str]:
    """Return the plan files by collection; one plan may go without a name, under None."""
    from sunzi.client.device.addresses import check_name

    named: dict[str | None, str] = {}
    for plan in plans:
        before, equals, path = plan.partition("=")
        name, path = (check_name(before), path) if equals else (None, plan)
        if name in named:
            which = "without a name" if name is None else f"for the collection {name!r}"
            raise ParameterError(f"two plans {which}; give each its own name: NAME=FILE")
        named[name] = path
    return named
