"""Confidence intervals for a frequency from the number of reports that support it."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy import special  # scipy.stats would take half a second to import

from sunzi._typing import Floats, Integers
from sunzi.errors import ParameterError
from sunzi.numerics.checks import real_number
from sunzi.numerics.thresholds import SupportProbabilities

# The integral for a tail probability: its nodes, how many standard deviations it reaches, and the largest exp(t).
_NODES = 41
_REACH = 9.0
_LARGEST_TILT = 1e12


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
    support: Integers, reports: int, probabilities: SupportProbabilities, confidence: float, at_hand: bool
) -> tuple[Floats, Floats]:
    """All f whose counts are below and above the observed one with at least (1 − confidence)/2 each: covers at least
    ``confidence`` for any counts.

    For a sample of a population the count is Binomial(n, q + Δf), and this is the interval of Clopper and Pearson.
    ``at_hand``: nf of the n users hold the value, a whole number, and the count is the sum of Binomial(nf, p) and
    Binomial(n(1−f), q). Beyond 0 and 1, where there are no such numbers, the ends are those for a population: both
    distributions are the same at 0 and at 1.
    """
    tail = (1 - confidence) / 2
    below = np.where(support > 0, special.betaincinv(np.maximum(support, 1), reports - support + 1, tail), 0.0)
    above = np.where(support < reports, special.betainccinv(support + 1, np.maximum(reports - support, 1), tail), 1.0)
    low, high = ((ends - probabilities.false) / probabilities.gap for ends in (below, above))
    if not at_hand:
        return low, high
    counts, places = np.unique(support, return_inverse=True)
    guess = score(counts, reports, probabilities, special.ndtri(1 - tail), at_hand)
    fewest = _fewest_holders(counts, reports, probabilities.true, probabilities.false, tail, guess[0])
    # Counting the reports that do not support the value turns the upper end into a lower one.
    others = _fewest_holders(
        reports - counts, reports, 1 - probabilities.false, 1 - probabilities.true, tail, 1 - guess[1]
    )
    inside_low, inside_high = (fewest / reports)[places], ((reports - others) / reports)[places]
    return np.where((low > 0) & (low < 1), inside_low, low), np.where((high > 0) & (high < 1), inside_high, high)


def _fewest_holders(support: Integers, reports: int, true: float, false: float, tail: float, guess: Floats) -> Integers:
    """The smallest N in 1..n for which a count of at least ``support`` has a probability above ``tail``, or n.

    The probability grows with N: bisection, after one step to either side of the guessed frequency.
    """
    lowest, highest = np.zeros(support.size, dtype=np.int64), np.full(support.size, reports)

    def halve(middle: Integers) -> None:
        holds = _upper_tail(support, reports, middle, true, false) > tail
        highest[holds], lowest[~holds] = middle[holds], middle[~holds]

    margin = 2 + 0.1 * np.abs(support / reports - false - guess * (true - false)) * reports
    for probe in (guess * reports - margin, guess * reports + margin):
        halve(np.clip(probe, lowest + 1, highest - 1).astype(np.int64))
    while (highest - lowest > 1).any():
        halve((lowest + highest) // 2)
    return highest


def _upper_tail(support: Integers, reports: int, holders: Integers, true: float, false: float) -> Floats:
    """P(Binomial(N, p) + Binomial(n − N, q) ≥ c), by the integral of its generating function over a line.

    For every t > 0 it is the mean of M(t+iθ)·exp(−c(t+iθ))/(1 − exp(−t−iθ)) over −π < θ ≤ π, M the moment generating
    function; for t < 0 the mean is less by 1. Near the saddle point t the integrand is close to a normal curve, so a
    few nodes give eight digits.
    """
    # At the saddle point, s = exp(t) solves a·s² + b·s = c; it must stay clear of the pole at t = 0.
    square = (reports - support) * (true * false)
    linear = holders * (true * (1 - false)) + (reports - holders) * (false * (1 - true))
    linear = linear - support * (true * (1 - false) + false * (1 - true))
    constant = support * ((1 - true) * (1 - false))
    root = np.sqrt(linear**2 + 4 * square * constant)
    with np.errstate(divide="ignore", invalid="ignore"):
        saddle = np.where(linear > 0, 2 * constant / (linear + root), (root - linear) / (2 * square))
    line = np.log(np.clip(saddle, 1 / _LARGEST_TILT, _LARGEST_TILT))
    tilted = [rate / (rate + (1 - rate) * np.exp(-line)) for rate in (true, false)]
    deviation = np.sqrt(holders * tilted[0] * (1 - tilted[0]) + (reports - holders) * tilted[1] * (1 - tilted[1]))
    is_above = line >= 0
    line = np.where(is_above, 1, -1) * np.maximum(np.abs(line), 1 / np.maximum(deviation, 1.0))
    reach = np.minimum(np.pi, _REACH / np.maximum(deviation, 1e-9))
    points = line + 1j * reach * np.linspace(0, 1, _NODES)[:, None]
    grown = np.expm1(points)
    exponent = holders * np.log1p(true * grown) + (reports - holders) * np.log1p(false * grown) - support * points
    values = (np.exp(exponent) / -np.expm1(-points)).real
    sums = values.sum(axis=0) - (values[0] + values[-1]) / 2
    return np.asarray(sums * reach / (np.pi * (_NODES - 1)) + np.where(is_above, 0, 1))


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
