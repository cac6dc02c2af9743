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

import math
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from sunzi.numerics.spares import Spares

Floats = NDArray[np.float64]
Precision = type[np.float32] | type[np.float64]
# r^2h, which makes b = -1/4. Near 1 rounding errors grow, since 1 itself would not do, and far from it too.
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


class _Scaling(NamedTuple):
    """What v_m and v_{m+h} are multiplied by when they become a real and an imaginary part."""

    low: NDArray[Any]
    high: NDArray[Any]


class NegacyclicTransform:
    """Real polynomials modulo x^(2h) + 1, 2h > k, evaluated at the h roots exp(-i pi (4f+1) / 2h): with their
    conjugates, at all of them. At r times the roots, r^2h = 4, by growing v_m to v_m r^m before.

    There x^h = -i, so that v_m - i v_{m+h} are the coefficients of a polynomial of half the degree: a real vector of
    length 2h takes one complex transform of length h. Since a product needs no particular order of the points, h = rows
    * columns is done as short transforms along both axes without the usual transposition. That is over twice as fast as
    one long `scipy.fft.rfft`, which runs out of cache. Guarantee: threads may share an object.
    """

    def __init__(self, size: int, precision: Precision) -> None:
        self.precision = np.dtype(precision)
        self.dtype = np.result_type(precision, np.complex64)
        rows = 1 if size < 4096 else 1 << round(math.log2(size / 2) / 2)
        columns = scipy.fft.next_fast_len(-(-(size + 1) // (2 * rows)))
        self.shape, self.half = (rows, columns), rows * columns
        # exp(-i pi m / 2h), m = row * columns + column, by row and by what the transform along rows leaves to do. The
        # former in full, since numpy takes less than half the time for it than for one number a row.
        entering = np.exp(-0.5j * np.pi * np.arange(rows) / rows)
        self._entering = np.broadcast_to(entering.astype(self.dtype)[:, None], self.shape).copy()
        self._twiddles = self._twiddle_table(rows, columns).astype(self.dtype, copy=False)
        self.growth = self._growth()
        self.decay = _Scaling(*map(np.reciprocal, self.growth))
        self.batch = max(1, _BATCH_CELLS // size)
        """So many vectors are transformed together at most."""
        self.scratch = Spares(partial(np.empty, (2, self.batch, *self.shape), self.dtype))
        """Room for two spectra of each of them."""

    @staticmethod
    def _twiddle_table(rows: int, columns: int) -> NDArray[np.complex128]:
        """exp(-2 pi i (row + 1/4) column / h), by doubling the rows: products are cheaper than exponentials."""
        doublings = rows.bit_length() - 1
        angles = np.multiply.outer([0.25, *(1 << np.arange(doublings))], np.arange(columns) / (rows * columns))
        first, *turns = np.exp(-2j * np.pi * angles)
        table = np.empty((rows, columns), dtype=np.complex128)
        table[0] = first
        for done, turn in zip(1 << np.arange(doublings), turns, strict=True):
            np.multiply(table[:done], turn, out=table[done : 2 * done])
        return table

    def _growth(self) -> _Scaling:
        """r^m."""
        rows, columns = self.shape
        exponent = math.log(_STRETCH) / (2 * self.half)
        by_row = np.exp(exponent * columns * np.arange(2 * rows)).astype(self.precision)
        by_column = np.exp(exponent * np.arange(columns)).astype(self.precision)
        low, high = np.multiply.outer(by_row, by_column).reshape(2, -1)
        return _Scaling(low, np.negative(high, out=high))

    def constant(self, factor: float) -> _Scaling:
        """The same factor for all."""
        return _Scaling(np.array([factor], self.precision), np.array([-factor], self.precision))

    def pack(self, vectors: NDArray[Any], packed: NDArray[Any], scaling: _Scaling) -> None:
        """v_m - i v_{m+h}, scaled, of a stack of vectors of up to 2h entries, taken as 0 beyond their end."""
        flat = packed.reshape(len(packed), -1)
        low, high = vectors[:, : self.half], vectors[:, self.half :]
        parts = (flat.real, low, scaling.low), (flat.imag, high, scaling.high)
        for target, source, factors in parts:
            length = source.shape[1]
            np.multiply(source, factors[:length], out=target[:, :length], casting="same_kind")
            target[:, length:] = 0

    def forward(self, packed: NDArray[Any]) -> NDArray[Any]:
        """The spectra, made where the packed vectors were."""
        packed *= self._entering
        if self.shape[0] > 1:
            packed = scipy.fft.fft(packed, axis=-2, overwrite_x=True)
        packed *= self._twiddles
        result: NDArray[Any] = scipy.fft.fft(packed, axis=-1, overwrite_x=True)
        return result

    def backward(self, conjugated: NDArray[Any]) -> NDArray[Any]:
        """h times v_m + i v_{m+h} of *conjugated* spectra, made in their place.

        The inverse transform is the conjugate of the forward one of the conjugate, and the last one is left out.
        """
        packed = scipy.fft.fft(conjugated, axis=-1, overwrite_x=True)
        packed *= self._twiddles
        if self.shape[0] > 1:
            packed = scipy.fft.fft(packed, axis=-2, overwrite_x=True)
        packed *= self._entering
        result: NDArray[Any] = packed
        return result

    def repack(self, packed: NDArray[Any], scaling: _Scaling) -> None:
        """Turn v_m + i v_{m+h} to what :meth:`pack` makes of the same vectors, in place."""
        real, imaginary = packed.real, packed.imag
        real *= scaling.low.reshape(self.shape)
        imaginary *= scaling.high.reshape(self.shape)

    def unpack(self, packed: NDArray[Any], vectors: NDArray[Any]) -> None:
        """Write the first entries of v_m + i v_{m+h} to a stack of shorter vectors."""
        flat = packed.reshape(len(packed), -1)
        low, high = vectors[:, : self.half], vectors[:, self.half :]
        low[:] = flat.real[:, : low.shape[1]]
        high[:] = flat.imag[:, : high.shape[1]]

    def reverse(self, spectrum: NDArray[Any], degree: int, out: NDArray[Any]) -> None:
        """Of the spectrum of v(x) make that of x^degree v(1/x), which at the roots is x^degree times its conjugate."""
        rows, columns = self.shape
        turns = np.arange(1, 4 * rows, 4) * degree % (4 * self.half) / (4 * self.half)
        by_row = np.exp(-2j * np.pi * turns)[:, None]
        by_column = np.exp(-2j * np.pi * (np.arange(columns) * degree % columns) / columns)
        np.conjugate(spectrum, out=out)
        out *= by_row.astype(self.dtype)
        out *= by_column.astype(self.dtype)


class Transforms:
    """The transform for vectors of one size, in either precision; each is made when first used."""

    def __init__(self, size: int) -> None:
        self.size = size

    @cached_property
    def double(self) -> NegacyclicTransform:
        """In double precision."""
        return NegacyclicTransform(self.size, np.float64)

    @cached_property
    def single(self) -> NegacyclicTransform:
        """In single precision: about half the time and memory."""
        return NegacyclicTransform(self.size, np.float32)


class _Factors(NamedTuple):
    """Spectra of (u, 0) and (0, reversed u) at the roots over r and at the roots, with all scaling that T^-1 needs."""

    inner: NDArray[Any]
    unit: NDArray[Any]


class ToeplitzInverse:
    """T^-1 of a symmetric positive definite Toeplitz T, given (an approximation of) its first column u; never formed.

    The relative residual |T x - b| / |b| of a solution is that of u, |T u - e_0|, times at most about the norm of T,
    down to a small multiple of rounding.
    """

    def __init__(self, column: Floats, transforms: Transforms) -> None:
        self.column = column
        self.transforms = transforms

    @cached_property
    def _double(self) -> _Factors:
        return self._factors(self.transforms.double)

    @cached_property
    def _single(self) -> _Factors:
        return self._factors(self.transforms.single)

    def _factors(self, transform: NegacyclicTransform) -> _Factors:
        size = len(self.column)
        vectors = np.zeros((2, size + 1), transform.precision)
        np.multiply(self.column, 1 / transform.half, out=vectors[0, :-1], casting="same_kind")
        vectors[1, 1:] = vectors[0, -2::-1]
        inner, unit = (np.empty((2, *transform.shape), transform.dtype) for _ in range(2))
        transform.pack(vectors, inner, transform.decay)
        scale = 1 / ((1 - 1 / _STRETCH) * float(self.column[0]))
        transform.pack(vectors[:1], unit[:1], transform.constant(scale))
        unit[:1] = transform.forward(unit[:1])
        transform.reverse(unit[0], size, out=unit[1])
        return _Factors(transform.forward(inner), unit)

    def solve(self, right_side: NDArray[Any], *, single: bool = False) -> NDArray[Any]:
        """T^-1 b for one vector or each row of a stack, in six transforms a row; `single` halves the time at a relative
        error near 1e-6 cond(T).
        """
        size = self.transforms.size
        stack = right_side.reshape(-1, size)
        result = np.empty(stack.shape, dtype=np.float32 if single else np.float64)
        transform = self.transforms.single if single else self.transforms.double
        factors = self._single if single else self._double
        for start in range(0, len(stack), transform.batch):
            place = slice(start, start + transform.batch)
            _apply(transform, factors, stack[place], result[place])
        return result.reshape(right_side.shape)

    @cached_property
    def ones_solution(self) -> Floats:
        """T^-1 1, as exactly as u tells it.

        T^-1[i+1, x+1] - T^-1[i, x] = (u_i+1 u_x+1 - y_i+1 y_x+1)/u_0 (MATH 3.1); summed over x, that gives
        sum(u)/u_0 * cumsum(u - y), in O(k).
        """
        solution: Floats = self.column * (self.column.sum() / self.column[0])
        run_differences(solution)
        return solution

    @cached_property
    def grand_total(self) -> float:
        """The sum of all entries of T^-1."""
        return float(self.ones_solution.sum())

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


def _apply(transform: NegacyclicTransform, factors: _Factors, rows: NDArray[Any], result: NDArray[Any]) -> None:
    """Write T^-1 of every row of a stack to `result`."""
    with transform.scratch.lend() as room:
        pair = room[:, : len(rows)]
        transform.pack(rows, pair[0], transform.growth)
        spectrum = transform.forward(pair[0])
        np.conjugate(spectrum, out=spectrum)
        np.multiply(spectrum, factors.inner[1], out=pair[1])
        np.multiply(spectrum, factors.inner[0], out=pair[0])
        products = transform.backward(pair)
        transform.repack(products, transform.decay)
        products = transform.forward(products)
        products *= factors.unit[:, None]
        difference = np.subtract(products[0], products[1], out=products[0])
        np.conjugate(difference, out=difference)
        transform.unpack(transform.backward(difference), result)
