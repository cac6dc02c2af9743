"""Confidence intervals for a frequency from the number of reports that support it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import special  # scipy.stats would take half a second to import

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.numerics.checks import real_number
from sunzi.numerics.support_probabilities import SupportProbabilities

_Real = TypeVar("_Real", float, Floats)

# With fewer expected false supports, or missing true ones, than this times the squared normal quantile, the score
# interval's coverage becomes erratic (100 at 95 %, 500 for thousands of simultaneous intervals), so the exact interval
# takes over.
_FEW_COUNTS = 25
# The integral for a tail probability: its nodes, how many standard deviations it reaches, and the largest exp(t).
_NODES = 41
_REACH = 9.0
_LARGEST_TILT = 1e12
# Steps of interpolation for an exact end, before bisection.
_INTERPOLATIONS = 6

# Quantiles of distributions with jumps: below the least one, and where jumps are small, normal ones are used.
_LEAST_QUANTILE = 0.3
_ALMOST_NORMAL = 1e-3
_QUANTILE_ERROR = 2e-3
_TILT_STEPS = 30
_LEAST_TILTING, _LARGEST_TILTING = 1e-3, 100.0
_LARGEST_GROWTH = 300.0
_LARGEST_STEP = 100.0
# The quantile depends on the end and the end on the quantile: this many rounds, starting at the plausible frequency.
_SCORE_STEPS = 3
_TINY = 1e-100
# A binomial count with a rate near one half is symmetric; its Poisson counterpart gets steps of at least this share.
_LEAST_ASYMMETRY = 1e-2


def check_confidence(confidence: float) -> float:
    """A confidence level, which lies strictly between 0 and 1."""
    number = real_number("confidence", confidence)
    if not 0 < number < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence}")
    return number


def normal_quantile(confidence: float) -> float:
    """z such that a standard normal lies within ±z with probability ``confidence``."""
    return -NormalDist().inv_cdf((1 - check_confidence(confidence)) / 2)  # (1 + confidence)/2 could round to 1


def normal(values: _Real, errors: _Real, confidence: float) -> tuple[_Real, _Real]:
    """The ends of normal intervals of values with these standard errors."""
    half = normal_quantile(confidence) * errors
    return values - half, values + half


def has_few_counts(reports: int, probabilities: SupportProbabilities, confidence: float) -> bool:
    """Whether false supports, or missing true ones, are so few that exact intervals are needed."""
    rarest = min(probabilities.false, 1 - probabilities.true)
    return reports * rarest < _FEW_COUNTS * normal_quantile(confidence) ** 2


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
    estimates: Floats, base: Floats | float, slope: Floats | float, square: Floats | float, quantile: Floats | float
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
    distributions are the same at 0 and at 1. Where lies are so rare that only one number is left, the estimate may lie
    beside it, since it need not be a whole number of users; the interval is widened to include the estimate.
    """
    tail = (1 - confidence) / 2
    below = np.where(support > 0, special.betaincinv(np.maximum(support, 1), reports - support + 1, tail), 0.0)
    above = np.where(support < reports, special.betainccinv(support + 1, np.maximum(reports - support, 1), tail), 1.0)
    low, high = ((ends - probabilities.false) / probabilities.gap for ends in (below, above))
    if not at_hand:
        return low, high
    guess = score(support, reports, probabilities, special.ndtri(1 - tail), at_hand)
    true, false = probabilities.true, probabilities.false
    inside = (low > 0) & (low < 1)
    low[inside] = _fewest_holders(support[inside], reports, true, false, tail, guess[0][inside]) / reports
    # Counting the reports that do not support the value turns the upper end into a lower one.
    inside = (high > 0) & (high < 1)
    others = _fewest_holders(reports - support[inside], reports, 1 - false, 1 - true, tail, 1 - guess[1][inside])
    high[inside] = (reports - others) / reports
    estimates = (support / reports - false) / probabilities.gap
    return np.minimum(low, estimates), np.maximum(high, estimates)


def _fewest_holders(support: Integers, reports: int, true: float, false: float, tail: float, guess: Floats) -> Integers:
    """The smallest N in 1..n for which a count of at least ``support`` has a probability above ``tail``, or n.

    The probability grows with N, and its normal quantile almost linearly: interpolation, after one step to either side
    of the guessed frequency, and bisection where that does not end soon. Equal counts are solved once.
    """
    support, first, places = np.unique(support, return_index=True, return_inverse=True)
    lowest, highest = np.zeros(support.size, dtype=np.int64), np.full(support.size, reports)
    missing, beyond = np.full(support.size, -np.inf), np.full(support.size, np.inf)  # quantiles at both, minus z

    def narrow(chosen: Integers, holders: Integers) -> None:
        chance = _upper_tail(support[chosen], reports, holders, true, false)
        quantile = special.ndtri(np.clip(chance, 0.0, 1.0)) - special.ndtri(tail)
        above, below = chosen[chance > tail], chosen[chance <= tail]
        highest[above], beyond[above] = holders[chance > tail], quantile[chance > tail]
        lowest[below], missing[below] = holders[chance <= tail], quantile[chance <= tail]

    guess = guess[first] * reports
    margin = 2 + 0.1 * np.abs(support - false * reports - guess * (true - false))
    for probe in (guess - margin, guess + margin):
        narrow(np.arange(support.size), np.clip(probe, lowest + 1, highest - 1).astype(np.int64))
    steps = 0
    while (open_ends := np.flatnonzero(highest - lowest > 1)).size:
        low, high, below, above = (values[open_ends] for values in (lowest, highest, missing, beyond))
        with np.errstate(invalid="ignore"):
            share = np.where(np.isfinite(above - below) & (steps < _INTERPOLATIONS), below / (below - above), 0.5)
        narrow(open_ends, np.clip(low + (share * (high - low)).astype(np.int64), low + 1, high - 1))
        steps += 1
    return highest[places]


def _upper_tail(support: Integers, reports: int, holders: Integers, true: float, false: float) -> Floats:
    """P(Binomial(N, p) + Binomial(n − N, q) ≥ c), by the integral of its generating function over a line.

    For every t > 0 it is the mean of M(t+iθ)·exp(−(c−1)(t+iθ))/(exp(t+iθ) − 1) over −π < θ ≤ π, M the moment generating
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
    exponent = holders * np.log1p(true * grown) + (reports - holders) * np.log1p(false * grown)
    values = (np.exp(exponent - (support - 1) * points) / grown).real
    sums = values.sum(axis=0) - (values[0] + values[-1]) / 2
    return np.asarray(sums * reach / (np.pi * (_NODES - 1)) + np.where(is_above, 0, 1))


class OwnCount(NamedTuple):
    """How one block's count of an item's own residue enters the item's estimate; arrays have one entry per item."""

    weight: Floats
    """The change of the estimate per unit of the debiased count (c/n − q)/Δ."""
    rate: Floats
    """The share of the block's reports from users of other values that name the residue."""
    gap: Floats | float
    """By how much one more holder of the residue adds to that count: a jump is weight/(gap·n)."""
    probabilities: SupportProbabilities
    reports: int


@dataclass(frozen=True)
class Jumps:
    """The part of the error of an estimate that comes in few large steps, for :func:`skewed`.

    Where lies are rare, the estimate of an item is mostly a sum of a few counts: those of its own residues. Counts that
    are mostly 0 move it ``up``, counts that are mostly complete move it ``down``. Each array has three rows (the sums
    of rate·step, rate·step² and rate·step³ over the counts) and one column per item. ``own`` is what the item's own
    users add, per unit of frequency. Everything else moves the estimate by steps of about ``rest``, up or down.
    """

    up: Floats
    down: Floats
    own: Floats
    own_is_up: bool
    rest: float

    @classmethod
    def of_counts(cls, counts: Sequence[OwnCount], rest: float, at_hand: bool) -> Jumps:
        """From the own counts of all blocks.

        Others come into a block at random, so their count is Binomial(n_j, rate). The item's own users
        count as fixed if they are the ones ``at_hand``, and as drawn at random otherwise.
        """
        up, down, own = (np.zeros((3, counts[0].weight.size)) for _ in range(3))
        own_is_up = not at_hand or counts[0].probabilities.true < 0.5
        for weight, rate, gap, rates, reports in counts:
            found = _power_sums(np.abs(weight) / (gap * reports), reports, rate)
            step = np.abs(weight) / (rates.gap * reports)
            up += np.where(rate < 0.5, found, 0.0)
            down += np.where(rate < 0.5, 0.0, found)
            own += _power_sums(step, reports, rates.true) if at_hand else reports * rates.gap * step ** [[1], [2], [3]]
        return cls(up, down, own, own_is_up, rest)

    def steps(self, frequencies: Floats, variances: Floats, direction: int) -> tuple[Floats, Floats]:
        """Variances and signed steps of Poisson counts, one row each, that together have at least the item's variance.

        Steps of unequal sizes are replaced by equal ones. In the ``direction`` of the tail (1 is up) the largest steps
        matter: squares and cubes keep their sums. Against it, the sum of all steps is a bound on the error: steps and
        squares keep their sums.
        """
        own = self.own * frequencies
        sums = np.stack([self.up + own * self.own_is_up, self.down + own * (not self.own_is_up)])
        toward, against = (sums[:, row + 1] / np.maximum(sums[:, row], _TINY) for row in (1, 0))
        sizes = [toward[0], against[1]] if direction > 0 else [against[0], toward[1]]
        second = sums[:, 1]
        second = second * np.minimum(1.0, variances / np.maximum(second.sum(axis=0), _TINY))
        # The least rest smooths the lattice of the jumps, as if each value of it were spread over the step around it.
        least = np.minimum(np.maximum(*sizes) ** 2 / 12, second.sum(axis=0))
        rest = np.maximum(variances - second.sum(axis=0), least) / 2
        other = np.full_like(rest, self.rest)
        return np.stack([*second, rest, rest]), np.stack([sizes[0], -sizes[1], other, -other])


def _power_sums(step: Floats, trials: int, rate: Floats | float) -> Floats:
    """rate·step, rate·step², rate·step³ of the Poisson counts with a binomial's second and third cumulants."""
    size = step * np.maximum(np.abs(1 - 2 * np.asarray(rate)), _LEAST_ASYMMETRY)
    second = step**2 * trials * rate * (1 - rate)
    return np.stack([second / np.maximum(size, _TINY), second, second * size])


def skewed(
    estimates: Floats,
    plausible: Floats,
    base: Floats,
    slope: Floats,
    square: float,
    jumps: Jumps,
    quantile: float,
) -> tuple[Floats, Floats]:
    """Intervals of estimates with variance base + slope·f − square·f² whose errors come in jumps.

    The farther end of the normal interval, with the variance at the ``plausible`` frequency, and of the score interval;
    both with the quantiles of the item's own distribution in place of the normal ``quantile``, which they approach as
    jumps become many. They agree where counts are large. Where counts are small, the normal one misses items of a few
    users, because its variance is that of an estimate near 0, and the score one misses at high confidence.
    """
    ends = []
    for direction, farther in ((-1, np.minimum), (1, np.maximum)):
        end, outer = plausible, estimates
        for _ in range(_SCORE_STEPS):
            frequencies = np.clip(end, 0.0, 1.0)
            variances = np.maximum(base + slope * frequencies - square * frequencies**2, _TINY)
            # A low end means that the estimate came out too high: the upper quantile counts.
            parts, sizes = jumps.steps(frequencies, variances, -direction)
            quantiles = _jump_quantiles(parts, sizes, quantile, -direction)
            quantiles *= np.sqrt(parts.sum(axis=0) / variances)
            if end is plausible:
                outer = estimates + direction * quantiles * np.sqrt(variances)
            end = score_of(estimates, base, slope, square, quantiles)[direction > 0]
        ends.append(farther(end, outer))
    return ends[0], ends[1]


def _jump_quantiles(variances: Floats, steps: Floats, quantile: float, direction: int) -> Floats:
    """x/σ with P(X ≥ x) = Φ(−z), X the sum of centred Poisson counts times their steps (times ``direction``).

    By the saddle point approximation r*(t) = w + log(u/w)/w of Barndorff-Nielsen: the t with r* = z gives x = K'(t), K
    the cumulant generating function, w² = 2(t·x − K) and u² = t²K''.
    """
    deviation = np.sqrt(variances.sum(axis=0))
    shares, sizes = variances / deviation**2, direction * np.clip(steps / deviation, -_LARGEST_STEP, _LARGEST_STEP)
    if quantile < _LEAST_QUANTILE or np.abs(shares * sizes).max() * quantile**2 < _ALMOST_NORMAL:
        return np.full(deviation.shape, quantile)
    sizes = np.where(np.abs(sizes) < _ALMOST_NORMAL / 100, _ALMOST_NORMAL / 100, sizes)
    low, high = np.zeros(deviation.shape), np.full(deviation.shape, np.inf)
    tilt = np.full(deviation.shape, quantile)
    for _ in range(_TILT_STEPS):
        growth = np.minimum(sizes * tilt, _LARGEST_GROWTH)
        first = special.exprel(growth)
        second = (first - 1) / growth
        curvature = np.maximum((shares * np.exp(growth)).sum(axis=0), _TINY)
        root = np.sqrt(2 * (shares * (first - second)).sum(axis=0)) * tilt
        reached = root + np.log(tilt * np.sqrt(curvature) / root) / root
        missing = quantile - reached
        low, high = np.where(missing > 0, tilt, low), np.where(missing > 0, high, tilt)
        if np.all((np.abs(missing) < _QUANTILE_ERROR) | (tilt <= _LEAST_TILTING) | (tilt >= _LARGEST_TILTING)):
            break
        following = tilt + missing * root / (tilt * curvature)
        outside = ~((following > low) & (following < high))
        middle = np.where(np.isinf(high), 2 * tilt, (low + np.minimum(high, _LARGEST_TILTING)) / 2)
        tilt = np.clip(np.where(outside, middle, following), _LEAST_TILTING, _LARGEST_TILTING)
    found = (shares * np.minimum(first, 1 / _TINY)).sum(axis=0) * tilt
    # Bernstein's bound, for where jumps are so rare and large that no tilt was found.
    largest, chances = np.maximum(sizes, 0.0).max(axis=0), -float(special.log_ndtr(-quantile))
    bound = largest * chances / 3 + np.sqrt((largest * chances / 3) ** 2 + 2 * chances)
    return np.asarray(np.clip(found, 0.0, bound))


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
