"""The second half of the demonstration: the same collection once more, over HTTP, with the live page."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sunzi.cli.terminal import ProgressBar, is_terminal
from sunzi.errors import MissingExtraError, StoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sunzi.plan import Plan

_BATCH = 500
_SHOWN = 5


def serve_demo(plan: Plan, values: NDArray[np.int64], port: int, *, once: bool) -> None:
    """Start a collector, send it real reports, read its estimate, and leave its page open to look at.

    Ends by itself with ``once``, and where no terminal is there to end it from.
    """
    from sunzi.collector.remote import RemoteCollector

    with _collector(plan, port) as address:
        print(f"\nThe same over HTTP: a collector listens at {address}")
        remote = RemoteCollector(address)
        epoch = remote.current()
        client = epoch.plan.client()
        with ProgressBar("reports") as progress:
            for first in range(0, values.size, _BATCH):
                batch = values[first : first + _BATCH]
                remote.upload(epoch, client.report_indices(batch))
                progress.update(first + batch.size, (first + batch.size) / values.size)
        plan, tally = remote.tally()
        remote.close()
        top = plan.estimate(tally).top(_SHOWN)
        named = ", ".join(f"{row.label} {row.low:.1%} to {row.high:.1%}" for row in top)
        print(f"It counted {tally.reports:,} reports, each once, and says: {named}.")
        if once or not is_terminal(sys.stdout):
            return
        print(f"Look at the live page: {address}/ (Ctrl+C ends it)")
        threading.Event().wait()


@contextmanager
def _collector(plan: Plan, port: int) -> Iterator[str]:
    """A collector with a store that goes with it."""
    try:
        from sunzi.collector.app import create_app
        from sunzi.collector.server import make_server
        from sunzi.collector.settings import Settings
    except ImportError:
        raise MissingExtraError("the collector", "serve") from None
    from sunzi.collector.collector import Collector
    from sunzi.collector.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(prefix="sunzi-demo-") as directory:
        collector = Collector(SqliteStore(Path(directory) / "demo.db"))
        collector.open("default", plan)
        settings = Settings(port=port)
        ready, addresses = threading.Event(), list[str]()

        def started(address: str) -> None:
            addresses.append(address)
            ready.set()

        server = make_server(create_app(settings, lambda: collector), settings, started)
        thread = threading.Thread(target=server.run, name="sunzi-demo", daemon=True)
        thread.start()
        while not ready.wait(0.1):
            if not thread.is_alive():
                raise StoreError(f"the collector could not listen on port {port}; choose another with --port")
        try:
            yield addresses[0]
        finally:
            server.should_exit = True
            thread.join(30)
