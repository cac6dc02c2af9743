"""Means of numbers: unbiased rounding to a few points, then randomised response (docs/mathematics.md §15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import Self

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.client.protocols import number as client
from sunzi.client.protocols.number import MOST_GRID_POINTS
from sunzi.client.randomness import WordSource
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain, numbered_labels
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import uniform_below, word_array
from sunzi.protocols.alternatives import mean_alternatives
from sunzi.protocols.base import PlannedError, Protocol, check_users
from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse
from sunzi.protocols.channel import FirstWord
from sunzi.results.means import MeanEstimate
from sunzi.tally import Tally, TallyLayout
from sunzi.wire import EncodedReports

_PLACES = 257


@dataclass(frozen=True)
class RoundedNumbers(client.RoundedNumbers, Protocol):
    """The number is rounded at random to one of the two nearest of K equally spaced points, without bias; the point is
    reported by randomised response.

    Draw order of a batch: one word per report for its rounding, then the words of the block response. Rounding comes
    before the ε-LDP response, so it need not be private itself.
    """

    error_of = "the mean, as a share of the range"

    response: BlockResponse

    @property
    def responses(self) -> tuple[BlockResponse, ...]:
        """The one response."""
        return (self.response,)

    @property
    def first_word(self) -> FirstWord:
        """Whether the number is rounded up."""
        return FirstWord(self.domain_size - 1)

    def points_of(self, channel: int, values: Integers) -> Integers:  # noqa: ARG002 - there is one
        """The nearest points."""
        steps = self.domain_size - 1
        return (2 * values * (self.grid_points - 1) + steps) // (2 * steps)

    def place(self, drawn: int, value: int) -> tuple[int, int]:
        """The point below, or the one above if the number drawn is less than the fraction."""
        point, rest = divmod(value * (self.grid_points - 1), self.domain_size - 1)
        return 0, point + (drawn < rest)

    def values_in_words(self, domain: Domain) -> str:
        """The range, and the number of points."""
        assert isinstance(domain, OrderedDomain), "the plan has checked it"
        return domain.range_in_words(f"rounded to {self.grid_points} points")

    @property
    def guessed(self) -> str:
        """A number at a point; a report reveals less about numbers between points."""
        return f"a number at one of the {self.grid_points} rounding points"

    @property
    def attacked_values(self) -> tuple[int, ...]:
        """The numbers at the points, to the nearest step: reports reveal most about these."""
        steps, last = self.domain_size - 1, self.grid_points - 1
        return tuple((2 * point * steps + last) // (2 * last) for point in range(self.grid_points))

    def blanket(self) -> Blanket:
        """The blanket of randomised response: a rounded number is a mixture of points, which reveals less than the
        worst pair of them. A third point can be attacked if some number lies at it.
        """
        found = self._rounded.blanket()
        return found if (self.domain_size - 1) % (self.grid_points - 1) == 0 else replace(found, third=None)

    @cached_property
    def _rounded(self) -> GeneralizedRandomizedResponse:
        """The protocol for rounded numbers."""
        return GeneralizedRandomizedResponse(self.grid_points, self.response)

    @property
    def tally_layout(self) -> TallyLayout:
        """One counter per point."""
        return self._rounded.tally_layout

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self | None:
        """The protocol on at most twice as many numbers as points."""
        designs = self.response.design.smallest() if smallest else (self.response.design,)
        if not designs:
            return None
        response = type(self.response)(designs[0], epsilon, word_bits=word_bits)
        return type(self)(min(self.domain_size, 2 * response.points), response)

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction) -> Self:
        """The number of points with the least worst-case variance."""
        points = min(
            range(2, min(MOST_GRID_POINTS, domain_size) + 1), key=lambda number: worst_variance(number, epsilon)
        )
        return cls(domain_size, BlockResponse(Singletons(points), epsilon))

    @property
    def words_per_report(self) -> float:
        """The rounding and the response."""
        return 1 + self.response.words_per_report

    def round(self, values: Integers, source: WordSource) -> Integers:
        """The points of values: x·(K−1)/(D−1), rounded up with a probability equal to its fraction."""
        steps = self.domain_size - 1
        points, rest = np.divmod(values * (self.grid_points - 1), steps)
        words = word_array(source, values.size).reshape(-1, 1)
        drawn = uniform_below(words, np.array([steps], dtype=np.uint64), source)[:, 0].astype(np.int64)
        return points + (drawn < rest)

    def randomize(self, values: Integers, source: WordSource) -> Integers:
        """Round, then respond."""
        return self.response.randomize(self.round(values, source), source)

    def encode(self, messages: Integers) -> EncodedReports:
        """The points."""
        return self._rounded.encode(messages)

    def decode(self, encoded: EncodedReports) -> Integers:
        """The points."""
        return self._rounded.decode(encoded)

    def count(self, messages: Integers) -> Counters:
        """One counter per point."""
        return self._rounded.count(messages)

    def estimate(self, domain: Domain, tally: Tally) -> MeanEstimate:
        """The frequencies of the points, from which the mean follows."""
        assert isinstance(domain, OrderedDomain), "the plan has checked it"
        half = domain.width / 2
        grid = np.linspace(domain.low + half, domain.high - half, self.grid_points)
        # The first and the last step are the ends of the range, up to half a millionth.
        labels = [domain.shown_number(point) for point in np.linspace(domain.low, domain.high, self.grid_points)]
        points = Domain(numbered_labels(labels))
        found = self._rounded.estimate(points, tally)
        uncertainty = found._known_uncertainty()
        return MeanEstimate(points, tally.reports, found.frequencies, uncertainty, grid=grid, bins=domain)

    def flat_points(self, channel: int) -> Floats:  # noqa: ARG002 - there is one
        """The ends get half as many numbers as the other points."""
        shares = np.ones(self.grid_points)
        shares[[0, -1]] = 0.5
        return shares / shares.sum()

    def targets(self, number: int) -> list[int]:
        """The largest number, which moves the mean most."""
        if number != 1:
            raise ParameterError(f"fake clients push the mean, which is one target, got {number}")
        return [self.domain_size - 1]

    def pushed(self, domain: Domain, targets: Sequence[int]) -> str:  # noqa: ARG002 - always the same
        """The mean."""
        return self.error_of

    def target_row(self, targets: Sequence[int]) -> Floats:  # noqa: ARG002 - always the same
        """The mean of the points, from 0 to 1."""
        return np.linspace(0, 1, self.grid_points)

    def target_parts(self, targets: Sequence[int]) -> tuple[Floats, ...]:
        """Every point weighs its number."""
        return (self.target_row(targets),)

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """The MSE of the mean, relative to the squared range, for a population with all numbers equally frequent."""
        check_users(users)
        if histogram is not None:
            raise ParameterError("a plan of a number has the error of the mean only; omit histogram=")
        return float(_variances(self.grid_points, self.epsilon).mean()) / 4 / users

    def planned_errors(
        self,
        domain: Domain,  # noqa: ARG002 - a mean needs no names
        users: int,
        wanted: Sequence[Sequence[str]] | None = None,  # noqa: ARG002 - for tables
    ) -> list[PlannedError]:
        """The errors of the mean, as a share of the range: for numbers spread evenly, and for the worst numbers."""
        ours = self.expected_mse(users), self.worst_mse(users)
        others = mean_alternatives(self.epsilon)
        return [
            PlannedError(question, ours[place], {name: found[place] / 4 / users for name, found in others.items()})
            for place, question in enumerate(("mean, as share of range", "mean, at worst"))
        ]

    def worst_mse(self, users: int) -> float:
        """The MSE of the mean, relative to the squared range, for the worst numbers."""
        check_users(users)
        return worst_variance(self.grid_points, self.epsilon) / 4 / users

    @property
    def attackability(self) -> float:
        """The attacker picks a point, for numbers that lie at points; a report reveals less about those between."""
        return self._rounded.attackability

    def support_probabilities(self) -> list[tuple[float, float]]:
        """p and q of the points."""
        return self._rounded.support_probabilities()


def _variances(points: int, epsilon: Fraction) -> Floats:
    """The variance of one report about the user's number, for numbers spread evenly over [−1, 1]."""
    grid, odds = np.linspace(-1, 1, points), exp(epsilon)
    true, false = odds / (odds + points - 1), 1 / (odds + points - 1)
    # A fine grid that contains all points of the coarse one and all midpoints between them, where the worst cases are.
    numbers = np.linspace(-1, 1, (points - 1) * 2 * (_PLACES // (2 * points - 2) + 1) + 1)
    second = np.interp(numbers, grid, grid**2)
    return (true * second + false * (float(grid @ grid) - second)) / (true - false) ** 2 - numbers**2


def worst_variance(points: int, epsilon: Fraction) -> float:
    """The largest variance of one report about a user's number in [−1, 1], with this many points to round to."""
    return float(_variances(points, epsilon).max())
