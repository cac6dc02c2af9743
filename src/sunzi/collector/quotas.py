"""How many reports a minute one key may upload: a bucket that fills steadily and never holds more than a minute's."""

from __future__ import annotations

import time
from collections.abc import Callable

from sunzi.collector.settings import UploadKey


class Quotas:
    """One bucket a key. They live in memory: a restart fills them again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: UploadKey, reports: int) -> float:
        """Take so many reports out of the key's bucket: 0, or, if they are not there, the seconds to wait for them."""
        now, rate = self._clock(), key.reports_per_minute / 60
        held, since = self._buckets.get(key.name, (float(key.reports_per_minute), now))
        held = min(float(key.reports_per_minute), held + (now - since) * rate)
        # A batch larger than the whole bucket would otherwise wait for ever: a full bucket lets it pass, in debt.
        needed = min(reports, key.reports_per_minute)
        if held < needed:
            self._buckets[key.name] = (held, now)
            return (needed - held) / rate
        self._buckets[key.name] = (held - reports, now)
        return 0.0

    def give_back(self, key: UploadKey, reports: int) -> None:
        """Put back what was taken for reports that were not counted."""
        held, since = self._buckets[key.name]
        self._buckets[key.name] = (held + reports, since)
