"""A channel: one randomised way from a point to a report, and every probability that an attacker or auditor needs.

A report of any built-in protocol passes through one channel, drawn by public shares: the block response of a block
protocol, of one modulus or of one view, or all bits of a unary encoding. It *supports* some points (those in the block,
those whose bit is 1), and P(y|x) is larger by one factor, the likelihood ratio, for the points x that y supports.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.numerics.counters import Counters
from sunzi.numerics.support_probabilities import SupportProbabilities

SHARE_BITS = 32


@dataclass(frozen=True)
class FirstWord:
    """How the first word of a report gives an integer below ``outcomes``: uniformly, by Lemire's rule, or by ``shares``
    out of 2^32, from the upper 32 bits of the word.
    """

    outcomes: int
    shares: tuple[int, ...] = ()

    def outcome(self, word: int, bits: int) -> int | None:
        """The integer that a word of ``bits`` bits gives; None if the word is rejected."""
        if self.shares:
            upper = (word << SHARE_BITS) >> bits
            return bisect_right(self._ends, upper)
        high, low = divmod(word * self.outcomes, 1 << bits)
        return None if low < (1 << bits) % self.outcomes else high

    def middle(self, outcome: int, bits: int) -> int:
        """A word of ``bits`` bits in the middle of those that give this integer."""
        if self.shares:
            end = self._ends[outcome]
            return ((2 * end - self.shares[outcome]) << bits) >> (SHARE_BITS + 1)
        return ((2 * outcome + 1) << bits) // (2 * self.outcomes)

    def edges(self, outcome: int, bits: int) -> list[int]:
        """The first two and the last of the words of ``bits`` bits that give this integer."""
        if self.shares:
            ends = [end << bits for end in (self._ends[outcome] - self.shares[outcome], self._ends[outcome])]
            first, stop = (-(-end >> SHARE_BITS) for end in ends)
        else:
            first, stop = (-(-(end << bits) // self.outcomes) for end in (outcome, outcome + 1))
        return [first, first + 1, stop - 1]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.shares))


class Channel(Protocol):
    """The probabilities of a report, as :class:`sunzi.designs.BlockResponse` and the unary protocols define them.

    The protocol knows the point of a value (:meth:`sunzi.protocols.Protocol.points_of`).

    >>> import sunzi
    >>> channel = sunzi.make_plan("grr", 10, epsilon=1).protocol.channels[0]
    >>> round(channel.probabilities.true, 3)
    0.232
    """

    @property
    def points(self) -> int:
        """v, the number of points."""

    @property
    def probabilities(self) -> SupportProbabilities:
        """How often a report supports the value's own point, and another given point."""

    @property
    def has_independent_bits(self) -> bool:
        """Whether points are supported independently of one another."""

    @property
    def word_bounds(self) -> tuple[int, ...]:
        """For every word of a report, in order: the bound of the integer it gives, or 0 if it is compared with a
        threshold.
        """

    @property
    def thresholds(self) -> tuple[int, ...]:
        """What these words are compared with."""

    @property
    def likelihood_ratio(self) -> Fraction:
        """P(y|x)/P(y|x') for a report y that supports x and not x'; exact."""

    @property
    def unsupported_factor(self) -> float:
        """P(y|x) for reports y that do not support x, relative to the measure of :meth:`first_support_shares`."""

    def first_support_shares(self, points: Integers) -> Floats | None:
        """For the i-th of these distinct points, the share of reports that support it and none before it; None if there
        are too many reports to list.
        """

    @property
    def discordance(self) -> tuple[float, float]:
        """When x is sent: the probabilities of supporting x and not a given other point, and the reverse."""

    def other_rate(self, supported: bool) -> float:
        """How often another given point is supported, given whether the value's own point is."""

    @property
    def collision_probability(self) -> float:
        """Σ_y P(y|x)², the same for every x."""

    def payload_probabilities(self, point: int) -> dict[int, Fraction]:
        """P(y|point) of every encoded message y; exact. Only for small channels."""

    def largest_gain(self, values: Floats) -> float:
        """The most that one report can add to Σ_a values[a]·estimate[a]."""

    def supports(self, messages: Any, points: Integers) -> NDArray[np.bool_]:
        """Whether each message supports the point in the same row."""

    def support_table(self, messages: Any) -> NDArray[np.bool_]:
        """Whether each message (row) supports each point (column)."""

    def count(self, messages: Any) -> Counters:
        """The counters of these messages."""

    def point_counts(self, counters: Counters) -> Integers:
        """How many of the counted messages support each point."""
