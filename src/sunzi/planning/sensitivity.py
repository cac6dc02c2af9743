"""The exact error of a set of moduli, and what any other modulus would do to it, all of them from two solves.

With T = Σ_j M_j/d_j, M_m = A_mᵀA_m, the error is ℓ·trace(T⁻¹)/k. A block of modulus m and variance d takes about
φ/(1+ρ) off the trace, where φ = trace(T⁻¹M_mT⁻¹)/d is the slope and ρ = trace(T⁻¹M_m)/(dm) the mean leverage of its
residues. M_m is Toeplitz with ones at the lags that m divides, so both traces are sums of the diagonals of T⁻² and T⁻¹
at those lags, and those of all lags come from a handful of Fourier transforms (docs/mathematics.md §3.1, extended to
sums over i of T⁻²[i, i+L]).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft

from sunzi._typing import Floats
from sunzi.numerics.toeplitz import ToeplitzGram, reversed_column


def diagonal_sums(gram: ToeplitzGram) -> tuple[Floats, Floats]:
    """Σ_i T⁻¹[i, i+L] and Σ_i T⁻²[i, i+L] for every lag L in [0, k).

    With u = T⁻¹e_0, v = T⁻¹u, and y, z the two reversed as in Gohberg–Semencul's formula, T⁻¹[i, i+L] is the running
    sum of u_i·u_{i+L} − y_i·y_{i+L} over u_0, and T⁻²[i, i+L] that of u_i·v_{i+L} + v_i·u_{i+L} − y_i·z_{i+L} −
    z_i·y_{i+L} over u_0, less v_0/u_0 times the former. A running sum, summed, is a sum with the weights k − (i+L).
    """
    size, column = gram.size, gram.inverse_column
    image = gram.solve(column)
    vectors = np.stack([column, image, reversed_column(column), reversed_column(image)])
    length = fft.next_fast_len(2 * size - 1, real=True)
    plain = fft.rfft(vectors, length, axis=1).conj()
    weighted = fft.rfft(vectors * np.arange(size, 0, -1.0), length, axis=1)
    products = np.stack(
        [
            plain[0] * weighted[0] - plain[2] * weighted[2],
            plain[0] * weighted[1] + plain[1] * weighted[0] - plain[2] * weighted[3] - plain[3] * weighted[2],
        ]
    )
    first, second = fft.irfft(products, length, axis=1)[:, :size] / column[0]
    return first, second - image[0] / column[0] * first


class Multiples:
    """For fixed moduli, sums of a symmetric sequence over all lags that each of them divides."""

    def __init__(self, size: int, moduli: Sequence[int]) -> None:
        lags = [np.arange(0, size, modulus) for modulus in moduli]
        self._lags = np.concatenate(lags)
        self._starts = np.cumsum([0, *(each.size for each in lags[:-1])])

    def sums(self, by_lag: Floats) -> Floats:
        """s_0 + 2·Σ_{L>0, m|L} s_L for every modulus m."""
        doubled = 2.0 * by_lag
        doubled[0] = by_lag[0]
        return np.add.reduceat(doubled[self._lags], self._starts)


def trace_reductions(gram: ToeplitzGram, multiples: Multiples, moduli: ArrayLike, variances: ArrayLike) -> Floats:
    """About how much one more block, of each of these moduli and variances, takes off trace(T⁻¹)."""
    inverse, squared = diagonal_sums(gram)
    precision = 1.0 / np.asarray(variances, dtype=np.float64)
    slope = multiples.sums(squared) * precision
    leverage = multiples.sums(inverse) * precision / np.asarray(moduli)
    return slope / (1.0 + leverage)
