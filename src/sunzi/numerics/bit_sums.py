"""What the sums of a batch's bits reveal about one user, if nobody sees the bits of a single report.

The proof is in docs/mathematics.md §17.

Each value has its own bit in every report. A changed value changes two bits, those of x and x': the sums of the two
columns are independent, so their privacy losses add up. Among n bits of a column, those that a blanket hides the
victim's in are drawn whatever the others hold: 1 with probability q, 0 with probability 1 − p.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from sunzi._typing import Floats
from sunzi.numerics.batch_attacks import among_two
from sunzi.numerics.binomial import count_cells
from sunzi.numerics.losses import BatchAttack, LossDistribution, power_of_two

_STEPS_PER_DEVIATION = 100
_REACH = 16.0
_COUNTS_PER_DEVIATION = 40
_ROUNDING = 1e-9


@dataclass(frozen=True)
class BitSums:
    """Sums of independent bits, one per value.

    Parameters
    ----------
    true, false: how often the value's own bit, and any other, is 1.
    values: the number of values.
    """

    true: float
    false: float
    values: int

    has_attack = True

    def losses(
        self,
        users: int,
        unseen: float = 0.0,  # noqa: ARG002 - all are seen
        *,
        quickly: bool = False,  # noqa: ARG002 - it always is
    ) -> LossDistribution:
        """The privacy loss of one batch, rounded up."""
        hidden = self.false + 1 - self.true
        mean = (users - 1) * hidden
        cells = count_cells(np.array(users - 1.0), hidden, max(sqrt(mean) / 4, 2e-3 * mean))
        column = BitCounts(
            (self.true / self.false, 1.0),
            (1.0, (1 - self.false) / (1 - self.true)),
            self.false / hidden,
            cells.first,
            cells.mass,
        )
        step = power_of_two(column.deviation / _STEPS_PER_DEVIATION)
        return column.losses(self.true, step).plus(column.losses(self.false, step, reverse=True))

    def attacks(self, users: int) -> list[BatchAttack]:
        """What the sums reveal if all others hold a third value, or x' if there are two."""
        own = among_two(self.true, self.false, self.false, users)
        if self.values == 2:
            return [own]
        return [own.plus(among_two(self.false, self.true, self.false, users))]

    def largest_delta(self, users: int, epsilon: float) -> float:
        """δ such that the sums are (ε, δ)-differentially private if one user's value is replaced; proven."""
        return min(1.0, self.losses(users).delta(epsilon))

    def epsilon_above(self, users: int, delta: float) -> float:
        """The least ε found such that :meth:`largest_delta` is at most δ."""
        return self.losses(users).epsilons(delta)[1]

    def epsilon_below(self, users: int, delta: float) -> float:
        """An ε that an attack reaches with this δ: no smaller one can be claimed."""
        return max(attack.epsilon_below(delta) for attack in self.attacks(users))


@dataclass(frozen=True)
class BitCounts:
    """A count N1 of ones and N0 of zeros, the victim's bit among them, with likelihood N1·a + N0·b under x and
    N1·c + N0·d under x', where (a, b) is ``held`` and (c, d) is ``missed``.

    Without the victim there are ``totals`` bits, each total with its ``mass``; each bit is 1 with probability ``one``.
    """

    held: tuple[float, float]
    missed: tuple[float, float]
    one: float
    totals: Floats
    mass: Floats

    def loss(self, ones: Floats, zeros: Floats) -> Floats:
        """The privacy loss of these counts; it rises with the ones and falls with the zeros."""
        (a, b), (c, d) = self.held, self.missed
        return np.log(ones * a + zeros * b) - np.log(ones * c + zeros * d)

    @property
    def deviation(self) -> float:
        """The standard deviation of the loss, roughly."""
        total = max(float(self.totals @ self.mass), 1.0)
        ones = total * self.one
        spread = min(sqrt(ones * (1 - self.one)), ones, total - ones)
        high, low = (self.loss(np.array(ones + move), np.array(total - ones - move)) for move in (spread, -spread))
        return float(high - low) / 2

    def losses(self, victim: float, step: float, reverse: bool = False) -> LossDistribution:
        """The distribution when the victim's bit is 1 with probability ``victim``; ``reverse`` if its value is x'."""
        sign = -1.0 if reverse else 1.0
        width = sqrt(float(self.totals @ self.mass) * self.one * (1 - self.one)) / _COUNTS_PER_DEVIATION
        cells = count_cells(self.totals, self.one, width)
        ones = cells.first if reverse else cells.last  # the end of a cell with the larger loss
        largest = min(abs(sign * log(self.held[0] / self.missed[0])) + step, _REACH * _STEPS_PER_DEVIATION * step)
        reach = int(np.ceil(largest / step))
        mass, unbounded = np.zeros(2 * reach + 1), 0.0
        for bit, chance in ((1.0, victim), (0.0, 1 - victim)):
            held = np.clip(ones, 0.0, self.totals[:, None]) + bit
            index = np.ceil(sign * self.loss(held, self.totals[:, None] + 1 - held) / step + _ROUNDING)
            weight = chance * self.mass[:, None] * cells.mass
            beyond = index > reach
            unbounded += float(weight[beyond].sum())
            place = np.maximum(index[~beyond], -reach).astype(np.int64) + reach
            mass += np.bincount(place, weight[~beyond], minlength=mass.size)
        return LossDistribution(step, -reach, mass, unbounded)
