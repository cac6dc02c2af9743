"""Statistics shared by the analyses: exact limits for proportions, tail probabilities, and checks of amounts.

Proportions have the exact limits of Clopper and Pearson (1934).

Sums of squares of counts are quadratic forms Σ_{i,i'} K(y_i, y_i') over pairs of reports. Where counts are large they
follow a mixture of chi-squares; where counts are small, chance coincidences of single pairs make them more skewed. A
gamma distribution with the same mean, variance and third cumulant (Pearson's type III) fits both cases: it is the
chi-square itself in the first, and close to a Poisson number of coincidences in the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special  # importing scipy.stats takes half a second

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, whole_number
from sunzi.numerics.intervals import check_confidence

_MOST = 10**8
"""The largest amount that fits in memory."""

# Above this skewness from single pairs the gamma curve is no longer trusted: too few reports.
_MOST_PAIR_SKEWNESS = 1.0


def check_amount(name: str, amount: int, least: int = 1) -> None:
    """Raise ParameterError unless ``amount`` is an integer between ``least`` and what fits in memory."""
    whole_number(name, amount, least, _MOST)


def check_seed(seed: int | None) -> None:
    """Raise ParameterError unless ``seed`` suits numpy's generators; None means the operating system's randomness."""
    if seed is not None:
        whole_number("the seed", seed, 0)


# --- proportions


def lower_limits(successes: Integers | int, trials: Integers | int, alarm: float) -> Floats:
    """A limit that exceeds the true proportion with probability at most ``alarm``."""
    hits, number = np.asarray(successes), np.asarray(trials)
    return np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), number - hits + 1, alarm), 0.0)


def upper_limits(successes: Integers | int, trials: Integers | int, alarm: float) -> Floats:
    """A limit that the true proportion exceeds with probability at most ``alarm``."""
    hits, number = np.asarray(successes), np.asarray(trials)
    return np.where(hits < number, special.betainccinv(hits + 1, np.maximum(number - hits, 1), alarm), 1.0)


@dataclass(frozen=True)
class Proportion:
    """Successes out of trials, with an interval that covers the true proportion with at least this confidence."""

    successes: int
    trials: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not 0 <= self.successes <= self.trials or self.trials < 1:
            raise ParameterError(
                f"a proportion needs 1 trial or more, and 0 to all successes; got {self.successes} of {self.trials}"
            )

    @property
    def rate(self) -> float:
        """The share of successes."""
        return self.successes / self.trials

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return float(lower_limits(self.successes, self.trials, (1 - self.confidence) / 2))

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return float(upper_limits(self.successes, self.trials, (1 - self.confidence) / 2))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON and tables."""
        return {
            "trials": self.trials,
            "successes": self.successes,
            "rate": self.rate,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
        }


def outside(successes: Integers, trials: Integers | int, stated: Floats | float, alarm: float) -> NDArray[np.bool_]:
    """Which counts contradict their stated proportions; each with a false-alarm rate of at most ``alarm``."""
    low = lower_limits(successes, trials, alarm / 2)
    high = upper_limits(successes, trials, alarm / 2)
    return (stated < low) | (stated > high)


# --- tail probabilities


@dataclass(frozen=True)
class Cumulants:
    """Mean and variance of a quadratic statistic, and its third cumulant in two parts: that of a mixture of
    chi-squares, and the contribution of coincidences between pairs of reports.
    """

    mean: float
    variance: float
    third: float
    pairs: float = 0.0

    @classmethod
    def of_traces(cls, first: float, second: float, third: float, pairs: float = 0.0) -> Cumulants:
        """The cumulants of xᵀQx with x normal of covariance C, from the traces of QC, (QC)² and (QC)³."""
        # Random vectors estimate the third trace, which is no smaller than for equal eigenvalues.
        return cls(first, 2 * second, 8 * max(third, second**2 / first), pairs)

    def __add__(self, other: Cumulants) -> Cumulants:
        """The cumulants of the sum of two independent statistics."""
        return Cumulants(
            self.mean + other.mean,
            self.variance + other.variance,
            self.third + other.third,
            self.pairs + other.pairs,
        )

    def scaled(self, factor: float) -> Cumulants:
        """The cumulants of the statistic times ``factor``."""
        cubed = factor**3
        return Cumulants(self.mean * factor, self.variance * factor**2, self.third * cubed, self.pairs * cubed)

    @property
    def has_too_few_reports(self) -> bool:
        """Whether a handful of coincidences decides the statistic."""
        return not abs(self.pairs) <= _MOST_PAIR_SKEWNESS * self.variance**1.5

    def upper_tail(self, statistic: float) -> float:
        """The probability of a value at least as large as ``statistic``."""
        spread = self.variance**0.5
        skewness = max((self.third + self.pairs) / spread**3, 1e-6)
        shape = 4 / skewness**2
        place = shape + (statistic - self.mean) / spread * shape**0.5
        return float(special.gammaincc(shape, place)) if place > 0 else 1.0


def two_sided(score: float) -> float:
    """P(a standard normal is as far from 0)."""
    return float(2 * special.ndtr(-abs(score)))


def smallest_count(count: int, trials: int, chance: float, cells: int) -> float:
    """A bound on P(some of ``cells`` counts is at most ``count``), each at least Binomial(trials, chance)."""
    return min(1.0, cells * float(special.bdtr(count, trials, chance)))


def largest_count(count: int, trials: int, chance: float, cells: int) -> float:
    """A bound on P(some of ``cells`` counts is at least ``count``), each at most Binomial(trials, chance)."""
    return min(1.0, cells * float(special.bdtrc(count - 1, trials, chance)))


def any_of(p_values: list[float]) -> float:
    """Bonferroni: a bound on P(the smallest of several p-values is this small), however they depend on each other."""
    return min(1.0, len(p_values) * min(p_values))
