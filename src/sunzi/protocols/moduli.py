"""A default set of moduli: primes spread widely below the domain's size, picked by their exact error.

See docs/mathematics.md §3.1 and docs/mathematics.md §3.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from math import inf, log

import numpy as np
from numpy.typing import ArrayLike

from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import PlanError, shown, whole_number
from sunzi.designs.choice import subset_error
from sunzi.errors import PlanWarning
from sunzi.numerics.primes import next_prime
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.protocols.modular_variance import flat_error

BlockVariance = Callable[[int], float | None]
"""The variance d0 + d1·Σ_a g_a² of a block of that modulus at the flat histogram; None if the modulus is unsuitable."""

DEFAULT_COUNT = 16
MOST_MODULI = 256
MOST_LISTED_POINTS = 1 << 24
_LOWEST_SHARE, _HIGHEST_SHARE = 0.1, 0.95
_FARTHEST = 400
# Spreads that are compared by their exact error; beyond the size at which that takes seconds, the first is taken as it
# is.
_SPREADS_COMPARED = 8
_LARGEST_COMPARED = 50_000
_LARGEST_TRIMMED = 1000
_LEAST_VALUES_PER_ODDS = 1.5
_POOR = 2.0


def check_affordable(subset_points: Iterable[int]) -> None:
    """Raise PlanError if the subsets of a plan have more points than a device can afford (docs/format.md, 2.4)."""
    total = sum(subset_points)
    if total > MOST_LISTED_POINTS:
        raise PlanError(
            f"the subsets of a plan must have at most {MOST_LISTED_POINTS} points in total, got {shown(total)}; "
            "use mss-compact"
        )


def spread_moduli(domain_size: int, block_variance: BlockVariance, count: int, seed: int = 0) -> tuple[int, ...]:
    """``count`` distinct primes, one near a random place in each of ``count`` equal parts of [0.1·k, 0.95·k].

    Random, because evenly spaced moduli share their differences and distinguish values badly; and few small ones,
    because a small modulus adds little and costs much. If the moduli cannot tell all values apart (small domains),
    primes above the domain are added until they can.
    """
    places = (np.arange(count) + np.random.default_rng(seed).random(count)) / count
    targets = domain_size * (_LOWEST_SHARE + (_HIGHEST_SHARE - _LOWEST_SHARE) * places)
    chosen: set[int] = set()
    for target in targets[::-1].tolist():
        found = _nearest(round(target), block_variance, chosen)
        if found is not None:
            chosen.add(found)
    extra = domain_size
    while sum(chosen) - len(chosen) < domain_size - 1:
        extra = next_prime(extra)
        if extra not in chosen and block_variance(extra) is not None:
            chosen.add(extra)
        extra += 1
    return tuple(sorted(chosen))


def _nearest(target: int, block_variance: BlockVariance, taken: set[int]) -> int | None:
    """The admissible prime nearest to the target that is not taken, if one is near."""
    for distance in range(_FARTHEST):
        for candidate in (target + distance, target - distance):
            if candidate not in taken and is_prime(candidate) and block_variance(candidate) is not None:
                return candidate
    return None


def residues_pay(domain_size: int, epsilon: Fraction) -> bool:
    """Whether k ≥ 1.5·e^ε. Below, subset selection sends single values in fewer bits than residues take, and the
    default moduli do not come within 1.3 times its error (docs/mathematics.md §10.5).
    """
    return log(domain_size / _LEAST_VALUES_PER_ODDS) >= epsilon


def default_moduli(
    domain_size: int, block_variance: BlockVariance, count: int | None, aim: float = inf
) -> tuple[int, ...]:
    """The spread of smallest error at the flat histogram among a few random ones; always the same for the same
    setting. Without a ``count`` the smallest moduli are left out as long as the error exceeds ``aim`` and that helps:
    on small domains there are not enough larger primes.
    """
    moduli = _best_spread(domain_size, block_variance, DEFAULT_COUNT if count is None else count)
    if count is not None or domain_size > _LARGEST_TRIMMED:
        return moduli
    error = partial(_error, domain_size, block_variance)
    current = error(moduli)
    while current > aim and sum(moduli[1:]) - len(moduli[1:]) >= domain_size - 1:
        following = error(moduli[1:])
        if following >= current:
            break
        moduli, current = moduli[1:], following
    return moduli


def _best_spread(domain_size: int, block_variance: BlockVariance, count: int) -> tuple[int, ...]:
    count = min(whole_number("count", count, 1, MOST_MODULI), domain_size)
    if domain_size > _LARGEST_COMPARED:
        return spread_moduli(domain_size, block_variance, count)
    spreads = {spread_moduli(domain_size, block_variance, count, seed) for seed in range(_SPREADS_COMPARED)}
    return min(sorted(spreads), key=partial(_error, domain_size, block_variance))


def _error(domain_size: int, block_variance: BlockVariance, moduli: tuple[int, ...]) -> float:
    return moduli_error(domain_size, moduli, [block_variance(modulus) or 0.0 for modulus in moduli])


def moduli_error(domain_size: int, moduli: Sequence[int], variances: ArrayLike) -> float:
    """The error for one report at the flat histogram; ``variances`` are those of the blocks (:data:`BlockVariance`)."""
    weights = 1.0 / (len(moduli) * np.asarray(variances, dtype=np.float64))
    return flat_error(ToeplitzGram(domain_size, tuple(moduli), weights), domain_size)


def warn_if_poor(
    moduli: Sequence[int], domain_size: int, epsilon: Fraction, error: float, default_error: Callable[[], float]
) -> None:
    """A :class:`~sunzi.errors.PlanWarning` if the error for one report at the flat histogram is more than twice that of
    the default moduli, which is computed only if it exceeds twice that of subset selection.
    """
    if error <= _POOR * subset_error(domain_size, epsilon):
        return
    ratio = error / default_error()
    if ratio > _POOR:
        warnings.warn(
            f"moduli {shown(list(moduli))} have {ratio:.3g} times the error of the default moduli for {domain_size} "
            f"values at epsilon {epsilon}; leave moduli out, or let sunzi.planning.choose_moduli find some",
            PlanWarning,
            stacklevel=5,  # the caller of make_plan
        )
