"""Your own protocol in one file outside the package: Hadamard response.

The points are the non-zero bit vectors x of length r, the blocks {x : ⟨x,y⟩ = 1 mod 2} for every non-zero y. That is a
2-design with blocks of half the points, the right size for small ε, and the server decodes with one fast Walsh–Hadamard
transform.

A design needs a handful of methods; ``BlockProtocol`` adds everything else (certified privacy, bytes, tallies,
intervals). Run this file to check both with the library's contract suite and to see an estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import sunzi
from sunzi.designs import Design, draw_bounds_array, integer_parameter, only_parameters, register_design
from sunzi.protocols import BlockProtocol, Counters, register
from sunzi.testing import check_design, check_protocol

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class HadamardBlocks(Design):
    """The design; point i and message i stand for the bit vector i + 1."""

    kind = "hadamard"

    length: int

    @property
    def points(self) -> int:
        """The number of non-zero vectors."""
        return 2**self.length - 1

    @property
    def block_size(self) -> int:
        """Half of all vectors."""
        return 2 ** (self.length - 1)

    @property
    def message_count(self) -> int:
        """One block per vector."""
        return self.points

    @cached_property
    def draw_bounds(self) -> NDArray[np.uint64]:
        """Number of choices for the free bits of y, for a block with the value and for one without it."""
        return draw_bounds_array(self.block_size, self.block_size - 1)

    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """All bits of y but one are free; the bit at x's lowest set bit determines the parity. A block without the
        value never uses y = 0.
        """
        vectors = values + 1
        free = np.where(truth, variates[:, 0], variates[:, 1] + np.uint64(1)).astype(np.int64)
        lowest = vectors & -vectors
        spaced = (free & (lowest - 1)) | (free & -lowest) << 1
        parity = np.bitwise_count(spaced & vectors) & 1
        return np.where(parity == truth, spaced, spaced | lowest) - 1

    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether ⟨x,y⟩ is odd."""
        return np.bitwise_count((messages + 1) & (points + 1)) % 2 == 1

    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """(n − W)/2 with W the Walsh–Hadamard transform of the counts."""
        return np.rint(self.spread(counters.dense().astype(np.float64), limit)).astype(np.int64)

    def block_sums(self, values: Floats) -> Floats:
        """The incidence is symmetric, so sums over blocks equal sums over points."""
        return self.spread(np.concatenate([values, np.zeros(self.points - values.size)]), self.points)

    def spread(self, weights: Floats, limit: int) -> Floats:
        """One transform per decoding."""
        table = np.concatenate([[0.0], weights])
        for bit in range(self.length):
            pairs = table.reshape(-1, 2, 2**bit)
            table = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        return (weights.sum() - table[1 : limit + 1]) / 2

    def parameters(self) -> dict[str, Any]:
        """The length of the vectors."""
        return {"length": self.length}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Validate the design's entry in a plan."""
        only_parameters(parameters, ["length"])
        return cls(integer_parameter(parameters, "length", 2, 24))


@dataclass(frozen=True)
class HadamardResponse(BlockProtocol):
    """Blocks of half the points: about SubsetSelection's error for ε up to 1, in log2(k) bits."""

    name = "hadamard"
    designs = frozenset({"hadamard"})

    @classmethod
    def choose_design(cls, domain_size: int, epsilon: Fraction) -> Design:  # noqa: ARG003 - one design for every ε
        """Choose the shortest vectors that give every value a point."""
        return HadamardBlocks(max(2, domain_size.bit_length()))


register_design(HadamardBlocks)
register(HadamardResponse)


def main() -> None:
    """Check the protocol, then use it like any other."""
    check_design(HadamardBlocks(4))
    check_protocol("hadamard", domain_size=20, epsilon=1)
    plan = sunzi.make_plan("hadamard", domain=["red", "green", "blue", "grey"], epsilon=1)
    batch = plan.client().report_batch(["red"] * 6000 + ["blue"] * 4000)
    for row in plan.estimate(plan.tally(batch)).top(4):
        print(f"{row.label:6} {row.frequency:6.3f}  [{row.low:6.3f}, {row.high:6.3f}]")


if __name__ == "__main__":
    main()
