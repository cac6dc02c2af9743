"""The least-squares fit that joins several channels into one histogram, and what it leaves over.

Channel j gives the estimated frequencies s_j of its points: residues, or cells of a view. The histogram f̂ of sum 1
that minimises Σ_j w_j|s_j − A_j f|² is linear in the s_j (docs/mathematics.md §3, §13, §14), so that a fit needs one
function of the protocol: A_j T⁻¹Σ_i w_i A_iᵀ s_i, less its mean, for some of the channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.designs.response import BlockResponse
from sunzi.numerics import simplex
from sunzi.protocols.modular_variance import BlockMoments


class JointFit(Protocol):
    """The fit of one tally. Lists have one entry for each channel with reports."""

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which channels have reports."""

    @property
    def reports(self) -> Sequence[int]:
        """n_j."""

    @property
    def weights(self) -> Floats:
        """w_j, for one report in all."""

    @property
    def moments(self) -> Sequence[BlockMoments]:
        """Second moments of one debiased report."""

    @property
    def responses(self) -> Sequence[BlockResponse]:
        """The block responses."""

    @property
    def estimates(self) -> list[Floats]:
        """s_j; each sums to 1."""

    @property
    def fitted(self) -> list[Floats]:
        """A_j f̂."""

    @property
    def histograms(self) -> list[Floats]:
        """Plausible frequencies of the points: not negative, of sum 1."""

    @property
    def degrees_of_freedom(self) -> int:
        """Σ_j (m_j − 1) less the dimension of the fit."""

    @property
    def item_scores(self) -> Floats:
        """The estimated items over their standard errors; empty where only channels are judged."""

    def image(self, parts: list[Floats]) -> list[Floats]:
        """A_j T⁻¹Σ_i w_i A_iᵀ·part_i, less the mean."""

    def own_shares(self, place: int) -> Floats | float:
        """The diagonal of A_j T⁻¹A_jᵀ on vectors of sum 0."""

    def explained(self, place: int, block: Floats) -> float:
        """gᵀA_j T⁻¹A_jᵀg on vectors of sum 0."""


Solver = Callable[[Sequence[Floats | None], Sequence[int]], list[Floats]]
"""From parts, None for channels without reports, and numbers of channels: A_j T⁻¹Σ_i w_i A_iᵀ·part_i of these, less its
mean.
"""


@dataclass(frozen=True, eq=False)
class SymmetricFit:
    """A fit in which all points of a channel are alike, as the cells of a view are."""

    used: NDArray[np.bool_]
    reports: list[int]
    weights: Floats
    moments: list[BlockMoments]
    responses: list[BlockResponse]
    estimates: list[Floats]
    solver: Solver

    @property
    def _numbers(self) -> list[int]:
        return [int(number) for number in np.flatnonzero(self.used)]

    def _solve(self, parts: dict[int, Floats], wanted: list[int]) -> list[Floats]:
        """For some of the channels with reports, by their places among these."""
        numbers = self._numbers
        every: list[Floats | None] = [None] * len(self.used)
        for place, part in parts.items():
            every[numbers[place]] = part
        return self.solver(every, [numbers[place] for place in wanted])

    def image(self, parts: list[Floats]) -> list[Floats]:
        """One solve."""
        return self._solve(dict(enumerate(parts)), list(range(len(parts))))

    @cached_property
    def fitted(self) -> list[Floats]:
        """The fit of the estimates."""
        return [image + 1 / image.size for image in self.image(self.estimates)]

    @cached_property
    def histograms(self) -> list[Floats]:
        """The fit, projected channel by channel."""
        return [simplex.project(fitted) for fitted in self.fitted]

    def own_shares(self, place: int) -> float:
        """The same for all points."""
        return self._own_shares[place]

    @cached_property
    def _own_shares(self) -> list[float]:
        units = [np.eye(1, estimates.size)[0] for estimates in self.estimates]
        return [float(self._own_image(place, unit)[0]) for place, unit in enumerate(units)]

    def _own_image(self, place: int, block: Floats) -> Floats:
        return self._solve({place: block}, [place])[0] / self.weights[place]

    def explained(self, place: int, block: Floats) -> float:
        """One solve."""
        return float(block @ self._own_image(place, block))

    @cached_property
    def degrees_of_freedom(self) -> int:
        """The dimension of the fit is the trace of its projection."""
        sizes = np.array([estimates.size for estimates in self.estimates])
        return int(sizes.sum() - sizes.size - round(float(sizes * self.weights @ self._own_shares)))

    @property
    def item_scores(self) -> Floats:
        """Views are judged one by one."""
        return np.empty(0)
