"""The inverse of a symmetric positive definite Toeplitz matrix, from its first column alone.

Let T be such a matrix of size k, u = T^-1 e_0 and y = (0, u_{k-1}, ..., u_1). Gohberg and Semencul (MATH 3.1):

    T^-1 = (L(u) L(u)^T - L(y) L(y)^T) / u_0,        L(.) the lower triangular Toeplitz matrix of a vector.

So the inverse is applied by a fixed number of Fourier transforms, and its diagonal and trace are running sums. No
matrix is formed: everything here takes O(k) memory and O(k log k) time.
"""

import copy
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
from numpy.typing import NDArray

from sunzi.errors import EstimateError

Floats = NDArray[np.float64]
Precision = type[np.float32] | type[np.float64]
Apply = Callable[[NDArray[Any]], NDArray[Any]]
"""A linear map in one precision. It may return the same buffer each time: use that before the next call."""

RESIDUAL_TARGET = 3e-11
"""Where the refinement of the inverse column stops. Solutions inherit about this relative residual; we promise 1e-9."""

RESIDUAL_ACCEPTED = 1e-9
"""The worst residual still returned where rounding stops the refinement earlier: condition numbers above about 1e6."""

ITERATION_LIMIT = 1500
"""Conjugate gradient steps, all sweeps together, before the matrix is called too badly conditioned."""

# Up to this size Levinson's O(k^2) recursion is as fast as iterating, and it shrugs off bad conditioning.
_LEVINSON_LIMIT = 1500
# From this residual on Newton steps square it, each at the price of a few iterations.
_FIRST_SWEEP = 1e-4
_FIRST_LIMIT = 300  # single precision gains nothing from more
_LATER_SWEEPS = 1e-3
# Rows of a stack are transformed together up to this many numbers: more would leave the cache.
_BATCH_CELLS = 1 << 16


def reversed_column(column: NDArray[Any]) -> NDArray[Any]:
    """Return y = (0, u_{k-1}, ..., u_1) for a column u."""
    shifted = np.empty_like(column)
    shifted[0] = 0
    shifted[1:] = column[:0:-1]
    return shifted


class NegacyclicTransform:
    """Products of real polynomials of degree < k, truncated to degree < k, as products of N >= k complex numbers.

    Polynomials are taken modulo x^(2N) + 1: evaluated at the N roots exp(-i pi (4f+1) / 2N), which with their
    conjugates are all the roots. Half the length of a padded real transform, and, since a product needs no particular
    order of the roots, the length N = rows * columns is done as short transforms along both axes without the usual
    transposition. That is over twice as fast as one long `scipy.fft.rfft`, which runs out of cache. Guarantees:
    conjugating a spectrum transposes the (truncated) multiplication; no state is written after construction.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        rows = 1 if size < 4096 else 1 << round(math.log2(size) / 2)
        columns = scipy.fft.next_fast_len(-(-size // rows), real=True)
        self.shape = (rows, columns)
        length = rows * columns
        self._entering: NDArray[Any] = np.exp(-0.5j * np.pi * np.arange(rows) / rows)[:, None]
        self._leaving: NDArray[Any] = self._entering / length
        self._twiddles: NDArray[Any] = self._twiddle_table(rows, columns)

    @staticmethod
    def _twiddle_table(rows: int, columns: int) -> NDArray[np.complex128]:
        """exp(-2 pi i (row + 1/4) column / N), by doubling the rows: products are cheaper than exponentials."""
        turns = np.arange(columns) / (rows * columns)
        table = np.empty((rows, columns), dtype=np.complex128)
        table[0] = np.exp(-0.5j * np.pi * turns)
        done = 1
        while done < rows:
            np.multiply(table[:done], np.exp(-2j * np.pi * done * turns), out=table[done : 2 * done])
            done *= 2
        return table

    @cached_property
    def single(self) -> "NegacyclicTransform":
        """The same transform in single precision: about half the time and memory."""
        narrow = copy.copy(self)
        narrow._entering, narrow._leaving, narrow._twiddles = (
            table.astype(np.complex64) for table in (self._entering, self._leaving, self._twiddles)
        )
        return narrow

    def forward(self, values: NDArray[Any]) -> NDArray[Any]:
        """Spectra of a (..., size) stack of real vectors, of shape (..., rows, columns)."""
        rows, columns = self.shape
        padded = np.zeros((*values.shape[:-1], rows * columns), dtype=self._entering.dtype)
        padded.real[..., : self.size] = values
        spectrum = padded.reshape(*values.shape[:-1], rows, columns)
        spectrum *= self._entering
        if rows > 1:
            spectrum = scipy.fft.fft(spectrum, axis=-2, overwrite_x=True)
        spectrum *= self._twiddles
        result: NDArray[Any] = scipy.fft.fft(spectrum, axis=-1, overwrite_x=True)
        return result

    def backward(self, conjugated: NDArray[Any]) -> NDArray[Any]:
        """Real vectors, truncated to `size`, from *conjugated* spectra; the argument is overwritten.

        The inverse transform is the conjugate of the forward one of the conjugate, and a conjugate's real part is free.
        """
        rows, columns = self.shape
        values = scipy.fft.fft(conjugated, axis=-1, overwrite_x=True)
        values *= self._twiddles
        if rows > 1:
            values = scipy.fft.fft(values, axis=-2, overwrite_x=True)
        values *= self._leaving
        flat = values.reshape(*values.shape[:-2], rows * columns)
        result: NDArray[Any] = flat.real[..., : self.size]
        return result


class ToeplitzInverse:
    """T^-1 of a symmetric positive definite Toeplitz T, given (an approximation of) its first column u; never formed.

    The relative residual |T x - b| / |b| of a solution is about that of u, |T u - e_0|, down to a small multiple of
    rounding.
    """

    def __init__(self, column: Floats, transform: NegacyclicTransform) -> None:
        self.column = column
        self._transform = transform

    @cached_property
    def _spectra(self) -> NDArray[Any]:
        """The spectra of u and y, one upon the other."""
        return self._transform.forward(np.stack([self.column, reversed_column(self.column)]))

    @cached_property
    def _single_spectra(self) -> NDArray[Any]:
        column = self.column.astype(np.float32)
        return self._transform.single.forward(np.stack([column, reversed_column(column)]))

    def solve(self, right_side: NDArray[Any], *, single: bool = False) -> NDArray[Any]:
        """T^-1 b for one vector or each row of a stack, in six transforms a row; `single` halves the time at a relative
        error near 1e-6 cond(T).
        """
        size = self._transform.size
        stack = right_side.reshape(-1, size)
        result = np.empty(stack.shape, dtype=np.float32 if single else np.float64)
        batch = max(1, _BATCH_CELLS // size)
        for start in range(0, len(stack), batch):
            result[start : start + batch] = self._apply(stack[start : start + batch], single)
        return result.reshape(right_side.shape)

    def _apply(self, rows: NDArray[Any], single: bool) -> NDArray[Any]:
        transform = self._transform.single if single else self._transform
        spectra = self._single_spectra if single else self._spectra
        spectrum = transform.forward(rows[:, None])
        np.conjugate(spectrum, out=spectrum)
        halves = transform.backward(spectrum * spectra)  # L(u)^T b and L(y)^T b
        products = transform.forward(halves)
        del spectrum, halves  # at ten million entries each of these is a good part of a gigabyte
        products *= spectra
        difference = products[:, 0]
        difference -= products[:, 1]
        np.conjugate(difference, out=difference)
        result = transform.backward(difference)
        result /= result.dtype.type(self.column[0])
        return result

    def diagonal(self) -> Floats:
        """diag T^-1 = (cumsum(u^2) - cumsum(y^2)) / u_0: half of it, for it reads the same backwards."""
        size = len(self.column)
        half = (size + 1) // 2
        result = np.empty(size)
        np.cumsum(self.column[:half] ** 2 - reversed_column(self.column)[:half] ** 2, out=result[:half])
        result[:half] /= self.column[0]
        result[half:] = result[: size - half][::-1]
        return result

    def trace(self) -> float:
        """trace T^-1 = sum_i (k - 2i) u_i^2 / u_0."""
        size = len(self.column)
        return float(np.dot(np.arange(size, -size, -2, dtype=np.float64), self.column**2) / self.column[0])


def invert(first_column: Floats, operators: Callable[[Precision], tuple[Apply, Apply]]) -> ToeplitzInverse:
    """Solve T u = e_0 and return the inverse that u spells out.

    `operators` makes, in a given precision, the maps z -> T z and z -> P z, with P a symmetric positive definite
    approximation of T^-1. Guarantee: |T u - e_0| <= RESIDUAL_TARGET or, where rounding forbids that, <=
    RESIDUAL_ACCEPTED; otherwise :class:`EstimateError`.
    """
    size = len(first_column)
    unit = np.zeros(size)
    unit[0] = 1.0
    if size <= _LEVINSON_LIMIT:
        column = scipy.linalg.solve_toeplitz(first_column, unit)
    else:
        rough, _ = _conjugate_gradients(*operators(np.float32), unit.astype(np.float32), _FIRST_SWEEP, _FIRST_LIMIT)
        column = rough.astype(np.float64)
    return _refine(column, *operators(np.float64))


def _refine(column: Floats, multiply: Apply, precondition: Apply) -> ToeplitzInverse:
    """Bring a rough column to full accuracy by Newton's u += M (e_0 - T u), M the inverse that u itself spells out.

    A step about squares the residual, and single precision is enough for it. One that does not help gives way to a
    sweep of conjugate gradients on the same residual.
    """
    transform, budget = NegacyclicTransform(len(column)), ITERATION_LIMIT
    inverse = ToeplitzInverse(column, transform)
    residual, norm = _residual(column, multiply)
    while not norm <= RESIDUAL_TARGET:
        candidate = inverse.column + inverse.solve(residual, single=True)
        candidate_residual, candidate_norm = _residual(candidate, multiply)
        if not candidate_norm <= 0.1 * norm:
            if norm <= RESIDUAL_ACCEPTED:
                break
            step, iterations = _conjugate_gradients(multiply, precondition, residual, _LATER_SWEEPS, budget)
            budget -= iterations
            if budget <= 0:
                raise EstimateError(
                    f"no inverse within {ITERATION_LIMIT} conjugate gradient steps (residual {norm:.1e}): the matrix "
                    f"of size {transform.size} is too badly conditioned; spread the moduli more widely or take more"
                )
            candidate = inverse.column + step
            candidate_residual, candidate_norm = _residual(candidate, multiply)
        inverse, residual, norm = ToeplitzInverse(candidate, transform), candidate_residual, candidate_norm
    return inverse


def _residual(column: Floats, multiply: Apply) -> tuple[Floats, float]:
    residual = np.negative(multiply(column))
    residual[0] += 1.0
    return residual, float(np.linalg.norm(residual))


def _conjugate_gradients(
    multiply: Apply, precondition: Apply, right_side: NDArray[Any], tolerance: float, limit: int
) -> tuple[NDArray[Any], int]:
    """Shrink the residual of T x = b by the factor `tolerance` in at most `limit` steps; return x and the steps."""
    residual = right_side.copy()
    solution = np.zeros_like(residual)
    goal = tolerance * float(np.linalg.norm(residual))
    direction = precondition(residual).copy()
    product = float(np.dot(residual, direction))
    for iteration in range(1, limit + 1):
        image = multiply(direction)
        curvature = float(np.dot(direction, image))
        if not curvature > 0.0:  # rounding has eaten the last of it
            return solution, iteration
        length = product / curvature
        solution += length * direction
        image *= length
        residual -= image
        if float(np.linalg.norm(residual)) <= goal:
            return solution, iteration
        conditioned = precondition(residual)
        previous, product = product, float(np.dot(residual, conditioned))
        direction *= product / previous
        direction += conditioned
    return solution, limit
