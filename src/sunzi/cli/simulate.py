"""``sunzi simulate``: send reports of simulated users to a collector."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sunzi.cli.files import add_simulation
from sunzi.cli.sources import find_collection
from sunzi.cli.terminal import ProgressBar, say
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi._typing import Integers
    from sunzi.client.device.remote import RemoteEpoch
    from sunzi.collector.remote import RemoteCollector
    from sunzi.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``simulate``, and add its arguments."""
    parser.description = (
        "Draw the values of simulated users and send their reports to a collector in batches. Only the values are "
        "simulated: the client that ships randomises them with the operating system's randomness."
    )
    parser.add_argument(
        "--send",
        metavar="URL",
        required=True,
        help="URL of a collector that serves one collection, or of the collection: URL/v1/collections/NAME",
    )
    parser.add_argument("--users", metavar="N", type=int, default=10_000, help="number of users (default: %(default)s)")
    parser.add_argument(
        "--batch",
        metavar="N",
        type=int,
        help="reports per upload; 1 sends single reports (default: 100, or 1 with --tokens-file)",
    )
    add_simulation(parser, population="zipf:1")
    parser.add_argument("--key-file", metavar="FILE", help="file with the upload key, if the collector requires one")
    parser.add_argument(
        "--tokens-file", metavar="FILE", help="file of single-use tokens, one per line, if the collector requires them"
    )
    parser.add_argument(
        "--group",
        metavar="NAME=VALUE",
        help="public groups of these users, such as country=DE or country=DE,release=1",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fetch the plan, draw values, send."""
    from sunzi.client.groups import parse_groups
    from sunzi.collector.remote import RemoteCollector
    from sunzi.collector.settings import read_secret
    from sunzi.planning import Population

    if arguments.batch is None:
        arguments.batch = 1 if arguments.tokens_file else 100
    for name in ("users", "batch"):
        if getattr(arguments, name) < 1:
            raise ParameterError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    population = Population.parse(arguments.population)
    tokens = _tokens(arguments.tokens_file, -(-arguments.users // arguments.batch))
    secret = read_secret(arguments.key_file) if arguments.key_file else None
    with closing(RemoteCollector(find_collection(arguments.send), max_epsilon=None, secret=secret)) as remote:
        epoch = remote.current()
        if epoch.plan.domain.is_open:
            raise ParameterError(
                f"the values of {epoch.collection} are texts without a list, so none can be drawn; send reports of "
                "your own texts, with plan.client() and sunzi.collector.RemoteCollector in Python"
            )
        values = population.draw(epoch.plan.domain.size, arguments.users, arguments.seed)
        start = time.monotonic()
        groups = parse_groups(arguments.group) if arguments.group else {}
        send_reports(remote, epoch, values, arguments.batch, tokens, groups)
        seconds = max(time.monotonic() - start, 1e-9)
    sent = f"{counted(arguments.users, 'report')} to {epoch.collection}, epoch {epoch.number}"
    say(f"sent {sent}: {arguments.users / seconds:,.0f} per second", sys.stderr)
    return 0


def send_reports(
    remote: RemoteCollector,
    epoch: RemoteEpoch,
    values: Integers,
    batch_size: int,
    tokens: Iterator[str | None] | None = None,
    groups: Mapping[str, str] | None = None,
) -> None:
    """Randomise the values with the shipped client and upload the reports, one token per upload."""
    client = cast("Plan", epoch.plan).client()
    with ProgressBar("reports") as bar:
        for first in range(0, values.size, batch_size):
            batch = values[first : first + batch_size]
            body = client.report_index(int(batch[0])) if batch_size == 1 else client.report_indices(batch)
            remote.upload(epoch, body, token=next(tokens or repeat(None)), groups=groups)
            done = first + batch.size
            bar.update(done, done / values.size)


def _tokens(path: str | None, uploads: int) -> Iterator[str | None]:
    """Return one token per upload, or None for each if there is no file."""
    if path is None:
        return repeat(None)
    found = Path(path).read_text(encoding="utf-8").split()
    if len(found) < uploads:
        raise ParameterError(
            f"{path} holds {counted(len(found), 'token')} for {counted(uploads, 'upload')}; add tokens, one per report"
        )
    return iter(found)
