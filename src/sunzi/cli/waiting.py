"""A bar for those who wait at a terminal; gone when the wait is over."""

from __future__ import annotations

import time

from sunzi.cli.terminal import Progress

_WIDTH = 20
_SECONDS_UNSEEN, _SECONDS_BETWEEN = 0.5, 0.1


class Waiting(Progress):
    """Tells which share is done of work that is not counted in units worth naming, and how long the rest may take."""

    def __init__(self) -> None:
        super().__init__("")

    def show(self, share: float) -> None:
        """This share is done."""
        now = time.monotonic()
        elapsed = now - self._start
        if not self._watched or elapsed < _SECONDS_UNSEEN or now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        filled = round(_WIDTH * min(max(share, 0.0), 1.0))
        left = f"about {elapsed / share - elapsed:,.0f} s left" if share > 0 else ""
        self._write(f"{share:4.0%}  [{'#' * filled}{'.' * (_WIDTH - filled)}]  {left}".rstrip())
