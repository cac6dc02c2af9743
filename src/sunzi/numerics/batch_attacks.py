"""Attacks on one user of a batch, whose success bounds every guarantee from below (docs/mathematics.md §17).

The attacker knows that all others hold the same value, and counts two or three kinds of reports. Several batches can be
attacked together, by the sum of what is found in each.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sunzi._typing import Floats
from sunzi.numerics.binomial import between, cell_width, count_cells
from sunzi.numerics.losses import BatchAttack

_CELLS_PER_DEVIATION = 100


def among_two(here: float, there: float, others: float, users: int) -> BatchAttack:
    """The number of reports of a kind that comes from the victim with probability ``here`` under x and ``there`` under
    x', and from all others with ``others``.
    """
    trials = np.array(users - 1.0)
    width = sqrt(float(trials) * others * (1 - others)) / _CELLS_PER_DEVIATION
    edges = np.append(count_cells(trials, others, width).first, users + 1.0)

    def law(chance: float, above: bool) -> Floats:
        without, own = (between(trials, np.clip(edges - bit, 0, users), others, above) for bit in (0, 1))
        return (1 - chance) * without + chance * own

    return BatchAttack.of_outcomes(law(here, above=False), law(there, above=True))


def among_three(odds: float, victim: float, others: float, users: int) -> BatchAttack:
    """If two kinds of reports come from the victim with probabilities ``odds``·victim and victim, or the reverse, and
    from all others with ``others`` each.

    Given the number C of these reports, their difference D has the likelihoods (V ± (odds − 1)·D)/2. Within a cell of
    C, the least C and the largest V reveal least.
    """
    mean = 2 * others * users
    cells = count_cells(np.array(float(users)), 2 * others, cell_width(mean), above=False)
    first, last, mass = (column[1:-1] for column in cells)
    ratio = others / victim
    rest = 2 * ratio * (1 - victim * (odds + 1)) / (1 - 2 * others)
    ends = [(odds + 1) * count + rest * (users - count) for count in (first, last)]
    hiding, weight = np.maximum(*ends), mass * np.minimum(*ends) / np.maximum(*ends) / (ratio * users)
    mean = max(mean, 1.0)
    inner = count_cells(first, 0.5, sqrt(mean) / 2 / _CELLS_PER_DEVIATION, above=False)
    telling = (odds - 1) * (2 * np.minimum(inner.first, first[:, None]) - first[:, None])
    joint = weight[:, None] * inner.mass / 2
    here, there = (joint * (hiding[:, None] + sign * telling) for sign in (1, -1))
    return BatchAttack.of_outcomes(here.reshape(-1), there.reshape(-1))
