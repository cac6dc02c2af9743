"""The estimate of a mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sunzi._typing import Floats
from sunzi.estimate import Estimate, QueryResult
from sunzi.numerics import intervals
from sunzi.uncertainty import Target


@dataclass(frozen=True, eq=False, repr=False)
class MeanEstimate(Estimate):
    """The mean of numbers, from the frequencies of the points that they were rounded to."""

    grid: Floats = field(kw_only=True)
    """The points."""

    def mean(self, confidence: float = 0.95, *, target: Target = "reporters") -> QueryResult:
        """The mean, with its interval.

        Parameters
        ----------
        confidence: the coverage probability; a little more for reporters, since how their numbers were rounded is
            unknown.
        target: "reporters" for the mean of the users who reported, "population" for that of the population that they
            are a random sample of.

        >>> import sunzi
        >>> plan = sunzi.make_number(0, 100, epsilon=2)
        >>> mean = plan.estimate(plan.simulate([20] * 5000 + [60] * 5000, seed=1)).mean()
        >>> mean.low < 40 < mean.high
        True
        """
        found = self.combine(self.grid, confidence, target="population")
        if target == "population":
            return found
        # Of the variance of rounded numbers, rounding itself makes up at most a quarter of the squared step; only the
        # rest is sampling error.
        spread = float(self.frequencies @ (self.grid - found.value) ** 2) - float(self.grid[1] - self.grid[0]) ** 2 / 4
        variance = found.standard_error**2 - max(spread, 0.0) / self.reports
        error = float(intervals.standard_error(np.array([variance]))[0])
        half = float(intervals.normal_quantile(confidence)) * error
        return QueryResult(found.value, error, found.value - half, found.value + half, found.confidence)

    def __repr__(self) -> str:
        """The number of points and reports."""
        return f"MeanEstimate({self.grid.size} points, {self.reports} reports)"
