"""``sunzi simulate``: simulated users who send real reports, through the real client, to a real collector."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from sunzi.cli.numbers import counted
from sunzi.cli.terminal import ProgressBar, say
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sunzi.client import Client


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``simulate`` to the command line."""
    description = (
        "Draw the values of simulated users and send a report of each to a collector, in batches. Reports are "
        "randomised by the operating system, as those of real users are; only the values are simulated."
    )
    parser = commands.add_parser("simulate", description=description, allow_abbrev=False)
    parser.add_argument("--send", metavar="URL", required=True, help="the collector, or one collection of it")
    parser.add_argument("--users", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=100, help="reports of one upload; 1 sends each by itself")
    parser.add_argument(
        "--population", default="zipf", help="uniform, spike, zipf or zipf:EXPONENT (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the values alone (default: %(default)s)")
    parser.add_argument("--key-file", metavar="FILE", help="the upload key, if the collector asks for one")
    parser.add_argument(
        "--tokens-file", metavar="FILE", help="single-use tokens, one a line, if the collector asks for one an upload"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fetch the plan, draw values, send."""
    from sunzi.collector.remote import RemoteCollector
    from sunzi.collector.settings import read_secret
    from sunzi.planning import Population

    for name in ("users", "batch"):
        if getattr(arguments, name) < 1:
            raise ParameterError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    population = Population.parse(arguments.population)
    tokens = _tokens(arguments.tokens_file, -(-arguments.users // arguments.batch))
    secret = read_secret(arguments.key_file) if arguments.key_file else None
    with closing(RemoteCollector(arguments.send, secret=secret)) as remote:
        epoch = remote.current()
        client = epoch.plan.client()
        values = population.draw(epoch.plan.domain.size, arguments.users, arguments.seed)
        begun = time.monotonic()
        with ProgressBar("reports") as progress:
            for first in range(0, arguments.users, arguments.batch):
                batch = values[first : first + arguments.batch]
                remote.upload(epoch, _body(client, batch, single=arguments.batch == 1), token=next(tokens))
                done = first + batch.size
                progress.update(done, done / arguments.users)
        seconds = max(time.monotonic() - begun, 1e-9)
    what = f"{counted(arguments.users, 'report')} to {epoch.collection}, epoch {epoch.number}"
    say(f"sent {what}: {arguments.users / seconds:,.0f} a second", sys.stderr)
    return 0


def _tokens(path: str | None, uploads: int) -> Iterator[str | None]:
    """One for each upload."""
    if path is None:
        return repeat(None)
    found = Path(path).read_text(encoding="utf-8").split()
    if len(found) < uploads:
        raise ParameterError(f"{path} holds {counted(len(found), 'token')}, and there will be {uploads:,} uploads")
    return iter(found)


def _body(client: Client, values: NDArray[np.int64], *, single: bool) -> bytes:
    return client.report_index(int(values[0])) if single else client.report_indices(values)
