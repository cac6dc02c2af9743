"""The paper's closed form of the error of MSS (its Eq. for MSE_MSS) as printed, to compare it with the truth.

Its covariance diag(π) − ππᵀ holds for subsets of one residue only. For larger ones it has π in place of about π(1−π) in
every direction but one, and subtracts too much in that one; so the printed form exceeds the truth by up to 1/(1−π) ≈
1 + e^−ε, much at small ε and nothing at large ε.

No matrix is formed: Tr(G·diag(v)·Gᵀ) is the mean of |G(√v∘z)|² over random signs z, and each product with G is one
Toeplitz solution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import sunzi
from sunzi._typing import Floats
from sunzi.numerics.toeplitz import ToeplitzGram, adjoint, fold

_ENTRIES = 65_536
"""Random signs per trace, over all probes: the relative error of a trace is about √(2/entries) = 0.6 %."""


def printed_mse(plan: sunzi.Plan, users: int, histograms: Sequence[Floats], probes: int | None = None) -> list[float]:
    """(1/k)·Tr(G Σ(f) Gᵀ) for each histogram f, with Σ = blockdiag(Σ_j) − (ℓ/n²)uuᵀ, n_j = n/ℓ and no ridge."""
    protocol = plan.protocol
    assert protocol.name == "mss"
    moduli = tuple(response.points for response in protocol.responses)
    size, share = plan.domain.size, users / len(moduli)
    rates = protocol.support_probabilities()
    weights = np.array([_weight(rate, modulus, share) for rate, modulus in zip(rates, moduli, strict=True)])
    gram = ToeplitzGram(size, moduli, weights)

    def gained(blocks: list[Floats]) -> Floats:
        return gram.solve(adjoint(blocks, moduli, weights, size))

    gaps = [true - false for true, false in rates]
    generator = np.random.default_rng(0)
    probes = probes or max(2, _ENTRIES // size)
    signs = [[generator.choice((-1.0, 1.0), modulus) for modulus in moduli] for _ in range(probes)]
    found = []
    for chances in histograms:
        inclusions = [
            false + gap * fold(chances, modulus) for (_, false), gap, modulus in zip(rates, gaps, moduli, strict=True)
        ]
        roots = [np.sqrt(rate / share) / gap for rate, gap in zip(inclusions, gaps, strict=True)]
        products = [gained([root * sign for root, sign in zip(roots, each, strict=True)]) for each in signs]
        trace = float(np.mean([product @ product for product in products]))
        together = np.zeros(size)
        for index, (rate, gap) in enumerate(zip(inclusions, gaps, strict=True)):
            alone = gained([rate / gap if place == index else np.zeros(m) for place, m in enumerate(moduli)])
            trace -= float(alone @ alone) / share
            together += alone
        trace -= len(moduli) / users**2 * float(together @ together)
        found.append(trace / size)
    return found


def _weight(rate: tuple[float, float], modulus: int, share: float) -> float:
    true, false = rate
    inclusion = false + (true - false) / modulus
    return (true - false) ** 2 * share / (inclusion * (1 - inclusion))
