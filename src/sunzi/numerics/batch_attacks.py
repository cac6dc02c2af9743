"""Attacks on one user of a batch, whose success bounds every guarantee from below (docs/mathematics.md §17).

The attacker knows that all others hold the same value, and counts two or three kinds of reports. The privacy losses
that it finds are rounded down, so several batches can be attacked together.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sunzi.numerics.binomial import count_cells
from sunzi.numerics.bit_sums import REACH, STEPS_PER_DEVIATION, Column
from sunzi.numerics.losses import LossDistribution

_COUNTS_PER_DEVIATION = 40


def among_two(true: float, false: float, users: int) -> LossDistribution:
    """If one kind of report comes from the victim with probability ``true`` or ``false``, and from all others with
    ``false``.
    """
    column = Column.of_equals(true, false, users)
    return column.losses(true, column.deviation / STEPS_PER_DEVIATION)


def among_three(odds: float, victim: float, others: float, users: int) -> LossDistribution:
    """If two kinds of reports come from the victim with probabilities ``odds``·victim and victim, or the reverse, and
    from all others with ``others`` each.

    Given the number C of these reports, their difference D has the likelihoods (V ± (odds − 1)·D)/2. Within a cell of
    C, the least C and the largest V tell least.
    """
    mean = 2 * others * users
    cells = count_cells(np.array(float(users)), 2 * others, min(sqrt(mean) / 6, mean / 400), above=False)
    first, last, mass = (column[1:-1] for column in cells)
    ratio = others / victim
    rest = 2 * ratio * (1 - victim * (odds + 1)) / (1 - 2 * others)
    ends = [(odds + 1) * count + rest * (users - count) for count in (first, last)]
    hiding, weight = np.maximum(*ends), mass * np.minimum(*ends) / np.maximum(*ends) / (ratio * users)
    mean = max(mean, 1.0)
    deviation = 2 * (odds - 1) * sqrt(mean) / ((odds + 1) * mean + rest * (users - mean))
    step = deviation / STEPS_PER_DEVIATION
    inner = count_cells(first, 0.5, sqrt(mean) / 2 / _COUNTS_PER_DEVIATION, above=False)
    telling = (odds - 1) * (2 * np.minimum(inner.first, first[:, None]) - first[:, None])
    found = np.log(hiding[:, None] + telling) - np.log(hiding[:, None] - telling)
    index = np.floor(found / step - 1e-9)
    likelihood = weight[:, None] * inner.mass * (hiding[:, None] + telling) / 2
    reach = int(REACH * STEPS_PER_DEVIATION)
    kept = index >= -reach
    place = np.minimum(index[kept], reach).astype(np.int64) + reach
    masses = np.bincount(place, likelihood[kept], minlength=2 * reach + 1).astype(np.float64)
    return LossDistribution(step, -reach, masses)
