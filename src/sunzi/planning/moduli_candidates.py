"""Moduli for modular protocols and their figures: single moduli, sets of them, and the Pareto front of sets.

Bits, attackability and work of a plan are sums over its moduli; only the error depends on how they interact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import exp, floor, inf
from typing import ClassVar, Literal, get_args

import numpy as np

from sunzi._typing import Floats
from sunzi.client.designs import cyclotomic, subsets
from sunzi.client.designs.design import index_bits
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.errors import ParameterError
from sunzi.designs.choice import subset_error
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import quickly_read
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularProtocol, ModularSubsetSelection
from sunzi.protocols.modular_estimation import solving_cost
from sunzi.protocols.moduli import moduli_error

Kind = Literal["mss", "mss-compact"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The protocols whose moduli can be searched."""

# Sets whose figures differ by less than these shares count as equal: error, bits, attackability, work.
RESOLUTION = (0.001, 0.0025, 0.005, 0.05)


@dataclass(frozen=True)
class Block:
    """One modulus with its design."""

    modulus: int
    variance: float
    """The variance of one debiased report at a residue, if all values are equally frequent (docs/mathematics.md
    §3.3).
    """
    cost: int
    """What it adds to the length of reports: payload bits of subsets, number of messages of compact blocks."""
    guesses: float
    """Σ_y max_x P(y|x): k times its attackability (docs/mathematics.md §4)."""
    work: float
    """Operations that turn its counters into residue counts, if the tally holds many reports."""


@dataclass(frozen=True)
class BlockFamily(ABC):
    """The blocks of one kind at one ε for a domain, and how they share the bits of a report."""

    protocol: ClassVar[type[ModularProtocol]]
    most_points: ClassVar[int]

    domain_size: int
    epsilon: Fraction
    _known: dict[int, Block | None] = field(default_factory=dict, repr=False, compare=False)

    def block(self, modulus: int) -> Block | None:
        """The block of a prime, or None if the protocol has no good design on it."""
        if modulus not in self._known:
            self._known[modulus] = self._make(modulus)
        return self._known[modulus]

    def _make(self, modulus: int) -> Block | None:
        variance = self.protocol.block_variance(self.domain_size, self.epsilon, modulus)
        if variance is None:
            return None
        design = self.protocol.block_design(modulus, self.epsilon)
        work = design.point_counts_cost(inf, modulus)
        assert work is not None, "built-in designs know their cost"
        odds = exp(self.epsilon)
        if modulus > self.domain_size:  # truncated to the domain
            guesses = BlockResponse(design, self.epsilon).best_guess_sum(self.domain_size)
        else:
            guesses = modulus * odds / (design.block_size * odds + modulus - design.block_size)
        return Block(
            modulus=modulus,
            variance=variance,
            cost=self._cost(modulus, design.block_size, design.counter_count),
            guesses=guesses,
            work=work.operations,
        )

    @staticmethod
    @abstractmethod
    def _cost(points: int, block_size: int, counters: int) -> int:
        """What a block adds to the length of reports."""

    @abstractmethod
    def bits(self, costs: Sequence[int]) -> tuple[float, int]:
        """Mean and largest bits per report of a plan whose blocks have these costs."""

    @abstractmethod
    def affordable_cost(self, count: int, bits: float) -> float:
        """What ``count`` blocks may cost together if the mean report is to take at most ``bits`` bits."""

    def error(self, blocks: Sequence[Block]) -> float:
        """The mean squared error for one report at the flat histogram (docs/mathematics.md §3.3)."""
        moduli, variances = [block.modulus for block in blocks], [block.variance for block in blocks]
        return moduli_error(self.domain_size, moduli, variances)

    def decode_work(self, blocks: Sequence[Block]) -> float:
        """Elementary operations that turn a tally of many reports into frequencies."""
        return sum(block.work for block in blocks) + solving_cost(self.domain_size, len(blocks))


class SubsetBlocks(BlockFamily):
    """All subsets of the residues: ⌈log2 ℓ⌉ bits name the block, about log2 C(m,w) the subset."""

    protocol = ModularSubsetSelection
    most_points = subsets.MOST_POINTS

    @staticmethod
    def _cost(points: int, block_size: int, counters: int) -> int:  # noqa: ARG004 - for compact blocks
        return subset_bits(points, block_size)

    def bits(self, costs: Sequence[int]) -> tuple[float, int]:
        """Bits of selector and payload, on average and at most."""
        selector = index_bits(len(costs))
        return selector + sum(costs) / len(costs), selector + max(costs)

    def affordable_cost(self, count: int, bits: float) -> float:
        """The payload bits that the selector leaves."""
        return (bits - index_bits(count)) * count


class CyclotomicBlocks(BlockFamily):
    """Cyclotomic blocks: one number below Σ e·m names block and message."""

    protocol = CompactModularSubsetSelection
    most_points = cyclotomic.MOST_POINTS

    @staticmethod
    def _cost(points: int, block_size: int, counters: int) -> int:  # noqa: ARG004 - for subsets
        return counters

    def bits(self, costs: Sequence[int]) -> tuple[float, int]:
        """All reports have the same length."""
        bits = index_bits(sum(costs))
        return float(bits), bits

    def affordable_cost(self, count: int, bits: float) -> float:  # noqa: ARG002 - blocks share one number
        """The 2^bits messages that a report can distinguish."""
        return float(1 << max(0, floor(bits)))


_FAMILIES: dict[str, type[BlockFamily]] = {family.protocol.name: family for family in (SubsetBlocks, CyclotomicBlocks)}


@lru_cache(maxsize=16)
def block_family(kind: str, domain_size: int, epsilon: Fraction) -> BlockFamily:
    """The blocks of ``mss`` or ``mss-compact``."""
    if kind not in _FAMILIES:
        raise ParameterError(f"kind must be one of {sorted(_FAMILIES)}, got {kind!r}")
    if domain_size < 2:
        raise ParameterError(f"domain_size must be at least 2, got {domain_size}")
    return _FAMILIES[kind](domain_size, epsilon)


def subset_bits(points: int, block_size: int) -> int:
    """The payload of a subset, exactly as the design has it."""
    if block_size == 1:
        return index_bits(points)
    return quickly_read(points, block_size).payload_bits


@dataclass(frozen=True)
class ModuliCandidate:
    """Moduli for one kind, domain size and ε: ``make_plan(kind, domain_size, epsilon, moduli=candidate.moduli)``.

    >>> from sunzi.planning import evaluate_moduli
    >>> candidate = evaluate_moduli(10, 1, "mss", [5, 11])
    >>> candidate.moduli, candidate.max_bits
    ((5, 11), 9)
    """

    moduli: tuple[int, ...]
    """Distinct primes, ascending."""
    error: float
    """Mean squared error for one report, if all values are equally frequent; for n reports divide by n."""
    bits: float
    """Mean bits per report."""
    max_bits: int
    """Bits of the longest report."""
    attackability: float
    """Success rate of the best guess from one report (docs/mathematics.md §4)."""
    decode_work: float
    """Operations that turn a tally of many reports into frequencies."""

    @property
    def axes(self) -> tuple[float, float, float, float]:
        """Error, bits, attackability and work: less is better on each."""
        return self.error, self.bits, self.attackability, self.decode_work

    @classmethod
    def of(cls, family: BlockFamily, blocks: Sequence[Block], error: float) -> ModuliCandidate:
        """The candidate of some blocks whose error is known."""
        mean, largest = family.bits([block.cost for block in blocks])
        return cls(
            moduli=tuple(sorted(block.modulus for block in blocks)),
            error=error,
            bits=mean,
            max_bits=largest,
            attackability=sum(block.guesses for block in blocks) / (len(blocks) * family.domain_size),
            decode_work=family.decode_work(blocks),
        )


def evaluate_moduli(domain_size: int, epsilon: Epsilon, kind: Kind, moduli: Sequence[int]) -> ModuliCandidate:
    """The exact figures of any set of moduli.

    Parameters
    ----------
    domain_size, epsilon: of the plan.
    kind: ``"mss"`` or ``"mss-compact"``.
    moduli: distinct primes that together distinguish all values.

    >>> evaluate_moduli(10, 1, "mss", [5, 11]).max_bits
    9
    """
    family = block_family(kind, domain_size, parse_epsilon(epsilon))
    blocks = []
    for modulus in sorted(int(modulus) for modulus in moduli):
        block = family.block(modulus)
        if block is None:
            raise ParameterError(f"{kind} has no good block of {modulus} points at epsilon {epsilon}")
        blocks.append(block)
    return ModuliCandidate.of(family, blocks, family.error(blocks))


def reference_error(domain_size: int, epsilon: Epsilon) -> float:
    """The mean squared error of plain subset selection for one report, to compare candidates with; the same for every
    histogram.

    Parameters
    ----------
    domain_size, epsilon: as for :func:`evaluate_moduli`.

    >>> round(reference_error(1024, 1), 2)
    3.67
    """
    return subset_error(domain_size, parse_epsilon(epsilon))


def front(axes: Floats) -> list[int]:
    """Rows of a (sets, 4) array that no other row beats, by ascending error.

    Figures are compared in steps of RESOLUTION, and of rows that agree in all steps the first by exact values is kept;
    so no kept row is dominated by any other row, exactly compared.
    """
    steps = np.floor(np.log(axes) / np.log1p(np.array(RESOLUTION)))
    kept: list[int] = []
    kept_steps = np.empty((0, axes.shape[1]))
    # In this order a row is beaten only by rows before it.
    for row in np.lexsort((*axes.T[::-1], *steps.T[::-1])).tolist():
        if not (kept_steps <= steps[row]).all(axis=1).any():
            kept.append(row)
            kept_steps = np.vstack([kept_steps, steps[row]])
    return sorted(kept, key=lambda row: tuple(axes[row]))


def spread_out(axes: Floats, number: int) -> list[int]:
    """At most ``number`` rows that represent all: the best on each axis, then always the row farthest from those
    already taken.
    """
    if len(axes) <= number:
        return list(range(len(axes)))
    logs = np.log(axes)
    places = (logs - logs.min(axis=0)) / np.maximum(np.ptp(logs, axis=0), 1e-12)
    taken: list[int] = []
    distance = np.full(len(axes), inf)
    for best in np.argmin(axes, axis=0).tolist():
        if best not in taken and len(taken) < number:
            taken.append(best)
            distance = np.minimum(distance, np.linalg.norm(places - places[best], axis=1))
    while len(taken) < number:
        taken.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(places - places[taken[-1]], axis=1))
    return sorted(taken)
