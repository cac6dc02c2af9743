"""The estimate of one item as a function of the reports: its variance, and how far fake reports can push it.

A fake client sends the report that helps its target most; no randomiser binds it. With support counts any supporting
report adds (1−q)/Δ, so a share φ of fake clients adds φ·((1−q)/Δ − f) in expectation.

Modular protocols decode f̂ = T⁻¹Σ_j w_j A_jᵀ s_j, moved along τ = T⁻¹1 so that it sums to 1 (docs/mathematics.md §3).
The row of this linear map for item i is

    f̂_i = τ_i/Στ + Σ_j h_j·s_j,        h_j = w_j·A_j r,        r = T⁻¹e_i − (τ_i/Στ)·τ.

A fake client in block j that names the block B has s_j = (1_B − q_j)/Δ_j, hence adds

    v_j = (max_B Σ_{a in B} h_j[a] − q_j·Σh_j)/Δ_j − h_j·g_j

more than an honest report, where g_j is the honest residue histogram. Fake clients choose j too: a share φ_j of all
reports makes up λ_j = φ_j/((1−φ)p_j + φ_j) of block j, p_j = 1/ℓ the share of honest reports. The expected push
Σ_j λ_j v_j is concave in the φ_j, so the best division fills the best blocks up to a common marginal gain. It never
exceeds φ·max_j v_j/p_j: concave functions lie below their tangents at φ_j = φ·p_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.numerics.toeplitz import ToeplitzGram, fold
from sunzi.protocols.modular_variance import BlockMoments, sampling_variance

if TYPE_CHECKING:
    from sunzi.designs.response import BlockResponse


@dataclass(frozen=True)
class Push:
    """How far a share of fake clients can push the estimate of one item.

    >>> from sunzi import make_plan, planning
    >>> push = planning.push_bound(make_plan("grr", 16, 1), share=0.01)
    >>> push.share, push.expected <= push.bound
    (0.01, True)
    """

    item: int
    share: float
    expected: float
    """How much the best attack raises the expected estimate of an item that nobody holds, if honest users are spread
    evenly over the other items.
    """
    bound: float
    """No attack raises it by more, for any honest histogram."""
    shares: tuple[float, ...]
    """How the best attack divides the fake clients over the blocks."""


def check_share(share: float) -> None:
    """Refuse a share of fake clients that is not between 0 and 1."""
    if not 0 < share < 1:
        raise ParameterError(f"the share of fake clients must lie between 0 and 1, got {share}")


@dataclass(frozen=True)
class DecoderRow(ABC):
    """How the estimate of one item depends on the reports."""

    item: int

    @property
    @abstractmethod
    def flat_variance(self) -> float:
        """n·Var of the estimate about the actual users if all values are equally frequent: what ``expected_mse``
        averages.
        """

    @property
    def push_cost(self) -> int:
        """About how many numbers :meth:`push` looks at."""
        return 1

    @abstractmethod
    def variance_by_share(self) -> tuple[float, float, float]:
        """a, b, c such that n·Var = a + b·f + c·f² about the actual users, if a share f holds this item and the others
        are spread evenly.
        """

    @abstractmethod
    def push(self, share: float) -> Push:
        """How far ``share`` of all clients can push the estimate."""


@dataclass(frozen=True)
class SupportRow(DecoderRow):
    """An item with its own support count."""

    domain_size: int
    probabilities: SupportProbabilities

    @property
    def flat_variance(self) -> float:
        """The variance of an item of share 1/k."""
        return self.probabilities.variance(1 / self.domain_size)

    def variance_by_share(self) -> tuple[float, float, float]:
        """The coefficients of 1, f and f²; the variance is linear in f."""
        empty = self.probabilities.variance(0.0)
        return empty, self.probabilities.variance(1.0) - empty, 0.0

    def push(self, share: float) -> Push:
        """φ·(1−q)/Δ; no attack does better."""
        check_share(share)
        gain = share * (1 - self.probabilities.false) / self.probabilities.gap
        return Push(self.item, share, gain, gain, (share,))


@dataclass(frozen=True)
class ModularRow(DecoderRow):
    """An item, or a sum of items, of a modular estimate; ``parts`` are the h_j."""

    domain_size: int
    variance: float
    """The item's part of :func:`~sunzi.protocols.modular_variance.flat_error`."""
    parts: tuple[Floats, ...]
    responses: tuple[BlockResponse, ...]
    moments: tuple[BlockMoments, ...]

    @property
    def flat_variance(self) -> float:
        """From the diagonal of T⁻¹."""
        return self.variance

    @property
    def push_cost(self) -> int:
        """Every message, or every point where all subsets are messages."""
        return sum(response.design.counter_count for response in self.responses)

    def others_spread_evenly(self, share: float = 0.0) -> list[Floats]:
        """The residue histograms if ``share`` of the users hold this item and the others are spread evenly."""
        histograms = []
        for moments in self.moments:
            residues: Floats = fold(np.ones(self.domain_size), moments.points)
            own = self.item % moments.points
            residues[own] -= 1
            residues *= (1 - share) / (self.domain_size - 1)
            residues[own] += share
            histograms.append(residues)
        return histograms

    def population_variance(self, residues: Sequence[Floats]) -> float:
        """n·Var(f̂_i) about a population with these residue histograms, each block getting n/ℓ reports."""
        blocks = zip(self.parts, self.moments, residues, strict=True)
        return len(self.parts) * sum(_quadratic_form(part, moment, block) for part, moment, block in blocks)

    def variance_by_share(self) -> tuple[float, float, float]:
        """Var is quadratic in f, so three values determine it."""
        at_zero, at_half, at_one = (self.population_variance(self.others_spread_evenly(f)) for f in (0.0, 0.5, 1.0))
        square = 2 * (at_zero + at_one) - 4 * at_half
        # The sampling of users, f(1−f)/n, is not an error about the actual users.
        return at_zero, at_one - at_zero - square - 1, square + 1

    def push(self, share: float) -> Push:
        """The best report of every block, and the best division over the blocks."""
        check_share(share)
        pairs = zip(self.responses, self.parts, strict=True)
        gains = np.array([response.largest_gain(part) for response, part in pairs])
        honest = [float(part @ block) for part, block in zip(self.parts, self.others_spread_evenly(), strict=True)]
        shares, expected = best_division(gains - honest, share)
        # Honest users take the least from block j if they all sit on the residue of the smallest h_j.
        lowest = [float(part.min()) for part in self.parts]
        bound = share * len(self.parts) * float(np.max(gains - lowest))
        return Push(self.item, share, expected, bound, tuple(shares.tolist()))


def modular_rows(
    gram: ToeplitzGram, responses: tuple[BlockResponse, ...], moments: tuple[BlockMoments, ...], items: Iterable[int]
) -> Iterator[ModularRow]:
    """The rows of some items in the linear map with the weights of ``gram``, one solve per item."""
    ones = gram.ones_solution
    population = gram.inverse_diagonal() - ones**2 / ones.sum()
    for item in items:
        unit = np.zeros(gram.size)
        unit[item] = 1.0
        row = gram.solve(unit, total=0.0)
        blocks = zip(gram.weights.tolist(), gram.moduli, strict=True)
        parts = tuple(weight * fold(row, modulus) for weight, modulus in blocks)
        variance = float(population[item]) - sampling_variance(gram.size)
        yield ModularRow(item, gram.size, variance, parts, responses, moments)


def _quadratic_form(part: Floats, moments: BlockMoments, residues: Floats) -> float:
    """hᵀS h with S = diag(d0 + d1·g) + α11ᵀ + β(1gᵀ + g1ᵀ) − ggᵀ (docs/mathematics.md §3.3)."""
    total, mean = float(part.sum()), float(residues @ part)
    diagonal = float((moments.light + moments.heavy * residues) @ part**2)
    return diagonal + moments.constant * total**2 + 2 * moments.mixed * total * mean - mean**2


def best_division(
    gains: Sequence[float] | Floats, share: float, block_shares: Floats | None = None
) -> tuple[Floats, float]:
    """The φ_j ≥ 0 with Σφ_j = φ that maximise Σ_j v_j·φ_j/(c_j + φ_j), c_j = (1−φ)p_j, and that maximum.

    At the maximum v_j·c_j/(c_j + φ_j)² is the same for all blocks in use, and no other block would gain more: the
    blocks in use are the t with the largest v_j/c_j for some t, and φ_j = √(v_j c_j)/ρ − c_j with
    ρ = Σ√(v_j c_j)/(φ + Σc_j).

    Parameters
    ----------
    gains: v_j of every block.
    share: φ.
    block_shares: p_j of every block; by default all are equal.
    """
    values = np.asarray(gains, dtype=np.float64)
    honest = (1 - share) * (np.full(values.size, 1 / values.size) if block_shares is None else block_shares)
    order = np.argsort(-values / honest, kind="stable")
    shares, best = np.zeros(values.size), 0.0
    for number in range(1, int(np.count_nonzero(values > 0)) + 1):
        used = order[:number]
        roots = np.sqrt(values[used] * honest[used])
        division = roots * (share + honest[used].sum()) / roots.sum() - honest[used]
        if division.min() < 0:
            break
        shares = np.zeros(values.size)
        shares[used] = division
        best = float(np.sum(values[used] * division / (honest[used] + division)))
    return shares, best
