"""Confidence intervals for a frequency from the number of reports that support it."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy import special  # scipy.stats would take half a second to import

from sunzi._typing import Floats, Integers
from sunzi.errors import ParameterError
from sunzi.numerics.checks import real_number
from sunzi.numerics.thresholds import SupportProbabilities


def check_confidence(confidence: float) -> float:
    """A confidence level, which lies strictly between 0 and 1."""
    number = real_number("confidence", confidence)
    if not 0 < number < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence}")
    return number


def normal_quantile(confidence: float) -> float:
    """z such that a standard normal lies within ±z with probability ``confidence``."""
    return -NormalDist().inv_cdf((1 - check_confidence(confidence)) / 2)  # (1 + confidence)/2 could round to 1


def score(
    support: Integers, reports: int, probabilities: SupportProbabilities, quantile: float, at_hand: bool
) -> tuple[Floats, Floats]:
    """All f with (c − n(q+Δf))² ≤ z²·variance(f). The variance is the one at f, so that a count of zero gets a width
    too.

    ``at_hand``: c is a sum of Binomial(nf, p) and Binomial(n(1−f), q), variance n[f·p(1−p) + (1−f)·q(1−q)]; otherwise c
    is Binomial(n, q + Δf). Either way the condition is a quadratic inequality in f.
    """
    true, false, gap = probabilities.true, probabilities.false, probabilities.gap
    estimates = (support / reports - false) / gap
    scale = 1 / (reports * gap**2)
    constant = false * (1 - false)
    linear = true * (1 - true) - constant if at_hand else gap * (1 - 2 * false)
    square = 0.0 if at_hand else 1 / reports
    return score_of(estimates, constant * scale, linear * scale, square, quantile)


def score_of(
    estimates: Floats, base: Floats | float, slope: Floats | float, square: float, quantile: float
) -> tuple[Floats, Floats]:
    """All f with (f̂ − f)² ≤ z²·(base + slope·f − square·f²): the interval of a variance that grows with f itself."""
    grown = quantile**2
    a = 1 + grown * square
    b = estimates + grown * slope / 2
    c = estimates**2 - grown * base
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a


def exact(
    support: Integers, reports: int, probabilities: SupportProbabilities, confidence: float
) -> tuple[Floats, Floats]:
    """Clopper–Pearson for the rate of support, converted to f: covers at least ``confidence`` for any counts.

    Exact for a sample of a population. For the reporting users the count is a sum of two binomials, which is more
    concentrated than the binomial of the same mean (Hoeffding 1956), so the interval covers at least as much.
    """
    tail = (1 - confidence) / 2
    below = np.where(support > 0, special.betaincinv(np.maximum(support, 1), reports - support + 1, tail), 0.0)
    above = np.where(support < reports, special.betainccinv(support + 1, np.maximum(reports - support, 1), tail), 1.0)
    return (below - probabilities.false) / probabilities.gap, (above - probabilities.false) / probabilities.gap


def simultaneous_confidence(confidence: float, items: int) -> float:
    """Šidák's confidence level for each of ``items`` intervals.

    Negative dependence between counts keeps it conservative up to second order.
    """
    each = check_confidence(confidence) ** (1 / items)
    if each >= 1:
        raise ParameterError(
            f"confidence {confidence} for {items} intervals at once rounds to 1 in floating point; lower it"
        )
    return each


def standard_error(variances: Floats) -> Floats:
    """Square roots; variances that are negative by rounding count as zero."""
    return np.sqrt(np.maximum(variances, 0.0))
