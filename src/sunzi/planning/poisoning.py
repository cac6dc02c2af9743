"""How far clients that lie can push the estimate of one item.

A lying client sends whatever report helps the target most; no randomiser binds it. The best report is the one whose
support for the target, after debiasing, is largest. For protocols with support counts any supporting report gives
(1−q)/Δ, and a share φ of liars adds φ·((1−q)/Δ − f) in expectation.

Modular protocols decode f̂_i = const + Σ_j h_j·s_j (:mod:`sunzi.planning.item_rows`). A liar in block j who names the
block B has s_j = (1_B − q_j)/Δ_j, hence is worth

    v_j = (max_B Σ_{a in B} h_j[a] − q_j·Σh_j)/Δ_j − h_j·g_j

more than an honest report, g_j being the honest residue histogram. Liars choose j too: a share φ_j of all reports makes
up λ_j = φ_j/((1−φ)/ℓ + φ_j) of block j. The expected push Σ_j λ_j v_j is concave in the φ_j, so that the best division
fills the best blocks up to a common marginal gain. It never exceeds φ·ℓ·max_j v_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.designs.response import BlockResponse
from sunzi.errors import ParameterError
from sunzi.planning.item_rows import ItemRow, item_rows
from sunzi.protocols.base import Protocol
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.support import SupportProtocol

SHARE = 0.01
"""The share of lying clients that the axes speak of."""


@dataclass(frozen=True)
class Push:
    """What a share of liars can do to one item."""

    item: int
    share: float
    expected: float
    """By how much the best attack raises the expected estimate of an item that nobody holds, honest values being
    spread evenly."""
    bound: float
    """No attack raises it by more, whatever the honest histogram."""
    shares: tuple[float, ...]
    """How the best attack divides its liars over the blocks."""


def push(protocol: Protocol, share: float = SHARE, item: int = 0) -> Push:
    """How far ``share`` of all clients can push this item."""
    check_share(share)
    if not 0 <= item < protocol.domain_size:
        raise ParameterError(f"item must lie between 0 and {protocol.domain_size - 1}, got {item}")
    if isinstance(protocol, SupportProtocol):
        gain = share * (1 - protocol.probabilities.false) / protocol.probabilities.gap
        return Push(item, share, gain, gain, (share,))
    if isinstance(protocol, ModularProtocol):
        return push_of_row(next(item_rows(protocol, [item])), share)
    raise ParameterError(f"pushes are known for support and modular protocols, not for {protocol.name!r}")


def check_share(share: float) -> None:
    """A share of liars leaves somebody honest."""
    if not 0 < share < 1:
        raise ParameterError(f"the share of lying clients must lie between 0 and 1, got {share}")


def push_of_row(row: ItemRow, share: float = SHARE) -> Push:
    """How far a modular estimate of this item can be pushed."""
    check_share(share)
    parts = list(zip(row.protocol.responses, row.parts, strict=True))
    gains = np.array([best_gain(response, part) for response, part in parts])
    honest = [float(part @ residues) for part, residues in zip(row.parts, row.others_spread_evenly(), strict=True)]
    shares, expected = best_division(gains - honest, share)
    # An honest histogram can take from block j at most the smallest h_j, by sitting on that residue.
    lowest = [float(part.min()) for part in row.parts]
    bound = share * len(parts) * float(np.max(gains - lowest))
    return Push(row.item, share, expected, bound, tuple(shares.tolist()))


def best_gain(response: BlockResponse, part: Floats) -> float:
    """max_B Σ_a h[a]·(1_B[a] − q)/Δ over all blocks."""
    rates = response.probabilities
    return (best_message(response, part)[1] - rates.false * float(part.sum())) / rates.gap


def best_message(response: BlockResponse, part: Floats) -> tuple[Integers, float]:
    """A message whose block makes h add up to most, as its design writes it, and that sum."""
    design = response.design
    if not design.counts_blocks:  # any subset may be named
        largest = np.argpartition(part, part.size - design.block_size)[part.size - design.block_size :]
        return np.sort(largest).astype(np.int64), float(part[largest].sum())
    sums = design.block_sums(part)
    message = int(np.argmax(sums))
    return np.array(message, dtype=np.int64), float(sums[message])


def best_division(gains: Sequence[float] | Floats, share: float) -> tuple[Floats, float]:
    """The φ_j ≥ 0 with Σφ_j = φ that maximise Σ_j v_j·φ_j/(c + φ_j), c = (1−φ)/ℓ, and that maximum.

    At the maximum v_j·c/(c + φ_j)² is the same for all blocks in use, and no block outside would gain more: the blocks
    in use are the best t for some t, and φ_j = √(v_j c)/ρ − c with ρ = Σ√(v_j c)/(φ + t·c).
    """
    values = np.asarray(gains, dtype=np.float64)
    honest = (1 - share) / values.size
    order = np.argsort(-values, kind="stable")
    shares, best = np.zeros(values.size), 0.0
    for number in range(1, int(np.count_nonzero(values > 0)) + 1):
        used = order[:number]
        roots = np.sqrt(values[used] * honest)
        division = roots * (share + number * honest) / roots.sum() - honest
        if division.min() < 0:
            break
        shares = np.zeros(values.size)
        shares[used] = division
        best = float(np.sum(values[used] * division / (honest + division)))
    return shares, best
