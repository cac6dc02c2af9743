"""The inverse of a symmetric positive definite Toeplitz matrix, from its first column alone.

Let T be such a matrix of size k, u = T^-1 e_0 and y = (0, u_{k-1}, ..., u_1). Gohberg and Semencul (MATH 3.1):

    T^-1 = (L(u) L(u)^T - L(y) L(y)^T) / u_0,        L(.) the lower triangular Toeplitz matrix of a vector.

So its diagonal and trace are running sums. To apply it, let X be T^-1 with zeros added up to size n > k, and Z_a the
shift down by one that brings the last entry to the top, times a. The zeros make X - Z_a X Z_b^T the same for all a and
b: (p p^T - q q^T) / u_0, p = (u, 0, ...) and q = (0, u_{k-1}, ..., u_0, 0, ...). Summing Z_a^t (.) (Z_b^T)^t over
t < n, with Z_a^n = a,

    (1 - a b) X = (C_a(p) C_b(p)^T - C_a(q) C_b(q)^T) / u_0,        C_a(v) = [v, Z_a v, ..., Z_a^(n-1) v]

(Ammar and Gader have a = 1, b = -1). These are products of polynomials modulo x^n - a and x^n - b. With a = -1 and
another negative b both take complex Fourier transforms of length n / 2, and n is free to be a good length.

No matrix is formed: everything here takes O(k) memory and O(k log k) time.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.linalg
from numpy.typing import NDArray

from sunzi.errors import EstimateError

Floats = NDArray[np.float64]
Precision = type[np.float32] | type[np.float64]
Apply = Callable[[NDArray[Any]], NDArray[Any]]
"""A linear map in one precision. It may return the same buffer each time: use that before the next call."""

RESIDUAL_TARGET = 2e-10
"""Where the refinement of the inverse column stops: at this residual over a bound on T's norm. Solutions inherit up to
about that norm times the column's relative residual; we promise 1e-9.
"""

RESIDUAL_ACCEPTED = 1e-9
"""The worst residual still returned where rounding stops the refinement earlier: condition numbers above about 1e6."""

ITERATION_LIMIT = 1500
"""Conjugate gradient steps, all sweeps together, before the matrix is called too badly conditioned."""

# Up to this size Levinson's O(k^2) recursion is as fast as iterating, and it shrugs off bad conditioning.
_LEVINSON_LIMIT = 1500
# From the one residual on one Newton step is enough, from the other two are; each takes as long as a few iterations.
_FIRST_SWEEP, _SLOW_FIRST_SWEEP = 5e-7, 1e-4
_FIRST_PATIENCE = 25
_FIRST_LIMIT = 300  # single precision gains nothing from more
_LATER_SWEEPS = 1e-3
# r^2h of the wide circle. Near 1 rounding errors grow, since the unit circle itself would not do, and far from it too.
_STRETCH = 4.0
# Rows of a stack are transformed together up to this many numbers: more would leave the cache.
_BATCH_CELLS = 1 << 16


def reversed_column(column: NDArray[Any]) -> NDArray[Any]:
    """Return y = (0, u_{k-1}, ..., u_1) for a column u."""
    shifted = np.empty_like(column)
    shifted[0] = 0
    shifted[1:] = column[:0:-1]
    return shifted


def run_differences(vector: Floats) -> None:
    """Put w_0 + (w_1 - w_{k-1}) + ... + (w_i - w_{k-i}) in the place of every w_i; the result reads the same backwards.

    So come T^-1 1 from u, the diagonal of T^-1 from u^2, and those of its products with symmetric Toeplitz matrices.
    """
    size, half = len(vector), (len(vector) + 1) // 2
    vector[1:half] -= vector[: size - half : -1]
    np.cumsum(vector[:half], out=vector[:half])
    vector[half:] = vector[: size - half][::-1]


class _Circle(NamedTuple):
    """The factors r^m exp(-i pi m / 2h), m = row * columns + column, by row and by what the transform along rows leaves
    to do; and r^h.
    """

    entering: NDArray[Any]
    twiddles: NDArray[Any]
    high: float

    def single(self) -> "_Circle":
        return _Circle(self.entering.astype(np.complex64), self.twiddles.astype(np.complex64), self.high)


class NegacyclicTransform:
    """Real polynomials modulo x^(2h) + 1, 2h > k, evaluated at the h points r exp(-i pi (4f+1) / 2h): with their
    conjugates, all the roots if r = 1.

    There x^h = -i r^h, so that v_m - i r^h v_{m+h} are the coefficients of a polynomial of half the degree: a real
    vector of length 2h takes one complex transform of length h. Since a product needs no particular order of the
    points, h = rows * columns is done as short transforms along both axes without the usual transposition. That is over
    twice as fast as one long `scipy.fft.rfft`, which runs out of cache. Guarantee: threads may share an object.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        rows = 1 if size < 4096 else 1 << round(math.log2(size / 2) / 2)
        columns = scipy.fft.next_fast_len(-(-(size + 1) // (2 * rows)))
        self.shape, self.half = (rows, columns), rows * columns
        entering = np.exp(-0.5j * np.pi * np.arange(rows) / rows)[:, None]
        twiddles = self._twiddle_table(rows, columns)
        self.wide, self.unit, self.narrow = (self._circle(entering, twiddles, power) for power in (1, 0, -1))
        self._spare: list[tuple[NDArray[Any], NDArray[Any]]] = []

    @staticmethod
    def _twiddle_table(rows: int, columns: int) -> NDArray[np.complex128]:
        """exp(-2 pi i (row + 1/4) column / h), by doubling the rows: products are cheaper than exponentials."""
        turns = np.arange(columns) / (rows * columns)
        table = np.empty((rows, columns), dtype=np.complex128)
        table[0] = np.exp(-0.5j * np.pi * turns)
        done = 1
        while done < rows:
            np.multiply(table[:done], np.exp(-2j * np.pi * done * turns), out=table[done : 2 * done])
            done *= 2
        return table

    def _circle(self, entering: NDArray[Any], twiddles: NDArray[Any], power: int) -> _Circle:
        """The circle of radius r to that power, r^2h = _STRETCH."""
        if power == 0:
            return _Circle(entering, twiddles, 1.0)
        rows, columns = self.shape
        exponent = power * math.log(_STRETCH) / (2 * self.half)
        return _Circle(
            entering * np.exp(exponent * columns * np.arange(rows))[:, None],
            twiddles * np.exp(exponent * np.arange(columns)),
            _STRETCH ** (power / 2),
        )

    @cached_property
    def single(self) -> "NegacyclicTransform":
        """The same transform in single precision: about half the time and memory."""
        single = copy.copy(self)
        single.wide, single.unit, single.narrow = self.wide.single(), self.unit.single(), self.narrow.single()
        single._spare = []
        return single

    @contextmanager
    def scratch(self, rows: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Room for two spectra a row: the caller's own until it is done, then kept for the next one. Memory fresh from
        the system would take as long as the transforms.
        """
        try:
            arrays = self._spare.pop()
        except IndexError:
            arrays = self._room(rows)
        if len(arrays[0]) < rows:
            arrays = self._room(rows)
        yield arrays[0][:rows], arrays[1][:rows]
        self._spare.append(arrays)

    def _room(self, rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
        shape, precision = (rows, *self.shape), self.unit.twiddles.dtype
        return np.empty(shape, precision), np.empty(shape, precision)

    def pack(self, vectors: NDArray[Any], packed: NDArray[Any], circle: _Circle) -> None:
        """v_m - i r^h v_{m+h} of a stack of vectors of up to 2h entries, taken as 0 beyond their end."""
        flat = packed.reshape(len(packed), -1)
        low, high = vectors[:, : self.half], vectors[:, self.half :]
        flat.real[:, : low.shape[1]] = low
        flat.real[:, low.shape[1] :] = 0
        np.multiply(high, -circle.high, out=flat.imag[:, : high.shape[1]])
        flat.imag[:, high.shape[1] :] = 0

    def forward(self, packed: NDArray[Any], circle: _Circle) -> NDArray[Any]:
        """The spectra on a circle, made where the packed vectors were."""
        packed *= circle.entering
        if self.shape[0] > 1:
            packed = scipy.fft.fft(packed, axis=-2, overwrite_x=True)
        packed *= circle.twiddles
        result: NDArray[Any] = scipy.fft.fft(packed, axis=-1, overwrite_x=True)
        return result

    def backward(self, conjugated: NDArray[Any], reciprocal: _Circle) -> NDArray[Any]:
        """h times the packed vectors v_m - i v_{m+h} of *conjugated* spectra, made in their place; `reciprocal` is the
        circle of radius 1/r.

        The inverse transform is the conjugate of the forward one of the conjugate.
        """
        packed = scipy.fft.fft(conjugated, axis=-1, overwrite_x=True)
        packed *= reciprocal.twiddles
        if self.shape[0] > 1:
            packed = scipy.fft.fft(packed, axis=-2, overwrite_x=True)
        packed *= reciprocal.entering
        imaginary = packed.imag
        imaginary *= -reciprocal.high
        result: NDArray[Any] = packed
        return result

    def unpack(self, packed: NDArray[Any], vectors: NDArray[Any]) -> None:
        """Write the first entries of the packed vectors to a stack of shorter ones."""
        flat = packed.reshape(len(packed), -1)
        low, high = vectors[:, : self.half], vectors[:, self.half :]
        low[:] = flat.real[:, : low.shape[1]]
        np.multiply(flat.imag[:, : high.shape[1]], -1, out=high)  # np.negative (numpy 2.4) misreads some strides


class _Factors(NamedTuple):
    """Spectra of (u, 0) and (0, reversed u) on two circles, with all scaling that T^-1 needs."""

    narrow: NDArray[Any]
    unit: NDArray[Any]


class ToeplitzInverse:
    """T^-1 of a symmetric positive definite Toeplitz T, given (an approximation of) its first column u; never formed.

    The relative residual |T x - b| / |b| of a solution is about that of u, |T u - e_0|, down to a small multiple of
    rounding.
    """

    def __init__(self, column: Floats, transform: NegacyclicTransform) -> None:
        self.column = column
        self._transform = transform

    @cached_property
    def _double(self) -> _Factors:
        return self._factors(self._transform)

    @cached_property
    def _single(self) -> _Factors:
        return self._factors(self._transform.single)

    def _factors(self, transform: NegacyclicTransform) -> _Factors:
        vectors = np.zeros((2, len(self.column) + 1))
        vectors[0, :-1] = self.column
        vectors[1, 1:] = self.column[::-1]
        half, circles = transform.half, (transform.narrow, transform.unit)
        scales = 1 / half, 1 / (half * (1 - 1 / _STRETCH) * float(self.column[0]))
        spectra = []
        for circle, scale in zip(circles, scales, strict=True):
            packed = np.empty((2, *transform.shape), circle.twiddles.dtype)
            transform.pack(vectors, packed, circle)
            packed *= packed.dtype.type(scale)
            spectra.append(transform.forward(packed, circle))
        return _Factors(*spectra)

    def solve(self, right_side: NDArray[Any], *, single: bool = False) -> NDArray[Any]:
        """T^-1 b for one vector or each row of a stack, in six transforms a row; `single` halves the time at a relative
        error near 1e-6 cond(T).
        """
        size = self._transform.size
        stack = right_side.reshape(-1, size)
        result = np.empty(stack.shape, dtype=np.float32 if single else np.float64)
        batch = max(1, _BATCH_CELLS // size)
        for start in range(0, len(stack), batch):
            self._apply(stack[start : start + batch], result[start : start + batch], single)
        return result.reshape(right_side.shape)

    def _apply(self, rows: NDArray[Any], result: NDArray[Any], single: bool) -> None:
        transform, factors = (self._transform.single, self._single) if single else (self._transform, self._double)
        with transform.scratch(len(rows)) as (packed, other):
            transform.pack(rows, packed, transform.wide)
            spectrum = transform.forward(packed, transform.wide)
            np.conjugate(spectrum, out=spectrum)
            np.multiply(spectrum, factors.narrow[1], out=other)
            spectrum *= factors.narrow[0]
            first, second = (
                transform.forward(transform.backward(product, transform.narrow), transform.unit)
                for product in (spectrum, other)
            )
            first *= factors.unit[0]
            second *= factors.unit[1]
            first -= second
            np.conjugate(first, out=first)
            transform.unpack(transform.backward(first, transform.unit), result)

    def diagonal(self) -> Floats:
        """diag T^-1 = (cumsum(u^2) - cumsum(y^2)) / u_0."""
        result: Floats = self.column**2
        result /= self.column[0]
        run_differences(result)
        return result

    def trace(self) -> float:
        """trace T^-1 = sum_i (k - 2i) u_i^2 / u_0."""
        size = len(self.column)
        return float(np.dot(np.arange(size, -size, -2, dtype=np.float64), self.column**2) / self.column[0])


def invert(first_column: Floats, operators: Callable[[Precision], tuple[Apply, Apply]]) -> ToeplitzInverse:
    """Solve T u = e_0 and return the inverse that u spells out.

    `operators` makes, in a given precision, the maps z -> T z and z -> P z, with P a symmetric positive definite
    approximation of T^-1. Guarantee: |T u - e_0| <= RESIDUAL_TARGET / |T| or, where rounding forbids that, <=
    RESIDUAL_ACCEPTED; otherwise :class:`EstimateError`.
    """
    size = len(first_column)
    unit = np.zeros(size)
    unit[0] = 1.0
    if size <= _LEVINSON_LIMIT:
        column = scipy.linalg.solve_toeplitz(first_column, unit)
    else:
        rough, _ = _conjugate_gradients(*operators(np.float32), unit.astype(np.float32), _first_goal, _FIRST_LIMIT)
        column = rough.astype(np.float64)
    # No row of T adds up to more than the first column does with its lags counted in both directions.
    return _refine(column, *operators(np.float64), RESIDUAL_TARGET / float(2 * first_column.sum() - first_column[0]))


def _first_goal(iteration: int) -> float:
    return _FIRST_SWEEP if iteration <= _FIRST_PATIENCE else _SLOW_FIRST_SWEEP


def _refine(column: Floats, multiply: Apply, precondition: Apply, target: float) -> ToeplitzInverse:
    """Bring a rough column to the residual `target` by Newton's u += M (e_0 - T u), M the inverse that u spells out.

    A step about squares the residual, and single precision is enough for it. One that does not help gives way to a
    sweep of conjugate gradients on the same residual.
    """
    transform, budget = NegacyclicTransform(len(column)), ITERATION_LIMIT
    inverse = ToeplitzInverse(column, transform)
    residual, norm = _residual(column, multiply)
    while not norm <= target:
        candidate = inverse.column + inverse.solve(residual, single=True)
        candidate_residual, candidate_norm = _residual(candidate, multiply)
        if not candidate_norm <= 0.1 * norm:
            if norm <= RESIDUAL_ACCEPTED:
                break
            step, iterations = _conjugate_gradients(multiply, precondition, residual, lambda _: _LATER_SWEEPS, budget)
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
    return residual, math.sqrt(_inner(residual, residual))


def _inner(left: NDArray[Any], right: NDArray[Any]) -> float:
    """x . y. In double precision not by BLAS, whose threads wait for one another, on a busy machine for long."""
    return float(np.dot(left, right) if left.dtype == np.float32 else np.einsum("i,i->", left, right))


def _conjugate_gradients(
    multiply: Apply, precondition: Apply, right_side: NDArray[Any], goal: Callable[[int], float], limit: int
) -> tuple[NDArray[Any], int]:
    """Shrink the residual of T x = b until, relative to b, it is `goal` of the number of steps, in at most `limit`
    steps; return x and the steps.
    """
    residual = right_side.copy()
    solution = np.zeros_like(residual)
    initial = _inner(residual, residual)
    direction = precondition(residual).copy()
    product = _inner(residual, direction)
    for iteration in range(1, limit + 1):
        image = multiply(direction)
        curvature = _inner(direction, image)
        if not curvature > 0.0:  # rounding has eaten the last of it
            return solution, iteration
        length = product / curvature
        image *= length
        residual -= image
        np.multiply(direction, length, out=image)
        solution += image
        square = _inner(residual, residual)
        if square <= goal(iteration) ** 2 * initial:
            return solution, iteration
        conditioned = precondition(residual)
        previous, product = product, square if conditioned is residual else _inner(residual, conditioned)
        direction *= product / previous
        direction += conditioned
    return solution, limit
