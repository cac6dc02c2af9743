"""The privacy blanket of a batch: what its reader can learn about one of its users (docs/mathematics.md §17).

The reader sees the reports of n users without names or order. Every report has, whatever its user holds, a part ω that
does not depend on the value. The reports drawn from ω hide the victim's: with Z = (R_x − e^ε·R_x')/ω on ω and 0 beside
it, and n independent copies, δ(ε) ≤ E[(Z_1 + … + Z_n)_+]/n.

All our protocols lead to four values of Z, so the sum is a function of four counts; cells of counts, rounded towards
more loss, bound it in a time that does not depend on n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, log1p, sqrt
from typing import NamedTuple, Self

import numpy as np

from sunzi._typing import Floats
from sunzi.numerics import batch_attacks, binomial
from sunzi.numerics.binomial import cell_width, count_cells
from sunzi.numerics.losses import BatchAttack, LossDistribution, boundary, power_of_two

LEAST_DELTA = 1e-15
# The rounding of odds and masses, and of the sum.
_ROUNDING = 1e-9
# Cells of smaller total mass are taken at their largest loss instead of being evaluated.
_NEGLIGIBLE = 1e-22
# The weight of the reports that hide the victim is rounded down to steps of this share of its mean, or of its standard
# deviation where that is wider.
_SHARE_OF_MEAN = 2e-3
_SHARE_OF_DEVIATION = 1 / 30
_MOST_STEPS = 1 << 11
_FEW_CELLS = 1 << 14
_GOLDEN_STEPS = 60
_LOSSES = 64
_COARSE, _COARSEST = 4.0, 8.0
# With fewer reports that tell x and x' apart, the coarsest cells lose much.
_MANY_TELLING = 50


@dataclass(frozen=True)
class Blanket:
    """How likely the reports are that distinguish two values x and x', in the part ω that all values share.

    Relative to ω, a report has likelihood ``odds`` for the values that it favours and 1 for the others. ``one`` is the
    mass of ω on the reports that favour x and not x', and likewise on those that favour x' and not x; ``both`` and
    ``neither`` are its masses on the rest.
    """

    odds: float
    one: float
    both: float = 0.0
    neither: float = 0.0
    scale: float = 1.0
    """A factor of δ, for bounds in which the victim has less mass than 1 on these reports."""
    attacked: float | None = None
    """As ``one``, on the reports that :meth:`attacks` read; None if no attack is known."""
    third: float | None = None
    """The share of those reports that favour a third value; None if there are two values."""

    @property
    def has_attack(self) -> bool:
        """Whether an attack is known."""
        return self.attacked is not None

    @classmethod
    def of_block(cls, points: int, block_size: int, odds: float, third: float | None = None) -> Self:
        """Of a block response on a 2-design of v points and blocks of w.

        Parameters
        ----------
        points, block_size: v and w.
        odds: the likelihood of a block that contains the value, relative to one that does not.
        third: among the blocks with x and without x', the share that contain a third value; None if there is none.
        """
        inside, outside = block_size, points - block_size
        pair = 1 / (inside * odds + outside) / (points - 1)
        one = pair * inside * outside
        both, neither = pair * inside * (inside - 1), pair * outside * (outside - 1)
        return cls(odds, one, both, neither, attacked=one, third=third)

    @classmethod
    def of_bits(cls, true: float, false: float, values: int) -> Self:
        """Of one independent bit per value, when the reader sees the bits of every report.

        Parameters
        ----------
        true, false: how often the value's own bit, and any other, is 1.
        values: the number of values.
        """
        total = (1 - true) / (1 - false)
        one = total * false * (1 - false)
        odds = true * (1 - false) / (false * (1 - true))
        third = false if values > 2 else None
        return cls(odds, one, total * false**2, total * (1 - false) ** 2, attacked=one, third=third)

    @classmethod
    def of_any(cls, odds: float) -> Self:
        """Of any randomiser whose likelihoods differ by at most the factor ``odds``: the clones of Feldman, McMillan
        and Talwar (2021).
        """
        return cls(odds, 1 / (2 * odds), scale=2 * odds / (odds + 1))

    @classmethod
    def mixed(cls, shares: Sequence[float], parts: Sequence[Blanket]) -> Self:
        """Of a report that draws one of several channels by public shares.

        The worst pair of values differs in every channel. The attack reads the channels that offer a third value, or
        all of them if none does.

        Parameters
        ----------
        shares: how often each channel is drawn; they sum to 1.
        parts: the blankets of the channels, of the same odds.
        """
        pairs = list(zip(shares, parts, strict=True))
        read = [(share, part) for share, part in pairs if part.third is not None]
        attacked = sum(share * part.one for share, part in read or pairs)
        favoured = sum(share * part.one * (part.third or 0.0) for share, part in read)
        return cls(
            parts[0].odds,
            sum(share * part.one for share, part in pairs),
            sum(share * part.both for share, part in pairs),
            sum(share * part.neither for share, part in pairs),
            attacked=attacked,
            third=favoured / attacked if read else None,
        )

    def largest_delta(self, users: int, epsilon: float) -> float:
        """δ such that the batch is (ε, δ)-differentially private if one user's value is replaced; proven."""
        return min(_cells_above(self, users).delta(epsilon), self.chernoff_delta(users, epsilon), 1.0)

    def chernoff_delta(self, users: int, epsilon: float) -> float:
        """A weaker δ in one line, the least exp(n·log E[e^{tZ}] − 1)/(tn): it checks :meth:`largest_delta`."""
        s = exp(epsilon)
        losses = np.array([self.odds - s, 1 - s * self.odds, self.odds * (1 - s), 1 - s])
        masses = np.array([self.one, self.one, self.both, self.neither])

        def exponent(log_t: float) -> float:
            t = exp(log_t)
            growth = float(masses @ np.expm1(np.minimum(t * losses, 700.0)))
            return users * log1p(growth) - 1 - log(t * users)

        return self.scale * exp(min(_least(exponent, log(1e-12), log(700 / self.odds)), 0.0)) * (1 + _ROUNDING)

    def epsilon_above(self, users: int, delta: float) -> float:
        """The least ε found such that :meth:`largest_delta` is at most δ; at most log ``odds``."""
        quick = boundary(lambda epsilon: self.chernoff_delta(users, epsilon) <= delta, log(self.odds))[1]
        cells = _cells_above(self, users)
        return boundary(lambda epsilon: cells.delta(epsilon) <= delta, quick)[1]

    def epsilon_below(self, users: int, delta: float) -> float:
        """An ε that attackers reach with this δ: no smaller one can be claimed."""
        return max((attack.epsilon_below(delta) for attack in self.attacks(users)), default=0.0)

    def losses(self, users: int, unseen: float, *, quickly: bool = False) -> LossDistribution:
        """The privacy loss of one batch, to add up those of several.

        Parameters
        ----------
        users: n.
        unseen: losses that exceed their limit with a smaller probability count as unbounded.
        quickly: take at most a quarter of a second, for an ε that is up to 2 % larger.
        """
        is_rough = quickly and 2 * self.one * users > _MANY_TELLING
        cells, limit = _cells_above(self, users, _COARSEST if is_rough else 1.0), log(self.odds)
        if cells.mass.size > _FEW_CELLS:  # a grid takes a hundred sums of them
            cells = _cells_above(self, users, _COARSE)
        largest = boundary(lambda epsilon: cells.delta(epsilon) <= unseen, limit)[1]

        def delta(epsilon: float) -> float:
            return min(1.0, cells.delta(epsilon)) if epsilon < limit else 0.0  # no loss exceeds the odds of a report

        return LossDistribution.of_profile(delta, largest, power_of_two(largest / _LOSSES))

    def attacks(self, users: int) -> list[BatchAttack]:
        """What attackers find among users who all hold the same value, x' or a third one."""
        if self.attacked is None:
            return []
        if self.third is None:
            return [batch_attacks.among_two(self.odds * self.attacked, self.attacked, self.attacked, users)]
        noisy = self.attacked * (1 + (self.odds - 1) * self.third)
        found = [batch_attacks.among_three(self.odds, self.attacked, noisy, users)]
        quiet = self.attacked * (1 - self.third)  # without the reports that favour the third value too
        if 0 < quiet < self.attacked:
            found.append(batch_attacks.among_three(self.odds, quiet, quiet, users))
        return found


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value that golden-section search meets."""
    ratio = (sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_GOLDEN_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


class _Cells(NamedTuple):
    """δ as a sum of E[(T)_+ | C, V] over cells, where C reports distinguish x and x' and V is the weight of the reports
    that hide the victim: T = (e−1)(s+1)/2·D − (s−1)/2·V, with e the odds, s = e^ε, and D a sum of C random signs.
    """

    odds: float
    telling: Floats
    hiding: Floats
    mass: Floats
    scale: float
    rest: float

    def delta(self, epsilon: float) -> float:
        """The sum at one ε."""
        gain = (self.odds - 1) * (exp(epsilon) + 1)
        distance = expm1(epsilon) * self.hiding / (2 * gain)
        least = np.ceil(self.telling / 2 + distance)
        margin = binomial.margin(self.telling)
        first = least / 2 * binomial.mass(self.telling, least, 0.5) * (1 + margin)
        tail = distance * binomial.at_least(self.telling, least, 0.5) * (1 - margin)
        mean = float((self.mass * np.maximum(first - tail, 0.0)).sum())  # not @, whose threads cost more than they save
        return self.scale * gain * mean * (1 + _ROUNDING) + self.rest


def _cells_above(blanket: Blanket, users: int, coarser: float = 1.0) -> _Cells:
    """Cells with the most reports that distinguish x and x' and the least that hide the victim: E[(T)_+ | C, V] grows
    with C and falls with V. Cells that are ``coarser`` take less time and give a larger bound.
    """
    e, apart = blanket.odds, 2 * blanket.one
    left = 1 - apart
    telling = count_cells(np.array(float(users)), apart, coarser * cell_width(apart * users))
    trials = np.maximum(users - telling.last, 0.0)
    step = max(
        _SHARE_OF_MEAN * users * (e * blanket.both + blanket.neither),
        coarser * _SHARE_OF_DEVIATION * sqrt(users * (e**2 * blanket.both + blanket.neither)),
    )
    both = count_cells(trials, blanket.both / left, max(sqrt(users * blanket.both) / 4, step / e))
    mass = telling.mass[:, None] * both.mass
    large = mass * e * mass.size > _NEGLIGIBLE
    row, column = np.nonzero(large)
    pair, hidden = mass[row, column], both.first[row, column]
    remaining, which = np.unique(np.maximum(trials[row] - hidden, 0.0), return_inverse=True)
    share = blanket.neither / (left - blanket.both) if blanket.neither else 0.0
    neither = count_cells(remaining, share, max(sqrt(users * blanket.neither) / 5, step))
    weight = e * hidden[:, None] + neither.first[which]
    joint = pair[:, None] * neither.mass[which]
    rows = np.broadcast_to(row[:, None], weight.shape)
    rest = float(mass[~large].sum())
    if step and weight.size > _FEW_CELLS:
        # Round the weight down to steps, and add up what falls into one step.
        index = rows * _MOST_STEPS + np.minimum(np.floor(weight / step), _MOST_STEPS - 1).astype(np.int64)
        joint = np.bincount(index.reshape(-1), joint.reshape(-1)).astype(np.float64)
        rows, level = np.divmod(np.arange(joint.size), _MOST_STEPS)
        weight = level * step
    kept = joint * e * joint.size > _NEGLIGIBLE
    rest += float(joint[~kept].sum())
    hiding = (e + 1) * telling.first[rows[kept]] + 2 * weight[kept]
    scale = blanket.scale
    return _Cells(e, telling.last[rows[kept]], hiding, joint[kept], scale / users, scale * e * rest)
