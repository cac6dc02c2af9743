"""Estimates of the mean of numbers, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.display.estimate_page import EstimatePage
from sunzi.domains.ranges import OrderedDomain
from sunzi.errors import needing_matplotlib
from sunzi.numerics import intervals, simplex
from sunzi.results.estimate import Estimate
from sunzi.results.queries import QueryResult
from sunzi.results.uncertainty import SupportUncertainty, Target, check_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OF_ORDERED = ("range", "cdf", "quantile", "histogram", "smooth")


@dataclass(frozen=True, eq=False, repr=False)
class MeanEstimate(Estimate):
    """The mean of numbers, from the frequencies of the points that they were rounded to."""

    grid: Floats = field(kw_only=True)
    """The points."""
    bins: OrderedDomain = field(kw_only=True)
    """The range and its steps."""

    def mean(self, confidence: float = 0.95, *, target: Target = "reporters") -> QueryResult:
        """The mean, with its interval.

        Parameters
        ----------
        confidence: the coverage probability; slightly conservative for reporters, since the rounding of their numbers
            is unknown.
        target: "reporters" for the mean of the users who reported, "population" for that of the population that they
            are a random sample of.

        >>> import sunzi
        >>> plan = sunzi.make_number(0, 100, epsilon=2)
        >>> mean = plan.estimate(plan.simulate([20] * 5000 + [60] * 5000, seed=1)).mean()
        >>> mean.low < 40 < mean.high
        True
        """
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        known = self._known_uncertainty()
        assert isinstance(known, SupportUncertainty), "a plan of a number counts every point"
        rates, centred = known.probabilities, self.grid - self.grid.mean()
        squares = centred**2
        noise = (rates.gap * squares + rates.false * squares.sum()) / rates.gap**2 - squares  # of a report from a point
        # Estimates of few reports may lie beyond 0 and 1, as if there were less noise than at any point.
        shares = simplex.project(self.frequencies)
        spread = float(shares @ squares - (shares @ centred) ** 2)
        most = float(self.grid[-1] - self.grid[0]) ** 2 / 4
        if target == "reporters":
            # Rounding is part of the spread of rounded numbers: at most a quarter of the squared step.
            most = float(self.grid[1] - self.grid[0]) ** 2 / 4
            spread = min(spread, most)
        # Few reports may all have the same point: count four more with the most spread.
        spread = (self.reports * spread + 4 * most) / (self.reports + 4)
        variance = (shares @ noise + spread) / self.reports
        value = float(self.frequencies @ self.grid)
        error = float(variance**0.5)
        return QueryResult(value, error, *intervals.normal(value, error, confidence), confidence)

    def __getattr__(self, name: str) -> NoReturn:
        """Say which plan answers other questions."""
        hint = "; a plan of a number knows only the mean, plan with make_ordered" if name in _OF_ORDERED else ""
        raise AttributeError(f"an estimate of a mean has no {name!r}{hint}")

    def summary(self, confidence: float = 0.95, *, target: Target = "reporters") -> str:
        """The mean in a sentence, with its interval.

        Parameters
        ----------
        confidence, target: as in :meth:`mean`.
        """
        mean = self.mean(confidence, target=target)
        value, low, high = (self.bins.shown_number(number) for number in (mean.value, mean.low, mean.high))
        return f"The mean is {value} (interval {low} to {high})."

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 32,  # noqa: ARG002 - all points are shown
        confidence: float = 0.95,
        target: Target = "reporters",
        truth: Sequence[float] | Floats | None = None,
    ) -> Figure:
        """The mean with its interval, over the shares of the points; needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        top: not used: all points are shown.
        confidence, target: as in :meth:`mean`.
        truth: not supported.
        """
        if truth is not None:
            raise ParameterError("truth= is not supported for plots of a mean")
        with needing_matplotlib():
            from sunzi.display.record_plots import plot_mean
        return plot_mean(self, path, confidence=confidence, target=target)

    def _page(self, top: int, confidence: float = 0.95, target: Target = "reporters") -> EstimatePage:
        """The mean, and the points in their order."""
        remark = self.summary(confidence, target=target)
        return EstimatePage(self, top, confidence, target, in_order=True, remark=remark)

    def __repr__(self) -> str:
        """The number of points and reports."""
        return f"MeanEstimate({self.grid.size} points, {self.reports} reports)"
