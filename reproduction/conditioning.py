"""The condition number of the paper's weighted design matrix A_w, from its Toeplitz Gram matrix.

See docs/mathematics.md §3.1.

cond(A_w)² = λ_max(T)/λ_min(T). Lanczos iterations find both ends, one on T and one on T⁻¹; no matrix is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse.linalg import LinearOperator, eigsh

from sunzi._typing import Floats
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.designs.choice import optimal_block_size
from sunzi.errors import EstimateError
from sunzi.numerics.toeplitz import ToeplitzGram

_TOLERANCE = 1e-6
# Up to this size a dense eigenvalue problem takes no longer than setting up an iteration.
_DENSE_LIMIT = 48
_SCREENING_STEPS = 36
_STEPS_BETWEEN_CHECKS = 6


def paper_weight(modulus: int, epsilon: Fraction) -> float:
    """w_j = Δ²/(π(1−π)) for one report, with π = q + Δ/m. As p + (m−1)q is the block's size ω, π is ω/m."""
    size, odds = optimal_block_size(modulus, epsilon), exp(epsilon)
    true = size * odds / (size * odds + modulus - size)
    gap = (true * modulus - size) / (modulus - 1)
    rate = size / modulus
    return gap**2 / (rate * (1 - rate))


def paper_gram(domain_size: int, moduli: Sequence[int], epsilon: Fraction) -> ToeplitzGram:
    """A_wᵀA_w with equally many reports in every block; how many does not change the condition number."""
    return ToeplitzGram(domain_size, tuple(moduli), np.array([paper_weight(modulus, epsilon) for modulus in moduli]))


def condition_number(domain_size: int, epsilon: Epsilon, moduli: Sequence[int], *, limit: float = inf) -> float:
    """cond(A_w), the paper's κ of these moduli, within about one part in a million.

    It is infinite where it is too large for double precision, and where a few quick steps prove that it exceeds
    ``limit``. Moduli that cannot distinguish all values raise :class:`~sunzi.errors.EstimateError`.
    """
    gram = paper_gram(domain_size, moduli, parse_epsilon(epsilon))
    return inf if limit < inf and surely_exceeds(gram, limit) else gram_condition_number(gram)


def gram_condition_number(gram: ToeplitzGram) -> float:
    """√(λ_max(T)/λ_min(T)) for T = A_wᵀA_w, within about one part in a million; infinite where T cannot be inverted in
    double precision.
    """
    if gram.size <= _DENSE_LIMIT:
        return _dense_condition_number(gram)
    start = _start(gram.size)
    try:
        largest = _largest_eigenvalue(gram.multiply, start)
        return sqrt(largest * _largest_eigenvalue(gram.apply_inverse, start))
    except EstimateError:
        return inf


def _dense_condition_number(gram: ToeplitzGram) -> float:
    lags = np.arange(gram.size)
    eigenvalues = np.linalg.eigvalsh(gram.first_column[np.abs(lags[:, None] - lags)])
    return sqrt(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0 else inf


def _largest_eigenvalue(apply: Callable[[NDArray[Any]], Floats], start: Floats) -> float:
    operator = LinearOperator((start.size, start.size), matvec=apply, dtype=np.float64)
    return float(eigsh(operator, k=1, which="LA", return_eigenvectors=False, tol=_TOLERANCE, v0=start)[0])


def _start(size: int) -> Floats:
    """A start vector with a component in every eigenvector: constants are near the top one, and the seed is fixed."""
    return 1.0 + np.random.default_rng(0).standard_normal(size)


def surely_exceeds(gram: ToeplitzGram, limit: float) -> bool:
    """Whether a few steps of Lanczos already prove that the condition number is above ``limit``.

    Ritz values lie between the extreme eigenvalues, so the root of their ratio is a lower bound on cond(A_w): True is
    certain, False is inconclusive.
    """
    vector = _start(gram.size)
    vector /= sqrt(_inner(vector, vector))
    previous, coupling = np.zeros(gram.size), 0.0
    diagonal: list[float] = []
    couplings: list[float] = []
    for step in range(1, min(_SCREENING_STEPS, gram.size - 1) + 1):
        image = gram.multiply(vector) - coupling * previous
        diagonal.append(_inner(vector, image))
        image -= diagonal[-1] * vector
        coupling = sqrt(_inner(image, image))
        if step % _STEPS_BETWEEN_CHECKS == 0 or coupling == 0.0:
            ritz = eigvalsh_tridiagonal(np.array(diagonal), np.array(couplings))
            if ritz[-1] > limit**2 * (1 + _TOLERANCE) * max(ritz[0], 0.0):
                return True
        if coupling <= _TOLERANCE * diagonal[0]:
            return False
        couplings.append(coupling)
        previous, vector = vector, image / coupling
    return False


def _inner(first: Floats, second: Floats) -> float:
    """Without BLAS, which would start its threads for each of these short sums."""
    return float((first * second).sum())
