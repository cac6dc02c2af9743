"""Frequent texts of open plans, cached until their tally changes."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import Literal

from sunzi.client.errors import ParameterError
from sunzi.collector.recently_used import RecentlyUsed
from sunzi.plan import Plan
from sunzi.results.discovery import Discovery
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally

Use = Literal["candidates", "prior", "count"]
"""What a list of texts is for: look for these only, guide the search, or count them without a search."""

MOST_COUNTED = 10_000
"""The most texts to count without a search."""
_MOST_DIGITS = 1 << 25  # of all texts of a list, 64 MiB
_KEPT = 16


@dataclass(frozen=True)
class GivenTexts:
    """Texts that came with a request, one per line, and their use."""

    use: Use
    content: bytes

    def texts(self, plan: Plan) -> list[str]:
        """The texts; ParameterError unless they are UTF-8 and few enough for the memory."""
        try:
            decoded = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ParameterError(f"the body must be UTF-8 with one text per line: {error.reason}") from None
        if not decoded:
            raise ParameterError("the body is empty; send UTF-8 with one text per line")
        found = decoded.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
        most = MOST_COUNTED if self.use == "count" else _MOST_DIGITS // (len(plan.domain.sizes) + 1)
        if len(found) > most:
            raise ParameterError(
                f"use={self.use} takes at most {most:,} texts, got {len(found):,}; 'sunzi discover --from' with this "
                "collector's address takes more"
            )
        return found


class DiscoveryCache:
    """Searches for texts, one search at a time, and caches the newest results.

    >>> import sunzi
    >>> plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=3), epsilon=4, cells=1000)
    >>> tally = plan.simulate(["yes"] * 6000 + ["no"] * 3000, seed=1)
    >>> DiscoveryCache().find(plan, tally, 0.05).labels
    ('yes', 'no')
    """

    def __init__(self) -> None:
        self._kept: RecentlyUsed[tuple[bytes, float, Use | None, bytes], Discovery | Estimate] = RecentlyUsed(_KEPT)
        self._searching = threading.Lock()

    def find(self, plan: Plan, tally: Tally, false_share: float, given: GivenTexts | None = None) -> Discovery:
        """The frequent texts, found without help, with a prior, or among candidates.

        Parameters
        ----------
        plan: an open plan.
        tally: a tally of it.
        false_share: the maximum false discovery rate.
        given: a prior or candidates.
        """
        found = self._get(plan, tally, false_share, given)
        assert isinstance(found, Discovery), "a list to count goes to count"
        return found

    def count(self, plan: Plan, tally: Tally, given: GivenTexts) -> Estimate:
        """The estimates of given texts, without a search."""
        found = self._get(plan, tally, 0.0, given)
        assert isinstance(found, Estimate), "only counted lists come here"
        return found

    def _get(self, plan: Plan, tally: Tally, false_share: float, given: GivenTexts | None) -> Discovery | Estimate:
        content = b"" if given is None else hashlib.sha256(given.content).digest()
        key = hashlib.sha256(tally.to_bytes()).digest(), false_share, None if given is None else given.use, content
        with self._searching:  # concurrent readers share one computation
            if key not in self._kept:
                self._kept[key] = _computed(plan, tally, false_share, given)
            return self._kept[key]


def _computed(plan: Plan, tally: Tally, false_share: float, given: GivenTexts | None) -> Discovery | Estimate:
    if given is None:
        return plan.discover(tally, false_share=false_share)
    texts = given.texts(plan)
    if given.use == "count":
        return plan.estimate(tally, labels=texts)
    return plan.discover(tally, false_share=false_share, **{given.use: texts})
