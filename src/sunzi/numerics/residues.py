"""Folding a vector modulo primes, and the least squares problem that undoes it (MATH 3, 3.1).

A_m[a, x] = 1{x = a mod m} maps a vector over {0..k-1} to its sums over residues. For moduli m_j and weights w_j the
Gram matrix

    T = sum_j w_j A_j^T A_j,        T[x, x'] = sum_j w_j 1{m_j divides x - x'}

is Toeplitz, so neither A nor T is ever formed: A is a fold, A^T a tile, and T^-1 a few Fourier transforms.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sunzi.errors import EstimateError, ParameterError
from sunzi.numerics.scaled_sums import PIECE, ScaledSums
from sunzi.numerics.toeplitz import Floats, Precision, ToeplitzInverse, reversed_column, run_differences
from sunzi.numerics.toeplitz_system import ToeplitzSystem, multiply

# The preconditioner takes the smallest moduli, up to this share of the size: beyond, their frequencies overlap.
_PRECONDITIONED_SHARE = 0.2
_PRECONDITIONED_MODULI = 6
# Moduli that go into the size less often are not folded: adding entry to entry, lag by lag, is cheaper.
_FOLDED_ROWS = 3
# Where frequencies overlap, several factors shrink the same direction; shrinking all a little less makes up for that.
_PRECONDITIONER_CAUTION = 2.0
# The least of a diagonal is kept for so many stretches of it. Within most it changes by parts of a thousand; where a
# residue class gains or loses a member, by some per cent.
_STRETCHES = 512
# Below this there is so little to undo that the steps it saves take no longer than the preconditioner.
_PRECONDITIONER_EXCESS = 0.5


def fold(vector: NDArray[Any], modulus: int) -> NDArray[Any]:
    """A_m z: the sums of `vector` over each residue class, of length `modulus` (which may exceed the vector's)."""
    size = len(vector)
    rows = size // modulus
    if rows == 0:
        result = np.zeros(modulus, dtype=vector.dtype)
        result[:size] = vector
        return result
    body = vector[: rows * modulus].reshape(rows, modulus)
    sums: NDArray[Any]
    if _by_product(vector, modulus):
        sums = np.ones(rows, dtype=vector.dtype) @ body
    else:
        sums = body[0] + body[1] if rows == 2 else np.add.reduce(body, axis=0)  # which would copy the first row first
    sums[: size - rows * modulus] += vector[rows * modulus :]
    return sums


def _by_product(vector: NDArray[Any], modulus: int) -> bool:
    """Whether to sum rows by BLAS: faster on many short rows. numpy's sum is on long ones, and exact on integers."""
    return modulus < 1024 and len(vector) > 3 * modulus and vector.dtype.kind == "f"


def tile(residues: NDArray[Any], size: int) -> NDArray[Any]:
    """A_m^T s: the vector of length `size` whose entry x is the residue x mod m's, m the length of `residues`."""
    modulus = len(residues)
    rows = size // modulus
    result = np.empty(size, dtype=residues.dtype)
    result[: rows * modulus].reshape(rows, modulus)[:] = residues
    result[rows * modulus :] = residues[: size - rows * modulus]
    return result


def add_tiled(total: NDArray[Any], residues: NDArray[Any]) -> None:
    """Add A_m^T s to `total`, a contiguous vector, in place."""
    size, modulus = len(total), len(residues)
    rows = size // modulus
    if rows:
        body = total[: rows * modulus].reshape(rows, modulus)
        body += residues
    total[rows * modulus :] += residues[: size - rows * modulus]


def multiply_tiled(vector: NDArray[Any], residues: NDArray[Any], out: NDArray[Any]) -> None:
    """Write `vector` times A_m^T s, entry by entry, to `out`: a contiguous vector, maybe `vector` itself."""
    size, modulus = len(vector), len(residues)
    end = size // modulus * modulus
    if end:
        np.multiply(vector[:end].reshape(-1, modulus), residues, out=out[:end].reshape(-1, modulus))
    np.multiply(vector[end:], residues[: size - end], out=out[end:])


def adjoint(blocks: Iterable[NDArray[Any]], moduli: Sequence[int], weights: ArrayLike, size: int) -> Floats:
    """sum_j w_j A_j^T s_j: the right side of the normal equations."""
    total, scratch = np.zeros(size), np.empty(size)
    for block, modulus, weight in zip(blocks, moduli, np.asarray(weights, dtype=np.float64).tolist(), strict=True):
        if len(block) != modulus:
            raise ParameterError(f"the block of modulus {modulus} must have {modulus} residues, got {len(block)}")
        add_tiled(total, np.multiply(block[:size], weight, out=scratch[:modulus]))
    return total


class _FoldAndTile:
    """target += A_m^T (scale * A_m source) between two fixed vectors, maybe one and the same, of at least m entries.

    The views are cut once: in a loop over short vectors, cutting them anew would cost as much as the sums.
    """

    def __init__(
        self,
        source: NDArray[Any],
        target: NDArray[Any],
        modulus: int,
        scale: float | NDArray[Any],
        scratch: NDArray[Any],
    ) -> None:
        rows = len(source) // modulus
        end = rows * modulus
        self._ones = np.ones(rows, dtype=source.dtype) if _by_product(source, modulus) else None
        self._source_body, self._source_tail = source[:end].reshape(rows, modulus), source[end:]
        self._target_body, self._target_tail = target[:end].reshape(rows, modulus), target[end:]
        self._residues = scratch[:modulus]
        self._leading = self._residues[: len(source) - end]
        self._scale = scale

    def __call__(self) -> None:
        if self._ones is None:
            np.add.reduce(self._source_body, axis=0, out=self._residues)
        else:
            np.dot(self._ones, self._source_body, out=self._residues)
        self._leading += self._source_tail
        self._residues *= self._scale
        self._target_body += self._residues
        self._target_tail += self._leading


class _GramProduct:
    """target = sum_j w_j A_j^T A_j source, in one precision."""

    def __init__(self, size: int, moduli: Sequence[int], weights: Sequence[float], precision: Precision) -> None:
        self.source, self.target = source, target = np.empty(size, precision), np.empty(size, precision)
        scratch = np.empty(size, precision)
        self._diagonal = 0.0
        self._folds: list[_FoldAndTile] = []
        lags: list[tuple[int, float]] = []
        for modulus, weight in zip(moduli, weights, strict=True):
            if _FOLDED_ROWS * modulus <= size:
                self._folds.append(_FoldAndTile(source, target, modulus, weight, scratch))
                continue
            self._diagonal += weight
            lags += [(lag, weight) for lag in range(modulus, size, modulus)]
        self._sums = ScaledSums(precision)
        # All lags are added to one piece of the target before the next, so that it stays in the cache.
        for start in range(0, size, PIECE):
            end = min(start + PIECE, size)
            for lag, weight in lags:
                if start + lag < size:
                    after = source[start + lag : end + lag]
                    self._sums.append(after, target[start : start + len(after)], weight)
                if lag < end:
                    before = source[max(start - lag, 0) : end - lag]
                    self._sums.append(before, target[end - len(before) : end], weight)

    def __call__(self) -> None:
        np.multiply(self.source, self._diagonal, out=self.target)
        self._sums(1.0)
        for fold_and_tile in self._folds:
            fold_and_tile()


class _Preconditioner:
    """A cheap symmetric positive definite approximation of (sum_j w_j A_j^T A_j)^-1, in one precision.

    The few smallest moduli hold T's large eigenvalues: on the residue classes of m_j, beside constants, T is about c +
    w_j k / m_j, with c the weight of all the other moduli. Averaging over those classes projects on them, so each
    modulus is undone by one fold and one tile; the factors are applied in a palindrome, which keeps the whole
    symmetric, and constants, which all moduli share, once. Returns its own buffer, which the next call overwrites.
    """

    def __init__(self, size: int, moduli: Sequence[int], weights: Sequence[float], precision: Precision) -> None:
        ascending = sorted(zip(moduli, weights, strict=True))
        totals = itertools.accumulate(modulus for modulus, _ in ascending[:_PRECONDITIONED_MODULI])
        count = sum(total <= _PRECONDITIONED_SHARE * size for total in totals)
        rest = _PRECONDITIONER_CAUTION * sum(weight for _, weight in ascending[count:])
        excess = [weight * size / modulus / rest for modulus, weight in ascending[:count]]
        if sum(excess) < _PRECONDITIONER_EXCESS:
            count, excess = 0, []
        shrink = [1 / math.sqrt(1 + each) for each in excess]
        if shrink:
            shrink[-1] **= 2  # the middle of the palindrome comes once
        self._constants = 1 / (1 + sum(excess))
        self._buffer = np.empty(size, precision)
        scratch = np.empty(size // 2, precision)
        factors: list[_FoldAndTile] = []
        for (modulus, _), each in zip(ascending[:count], shrink, strict=True):
            rows, tail = divmod(size, modulus)
            averaging = np.full(modulus, (each - 1) / rows, precision)
            averaging[:tail] = (each - 1) / (rows + 1)
            factors.append(_FoldAndTile(self._buffer, self._buffer, modulus, averaging, scratch))
        self._palindrome = factors + factors[-2::-1]

    def __call__(self, vector: NDArray[Any]) -> NDArray[Any]:
        if not self._palindrome:
            return vector
        mean = float(vector.mean())
        np.subtract(vector, mean, out=self._buffer)
        for factor in self._palindrome:
            factor()
        self._buffer += self._constants * mean
        return self._buffer


class ToeplitzGram:
    """T = sum_j w_j A_j^T A_j for pairwise coprime moduli: products, solutions and diagonals, the matrix never formed.

    Guarantees: a constructed object is of full rank (else :class:`EstimateError`), and never changes; what is costly is
    computed on first use and kept. Solutions have a relative residual |T x - b| / |b| <= 1e-9 while cond(T) <= 1e4.
    """

    def __init__(self, size: int, moduli: Sequence[int], weights: ArrayLike) -> None:
        self.size = int(size)
        self.moduli = tuple(int(modulus) for modulus in moduli)
        self.weights: Floats = np.array(weights, dtype=np.float64)
        _check_system(self.size, self.moduli, self.weights)
        # Scaled to a unit diagonal, so that single precision neither overflows nor underflows.
        self._scale = float(self.weights.sum())
        self._relative = [weight / self._scale for weight in self.weights.tolist()]

    def multiply(self, vector: NDArray[Any]) -> Floats:
        """T z, by folding and tiling."""
        return multiply(_GramProduct(self.size, self.moduli, self.weights.tolist(), np.float64), vector)

    @property
    def first_column(self) -> Floats:
        """T e_0: entry x is the weight of the moduli that divide x."""
        column = np.zeros(self.size)
        for modulus, weight in zip(self.moduli, self.weights.tolist(), strict=True):
            column[::modulus] += weight
        return column

    @cached_property
    def _system(self) -> ToeplitzSystem:
        """T / scale."""
        # No methods of this object, which the system would keep alive in a circle.
        product = partial(_GramProduct, self.size, self.moduli, self._relative)
        preconditioner = partial(_Preconditioner, self.size, self.moduli, self._relative)
        return ToeplitzSystem(self.size, product, preconditioner)

    @property
    def _inverse(self) -> ToeplitzInverse:
        """The inverse of T / scale."""
        return self._system.inverse

    @property
    def inverse_column(self) -> Floats:
        """u = T^-1 e_0."""
        return self._inverse.column / self._scale

    def solve(self, right_side: Floats, *, total: float | None = None) -> Floats:
        """T^-1 b; with a `total`, the vector of that sum which is best for the least squares problem behind b: b plus a
        constant, solved.
        """
        if right_side.shape != (self.size,):
            raise ParameterError(f"a right side must have {self.size} entries, got shape {right_side.shape}")
        return self._system.solve(np.divide(right_side, self._scale, dtype=np.float64), total)

    def solve_roughly(self, right_sides: NDArray[Any]) -> NDArray[np.float32]:
        """T^-1 b for a vector or for each row of a stack in float32: half the time, for what needs 1 % only."""
        if right_sides.shape[-1:] != (self.size,):
            raise ParameterError(f"right sides must have {self.size} entries, got shape {right_sides.shape}")
        result: NDArray[np.float32] = self._inverse.solve(right_sides, single=True)
        result /= np.float32(self._scale)
        return result

    @cached_property
    def ones_solution(self) -> Floats:
        """tau = T^-1 1: the direction in which an estimate is moved to sum to 1."""
        return self.solve(np.ones(self.size))

    def inverse_rows(self, count: int) -> Iterator[tuple[slice, Floats]]:
        """All rows of T^-1, in stacks of at most `count` with their places, in O(k) a row.

        A row is the one before it moved one to the right, plus (u_i u - y_i y) / u_0.
        """
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
        """trace T^-1."""
        return self._inverse.trace() / self._scale

    def inverse_diagonal(self) -> Floats:
        """diag T^-1."""
        return self._inverse.diagonal() / self._scale

    @cached_property
    def ones_spreads(self) -> Floats:
        """For every modulus, the sum of the squares of A_j tau less their mean."""
        folded = (fold(self.ones_solution, modulus) for modulus in self.moduli)
        return np.array([float(np.square(block - block.mean()).sum()) for block in folded])

    def product_diagonal(self, modulus: int) -> Floats:
        """diag(T^-1 A_m^T A_m) for any modulus m, in O(k).

        Row i+1 of T^-1 is row i moved one to the right plus (u_{i+1} u - y_{i+1} y) / u_0, and B = A_m^T A_m is
        Toeplitz; so the step from one entry to the next is (u (B u) - y (B y))_{i+1} / u_0, less the entry
        T^-1[i, k-1] = y_{i+1} that falls off the right edge when m divides k-1-i. That entry is just what y (B y) lacks
        for being u (B u) backwards, since y has all of u but u_0: the step is (w_{i+1} - w_{k-1-i}) / u_0 with
        w = u (B u).
        """
        column = self._inverse.column
        folded = fold(column, modulus)
        folded /= column[0] * self._scale
        products = np.empty(self.size)
        multiply_tiled(column, folded, products)
        run_differences(products)
        return products

    @cached_property
    def product_floors(self) -> Floats:
        """For every modulus, the least square in each of n ≤ 512 stretches of :meth:`product_diagonal`, ⌈k/n⌉ entries
        each but for the last.
        """
        # With s = ⌈k/512⌉ entries each there are n = ⌈k/s⌉ of them, and ⌈k/n⌉ is s again, since n(s-1) ≤ 512(s-1) < k.
        starts = np.arange(0, self.size, -(-self.size // _STRETCHES))
        return np.array([np.minimum.reduceat(self.product_diagonal(modulus) ** 2, starts) for modulus in self.moduli])

    def sandwich_diagonal(self, coefficients: ArrayLike) -> Floats:
        """diag(T^-1 T_2 T^-1), T_2 = sum_j c_j A_j^T A_j, in one solve.

        With v = T^-1 T_2 u and y_v = (0, v_{k-1}, ..., v_1) it is [2 cumsum(u v) - 2 cumsum(y y_v) - v_0 diag T^-1] /
        u_0: running differences of u (2 v - v_0 / u_0 u) / u_0.
        """
        given = np.asarray(coefficients, dtype=np.float64)
        if given.shape != self.weights.shape:
            raise ParameterError(f"need one coefficient for each of {len(self.moduli)} moduli, got shape {given.shape}")
        column = self._inverse.column
        middle = _GramProduct(self.size, self.moduli, given.tolist(), np.float64)
        image = self._system.solve(multiply(middle, column))
        products = image - image[0] / (2 * column[0]) * column
        products *= column
        products *= 2 / (column[0] * self._scale**2)
        run_differences(products)
        return products

    def restricted(self, keep: ArrayLike) -> "ToeplitzGram":
        """The same system without the blocks where the boolean mask `keep` is False."""
        mask = np.asarray(keep, dtype=bool)
        if mask.shape != self.weights.shape:
            raise ParameterError(f"need one flag for each of {len(self.moduli)} moduli, got shape {mask.shape}")
        moduli = [modulus for modulus, kept in zip(self.moduli, mask.tolist(), strict=True) if kept]
        return ToeplitzGram(self.size, moduli, self.weights[mask])


def _check_system(size: int, moduli: tuple[int, ...], weights: Floats) -> None:
    """Refuse what is malformed, and what cannot be of full rank: sum_j (m_j - 1) >= k - 1 is needed, and enough (MATH
    3.2).
    """
    if size < 1:
        raise ParameterError(f"size must be at least 1, got {size}")
    if weights.shape != (len(moduli),):
        raise ParameterError(f"need one weight for each of {len(moduli)} moduli, got shape {weights.shape}")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ParameterError(f"weights must be positive and finite, got {weights.tolist()}")
    product = 1
    for modulus in moduli:
        if modulus < 2 or math.gcd(product, modulus) != 1:
            raise ParameterError(f"moduli must be pairwise coprime and at least 2, got {modulus} in {list(moduli)}")
        product *= modulus
    total = sum(modulus - 1 for modulus in moduli)
    if total < size - 1 or not moduli:
        raise EstimateError(
            f"the moduli do not determine {size} frequencies: sum(m - 1) = {total} must be at least {size - 1}; "
            f"add moduli, or take larger ones"
        )


def expected_error(size: int, moduli: Sequence[int], variances: ArrayLike) -> float:
    """The mean variance of a light item's estimate, per report: trace(T^-1) / k with w_j = 1 / (l d0_j), l the number
    of moduli.

    `variances` are the d0_j, the variance of one debiased report of block j at an empty residue (MATH 3.3). For n
    reports divide by n.
    """
    per_report = np.asarray(variances, dtype=np.float64)
    return ToeplitzGram(size, moduli, 1.0 / (len(moduli) * per_report)).inverse_trace() / size
