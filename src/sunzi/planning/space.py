"""Where a search walks: the primes that it may choose from, and the size at which errors are computed.

For a large domain that size is smaller than the domain. A set's error depends on its moduli's ratios to the domain
size, so each small prime stands for the nearest good prime at full scale, with that prime's variance, bits and
attackability; what is found is verified at full scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.errors import EstimateError, ParameterError
from sunzi.numerics.primes import is_prime, next_prime, primes_up_to
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.planning.blocks import Block, BlockFamily
from sunzi.planning.sensitivity import Multiples, trace_reductions

Rows = NDArray[np.intp]

LARGEST_DIRECT = 4096
"""Domains up to this size are searched as they are."""
_SCALED_SIZE = 2048
_MODULI_PER_SCALE = 64
_FARTHEST_SHARE = 0.01
_PRIMES_ABOVE = 4


@dataclass(frozen=True)
class SearchSpace:
    """Blocks to choose from, by ascending modulus, and beside each the modulus that stands for it at size ``size``."""

    family: BlockFamily
    size: int
    stand_ins: NDArray[np.int64]
    blocks: tuple[Block, ...]

    @cached_property
    def variances(self) -> Floats:
        """d0 of each block."""
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
        """ℓ·trace(T⁻¹)/k at this space's size; infinite where T is singular or nearly so."""
        gram = self.gram(rows)
        return inf if gram is None else len(rows) * gram.inverse_trace() / self.size - self.family.sampling_variance

    def errors_with_one_more(self, gram: ToeplitzGram, count: int) -> Floats:
        """About the error of ``count`` blocks when each block in turn joins those of ``gram``."""
        reductions = trace_reductions(gram, self._multiples, self.stand_ins, self.variances)
        errors: Floats = count * (gram.inverse_trace() - reductions) / self.size - self.family.sampling_variance
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
    """Primes up to the domain's size, and a few above, which tell all values apart by themselves."""
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
