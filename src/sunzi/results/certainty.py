"""Whether values are above 0: by a test of all values at once, by their own interval only, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from sunzi.results.estimate import Estimate
    from sunzi.results.uncertainty import Target

Certainty = Literal["clear", "alone", "unclear"]

MEANINGS: dict[Certainty, str] = {
    "clear": "above 0, tested for all values at once",
    "alone": "above 0 by its own interval only: among many values, some are by chance",
    "unclear": "not distinguishable from 0",
}


def certainties(estimate: Estimate, confidence: float, target: Target) -> list[Certainty]:
    """One verdict per value. None contradicts the value's own interval, which is the narrower one.

    Tables and pictures show the most frequent values. These were selected among all, so "clear" takes an interval that
    holds for all values simultaneously.

    Parameters
    ----------
    estimate: an unbiased estimate.
    confidence: the coverage probability, of each interval and of all together.
    target: "reporters" or "population".

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", 4, epsilon=1)
    >>> certainties(plan.estimate(plan.simulate([0] * 900 + [1] * 100, seed=6)), 0.95, "reporters")
    ['clear', 'alone', 'unclear', 'unclear']
    """
    own, _ = estimate.interval(confidence, target=target)
    all_at_once, _ = estimate.interval(confidence, target=target, simultaneous=True)
    found: list[Certainty] = np.where(all_at_once > 0, "clear", np.where(own > 0, "alone", "unclear")).tolist()
    return found
