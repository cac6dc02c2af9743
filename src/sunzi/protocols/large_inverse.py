"""The variances of an efficient estimate on a large domain, without its covariance matrix (docs/mathematics.md §10.4).

The information of every block is nearly a multiple of the identity, but for a few heavy residues. So T = T₀ + CΘCᵀ,
with T₀ Toeplitz and few columns in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.numerics.toeplitz import ToeplitzGram, fold, tile

if TYPE_CHECKING:
    from sunzi.protocols.information import BlockInformation

# At most this many numbers in the columns for heavy residues: 256 MiB.
_MOST_CELLS = 1 << 25
# At most this many columns, which take a few seconds on tens of thousands of values.
_MOST_COLUMNS = 512


@dataclass(frozen=True)
class _Arrow:
    """One block's W as diag(D) plus a small part: exact among its heavy residues, and between a heavy residue and the
    light ones, or two light ones, the mean.

    W = diag(typical + excess) + [e_H, 1]·coupling·[e_H, 1]ᵀ, with the excess 0 at heavy residues.
    """

    points: int
    heavy: NDArray[np.intp]
    typical: float
    excess: Floats
    coupling: Floats

    @classmethod
    def of(cls, block: BlockInformation, most: int) -> _Arrow:
        """Ask for the rows of the heavy residues."""
        diagonal, heavy = block.diagonal, block.heavy_residues(most)
        size = diagonal.size
        rows = np.array([block.apply(_unit(size, residue)) for residue in heavy]).reshape(heavy.size, size)
        light = np.ones(size, dtype=np.bool_)
        light[heavy] = False
        among, count = rows[:, heavy], size - heavy.size
        tails = rows[:, light].sum(axis=1)
        whole = block.apply(np.ones(size)).sum()
        pairs = whole - diagonal[light].sum() - 2 * tails.sum() - among.sum()
        level = float(pairs / (count * (count - 1))) if count > 1 else 0.0
        typical = float(diagonal[light].mean() - level)
        coupling = np.empty((heavy.size + 1, heavy.size + 1))
        coupling[:-1, :-1] = among - typical * np.eye(heavy.size)
        coupling[-1, :-1] = coupling[:-1, -1] = tails / count
        coupling[-1, -1] = level
        # From the indicator of the light residues to the vector of ones.
        change = np.eye(heavy.size + 1)
        change[:-1, -1] = -1
        excess = np.where(light, diagonal - level - typical, 0.0)
        return cls(block.points, heavy, typical, excess, change @ coupling @ change.T)


@dataclass(frozen=True, eq=False)
class LargeInverse:
    """V on a large domain: T = T₀ + CΘCᵀ, T₀ Toeplitz and C the indicators of all heavy residue classes and the vector
    of ones, inverted by Woodbury's formula. What else the diagonals of the W_j deviate by counts for the items of that
    residue only.
    """

    gram: ToeplitzGram
    arrows: Sequence[_Arrow]

    @classmethod
    def of(cls, size: int, blocks: Sequence[BlockInformation]) -> LargeInverse:
        """The heaviest residues of all blocks, as many as memory allows."""
        most = max(1, min(_MOST_CELLS // size, _MOST_COLUMNS) // len(blocks))
        arrows = [_Arrow.of(block, most) for block in blocks]
        weights = np.array([arrow.typical for arrow in arrows])
        return cls(ToeplitzGram(size, tuple(arrow.points for arrow in arrows), weights), arrows)

    @cached_property
    def variances(self) -> Floats:
        """diag V."""
        size = self.gram.size
        rank = sum(arrow.heavy.size for arrow in self.arrows) + 1
        columns, coupling, start = np.zeros((rank, size)), np.zeros((rank, rank)), 0
        for arrow in self.arrows:
            for residue in arrow.heavy:
                columns[start, residue :: arrow.points] = 1.0
                start += 1
            places = np.r_[start - arrow.heavy.size : start, rank - 1]
            coupling[np.ix_(places, places)] += arrow.coupling
        columns[-1] = 1.0
        # Any multiple of 11ᵀ leaves V as it is; this one makes T positive definite.
        coupling[-1, -1] += self.gram.weights.sum()
        solved = np.concatenate([self.gram.apply_inverse(part) for part in np.array_split(columns, -(-rank // 8))])
        inner = columns @ solved.T
        small = coupling @ np.linalg.inv(np.eye(rank) + inner @ coupling)
        ones = np.eye(rank)[-1] - small @ inner[:, -1]
        small += np.outer(ones, ones) / float(inner[-1] @ ones)
        total = self.gram.inverse_diagonal() - np.einsum("ri,ri->i", small @ solved, solved)
        for index, arrow in enumerate(self.arrows):
            excess = tile(arrow.excess, size)
            total -= excess * self._own(index) * self._unmoved(index)
        return total

    def own_response(self, index: int) -> Floats:
        """How much f̂_i moves with the block's estimate of its residue."""
        arrow = self.arrows[index]
        deviation = arrow.excess.copy()
        deviation[arrow.heavy] = arrow.coupling.diagonal()[:-1]
        return self._own(index, deviation) * tile(arrow.typical + deviation, self.gram.size)

    def _unmoved(self, index: int) -> Floats:
        """(T₀⁻¹A_jᵀ)[i, i mod m_j]."""
        return self.gram.product_diagonal(self.arrows[index].points)

    def _own(self, index: int, deviation: Floats | None = None) -> Floats:
        """The same for T₀ and the deviation of that one residue, by the formula for a change of rank 1."""
        unmoved, arrow = self._unmoved(index), self.arrows[index]
        deviation = arrow.excess if deviation is None else deviation
        loops = fold(unmoved, arrow.points)[: deviation.size]
        return unmoved / tile(1 + deviation * loops, self.gram.size)


def _unit(size: int, place: int) -> Floats:
    vector = np.zeros(size)
    vector[place] = 1.0
    return vector
