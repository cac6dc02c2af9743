"""One set of moduli with its four axes, and the front of those that no other set beats on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from sunzi._typing import Floats
from sunzi.designs.choice import light_variance, optimal_block_size
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.errors import ParameterError
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.plan import Epsilon
from sunzi.planning.blocks import Block, BlockFamily, Histogram, Kind, block_family

# Sets whose axes differ by less than these shares count as equal: error, bits, attackability, work.
RESOLUTION = (0.001, 0.0025, 0.005, 0.05)


@dataclass(frozen=True)
class Candidate:
    """Moduli for one kind, domain size and ε: ``make_plan(kind, domain_size, epsilon, moduli=candidate.moduli)``."""

    moduli: tuple[int, ...]
    """Distinct primes, ascending."""
    error: float
    """Mean variance of the estimates for one report; for n reports divide by n. Of light items, trace(T⁻¹)/k, unless
    the flat histogram was asked for.
    """
    bits: float
    """Mean bits of a report."""
    max_bits: int
    """Bits of the longest report."""
    attackability: float
    """Success of the best guess from one report (docs/mathematics.md §4)."""
    decode_work: float
    """About how many operations turn a tally of many reports into frequencies."""

    @property
    def axes(self) -> tuple[float, float, float, float]:
        """Error, bits, attackability and work: less is better on each."""
        return self.error, self.bits, self.attackability, self.decode_work

    def dominates(self, other: Candidate) -> bool:
        """No worse on any axis, better on one."""
        return self.axes != other.axes and all(
            mine <= theirs for mine, theirs in zip(self.axes, other.axes, strict=True)
        )


def candidate(
    domain_size: int, epsilon: Epsilon, kind: Kind, moduli: Sequence[int], *, histogram: Histogram = "light"
) -> Candidate:
    """The exact axes of any moduli."""
    family = block_family(kind, domain_size, parse_epsilon(epsilon), histogram)
    blocks = []
    for modulus in sorted(int(modulus) for modulus in moduli):
        block = family.block(modulus)
        if block is None:
            raise ParameterError(f"{kind} has no good block of {modulus} points at epsilon {epsilon}")
        blocks.append(block)
    return from_blocks(family, blocks, family.error(blocks))


def from_blocks(family: BlockFamily, blocks: Sequence[Block], error: float) -> Candidate:
    """A candidate of known error."""
    mean, largest = family.bits([block.cost for block in blocks])
    return Candidate(
        moduli=tuple(sorted(block.modulus for block in blocks)),
        error=error,
        bits=mean,
        max_bits=largest,
        attackability=sum(block.guesses for block in blocks) / (len(blocks) * family.domain_size),
        decode_work=family.decoding_work(blocks),
    )


def reference_error(domain_size: int, epsilon: Epsilon, *, histogram: Histogram = "light") -> float:
    """The error of plain subset selection with the optimal block size, of one report: what candidates are compared
    with.
    """
    budget = parse_epsilon(epsilon)
    size = optimal_block_size(domain_size, budget)
    if histogram == "light":
        return light_variance(domain_size, size, budget)
    return BlockResponse(Subsets(domain_size, size), budget).probabilities.variance(1 / domain_size)


def front(axes: Floats) -> list[int]:
    """Rows of a (sets, 4) array that no other row beats, by ascending error.

    Axes are compared in steps of RESOLUTION, and of rows that agree in all steps the first by exact values is kept; so
    no kept row is dominated by any other row, exactly compared.
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
    taken.
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
