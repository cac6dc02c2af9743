"""The decoders of the paper and of PGR's authors, as published."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsmr

import sunzi
from sunzi._typing import Floats

TOLERANCE = 1e-6
"""Of scipy's LSMR unless told otherwise."""


def dynamic_frequencies(plan: sunzi.Plan, tally: sunzi.Tally) -> Floats:
    """PGR decoded by its authors' dynamic programme."""
    design, rates = plan.protocol.design, plan.protocol.probabilities  # type: ignore[attr-defined]
    counts = design.point_counts(tally.block(0), plan.domain.size, route="dynamic")
    return np.asarray((counts / tally.reports - rates.false) / rates.gap)


class LeastSquares:
    """The paper's decoder of MSS: A_w as an explicit sparse matrix, LSMR, λ = 1/ε² unless another is given."""

    def __init__(self, plan: sunzi.Plan, tally: sunzi.Tally, ridge: float | None = None) -> None:
        protocol: Any = plan.protocol
        size, moduli = plan.domain.size, protocol.moduli
        self.damp = (float(1 / plan.epsilon**2) if ridge is None else ridge) ** 0.5
        self.blocks = []
        for index, response in enumerate(protocol.responses):
            rates, points = response.probabilities, response.design.points
            rate = rates.false + rates.gap / points
            weight = tally.block_reports[index] * rates.gap**2 / (rate * (1 - rate))
            self.blocks.append((tally.block(index).dense(), tally.block_reports[index], rates, weight**0.5))
        offsets = np.concatenate([[0], np.cumsum(moduli)])
        rows = np.concatenate([np.arange(size) % m + offset for m, offset in zip(moduli, offsets, strict=False)])
        roots = np.repeat([root for *_, root in self.blocks], size)
        places = (rows, np.tile(np.arange(size), len(moduli)))
        self.matrix = sparse.csr_array((roots, places), shape=(int(offsets[-1]), size))

    def solve(self, tolerance: float = TOLERANCE) -> tuple[Floats, int]:
        """Frequencies, and the iterations taken."""
        right = [
            root * (counts / max(reports, 1) - rates.false) / rates.gap for counts, reports, rates, root in self.blocks
        ]
        found = lsmr(self.matrix, np.concatenate(right), damp=self.damp, atol=tolerance, btol=tolerance, maxiter=20_000)
        return np.asarray(found[0]), int(found[2])
