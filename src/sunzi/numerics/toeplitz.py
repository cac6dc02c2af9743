"""Sums over residue classes, and the Toeplitz system that recovers a vector from them (docs/mathematics.md §3.1).

A_m[a, x] = 1{x = a mod m} maps a vector over {0, ..., k-1} to its sums over the residue classes of m. For moduli m_j
and weights w_j the Gram matrix

    T = sum_j w_j A_j^T A_j,        T[x, x'] = sum_j w_j 1{m_j divides x - x'}

is Toeplitz. No matrix is ever formed: A is a fold, A^T a tile, and T^-1 follows from its first column u = T^-1 e_0 by
the formula of Gohberg and Semencul. With y = (0, u_{k-1}, ..., u_1) and L(v) the lower triangular Toeplitz matrix of v,

    T^-1 = (L(u) L(u)^T - L(y) L(y)^T) / u_0,

so each entry of T^-1 is its upper left neighbour plus a product: T^-1[i+1, x+1] = T^-1[i, x] + (u_{i+1} u_{x+1} -
y_{i+1} y_{x+1}) / u_0. Rows, the diagonal and the trace are running sums.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, cg

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError

RESIDUAL_TARGET = 2e-10
"""Solutions are refined until their relative residual is below this. We promise 1e-9."""

RESIDUAL_LIMIT = 1e-9
"""Above this relative residual a solution falls back to a slower method, then warns; an inverse is refused."""

# The inverse needs a more exact column: its residual grows by up to the norm of T in a solution.
_COLUMN_TARGET = 1e-12
# Up to this size Levinson's O(k^2) recursion is as fast as conjugate gradients, and less sensitive to conditioning.
_LEVINSON_LIMIT = 1500
_ITERATION_LIMIT = 1500
# Refinement stops when a round leaves more than this share of the residual.
_LEAST_GAIN = 0.5
# Number of intervals of the domain for which `product_floors` keeps a minimum.
_INTERVALS = 512


def fold(vector: NDArray[Any], modulus: int) -> NDArray[Any]:
    """A_m z: the sums of `vector` over each residue class, of length `modulus` (which may exceed the vector's)."""
    rows, tail = divmod(len(vector), modulus)
    body = vector[: rows * modulus].reshape(rows, modulus)
    sums: NDArray[Any] = np.add.reduce(body, axis=0, dtype=vector.dtype)
    sums[:tail] += vector[rows * modulus :]
    return sums


def tile(residues: NDArray[Any], size: int) -> NDArray[Any]:
    """A_m^T s: the vector of length `size` with entry x equal to residues[x mod m], m the length of `residues`."""
    total = np.zeros(size, dtype=residues.dtype)
    _add_tiled(total, residues)
    return total


def _add_tiled(total: NDArray[Any], residues: NDArray[Any]) -> None:
    """Add A_m^T s to `total`, a contiguous vector, in place."""
    rows, tail = divmod(len(total), len(residues))
    end = len(total) - tail
    body = total[:end].reshape(rows, len(residues))
    body += residues
    total[end:] += residues[:tail]


def adjoint(blocks: Iterable[NDArray[Any]], moduli: Sequence[int], weights: ArrayLike, size: int) -> Floats:
    """sum_j w_j A_j^T s_j: the right side of the normal equations."""
    total = np.zeros(size)
    for block, modulus, weight in zip(blocks, moduli, np.asarray(weights, dtype=np.float64).tolist(), strict=True):
        if len(block) != modulus:
            raise ParameterError(f"the block of modulus {modulus} must have {modulus} residues, got {len(block)}")
        _add_tiled(total, weight * block)
    return total


def reversed_column(column: Floats) -> Floats:
    """y = (0, u_{k-1}, ..., u_1) for a column u."""
    return np.concatenate(([0.0], column[:0:-1]))


def _running_differences(vector: Floats) -> Floats:
    """w_0 + (w_1 - w_{k-1}) + ... + (w_i - w_{k-i}) for each i: the sums along diagonals of T^-1 and its products.

    The result is a palindrome, so only half of it is summed, and rounding leaves it one.
    """
    half = (len(vector) + 1) // 2
    sums = np.cumsum(vector[:half] - reversed_column(vector)[:half])
    return np.concatenate((sums, sums[: len(vector) - half][::-1]))


class _Spectra(NamedTuple):
    """What :meth:`ToeplitzGram.apply_inverse` knows of u: see there."""

    twist: NDArray[np.complex128]
    skew: NDArray[np.complex128]
    cyclic: NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class ToeplitzGram:
    """T = sum_j w_j A_j^T A_j for pairwise coprime moduli: products, solutions and diagonals, without the matrix.

    `size` is k, `moduli` are the m_j and `weights` the positive w_j. Raises :class:`EstimateError` unless T has full
    rank. Expensive parts are computed on first use and kept; threads may share an object.
    """

    size: int
    moduli: tuple[int, ...]
    weights: Floats

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ParameterError(f"size must be at least 1, got {self.size}")
        if self.weights.shape != (len(self.moduli),):
            raise ParameterError(f"need one weight per modulus ({len(self.moduli)}), got shape {self.weights.shape}")
        if not (np.isfinite(self.weights) & (self.weights > 0)).all():
            raise ParameterError(f"weights must be positive and finite, got {self.weights.tolist()}")
        product = 1
        for modulus in self.moduli:
            if modulus < 2 or math.gcd(product, modulus) != 1:
                raise ParameterError(f"moduli must be pairwise coprime and at least 2, got {modulus} in {self.moduli}")
            product *= modulus
        # This is necessary and sufficient for full rank (docs/mathematics.md §3.2).
        total = sum(modulus - 1 for modulus in self.moduli)
        if total < self.size - 1 or not self.moduli:
            raise EstimateError(
                f"the moduli do not determine {self.size} frequencies: sum(m - 1) = {total} must be at least "
                f"{self.size - 1}; add moduli, or take larger ones"
            )

    def multiply(self, vector: NDArray[Any]) -> Floats:
        """The product T z, by folding and tiling."""
        return self._combine(self.weights, vector)

    def _combine(self, coefficients: ArrayLike, vector: NDArray[Any]) -> Floats:
        """sum_j c_j A_j^T A_j z."""
        return adjoint((fold(vector, modulus) for modulus in self.moduli), self.moduli, coefficients, self.size)

    @property
    def first_column(self) -> Floats:
        """T e_0: entry x is the weight of the moduli that divide x."""
        column = np.zeros(self.size)
        for modulus, weight in zip(self.moduli, self.weights.tolist(), strict=True):
            column[::modulus] += weight
        return column

    @cached_property
    def inverse_column(self) -> Floats:
        """u = T^-1 e_0. Raises :class:`EstimateError` if rounding leaves a residual above RESIDUAL_LIMIT."""
        unit = np.zeros(self.size)
        unit[0] = 1.0
        column, residual = self._refine(self._solve_without_inverse, unit, _COLUMN_TARGET)
        if not residual <= RESIDUAL_LIMIT:
            raise EstimateError(
                f"the matrix of size {self.size} is too badly conditioned to invert (residual {residual:.1e}); "
                f"spread the moduli more widely or add moduli"
            )
        return column

    def _solve_without_inverse(self, right_side: Floats) -> Floats:
        """About T^-1 b, by Levinson's recursion or conjugate gradients."""
        solution: Floats
        if self.size <= _LEVINSON_LIMIT:
            solution = scipy.linalg.solve_toeplitz(self.first_column, right_side)
        else:
            operator = LinearOperator((self.size, self.size), matvec=self.multiply, dtype=np.float64)
            solution, _ = cg(operator, right_side, rtol=_COLUMN_TARGET, maxiter=_ITERATION_LIMIT)
        return solution

    def _refine(self, solver: Callable[[Floats], Floats], goal: Floats, target: float) -> tuple[Floats, float]:
        """Solve T x = b by x += solver(b - T x) until the residual, relative to b, is below the target or stops
        falling; return x and that residual.
        """
        norm = _norm(goal) or 1.0
        solution = solver(goal)
        residual = goal - self.multiply(solution)
        error = _norm(residual) / norm
        while error > target:
            candidate = solution + solver(residual)
            residual = goal - self.multiply(candidate)
            candidate_error = _norm(residual) / norm
            if not candidate_error <= _LEAST_GAIN * error:
                break
            solution, error = candidate, candidate_error
        return solution, error

    @cached_property
    def _spectra(self) -> _Spectra:
        column = self.inverse_column
        length = scipy.fft.next_fast_len(self.size + 1)
        vectors = np.zeros((2, length))
        vectors[0, : self.size], vectors[1, 1 : self.size + 1] = column, column[::-1]
        twist = np.exp(-1j * np.pi / length * np.arange(length))
        skew = scipy.fft.fft(vectors * twist).conj()
        return _Spectra(twist, skew[0] + 1j * skew[1], scipy.fft.rfft(vectors) / (2 * column[0]))

    def apply_inverse(self, right_sides: NDArray[Any]) -> Floats:
        """T^-1 b for a vector b or each row of a stack, as precisely as the column u tells: the residual is not
        checked.

        With p = (u, 0, ...) and q = (0, u_{k-1}, ..., u_0, 0, ...) of any length n > k, C(v) the circulant matrix of v
        and S(v) the skew-circulant one, T^-1 is the leading part of (C(p) S(p)^T - C(q) S(q)^T) / (2 u_0) (Ammar and
        Gader): Fourier transforms of about half the length that L(u) and L(y) need. Both S(v)^T b are real, so that
        one complex transform yields the two of them.
        """
        if right_sides.shape[-1:] != (self.size,):
            raise ParameterError(f"a right side must have {self.size} entries, got shape {right_sides.shape}")
        twist, skew, cyclic = self._spectra
        spectrum = scipy.fft.fft(right_sides * twist[: self.size], len(twist))
        spectrum *= skew
        inner = scipy.fft.ifft(spectrum, overwrite_x=True)
        inner *= twist.conj()
        outer = scipy.fft.rfft(inner.real) * cyclic[0]
        outer -= scipy.fft.rfft(inner.imag) * cyclic[1]
        result: Floats = scipy.fft.irfft(outer, len(twist))[..., : self.size]
        return result

    def solve(self, right_side: NDArray[Any], *, total: float | None = None) -> Floats:
        """T^-1 b; with a `total`, T^-1 (b + c 1) with the c for which the entries sum to it: the least squares solution
        of that sum.

        The residual relative to b (or b + c 1) is at most 1e-9. If rounding prevents that, since T is nearly singular,
        it is as small as possible, and a :class:`scipy.linalg.LinAlgWarning` says so.
        """
        if right_side.shape != (self.size,):
            raise ParameterError(f"a right side must have {self.size} entries, got shape {right_side.shape}")
        goal = right_side.astype(np.float64)
        if total is None:
            return self._solve(goal)
        # Any constant in b gives the same result. Without it, b is never longer than b + c 1.
        goal -= goal.mean()
        solution = self._solve(goal)
        solution += (total - solution.sum()) / self.ones_solution.sum() * self.ones_solution
        return solution

    def _solve(self, right_side: Floats) -> Floats:
        solution, residual = self._refine(self.apply_inverse, right_side, RESIDUAL_TARGET)
        if residual > RESIDUAL_LIMIT:
            other, other_residual = self._refine(self._solve_without_inverse, right_side, RESIDUAL_TARGET)
            if other_residual < residual:
                solution, residual = other, other_residual
        if residual > RESIDUAL_LIMIT:
            # The text depends on the matrix alone, so Python shows it once per plan.
            warnings.warn(
                f"{len(self.moduli)} moduli from {min(self.moduli)} to {max(self.moduli)} nearly fail to determine "
                f"{self.size} frequencies (condition number above 1e6): expect large standard errors and rounding "
                f"errors; let make_plan or `sunzi plan` choose other moduli",
                scipy.linalg.LinAlgWarning,
                stacklevel=2,
            )
        return solution

    @cached_property
    def ones_solution(self) -> Floats:
        """tau = T^-1 1: the direction in which an estimate is moved to sum to 1."""
        return self._solve(np.ones(self.size))

    @cached_property
    def ones_spreads(self) -> Floats:
        """For each modulus, the sum of the squared deviations of A_j tau from their mean."""
        folded = (fold(self.ones_solution, modulus) for modulus in self.moduli)
        return np.array([float(np.square(block - block.mean()).sum()) for block in folded])

    def inverse_rows(self, count: int) -> Iterator[tuple[slice, Floats]]:
        """All rows of T^-1 in stacks of at most `count`, each with the slice of its row numbers, in O(k) per row."""
        column = self.inverse_column
        shifted, last = reversed_column(column), np.zeros(self.size)
        for start in range(0, self.size, count):
            place = slice(start, min(start + count, self.size))
            rows = np.outer(column[place], column / column[0])
            rows -= np.outer(shifted[place], shifted / column[0])
            for row in rows:
                row[1:] += last[:-1]
                last = row
            last = last.copy()  # the caller may write to the stack
            yield place, rows

    def inverse_trace(self) -> float:
        """trace T^-1 = sum_i (k - 2i) u_i^2 / u_0."""
        column = self.inverse_column
        return float(np.arange(self.size, -self.size, -2) @ column**2 / column[0])

    def inverse_diagonal(self) -> Floats:
        """The diagonal of T^-1."""
        column = self.inverse_column
        return _running_differences(column**2 / column[0])

    def product_diagonal(self, modulus: int) -> Floats:
        """diag(T^-1 A_m^T A_m) for any modulus m, in O(k).

        B = A_m^T A_m is Toeplitz, so the step from entry i to the next is (u (B u) - y (B y))_{i+1} / u_0, less the
        entry T^-1[i, k-1] = y_{i+1} that leaves on the right if m divides k-1-i. That entry is what y (B y) lacks to be
        u (B u) reversed, since y has all of u but u_0: the step is (w_{i+1} - w_{k-1-i}) / u_0 with w = u (B u).
        """
        column = self.inverse_column
        return _running_differences(column * tile(fold(column, modulus) / column[0], self.size))

    @cached_property
    def product_floors(self) -> Floats:
        """For each modulus, the minimum of the squared :meth:`product_diagonal` over each of n <= 512 intervals of
        ceil(k/n) entries (the last may have fewer).
        """
        # For s = ceil(k/512) entries there are n = ceil(k/s) intervals; ceil(k/n) = s, as n(s-1) <= 512(s-1) < k.
        starts = np.arange(0, self.size, -(-self.size // _INTERVALS))
        return np.array([np.minimum.reduceat(self.product_diagonal(modulus) ** 2, starts) for modulus in self.moduli])

    def sandwich_diagonal(self, coefficients: ArrayLike) -> Floats:
        """diag(T^-1 T_2 T^-1), T_2 = sum_j c_j A_j^T A_j, in one solve.

        With v = T^-1 T_2 u and y_v = (0, v_{k-1}, ..., v_1) it is [2 cumsum(u v) - 2 cumsum(y y_v) - v_0 diag T^-1] /
        u_0: running differences of u (2 v - v_0 / u_0 u) / u_0.
        """
        given = np.asarray(coefficients, dtype=np.float64)
        if given.shape != self.weights.shape:
            raise ParameterError(f"need one coefficient per modulus ({len(self.moduli)}), got shape {given.shape}")
        column = self.inverse_column
        image = self._solve(self._combine(given, column))
        return _running_differences(column * (2 * image - image[0] / column[0] * column) / column[0])


def _norm(vector: Floats) -> float:
    """By scipy, since numpy's norm overflows where a square does."""
    return float(scipy.linalg.norm(vector, check_finite=False))
