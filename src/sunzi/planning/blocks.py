"""What one modulus brings to a modular plan: its variance, its share of a report's bits, what it gives away, its work.

Bits, attackability and work of a plan are sums over its moduli; only the error depends on how they play together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, exp, floor, lgamma, log, log2
from typing import Literal, get_args

from scipy import fft

from sunzi.designs import cyclotomic, subsets
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.errors import ParameterError
from sunzi.numerics.bits import index_bits
from sunzi.numerics.toeplitz import expected_error
from sunzi.planning.decoding import solve_work
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularSubsetSelection
from sunzi.protocols.modular_variance import BlockMoments

Kind = Literal["mss", "mss-compact"]
Histogram = Literal["light", "flat"]
"""For which frequencies errors are planned: items that nobody holds, or all values equally frequent. They differ where
ε is large and moduli are small, for the frequencies of a modulus's few residues add up to 1 whatever the items' are.
"""

# lgamma is right within 1e-9 bits here; nearer than this to a whole number of bits the binomial itself is computed.
_DOUBTFUL_BITS = 1e-6


@dataclass(frozen=True)
class Block:
    """One modulus with its design."""

    modulus: int
    variance: float
    """The variance of one debiased report at a residue: d0 for an empty one, d0 + d1/m for one of m equal ones
    (docs/mathematics.md §3.3).
    """
    cost: int
    """What it adds to the length of reports: payload bits of subsets, number of messages of compact blocks."""
    guesses: float
    """Σ_y max_x P(y|x): k times its attackability (docs/mathematics.md §4)."""
    work: float
    """Operations that turn its counters into residue counts."""


class BlockFamily(ABC):
    """The blocks of one kind at one ε, for domains of ``domain_size`` values, and how they share a report's bits."""

    most_points: int

    def __init__(self, domain_size: int, epsilon: Fraction, histogram: Histogram) -> None:
        self.domain_size, self.epsilon, self.histogram = domain_size, epsilon, histogram
        self.odds = exp(epsilon)
        self._known: dict[int, Block | None] = {}

    def block(self, modulus: int) -> Block | None:
        """The block of a prime, or None if it is no good."""
        if modulus not in self._known:
            self._known[modulus] = self._make(modulus)
        return self._known[modulus]

    @abstractmethod
    def _make(self, modulus: int) -> Block | None: ...

    @abstractmethod
    def bits(self, costs: Sequence[int]) -> tuple[float, int]:
        """Mean and largest bits of a report of a plan whose blocks have these costs."""

    @abstractmethod
    def affordable_cost(self, count: int, bits: float) -> float:
        """What ``count`` blocks may cost together for the mean report to take at most ``bits`` bits."""

    @property
    def sampling_variance(self) -> float:
        """f(1−f) at f = 1/k: part of a residue's variance, but no error about the users at hand."""
        frequency = 1 / self.domain_size if self.histogram == "flat" else 0.0
        return frequency * (1 - frequency)

    def error(self, blocks: Sequence[Block]) -> float:
        """trace(T⁻¹)/k, the mean variance for one report about the users at hand (docs/mathematics.md §3.1)."""
        moduli, variances = [block.modulus for block in blocks], [block.variance for block in blocks]
        return expected_error(self.domain_size, moduli, variances) - self.sampling_variance

    def _variance(self, modulus: int, block_size: int) -> float:
        moments = BlockMoments.at(modulus, block_size, self.epsilon)
        return moments.light + (moments.heavy / modulus if self.histogram == "flat" else 0.0)

    def _guesses(self, design: Design) -> float:
        """m·e^ε/(w·e^ε + m − w); a block that is larger than the domain is truncated."""
        points, block_size = design.points, design.block_size
        if points > self.domain_size:
            return BlockResponse(design, self.epsilon).best_guess_sum(self.domain_size)
        return points * self.odds / (block_size * self.odds + points - block_size)

    def decoding_work(self, blocks: Sequence[Block]) -> float:
        """Elementary operations that turn a tally of many reports into frequencies: each block's own, and a solve. A
        transform of length N counts as N·log2 N.
        """
        return sum(block.work for block in blocks) + solve_work(self.domain_size, len(blocks))


class SubsetBlocks(BlockFamily):
    """All subsets of the residues: ⌈log2 ℓ⌉ bits name the block, ⌈log2 C(m,w)⌉ the subset."""

    most_points = subsets.MOST_POINTS

    def _make(self, modulus: int) -> Block | None:
        if ModularSubsetSelection.block_variance(modulus, self.epsilon) is None:
            return None
        design = ModularSubsetSelection.block_design(modulus, self.epsilon)
        return Block(
            modulus=modulus,
            variance=self._variance(modulus, design.block_size),
            cost=subset_bits(modulus, design.block_size),
            guesses=self._guesses(design),
            work=float(modulus),
        )

    def bits(self, costs: Sequence[int]) -> tuple[float, int]:
        """The selector and the payload."""
        selector = index_bits(len(costs))
        return selector + sum(costs) / len(costs), selector + max(costs)

    def affordable_cost(self, count: int, bits: float) -> float:
        """What the selector leaves."""
        return (bits - index_bits(count)) * count


class CyclotomicBlocks(BlockFamily):
    """Cyclotomic blocks: one number below Σ e·m names block and message."""

    most_points = cyclotomic.MOST_POINTS

    def _make(self, modulus: int) -> Block | None:
        if CompactModularSubsetSelection.block_variance(modulus, self.epsilon) is None:
            return None
        design = CompactModularSubsetSelection.block_design(modulus, self.epsilon)
        padded = int(fft.next_fast_len(2 * modulus - 1, real=True))
        return Block(
            modulus=modulus,
            variance=self._variance(modulus, design.block_size),
            cost=design.message_count,
            guesses=self._guesses(design),
            work=(design.classes + 1) * _transform_work(padded) if isinstance(design, Cyclotomic) else float(modulus),
        )

    def bits(self, costs: Sequence[int]) -> tuple[float, int]:
        """Every report is as long."""
        bits = index_bits(sum(costs))
        return float(bits), bits

    def affordable_cost(self, count: int, bits: float) -> float:  # noqa: ARG002 - blocks share one number
        """2^bits messages."""
        return float(1 << max(0, floor(bits)))


_FAMILIES: dict[str, type[BlockFamily]] = {"mss": SubsetBlocks, "mss-compact": CyclotomicBlocks}


@lru_cache(maxsize=16)
def block_family(kind: str, domain_size: int, epsilon: Fraction, histogram: Histogram = "light") -> BlockFamily:
    """The blocks of ``mss`` or ``mss-compact``."""
    if kind not in _FAMILIES:
        raise ParameterError(f"kind must be one of {sorted(_FAMILIES)}, got {kind!r}")
    if histogram not in get_args(Histogram):
        raise ParameterError(f"histogram must be one of {list(get_args(Histogram))}, got {histogram!r}")
    if domain_size < 2:
        raise ParameterError(f"domain_size must be at least 2, got {domain_size}")
    return _FAMILIES[kind](domain_size, epsilon, histogram)


def subset_bits(points: int, block_size: int) -> int:
    """The payload of a subset, exactly as the design has it: ⌈log2 C(v,w)⌉ bits, v for the bitmap of a large one."""
    if block_size == 1:
        return index_bits(points)
    if points > subsets.MOST_ENUMERATED:
        return points
    bits = (lgamma(points + 1) - lgamma(block_size + 1) - lgamma(points - block_size + 1)) / log(2)
    if abs(bits - round(bits)) < _DOUBTFUL_BITS:
        return index_bits(comb(points, block_size))
    return ceil(bits)


def _transform_work(length: int) -> float:
    return length * log2(length)
