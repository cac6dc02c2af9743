"""One item of a modular estimate as a linear function of the residue estimates.

See docs/mathematics.md §3 and docs/mathematics.md §3.3.

The decoder is f̂ = T⁻¹Σ_j w_j A_jᵀ s_j, moved along τ = T⁻¹1 so that it sums to 1. Its row for item i is

    f̂_i = τ_i/Στ + Σ_j h_j·s_j,        h_j = w_j·A_j r,        r = T⁻¹e_i − (τ_i/Στ)·τ,

one solve an item. Whatever is asked of a single item, its variance under any histogram or how far liars can push it,
follows from the h_j exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sunzi._typing import Floats
from sunzi.numerics.toeplitz import fold
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.modular_variance import BlockMoments


@dataclass(frozen=True)
class ItemRow:
    """The h_j of one item."""

    protocol: ModularProtocol
    item: int
    parts: tuple[Floats, ...]

    def others_spread_evenly(self, share: float = 0.0) -> list[Floats]:
        """The residue histograms if this item holds ``share`` and all the others hold equally much of the rest."""
        size = self.protocol.domain_size
        histograms = []
        for modulus in self.protocol.moduli:
            residues: Floats = fold(np.ones(size), modulus)
            own = self.item % modulus
            residues[own] -= 1
            residues *= (1 - share) / (size - 1)
            residues[own] += share
            histograms.append(residues)
        return histograms

    def population_variance(self, residues: Sequence[Floats]) -> float:
        """n·Var(f̂_i) about a population with these residue histograms, every block getting n/ℓ reports."""
        moments = self.protocol.moments
        blocks = zip(self.parts, moments, residues, strict=True)
        return len(moments) * sum(_quadratic_form(part, moment, block) for part, moment, block in blocks)

    def variance_by_share(self) -> tuple[float, float, float]:
        """a, b, c with n·Var(f̂_i) = a + b·f + c·f² about the users at hand, if they hold this item to a share f and the
        others evenly. S_j is quadratic in the histogram, so three values say it all.
        """
        at_zero, at_half, at_one = (self.population_variance(self.others_spread_evenly(f)) for f in (0.0, 0.5, 1.0))
        square = 2 * (at_zero + at_one) - 4 * at_half
        # The sampling of users, f(1−f)/n, does not concern the users at hand.
        return at_zero, at_one - at_zero - square - 1, square + 1


def item_rows(protocol: ModularProtocol, items: Iterable[int]) -> Iterator[ItemRow]:
    """The rows of some items, one at a time: those of a large domain take much memory."""
    for item in items:
        unit = np.zeros(protocol.domain_size)
        unit[item] = 1.0
        row = protocol.gram.solve(unit, total=0.0)
        blocks = zip(protocol.planned_weights.tolist(), protocol.moduli, strict=True)
        yield ItemRow(protocol, item, tuple(weight * fold(row, modulus) for weight, modulus in blocks))


def _quadratic_form(part: Floats, moments: BlockMoments, residues: Floats) -> float:
    """hᵀS h with S = diag(d0 + d1·g) + α11ᵀ + β(1gᵀ + g1ᵀ) − ggᵀ."""
    total, mean = float(part.sum()), float(residues @ part)
    diagonal = float((moments.light + moments.heavy * residues) @ part**2)
    return diagonal + moments.constant * total**2 + 2 * moments.mixed * total * mean - mean**2
