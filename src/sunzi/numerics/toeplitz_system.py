"""Equations T x = b with a symmetric positive definite Toeplitz matrix T, products with which are cheap.

A rough first column of T^-1, found by conjugate gradients in single precision, spells out an approximate inverse M; a
few rounds x += M (b - T x), with only the residual in double precision, then solve any equation, and T u = e_0 itself.
"""

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from sunzi.errors import EstimateError
from sunzi.numerics.scaled_sums import PIECE, ScaledSums
from sunzi.numerics.spares import Spares
from sunzi.numerics.toeplitz import Floats, Precision, ToeplitzInverse, Transforms

Apply = Callable[[NDArray[Any]], NDArray[Any]]
"""A linear map in one precision. It may return the same buffer each time: use that before the next call."""


class Product(Protocol):
    """target = T source, between two vectors of its own, in one precision."""

    source: NDArray[Any]
    target: NDArray[Any]

    def __call__(self) -> None:
        """Overwrite the target."""


def multiply(product: Product, vector: NDArray[Any]) -> NDArray[Any]:
    """T z. The result is the product's own target, which its next call overwrites."""
    np.copyto(product.source, vector)
    product()
    return product.target


RESIDUAL_TARGET = 2e-10
"""Where refinement stops: the relative residual of a solution, and of the inverse's first column. We promise 1e-9."""

RESIDUAL_ACCEPTED = 1e-9
"""The worst residual of the column still used where rounding stops the refinement earlier: condition numbers above
about 1e6.
"""

ITERATION_LIMIT = 1500
"""Conjugate gradient steps, all sweeps together, before the matrix is called too badly conditioned."""

# Up to this size Levinson's O(k^2) recursion is as fast as iterating, and it shrugs off bad conditioning.
_LEVINSON_LIMIT = 1500
# From the one residual of the column on, two rounds solve an equation and one refines the column; from the other, three
# and two. A round takes as long as a few iterations.
_FIRST_SWEEP, _SLOW_FIRST_SWEEP = 2e-6, 1e-4
_FIRST_PATIENCE = 25
_FIRST_LIMIT = 300  # single precision gains nothing from more
_LATER_SWEEPS = 1e-3
# A round that leaves more than this of the residual is the last.
_LEAST_GAIN = 0.1


class ToeplitzSystem:
    """T of a given size, and its inverse, of which nothing is computed before it is needed.

    `product` and `preconditioner` make, in a given precision, the maps z -> T z and z -> P z, with P a symmetric
    positive definite approximation of T^-1. Guarantee: threads may share an object.
    """

    def __init__(
        self, size: int, product: Callable[[Precision], Product], preconditioner: Callable[[Precision], Apply]
    ) -> None:
        self._size = size
        self._product = product
        self._double_products = Spares(partial(product, np.float64))
        self._preconditioner = preconditioner

    @cached_property
    def _unit(self) -> Floats:
        unit = np.zeros(self._size)
        unit[0] = 1.0
        return unit

    @cached_property
    def _rough(self) -> ToeplitzInverse:
        """The inverse that a rough first column spells out; exact to rounding in small systems."""
        if self._size <= _LEVINSON_LIMIT:
            with self._double_products.lend() as product:
                column = scipy.linalg.solve_toeplitz(multiply(product, self._unit), self._unit)
        else:
            operators = self._product(np.float32), self._preconditioner(np.float32)
            single, _ = _conjugate_gradients(*operators, self._unit.astype(np.float32), _first_goal, _FIRST_LIMIT)
            column = single.astype(np.float64)
        return ToeplitzInverse(column, Transforms(self._size))

    @cached_property
    def inverse(self) -> ToeplitzInverse:
        """T^-1 by its first column u, with |T u - e_0| <= RESIDUAL_TARGET or, where rounding forbids that, <=
        RESIDUAL_ACCEPTED; otherwise :class:`EstimateError`.

        Newton's u += M (e_0 - T u), M the inverse that u spells out, about squares the residual, and single precision
        is enough for it. A round that does not help gives way to a sweep of conjugate gradients on the same residual.
        """
        rough = self._rough
        with self._double_products.lend() as product:
            return self._refined(rough, product)

    def _refined(self, inverse: ToeplitzInverse, product: Product) -> ToeplitzInverse:
        residual, norm = _residual(self._unit, product, inverse.column)
        budget = ITERATION_LIMIT
        while not norm <= RESIDUAL_TARGET:
            candidate = inverse.column + inverse.solve(residual, single=True)
            candidate_residual, candidate_norm = _residual(self._unit, product, candidate)
            if not candidate_norm <= _LEAST_GAIN * norm:
                if norm <= RESIDUAL_ACCEPTED:
                    break
                precondition = self._preconditioner(np.float64)
                step, steps = _conjugate_gradients(product, precondition, residual, lambda _: _LATER_SWEEPS, budget)
                budget -= steps
                if budget <= 0:
                    raise EstimateError(
                        f"no inverse within {ITERATION_LIMIT} conjugate gradient steps (residual {norm:.1e}): the "
                        f"matrix of size {len(step)} is too badly conditioned; spread the moduli more widely or take "
                        f"more"
                    )
                candidate = inverse.column + step
                candidate_residual, candidate_norm = _residual(self._unit, product, candidate)
            inverse = ToeplitzInverse(candidate, inverse.transforms)
            residual, norm = candidate_residual, candidate_norm
        return inverse

    def solve(self, right_side: Floats, total: float | None = None) -> Floats:
        """T^-1 b; with a `total`, T^-1 (b + c 1) with the c at which the entries sum to it.

        Guarantee: the residual relative to b (or b + c 1) is at most RESIDUAL_TARGET, or as small as rounding lets it
        become, which is within 1e-9 while cond(T) <= 1e4.
        """
        # Brought near 1, exactly, for the sake of single precision and of squares.
        _, exponent = math.frexp(max(float(right_side.max()), -float(right_side.min())))
        magnitude = 2.0 ** min(max(exponent, -1000), 1000)
        goal, goal_total = right_side / magnitude, None if total is None else total / magnitude
        solution, residual = self._approach(self._rough, goal, goal_total, single=self._size > _LEVINSON_LIMIT)
        if not residual <= RESIDUAL_TARGET:
            solution, _ = self._approach(self.inverse, goal, goal_total, single=False)
        solution *= magnitude
        return solution

    def _approach(
        self, inverse: ToeplitzInverse, right_side: Floats, total: float | None, *, single: bool
    ) -> tuple[Floats, float]:
        """Rounds of x += M (b - T x) from x = M b while they help; x and its relative residual."""
        goal, solution = right_side.copy(), inverse.solve(right_side, single=single).astype(np.float64, copy=False)
        with self._double_products.lend() as product:
            residual, norm = _settle(inverse, product, goal, solution, total)
            helps = True
            while helps and not norm <= RESIDUAL_TARGET:
                candidate = solution + inverse.solve(residual, single=single)
                residual, candidate_norm = _settle(inverse, product, goal, candidate, total)
                helps = candidate_norm <= _LEAST_GAIN * norm
                if candidate_norm < norm:
                    solution, norm = candidate, candidate_norm
        return solution, norm


def _settle(
    inverse: ToeplitzInverse, product: Product, goal: Floats, solution: Floats, total: float | None
) -> tuple[Floats, float]:
    """Move x along M 1 to the total, if any, and b along 1 as far as that takes it, both in place; return b - T x,
    which is the product's own target, and its norm relative to b.
    """
    if total is not None:
        shift = (total - float(solution.sum())) / inverse.grand_total
        solution += np.multiply(inverse.ones_solution, shift, out=product.source)
        goal += shift
    residual = np.subtract(goal, multiply(product, solution), out=product.target)
    return residual, _norm(residual) / (_norm(goal) or 1.0)


def _first_goal(iteration: int) -> float:
    return _FIRST_SWEEP if iteration <= _FIRST_PATIENCE else _SLOW_FIRST_SWEEP


def _residual(right_side: Floats, product: Product, solution: Floats) -> tuple[Floats, float]:
    """b - T x, and its norm."""
    residual = right_side - multiply(product, solution)
    return residual, _norm(residual)


def _norm(vector: NDArray[Any]) -> float:
    return math.sqrt(_inner(vector, vector))


def _inner(left: NDArray[Any], right: NDArray[Any]) -> float:
    """x . y, in double precision in pieces for which BLAS starts no threads, which on a busy machine wait for one
    another.
    """
    if left.dtype == np.float32:
        return float(np.dot(left, right))
    pieces = range(0, len(left), PIECE)
    return sum(float(np.dot(left[start : start + PIECE], right[start : start + PIECE])) for start in pieces)


def _conjugate_gradients(
    product: Product, precondition: Apply, right_side: NDArray[Any], goal: Callable[[int], float], limit: int
) -> tuple[NDArray[Any], int]:
    """Shrink the residual of T x = b until, relative to b, it is `goal` of the number of steps, in at most `limit`
    steps; return x and the steps.
    """
    residual, solution = right_side.copy(), np.zeros_like(right_side)
    direction, image = product.source, product.target
    to_residual, to_solution = ScaledSums.between(image, residual), ScaledSums.between(direction, solution)
    initial = _inner(residual, residual)
    direction[:] = precondition(residual)
    slope = _inner(residual, direction)
    for iteration in range(1, limit + 1):
        product()
        curvature = _inner(direction, image)
        if not curvature > 0.0:  # rounding has eaten the last of it
            return solution, iteration
        to_residual(-slope / curvature)
        to_solution(slope / curvature)
        square = _inner(residual, residual)
        if square <= goal(iteration) ** 2 * initial:
            return solution, iteration
        conditioned = precondition(residual)
        previous, slope = slope, square if conditioned is residual else _inner(residual, conditioned)
        direction *= slope / previous
        direction += conditioned
    return solution, limit
