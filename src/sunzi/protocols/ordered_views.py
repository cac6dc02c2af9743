"""Ranges and quantiles: halving levels of an ordered domain (docs/mathematics.md §13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.client.protocols import ordered as client
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError
from sunzi.formatting import counted
from sunzi.numerics import dyadic
from sunzi.protocols.alternatives import ordered_alternatives
from sunzi.protocols.base import PlannedError, check_histogram, check_reports, check_users
from sunzi.protocols.joint_fit import Solver
from sunzi.protocols.views import View, ViewsProtocol, best_response, integer_shares
from sunzi.results.estimate import Estimate
from sunzi.results.ordered import OrderedEstimate, TreeUncertainty
from sunzi.tally import Tally

# Levels with a smaller share get too few reports to weight reliably.
_LEAST_SHARE = 1e-3
# Above this many bins a tally would have hundreds of millions of counters.
_MOST_BINS = 1 << 24


@dataclass(frozen=True)
class OrderedViews(client.OrderedViews, ViewsProtocol):
    """Halving levels of an ordered domain of 2^h values: view ``level`` is the node x div 2^(h − level)."""

    error_of = "a single bin"

    view_kind = View

    views: tuple[View, ...]

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction) -> Self:
        """The levels and shares with the least mean variance of ranges and prefixes."""
        height = domain_size.bit_length() - 1
        if domain_size != 1 << height:
            near = 1 << height, 1 << (height + 1)
            raise ParameterError(
                f"an ordered plan needs a power of two of bins, got {domain_size}; use {near[0]} or {near[1]}: "
                "histograms of any wider bins are sums"
            )
        if domain_size > _MOST_BINS:
            raise ParameterError(f"an ordered plan has at most 2^24 bins, got {domain_size:,}; use fewer")
        made = [View(1 << level, 1, best_response(1 << level, epsilon)) for level in range(1, height + 1)]
        costs = np.array([view.variance * view.cells / domain_size for view in made])
        shares = dyadic.level_shares(costs, dyadic.workload_energies(height))
        kept = [place for place, share in enumerate(shares) if share >= _LEAST_SHARE or place == height - 1]
        rounded = integer_shares([float(shares[place] / shares[kept].sum()) for place in kept])
        views = [
            View(made[place].cells, share, made[place].response) for place, share in zip(kept, rounded, strict=True)
        ]
        return cls(domain_size, tuple(views), tuple(place + 1 for place in kept))

    def points_of(self, channel: int, values: Integers) -> Integers:
        """The nodes of the level."""
        return values >> (self.levels[-1] - self.levels[channel])

    @property
    def guessed(self) -> str:
        """The bin."""
        return "the bin"

    def _smallest(self, views: tuple[View, ...]) -> Self:
        return type(self)(4, views, (1, 2))

    def tree(self, weights: Sequence[float]) -> dyadic.Dyadic:
        """The least-squares problem with these weights of the views."""
        found = np.zeros(self.levels[-1])
        found[np.array(self.levels) - 1] = weights
        return dyadic.Dyadic(found)

    def estimate(self, domain: Domain, tally: Tally) -> OrderedEstimate:
        """Weighted least squares for all levels at once."""
        frequencies = self._combined(tally, self.weights(tally.block_reports))
        uncertainty = self._uncertainty(tally.block_reports, frequencies, tally.reports)
        return OrderedEstimate(domain, tally.reports, frequencies, uncertainty, weights="planned")

    def linear_estimate(self, domain: Domain, tally: Tally) -> Estimate:
        """The least-squares fit with planned weights."""
        return Estimate(domain, tally.reports, self._combined(tally, self._planned), None)

    def _combined(self, tally: Tally, weights: Sequence[float]) -> Floats:
        """The least-squares histogram with these weights of the views."""
        check_reports(tally)
        return self._combine(self._determined(self._used(weights, tally)), self.histograms(tally))

    def _determined(self, weights: Sequence[float]) -> dyadic.Dyadic:
        if not weights[-1]:
            raise EstimateError("no report covers single bins yet; wait for more reports")
        return self.tree(weights)

    def _combine(self, tree: dyadic.Dyadic, parts: Sequence[Floats | None]) -> Floats:
        levels: list[Floats | None] = [None] * tree.levels
        for level, found in zip(self.levels, parts, strict=True):
            levels[level - 1] = found
        return tree.combine(levels)

    def _solver(self, weights: Sequence[float]) -> Solver:
        tree = self._determined(weights)

        def solve(parts: Sequence[Floats | None], wanted: Sequence[int]) -> list[Floats]:
            found = self._combine(tree, parts) - 1 / tree.size
            return [tree.node_sums(found, self.levels[number]) for number in wanted]

        return solve

    def _rows_of(self, row: Floats) -> list[Floats]:
        tree = self.tree(self._planned)
        solved = tree.solve(row)
        return [
            weight * tree.node_sums(solved, level) for weight, level in zip(self._planned, self.levels, strict=True)
        ]

    def targets(self, number: int) -> list[int]:
        """A range of ``number`` bins in the middle."""
        start = (self.domain_size - len(super().targets(number))) // 2
        return list(range(start, start + number))

    def pushed(self, domain: Domain, targets: Sequence[int]) -> str:  # noqa: ARG002 - bins need no names
        """The frequency of some bins."""
        return f"the summed frequency of {counted(len(targets), 'bin')}"

    def _uncertainty(self, reports: Sequence[float], frequencies: Floats, total: int) -> TreeUncertainty:
        """The errors with this many reports of every view."""
        light, heavy, inverse = np.zeros((3, self.levels[-1]))
        for view, level, number in zip(self.views, self.levels, reports, strict=True):
            if number:
                inverse[level - 1] = 1 / number
                light[level - 1], heavy[level - 1] = view.moments.light / number, view.moments.heavy / number
        return TreeUncertainty(self.tree(self.weights(reports)), light, heavy, inverse, frequencies, total)

    def range_variance(self, users: int) -> float:
        """The mean variance of ranges and prefixes at the flat histogram, about a population."""
        check_users(users)
        energies = dyadic.workload_energies(self.levels[-1])
        return float((energies / self.tree(self._planned).spectrum).sum()) / users

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """The MSE of a single bin, at the flat histogram or the given one."""
        check_users(users)
        size = self.domain_size
        frequencies = np.full(size, 1 / size) if histogram is None else check_histogram(histogram, size)
        return float(self._uncertainty(self.shares.tolist(), frequencies, 1).variances("reporters").mean()) / users

    def planned_errors(
        self,
        domain: Domain,  # noqa: ARG002 - levels need no names
        users: int,
        wanted: Sequence[Sequence[str]] | None = None,  # noqa: ARG002 - for tables
    ) -> list[PlannedError]:
        """The planned errors of a range and of a bin."""
        check_users(users)
        height = self.levels[-1]
        workloads = {
            "a range, on average": dyadic.workload_energies(height),
            self.error_of: dyadic.bin_energies(height),
        }
        spectrum, errors = self.tree(self._planned).spectrum, []
        for question, energies in workloads.items():
            # Sampling variance Θ(1 − Θ) of the mean query: part of the error about a population, not about the users.
            sampling = float(energies.sum()) / self.domain_size
            others = ordered_alternatives(self.epsilon, energies)
            alternatives = {name: (variance - sampling) / users for name, variance in others.items()}
            ours = float((energies / spectrum).sum())
            errors.append(PlannedError(question, (ours - sampling) / users, alternatives))
        return errors

    def worst_mse(self, users: int) -> float:
        """The worst-case MSE of a single bin, reached when all users hold the same value."""
        one = np.zeros(self.domain_size)
        one[0] = 1.0
        return max(self.expected_mse(users), self.expected_mse(users, one))
