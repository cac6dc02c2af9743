"""The second half of the demonstration: the same collection once more, over HTTP, with the live page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sunzi.cli.terminal import ProgressBar, is_terminal

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
    from sunzi.collector import RemoteCollector, serve

    with serve(plan, port=port) as collector:
        print(f"\nThe same over HTTP: a collector listens at {collector.url}")
        remote = RemoteCollector(collector.url)
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
        print(f"Look at the live page: {collector.url}/ (Ctrl+C ends it)")
        collector.wait()
