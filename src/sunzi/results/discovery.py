"""Frequent texts found in an open domain, with intervals that account for the search, and detection thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sunzi._typing import Floats
from sunzi.errors import EstimateError
from sunzi.numerics import intervals
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import PostprocessedHistogram, Postprocessing, data_frame
from sunzi.results.uncertainty import Method, QueryErrors, Target


@dataclass(frozen=True)
class FoundText:
    """One text that was found."""

    label: str
    frequency: float
    low: float
    high: float
    p_value: float
    """The probability of a count at least this large for a text that no user holds."""


@dataclass(frozen=True)
class Threshold:
    """How frequent texts of one length must be to be found in four of five collections."""

    tokens: int | None
    """The number of tokens; None for texts from a list of candidates."""
    frequency: float


@dataclass(frozen=True)
class Discovery:
    """The texts that were found, most frequent first.

    The expected false discovery rate is at most ``false_share``. Intervals account for the selection: at most 5 % of
    them are expected to miss the true frequency. Both hold whatever the search did, since the texts are counted in
    reports that the search has not seen.

    >>> import sunzi
    >>> plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=3), epsilon=4, cells=1000)
    >>> tally = plan.simulate(["yes"] * 6000 + ["no"] * 3000, seed=1)
    >>> plan.discover(tally).labels
    ('yes', 'no')
    """

    rows: tuple[FoundText, ...]
    reports: int
    candidates: int
    """How many texts the search proposed; the held-out reports counted all of them."""
    false_share: float
    threshold: float
    """The frequency at which a proposed text is accepted in half of all collections."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The texts alone."""
        return tuple(row.label for row in self.rows)

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.rows)

    def __iter__(self) -> Iterator[FoundText]:
        """The rows, most frequent first."""
        return iter(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, for CSV and Parquet."""
        return [asdict(row) for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        about = {name: getattr(self, name) for name in ("reports", "candidates", "false_share", "threshold")}
        return {**about, "found": self.records()}

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row per text.

        Parameters
        ----------
        library: "pandas" or "polars"; by default pandas if it is installed, else polars.
        """
        names = tuple(FoundText.__annotations__)
        return data_frame({name: [getattr(row, name) for row in self.rows] for name in names}, library)


@dataclass(frozen=True)
class CountUncertainty:
    """The errors of texts counted by some of the reports, in cells that they may share with other texts."""

    frequencies: Floats
    variance: float
    """For a text that no user holds: the noise plus the effect of colliding texts."""
    inflation: Floats
    """For every text, the factor by which separating it from the texts that it collides with inflates that."""
    reports: int
    counting: int
    """The number of reports that count whole texts."""
    probabilities: SupportProbabilities

    @property
    def null_variances(self) -> Floats:
        """For every text, the variance if no user holds it."""
        return self.variance * self.inflation

    @property
    def _slope(self) -> float:
        """The slope of the variance in the frequency, without sampling."""
        true, false = (rate * (1 - rate) for rate in (self.probabilities.true, self.probabilities.false))
        return (true - false) / self.probabilities.gap**2 / self.counting

    def _sampling(self, target: Target) -> float:
        """Sampling variance: the counting reports are a random part of all reports, a sample of the population."""
        return 1 / self.counting - (1 / self.reports if target == "reporters" else 0.0)

    def variances(self, target: Target) -> Floats:
        """The variances at the estimated frequencies, clipped to [0, 1]."""
        plausible = np.clip(self.frequencies, 0.0, 1.0)
        sampling = plausible * (1 - plausible) * self._sampling(target)
        return self.null_variances + self._slope * plausible + sampling

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Score intervals; for few supports exact ones, or the wider of both for texts told apart from others; normal
        ones on request.
        """
        if method == "normal":
            return intervals.normal(self.frequencies, intervals.standard_error(self.variances(target)), confidence)
        sampling, quantile = self._sampling(target), intervals.normal_quantile(confidence)
        score = intervals.score_of(self.frequencies, self.null_variances, self._slope + sampling, sampling, quantile)
        if method == "auto":
            method = "exact" if intervals.has_few_counts(self.counting, self.probabilities, confidence) else "score"
        if method == "score":
            return score
        low, high = intervals.exact(self.supports, self.counting, self.probabilities, confidence, at_hand=False)
        mixed = self.inflation > 1
        return np.where(mixed, np.minimum(low, score[0]), low), np.where(mixed, np.maximum(high, score[1]), high)

    def query(self, rows: Floats) -> QueryErrors:  # noqa: ARG002 - there is no answer
        """Not supported: the texts do not cover the domain, so their frequencies do not add up to 1."""
        raise EstimateError("sums and differences of texts have no interval; estimate each text by itself")

    @property
    def supports(self) -> Any:
        """How many reports support every text, recovered from its estimate."""
        found = self.counting * (self.probabilities.false + self.probabilities.gap * self.frequencies)
        return np.clip(np.rint(found), 0, self.counting).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class TextEstimate(Estimate):
    """The frequencies of some texts of an open domain. They do not add up to 1, since there are others."""

    def postprocess(self, method: Postprocessing, confidence: float = 0.95) -> PostprocessedHistogram:
        """As in :meth:`Estimate.postprocess`, but only "clip" and "significant": the others need all values."""
        if method not in ("clip", "significant"):
            raise EstimateError(f'{method} needs the frequencies of all values; use "clip" or "significant"')
        return super().postprocess(method, confidence)
