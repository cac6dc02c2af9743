"""Epochs that rotate by a schedule: a new one is opened, and after a grace period the old one is closed.

What to do follows from the store alone, from when its epochs were opened. So a restart forgets nothing, rotations that
were missed are done once, and several collectors on one store rotate once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from sunzi.client.errors import StoreError
from sunzi.collector.collector import Collector
from sunzi.collector.epochs import Epoch
from sunzi.collector.schedules import Schedule

_log = logging.getLogger(__name__)
_LONGEST_SLEEP = 60.0  # the clock may be set, and other collectors open epochs
_RETRY_SECONDS = 5.0


@dataclass(frozen=True)
class Step:
    """An epoch that was opened or closed."""

    action: str
    """"open_epoch" or "close_epoch"."""
    collection: str
    epoch: int


@dataclass(frozen=True)
class Rotation:
    """Opens and closes the epochs of all collections of a collector.

    A collection whose newest epoch is closed has ended: no epoch is opened, and older ones close after their grace
    period. New epochs have the plan of the one before.
    """

    collector: Collector
    schedule: Schedule
    grace_seconds: float

    def advance(self, now: float) -> list[Step]:
        """Do what is due at this time, in seconds since 1970. Repeating it changes nothing."""
        steps, due = [], self.schedule.latest(datetime.fromtimestamp(now, UTC)).timestamp()
        for name, epochs in self._epochs().items():
            if epochs[-1].is_open and epochs[-1].opened_at < due:
                opened = self.collector.store.open_next_epoch(name, due, now)
                steps += [Step("open_epoch", name, opened.number)] if opened else []
        for name, epochs in self._epochs().items():
            for old, close_at in self._replaced(epochs):
                if close_at <= now:
                    self.collector.store.close_epoch(old.key)  # without its plan, which a newer release may have made
                    steps.append(Step("close_epoch", name, old.number))
        if steps:
            self.collector.refresh()
        return steps

    def next_time(self, now: float) -> float:
        """When :meth:`advance` has something to do again."""
        closing = [at for epochs in self._epochs().values() for _, at in self._replaced(epochs)]
        return min([self.schedule.following(datetime.fromtimestamp(now, UTC)).timestamp(), *closing])

    def _epochs(self) -> dict[str, list[Epoch]]:
        """The epochs of every collection, oldest first."""
        found: dict[str, list[Epoch]] = {}
        for epoch in self.collector.epochs():
            found.setdefault(epoch.collection, []).append(epoch)
        return found

    def _replaced(self, epochs: Sequence[Epoch]) -> list[tuple[Epoch, float]]:
        """The open epochs that a newer one follows, and when to close each of them."""
        return [(old, new.opened_at + self.grace_seconds) for old, new in pairwise(epochs) if old.is_open]


class Rotator:
    """Runs a rotation on a separate thread until it is stopped.

    Parameters
    ----------
    rotation: what to do.
    stepped: called after every epoch that was opened or closed.
    """

    def __init__(self, rotation: Rotation, stepped: Callable[[Step], None]) -> None:
        self._rotation, self._stepped = rotation, stepped
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sunzi-rotation", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._step()):
            pass

    def _step(self) -> float:
        """Do what is due; return for how many seconds there is nothing to do."""
        try:
            for step in self._rotation.advance(time.time()):
                self._stepped(step)
            now = time.time()
            return max(0.0, min(_LONGEST_SLEEP, self._rotation.next_time(now) - now))
        except StoreError as error:
            _log.warning("epochs rotate later: %s", error)
            return _RETRY_SECONDS

    def stop(self, seconds: float) -> None:
        """Stop, and wait for a rotation in progress.

        Parameters
        ----------
        seconds: how long to wait for a store that does not answer.
        """
        self._stopped.set()
        self._thread.join(seconds)
