"""How unlikely a statistic is under honest reports.

Sums of squares of counts are quadratic forms Σ_{i,i'} K(y_i, y_i') over pairs of reports. Where counts are large they
follow a mixture of chi-squares; where counts are small, chance coincidences of single pairs make them more skewed. A
gamma distribution with the same mean, variance and third cumulant (Pearson's type III) serves both: it is the
chi-square itself in the first case, and close to a Poisson number of coincidences in the second.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import special, stats

# Above this skewness from single pairs the gamma curve is no longer trusted: too few reports to say.
_MOST_PAIR_SKEWNESS = 1.0


@dataclass(frozen=True)
class Cumulants:
    """Mean and variance of a quadratic statistic, and its third cumulant in two parts: that of a mixture of
    chi-squares, and what coincidences of pairs of reports add.
    """

    mean: float
    variance: float
    third: float
    pairs: float = 0.0

    @classmethod
    def of_traces(cls, first: float, second: float, third: float, pairs: float = 0.0) -> Cumulants:
        """Of xᵀQx with x normal of covariance C, from the traces of QC, (QC)² and (QC)³."""
        # Random vectors estimate the third trace, which is no smaller than for equal eigenvalues.
        return cls(first, 2 * second, 8 * max(third, second**2 / first), pairs)

    def __add__(self, other: Cumulants) -> Cumulants:
        """Of the sum of two independent statistics."""
        return Cumulants(
            self.mean + other.mean,
            self.variance + other.variance,
            self.third + other.third,
            self.pairs + other.pairs,
        )

    def scaled(self, factor: float) -> Cumulants:
        """Of a multiple of the statistic."""
        cubed = factor**3
        return Cumulants(self.mean * factor, self.variance * factor**2, self.third * cubed, self.pairs * cubed)

    @property
    def has_too_few_reports(self) -> bool:
        """Whether a handful of coincidences decides the statistic."""
        return not abs(self.pairs) <= _MOST_PAIR_SKEWNESS * self.variance**1.5

    def upper_tail(self, statistic: float) -> float:
        """P(as large or larger)."""
        spread = self.variance**0.5
        skewness = max((self.third + self.pairs) / spread**3, 1e-6)
        shape = 4 / skewness**2
        place = shape + (statistic - self.mean) / spread * shape**0.5
        return float(special.gammaincc(shape, place)) if place > 0 else 1.0


def two_sided(score: float) -> float:
    """P(a standard normal is as far from 0)."""
    return float(2 * special.ndtr(-abs(score)))


def smallest_count(count: int, trials: int, chance: float, cells: int) -> float:
    """A bound on the chance that any of so many cells counts so few, each at least Binomial(trials, chance)."""
    return min(1.0, cells * float(stats.binom.cdf(count, trials, chance)))


def largest_count(count: int, trials: int, chance: float, cells: int) -> float:
    """A bound on the chance that any of so many cells counts so many, each at most Binomial(trials, chance)."""
    return min(1.0, cells * float(stats.binom.sf(count - 1, trials, chance)))


def any_of(p_values: list[float]) -> float:
    """Bonferroni: a bound on the chance that the smallest of several p-values is so small, whatever ties them."""
    return min(1.0, len(p_values) * min(p_values))
