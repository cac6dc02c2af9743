"""A channel: one randomised way from a point to a report, and every probability that an attacker or auditor needs.

A report of any built-in protocol passes through one channel, drawn uniformly: the block response of a block protocol,
the block response of one modulus, or all bits of a unary encoding. It *supports* some points (those in the block, those
whose bit is 1), and P(y|x) is larger by one factor, the likelihood ratio, for the points x that y supports.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.numerics.counters import Counters
from sunzi.numerics.thresholds import SupportProbabilities


class Channel(Protocol):
    """The probabilities of a report, as :class:`sunzi.designs.BlockResponse` and the unary protocols define them.

    A value is the point value mod v.
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
