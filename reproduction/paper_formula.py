"""The paper's closed form of the error of MSS (its Eq. for MSE_MSS) as printed, to compare it with the truth.

Its covariance diag(π) − ππᵀ holds for subsets of one residue only. For larger ones it has π in place of about π(1−π) in
every direction but one, and subtracts too much in that one; so the printed form exceeds the truth by up to 1/(1−π) ≈
1 + e^−ε, much at small ε and nothing at large ε.
"""

from __future__ import annotations

import numpy as np

import sunzi
from sunzi._typing import Floats


def printed_mse(plan: sunzi.Plan, users: int, chances: Floats) -> float:
    """(1/k)·Tr(G Σ(f) Gᵀ) with Σ = blockdiag(Σ_j) − (ℓ/n²)uuᵀ, n_j = n/ℓ and no ridge, by dense matrices."""
    protocol = plan.protocol
    assert protocol.name == "mss"
    moduli = [response.points for response in protocol.responses]
    size, blocks = plan.domain.size, len(moduli)
    share = users / blocks
    residues = [np.arange(size) % modulus for modulus in moduli]
    rates = protocol.support_probabilities()
    weights = [_weight(rate, modulus, share) for rate, modulus in zip(rates, moduli, strict=True)]
    inverse: Floats = np.linalg.inv(_gram(residues, weights)).astype(np.float64)
    trace, together = 0.0, np.zeros(size)
    for residue, weight, (true, false), modulus in zip(residues, weights, rates, moduli, strict=True):
        gap = true - false
        inclusion = false + gap * np.bincount(residue, weights=chances, minlength=modulus)
        gain = weight * _columns(inverse, residue, modulus)
        scale = 1 / (share * gap**2)
        trace += scale * float((gain**2).sum(axis=0) @ inclusion)
        shifted = gain @ inclusion
        trace -= scale * float(shifted @ shifted)
        together += shifted / gap
    trace -= blocks / users**2 * float(together @ together)
    return trace / size


def _weight(rate: tuple[float, float], modulus: int, share: float) -> float:
    true, false = rate
    inclusion = false + (true - false) / modulus
    return (true - false) ** 2 * share / (inclusion * (1 - inclusion))


def _gram(residues: list[np.ndarray[tuple[int], np.dtype[np.int64]]], weights: list[float]) -> Floats:
    size = residues[0].size
    gram = np.zeros((size, size))
    for residue, weight in zip(residues, weights, strict=True):
        gram += weight * (residue[:, None] == residue)
    return gram


def _columns(inverse: Floats, residue: np.ndarray[tuple[int], np.dtype[np.int64]], modulus: int) -> Floats:
    """T⁻¹A_jᵀ: the columns of the inverse, added up by residue."""
    columns = np.zeros((modulus, inverse.shape[0]))
    np.add.at(columns, residue, inverse)
    return columns.T
