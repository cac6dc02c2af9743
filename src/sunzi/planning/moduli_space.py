"""The moduli that a search chooses from, the error of any set of them, and the sets that it starts from.

For a large domain errors are computed at a smaller size. A set's error depends on the ratios of its moduli to the
domain size, so each small prime stands for the nearest good prime at full scale, with that prime's variance, bits and
attackability; what is found is verified at full scale.

What any other modulus would do to the error follows from two solves. With T = Σ_j M_j/d_j, M_m = A_mᵀA_m, the error is
ℓ·trace(T⁻¹)/k, up to small terms. A block of modulus m and variance d takes about φ/(1+ρ) off the trace, where
φ = trace(T⁻¹M_mT⁻¹)/d is the slope and ρ = trace(T⁻¹M_m)/(dm) the mean leverage of its residues. M_m is Toeplitz with
ones at the lags that m divides, so both traces are sums of the diagonals of T⁻² and T⁻¹ at those lags, and a few
Fourier transforms give those of all lags (docs/mathematics.md §3.1, extended to sums over i of T⁻²[i, i+L]).

Searches start from the shape that good sets have at every domain size: most moduli are near the smallest and a few
reach up to the domain's size. The place t in [0, 1) of the set holds a modulus in proportion to (1−t)^−a. The exponent
a is about 0.45 for sets of large moduli and grows as the moduli shrink, because only large moduli distinguish slow
variation over the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from sunzi._typing import Floats, Integers
from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics.primes import next_prime, primes_up_to
from sunzi.numerics.toeplitz import ToeplitzGram, reversed_column
from sunzi.planning.moduli_candidates import Block, BlockFamily
from sunzi.protocols.modular_variance import flat_error, sampling_variance

Rows = NDArray[np.intp]

LARGEST_DIRECT = 4096
"""Domains up to this size are searched as they are."""
_SCALED_SIZE = 2048
_MODULI_PER_SCALE = 64
_FARTHEST_SHARE = 0.01
_PRIMES_ABOVE = 4

_SMALLEST_MEAN = 0.03
# Moduli above the domain's size are for starts whose mean comes near it.
_LARGEST_MODULUS, _LARGE_MEAN = 0.97, 0.92
_EXPONENT, _SHARE_OF_EXPONENT, _GROWTH = 0.45, 0.35, 0.7
# Sets that barely distinguish all values have huge errors, and take long to invert.
_LEAST_EXCESS = 1.2
_HALVINGS = 20


@dataclass(frozen=True)
class SearchSpace:
    """Blocks to choose from, by ascending modulus, and next to each the modulus that stands for it at size ``size``."""

    family: BlockFamily
    size: int
    stand_ins: Integers
    blocks: tuple[Block, ...]

    @cached_property
    def variances(self) -> Floats:
        """The variance d of each block."""
        return np.array([block.variance for block in self.blocks])

    @cached_property
    def costs(self) -> Floats:
        """What each block adds to the length of reports."""
        return np.array([float(block.cost) for block in self.blocks])

    @cached_property
    def guesses(self) -> Floats:
        """What each block adds to the attackability, times ℓk."""
        return np.array([block.guesses for block in self.blocks])

    @cached_property
    def _multiples(self) -> Multiples:
        return Multiples(self.size, self.stand_ins.tolist())

    def gram(self, rows: Rows, weights: Floats | None = None) -> ToeplitzGram | None:
        """T = Σ_j weight_j·M_j/d_j, or None where it is singular or nearly so."""
        precisions = 1.0 / self.variances[rows]
        if weights is not None:
            precisions *= weights
        try:
            made = ToeplitzGram(self.size, tuple(self.stand_ins[rows].tolist()), precisions)
            made.inverse_trace()
        except EstimateError:
            return None
        return made

    def error(self, rows: Rows) -> float:
        """The error at the flat histogram at this space's size; infinite where T is singular or nearly so."""
        gram = self.gram(rows, np.full(len(rows), 1 / len(rows)))
        return inf if gram is None else flat_error(gram, self.family.domain_size)

    def errors_with_one_more(self, gram: ToeplitzGram, count: int) -> Floats:
        """About the error of ``count`` blocks when each block in turn joins those of ``gram``."""
        reductions = trace_reductions(gram, self._multiples, self.stand_ins, self.variances)
        population = count * (gram.inverse_trace() - reductions) / self.size
        errors: Floats = population - sampling_variance(self.family.domain_size)
        # The reductions are of first order and may promise too much; an error is never zero.
        return np.maximum(errors, 1e-3 * self.variances.min())


def search_space(family: BlockFamily, most_moduli: int) -> SearchSpace:
    """All good primes up to the domain's size and a little above, or a few hundred that represent them."""
    # There must be several times as many stand-ins as moduli.
    scaled = _SCALED_SIZE * -(-most_moduli // _MODULI_PER_SCALE)
    if family.domain_size > max(LARGEST_DIRECT, scaled):
        return _scaled_space(family, scaled)
    return _direct_space(family)


def _direct_space(family: BlockFamily) -> SearchSpace:
    """Primes up to the domain's size, and a few above, each of which distinguishes all values by itself."""
    size = family.domain_size
    blocks = [block for block in map(family.block, primes_up_to(size).tolist()) if block is not None]
    prime, above = size, 0
    while above < _PRIMES_ABOVE:
        prime = next_prime(prime + 1)
        block = family.block(prime)
        if block is not None:
            blocks.append(block)
            above += 1
    return SearchSpace(family, size, np.array([block.modulus for block in blocks]), tuple(blocks))


def _scaled_space(family: BlockFamily, size: int) -> SearchSpace:
    scale = family.domain_size / size
    taken: set[int] = set()
    stand_ins, blocks = [], []
    for prime in primes_up_to(size).tolist():
        block = _nearest_block(family, prime * scale, taken)
        if block is not None:
            taken.add(block.modulus)
            stand_ins.append(prime)
            blocks.append(block)
    if not blocks:
        raise ParameterError(f"no prime near {family.domain_size} makes a good block at epsilon {family.epsilon}")
    order = np.argsort([block.modulus for block in blocks])
    return SearchSpace(family, size, np.array(stand_ins)[order], tuple(blocks[row] for row in order))


def _nearest_block(family: BlockFamily, target: float, taken: set[int]) -> Block | None:
    """The good block nearest to the target that is not taken, at most 1 % and never more than a few steps away."""
    limit = min(family.domain_size, family.most_points)
    centre = round(target)
    for distance in range(max(3, round(_FARTHEST_SHARE * target))):
        for modulus in {centre - distance, centre + distance}:
            if 2 <= modulus <= limit and modulus not in taken and is_prime(modulus):
                block = family.block(modulus)
                if block is not None:
                    return block
    return None


def diagonal_sums(gram: ToeplitzGram) -> tuple[Floats, Floats]:
    """Σ_i T⁻¹[i, i+L] and Σ_i T⁻²[i, i+L] for every lag L in [0, k).

    With u = T⁻¹e_0, v = T⁻¹u, and y, z the two reversed as in Gohberg–Semencul's formula, T⁻¹[i, i+L] is the running
    sum of u_i·u_{i+L} − y_i·y_{i+L} over u_0, and T⁻²[i, i+L] that of u_i·v_{i+L} + v_i·u_{i+L} − y_i·z_{i+L} −
    z_i·y_{i+L} over u_0, less v_0/u_0 times the former. A running sum, summed, is a sum with the weights k − (i+L).
    """
    size, column = gram.size, gram.inverse_column
    image = gram.solve(column)
    vectors = np.stack([column, image, reversed_column(column), reversed_column(image)])
    length = fft.next_fast_len(2 * size - 1, real=True)
    plain = fft.rfft(vectors, length, axis=1).conj()
    weighted = fft.rfft(vectors * np.arange(size, 0, -1.0), length, axis=1)
    products = np.stack(
        [
            plain[0] * weighted[0] - plain[2] * weighted[2],
            plain[0] * weighted[1] + plain[1] * weighted[0] - plain[2] * weighted[3] - plain[3] * weighted[2],
        ]
    )
    first, second = fft.irfft(products, length, axis=1)[:, :size] / column[0]
    return first, second - image[0] / column[0] * first


class Multiples:
    """For fixed moduli, sums of a symmetric sequence over all lags that each of them divides."""

    def __init__(self, size: int, moduli: Sequence[int]) -> None:
        lags = [np.arange(0, size, modulus) for modulus in moduli]
        self._lags = np.concatenate(lags)
        self._starts = np.cumsum([0, *(each.size for each in lags[:-1])])

    def sums(self, by_lag: Floats) -> Floats:
        """s_0 + 2·Σ_{L>0, m|L} s_L for every modulus m."""
        doubled = 2.0 * by_lag
        doubled[0] = by_lag[0]
        return np.add.reduceat(doubled[self._lags], self._starts)


def trace_reductions(gram: ToeplitzGram, multiples: Multiples, moduli: ArrayLike, variances: ArrayLike) -> Floats:
    """About how much one more block, of each of these moduli and variances, takes off trace(T⁻¹)."""
    inverse, squared = diagonal_sums(gram)
    precision = 1.0 / np.asarray(variances, dtype=np.float64)
    slope = multiples.sums(squared) * precision
    leverage = multiples.sums(inverse) * precision / np.asarray(moduli)
    return slope / (1.0 + leverage)


def start_with_mean(space: SearchSpace, places: Floats, mean: float) -> Rows:
    """One block per place (ascending in [0, 1)), with moduli that average about ``mean`` of the domain's size."""
    exponent = _EXPONENT * max(1.0, _SHARE_OF_EXPONENT / mean) ** _GROWTH
    tail = (1.0 - places) ** -exponent
    largest = _LARGEST_MODULUS if mean <= _LARGE_MEAN else _largest_mean(space)
    low, high = 0.0, largest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * tail, largest).mean() < mean else (low, middle)
    return _nearest_rows(space, np.minimum(high * tail, largest) * space.size)


def _largest_mean(space: SearchSpace) -> float:
    return float(space.stand_ins[-1]) / space.size


def start_with_cost(space: SearchSpace, places: Floats, cost: float) -> Rows | None:
    """The largest start that costs at most ``cost``; None if even the cheapest costs more."""
    low, high = _SMALLEST_MEAN, _largest_mean(space)
    found = None
    for _ in range(_HALVINGS // 2):
        middle = (low + high) / 2
        rows = start_with_mean(space, places, middle)
        if space.costs[rows].sum() <= cost:
            low, found = middle, rows
        else:
            high = middle
    return found


def giving_away_less(space: SearchSpace, rows: Rows, guesses: float) -> Rows:
    """Replace rows with the most guesses by rows with the fewest until the mean is at most ``guesses``."""
    repaired = rows[np.argsort(-space.guesses[rows], kind="stable")]
    spare = [row for row in np.argsort(space.guesses, kind="stable").tolist() if row not in set(rows.tolist())]
    for position, row in enumerate(spare[: len(rows)]):
        if space.guesses[repaired].mean() <= guesses or space.guesses[row] >= space.guesses[repaired[position]]:
            break
        repaired[position] = row
    return repaired


def places(count: int, generator: np.random.Generator) -> Floats:
    """One random place in each of ``count`` equal parts of [0, 1): evenly spaced moduli would have equal
    differences.
    """
    return (np.arange(count) + generator.random(count)) / count


def is_promising(space: SearchSpace, rows: Rows) -> bool:
    """Whether the moduli distinguish all values with some margin, or there are hardly any others to choose."""
    excess = int((space.stand_ins[rows] - 1).sum()) / max(1, space.size - 1)
    return excess >= _LEAST_EXCESS or (excess >= 1 and len(space.blocks) < 2 * len(rows) + 8)


def _nearest_rows(space: SearchSpace, targets: Floats) -> Rows:
    """Distinct rows near the targets, which ascend."""
    steps = np.arange(len(targets))
    nearest = np.searchsorted(space.stand_ins, targets)
    rising = np.maximum.accumulate(nearest - steps) + steps
    return np.minimum(rising, len(space.stand_ins) - len(targets) + steps)
