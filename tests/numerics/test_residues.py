"""Folding, tiling and the Toeplitz Gram matrix, against dense and sparse linear algebra."""

import copy
import gc
import itertools
import pickle
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sunzi.errors import EstimateError, ParameterError
from sunzi.numerics import residues, toeplitz_system
from sunzi.numerics.residues import (
    ToeplitzGram,
    _GramProduct,
    _Preconditioner,
    adjoint,
    expected_error,
    fold,
    multiply_tiled,
    tile,
)
from sunzi.numerics.toeplitz import Precision
from sunzi.numerics.toeplitz_system import RESIDUAL_TARGET, ToeplitzSystem, multiply

SIZES = [1, 2, 3, 5, 30, 60, 101, 300]
SEEDS = [0, 1]
BEYOND = ("two above half", 1501)


def primes_below(limit: int) -> list[int]:
    return [n for n in range(2, limit) if all(n % d for d in range(2, int(n**0.5) + 1))]


def primes_from(start: int) -> Iterator[int]:
    return (n for n in itertools.count(max(2, start)) if all(n % d for d in range(2, int(n**0.5) + 1)))


CROWDED = [prime for prime in primes_below(300) if prime > 150][:20]


def incidence(modulus: int, size: int) -> NDArray[np.float64]:
    """A_m, entry by entry."""
    return np.equal.outer(np.arange(modulus), np.arange(size) % modulus).astype(np.float64)


def gram(size: int, moduli: list[int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros((size, size))
    for modulus, weight in zip(moduli, weights, strict=True):
        matrix = incidence(modulus, size)
        total += weight * matrix.T @ matrix
    return total


def random_system(size: int, seed: int) -> tuple[list[int], NDArray[np.float64]]:
    """Distinct primes of full rank, some beyond the size; weights over two orders of magnitude, far from 1."""
    generator = np.random.default_rng([size, seed])
    pool = generator.permutation(primes_below(size + max(20, size // 5))).tolist()
    moduli: list[int] = []
    while sum(modulus - 1 for modulus in moduli) < 1.5 * size or len(moduli) < 3:
        moduli.append(pool.pop())
    return moduli, 1e6 * 10.0 ** generator.uniform(-2, 0, len(moduli))


def spread_primes(size: int, count: int) -> list[int]:
    candidates = np.array(primes_below(size))
    return [
        int(candidates[np.searchsorted(candidates, at)]) for at in np.linspace(size / (20 * count), 0.95 * size, count)
    ]


@pytest.fixture(params=[(size, seed) for size in SIZES for seed in SEEDS], ids=lambda p: f"k{p[0]}-seed{p[1]}")
def system(request: pytest.FixtureRequest) -> tuple[ToeplitzGram, NDArray[np.float64]]:
    size, seed = request.param
    moduli, weights = random_system(size, seed)
    return ToeplitzGram(size, moduli, weights), gram(size, moduli, weights)


@pytest.fixture(params=["direct", "iterative"])
def first_column_solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything must hold whichever way the first column of the inverse was found."""
    if request.param == "iterative":
        monkeypatch.setattr(toeplitz_system, "_LEVINSON_LIMIT", 0)


class TestFoldAndTile:
    @given(st.integers(1, 200), st.integers(1, 300), st.integers(0, 2**32 - 1))
    def test_they_are_adjoint_and_match_the_definition(self, size: int, modulus: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        vector, residues = generator.normal(size=size), generator.normal(size=modulus)
        folded, tiled = fold(vector, modulus), tile(residues, size)
        index = np.arange(size) % modulus
        np.testing.assert_allclose(folded, np.bincount(index, vector, minlength=modulus), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(tiled, residues[index])
        assert folded @ residues == pytest.approx(vector @ tiled, rel=1e-10, abs=1e-10)

    @pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
    @pytest.mark.parametrize("modulus", [1, 3, 1031, 4999, 5000, 7001])
    def test_precision_is_kept_and_the_input_is_not_touched(self, dtype: type, modulus: int) -> None:
        vector: NDArray[Any] = np.arange(5000).astype(dtype)
        before = vector.copy()
        folded = fold(vector, modulus)
        folded += 1
        assert folded.dtype == dtype
        assert tile(folded, 5000).dtype == dtype
        np.testing.assert_array_equal(vector, before)

    def test_integers_are_exact(self) -> None:
        vector = np.full(1000, 2**53 + 1, dtype=np.int64)
        assert fold(vector, 7).sum() == 1000 * (2**53 + 1)

    @given(st.integers(1, 200), st.integers(1, 300), st.integers(0, 2**32 - 1))
    def test_multiplying_by_tiles_is_multiplying_by_the_tiled_vector(self, size: int, modulus: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        vector, residues = generator.normal(size=size), generator.normal(size=modulus)
        expected, out = vector * tile(residues, size), np.empty(size)
        multiply_tiled(vector, residues, out)
        np.testing.assert_array_equal(out, expected)
        multiply_tiled(vector, residues, vector)
        np.testing.assert_array_equal(vector, expected)

    def test_adjoint(self) -> None:
        generator = np.random.default_rng(4)
        moduli, weights, size = [3, 11, 41], [0.5, 2.0, 7.0], 30
        blocks = [generator.normal(size=modulus) for modulus in moduli]
        expected = sum(w * incidence(m, size).T @ s for w, m, s in zip(weights, moduli, blocks, strict=True))
        np.testing.assert_allclose(adjoint(blocks, moduli, weights, size), expected, rtol=1e-13)
        counts = [np.arange(modulus) for modulus in moduli]
        floats = [count.astype(np.float64) for count in counts]
        np.testing.assert_array_equal(
            adjoint(iter(counts), moduli, weights, size), adjoint(floats, moduli, weights, size)
        )

    def test_adjoint_refuses_a_block_of_the_wrong_length(self) -> None:
        with pytest.raises(ParameterError, match="modulus 5 must have 5 residues, got 4"):
            adjoint([np.zeros(3), np.zeros(4)], [3, 5], [1.0, 1.0], 7)


@pytest.mark.usefixtures("first_column_solver")
class TestAgainstDense:
    def test_multiply(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, dense = system
        vector = np.random.default_rng(1).normal(size=structured.size)
        np.testing.assert_allclose(structured.multiply(vector), dense @ vector, rtol=1e-11, atol=1e-11 * dense[0, 0])
        np.testing.assert_allclose(structured.first_column, dense[:, 0], rtol=1e-13)

    @pytest.mark.parametrize(("precision", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-12)])
    def test_multiply_in_pieces(
        self,
        system: tuple[ToeplitzGram, NDArray[np.float64]],
        precision: Precision,
        tolerance: float,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        structured, dense = system
        monkeypatch.setattr(residues, "PIECE", 7)
        product = _GramProduct(structured.size, structured.moduli, structured.weights.tolist(), precision)
        for seed in (1, 2):  # the second time with buffers that were used
            vector = np.random.default_rng(seed).normal(size=structured.size).astype(precision)
            expected = dense @ vector
            np.testing.assert_allclose(
                multiply(product, vector), expected, atol=tolerance * np.abs(dense).sum(axis=1).max() * 4
            )

    def test_multiply_needs_no_sum_in_place(
        self, system: tuple[ToeplitzGram, NDArray[np.float64]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        structured, dense = system
        monkeypatch.setattr(scipy.linalg.blas, "daxpy", lambda giver, receiver, _, weight: receiver + weight * giver)
        vector = np.random.default_rng(1).normal(size=structured.size)
        np.testing.assert_allclose(structured.multiply(vector), dense @ vector, rtol=1e-11, atol=1e-11 * dense[0, 0])

    def test_solve(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, dense = system
        right_sides = np.random.default_rng(2).normal(size=(5, structured.size))
        solutions = np.array([structured.solve(right_side) for right_side in right_sides])
        residuals = solutions @ dense - right_sides
        assert (np.linalg.norm(residuals, axis=1) <= 1e-9 * np.linalg.norm(right_sides, axis=1)).all()
        expected = np.linalg.solve(dense, right_sides.T).T
        np.testing.assert_allclose(solutions, expected, rtol=1e-6, atol=1e-8 * abs(expected).max())

    @pytest.mark.parametrize("total", [0.0, 1.0, -30.0])
    def test_solve_to_a_total(self, total: float, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        """The least squares under a constraint, by Lagrange's multiplier."""
        structured, dense = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        solution = structured.solve(right_side, total=total)
        assert solution.sum() == pytest.approx(total, abs=1e-10 * max(1, abs(solution).sum()))
        added = dense @ solution - right_side
        assert np.linalg.norm(added - added.mean()) <= 1e-9 * np.linalg.norm(right_side + added.mean())
        ones = np.ones((structured.size, 1))
        bordered = np.block([[dense, -ones], [ones.T, np.zeros((1, 1))]])
        expected = np.linalg.solve(bordered, np.append(right_side, total))[:-1]
        np.testing.assert_allclose(solution, expected, rtol=1e-6, atol=1e-8 * abs(expected).max())

    def test_the_right_side_is_not_touched(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, _ = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        before = right_side.copy()
        structured.solve(right_side)
        structured.solve(right_side, total=1.0)
        np.testing.assert_array_equal(right_side, before)

    def test_solutions_scale_with_the_right_side(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        """Even where single precision has no such numbers, and where their squares vanish or overflow."""
        structured, _ = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        solution = structured.solve(right_side)
        for exponent in (-900, -100, 100, 900):
            scaled = structured.solve(np.ldexp(right_side, exponent))
            np.testing.assert_array_equal(np.ldexp(scaled, -exponent), solution)
        halved = right_side.astype(np.float32)
        np.testing.assert_array_equal(structured.solve(halved), structured.solve(halved.astype(np.float64)))

    def test_what_is_not_a_number_stays_so(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, _ = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        solution = structured.solve(right_side, total=1.0)
        assert np.isnan(structured.solve(np.where(right_side == right_side.max(), np.nan, right_side))).all()
        np.testing.assert_array_equal(structured.solve(right_side, total=1.0), solution)  # no buffer kept a trace

    def test_nothing_solves_to_nothing(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, _ = system
        np.testing.assert_array_equal(structured.solve(np.zeros(structured.size)), 0.0)

    def test_single_precision_solve(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, dense = system
        right_sides = np.random.default_rng(3).normal(size=(2, structured.size))
        solutions = structured.solve_roughly(right_sides)
        expected = np.linalg.solve(dense, right_sides.T).T
        assert solutions.dtype == np.float32
        assert np.linalg.norm(solutions - expected) <= 3e-7 * np.linalg.cond(dense) * np.linalg.norm(expected)

    def test_inverse(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, dense = system
        inverse = np.linalg.inv(dense)
        scale = abs(inverse).max()
        np.testing.assert_allclose(structured.inverse_column, inverse[:, 0], rtol=1e-7, atol=1e-8 * scale)
        np.testing.assert_allclose(structured.inverse_diagonal(), np.diag(inverse), rtol=1e-7)
        np.testing.assert_allclose(structured.ones_solution, inverse.sum(axis=1), rtol=1e-6, atol=1e-8 * scale)
        assert np.linalg.norm(dense @ structured.ones_solution - 1) <= 1e-9 * structured.size**0.5
        assert structured.inverse_trace() == pytest.approx(np.trace(inverse), rel=1e-7)
        for count in (1, 7, structured.size):
            places, stacks = zip(*structured.inverse_rows(count), strict=True)
            np.testing.assert_allclose(np.concatenate(stacks), inverse, rtol=1e-6, atol=1e-8 * scale)
            assert np.array_equal(np.r_[*places], np.arange(structured.size))
        folded = [incidence(modulus, structured.size) @ inverse.sum(axis=1) for modulus in structured.moduli]
        spreads = [block.size * block.var() for block in folded]
        np.testing.assert_allclose(
            structured.ones_spreads, spreads, rtol=1e-6, atol=1e-12 * max(block @ block for block in folded)
        )

    def test_product_diagonal(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, dense = system
        inverse = np.linalg.inv(dense)
        for modulus in (*structured.moduli, 2, 7, structured.size + 1):
            matrix = incidence(modulus, structured.size)
            expected = np.diag(inverse @ matrix.T @ matrix)
            np.testing.assert_allclose(
                structured.product_diagonal(modulus), expected, rtol=1e-7, atol=1e-8 * abs(inverse).max()
            )

    def test_product_floors(
        self, system: tuple[ToeplitzGram, NDArray[np.float64]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        structured, _ = system
        squares = np.array([structured.product_diagonal(modulus) ** 2 for modulus in structured.moduli])
        np.testing.assert_array_equal(structured.product_floors, squares)  # so few items are a stretch each
        monkeypatch.setattr(residues, "_STRETCHES", 4)
        coarse = ToeplitzGram(structured.size, structured.moduli, structured.weights).product_floors
        length = -(-structured.size // 4)
        stretches = np.split(squares, range(length, structured.size, length), axis=1)
        np.testing.assert_array_equal(coarse, np.array([part.min(axis=1) for part in stretches]).T)

    def test_sandwich_diagonal(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, dense = system
        inverse = np.linalg.inv(dense)
        coefficients = np.random.default_rng(5).uniform(0, 3, len(structured.moduli))
        middle = gram(structured.size, list(structured.moduli), coefficients)
        expected = np.diag(inverse @ middle @ inverse)
        np.testing.assert_allclose(
            structured.sandwich_diagonal(coefficients), expected, rtol=1e-6, atol=1e-8 * expected.max()
        )

    def test_restricted(self, system: tuple[ToeplitzGram, NDArray[np.float64]]) -> None:
        structured, _ = system
        largest = max(structured.moduli)
        keep = np.array([modulus != largest for modulus in structured.moduli])
        moduli = [modulus for modulus in structured.moduli if modulus != largest]
        if sum(modulus - 1 for modulus in moduli) < structured.size - 1:
            with pytest.raises(EstimateError):
                structured.restricted(keep)
            return
        dense = gram(structured.size, moduli, structured.weights[keep])
        right_side = np.random.default_rng(6).normal(size=structured.size)
        residual = dense @ structured.restricted(keep).solve(right_side) - right_side
        assert np.linalg.norm(residual) <= 1e-8 * np.linalg.norm(right_side)


class TestLargerSystems:
    def test_agrees_with_sparse_least_squares(self) -> None:
        size, moduli = 1024, spread_primes(1024, 14)
        generator = np.random.default_rng(7)
        weights = generator.uniform(0.5, 2.0, len(moduli))
        blocks = [generator.normal(size=modulus) for modulus in moduli]
        columns = np.arange(size)
        matrix = scipy.sparse.vstack(
            [
                scipy.sparse.coo_array(
                    (np.full(size, weight**0.5), (columns % modulus, columns)), shape=(modulus, size)
                )
                for modulus, weight in zip(moduli, weights, strict=True)
            ]
        ).tocsr()
        target = np.concatenate([weight**0.5 * block for weight, block in zip(weights, blocks, strict=True)])
        expected = scipy.sparse.linalg.lsmr(matrix, target, atol=1e-13, btol=1e-13, maxiter=5000)[0]
        solution = ToeplitzGram(size, moduli, weights).solve(adjoint(blocks, moduli, weights, size))
        np.testing.assert_allclose(solution, expected, rtol=1e-8, atol=1e-9 * abs(expected).max())

    @pytest.mark.parametrize("size", [10, 50, 300, 1501])
    @pytest.mark.parametrize("kind", ["two above half", "two apart", "three", "many small"])
    @pytest.mark.usefixtures("first_column_solver")
    def test_few_or_small_moduli_against_a_dense_solve(self, kind: str, size: int) -> None:
        """Right sides along the large eigenvalues as well as the small ones. Two moduli above half of 1501 values have
        cond(T) = 6e4: their residual is as small, but the solution is not as near.
        """
        starts = {
            "two above half": [size // 2 + 2, size // 2 + 3],
            "two apart": [size // 3, size - size // 4],
            "three": [size // 5, 3 * size // 8, 7 * size // 10],
            "many small": np.geomspace(size / 100, 0.6 * size, 20).astype(int).tolist(),
        }
        moduli: list[int] = []
        for start in starts[kind]:
            moduli.append(next(prime for prime in primes_from(start) if prime not in moduli))
        weights = np.linspace(1.0, 2.0, len(moduli))
        structured, dense = ToeplitzGram(size, moduli, weights), gram(size, moduli, weights)
        truth = np.random.default_rng(size).normal(size=(2, size))
        right_sides = np.stack([dense @ truth[0], truth[1]])
        solutions = np.array([structured.solve(right_side) for right_side in right_sides])
        residuals, tolerance = solutions @ dense - right_sides, 5e-8 if (kind, size) == BEYOND else 1e-9
        assert (np.linalg.norm(residuals, axis=1) <= 1e-9 * np.linalg.norm(right_sides, axis=1)).all()
        expected = np.linalg.solve(dense, right_sides.T).T
        assert (np.linalg.norm(solutions - expected, axis=1) <= tolerance * np.linalg.norm(expected, axis=1)).all()

    def test_the_ones_are_solved_for_where_small_moduli_make_the_norm_large(self) -> None:
        structured = ToeplitzGram(1501, spread_primes(1501, 16), np.ones(16))
        residual = structured.multiply(structured.ones_solution) - 1
        assert np.linalg.norm(residual) <= 1e-9 * 1501**0.5

    def test_a_total_that_takes_away_nearly_all_of_the_right_side(self) -> None:
        """The residual is measured against what remains, as it stands at the end."""
        structured = ToeplitzGram(5000, [1361, 1259, 1753, 1709, 2503], np.ones(5))
        right_side = 1 + 1e-5 * np.random.default_rng(0).normal(size=5000)
        added = structured.multiply(structured.solve(right_side, total=0.0)) - right_side
        assert np.linalg.norm(added - added.mean()) <= 1e-9 * np.linalg.norm(right_side + added.mean())

    @pytest.mark.parametrize("total", [None, 1.0])
    def test_where_single_precision_does_not_do(self, total: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first twenty primes above 150 for k = 1024: cond(T) is about 1e8."""
        approached, approach = list[bool](), ToeplitzSystem._approach

        def watched(*arguments: Any, single: bool) -> Any:
            approached.append(single)
            return approach(*arguments, single=single)

        monkeypatch.setattr(toeplitz_system, "_LEVINSON_LIMIT", 0)
        monkeypatch.setattr(ToeplitzSystem, "_approach", watched)
        structured = ToeplitzGram(1024, CROWDED, np.ones(20))
        right_side = np.random.default_rng(8).normal(size=1024)
        added = structured.multiply(structured.solve(right_side, total=total)) - right_side
        constant = 0.0 if total is None else added.mean()
        assert approached == [True, False]
        assert np.linalg.norm(added - constant) <= 1e-9 * np.linalg.norm(right_side + constant)

    def test_threads_may_share_a_matrix(self) -> None:
        size = 5000
        structured = ToeplitzGram(size, spread_primes(size, 8), np.ones(8))
        right_sides = np.random.default_rng(9).normal(size=(40, size))
        with ThreadPoolExecutor(4) as pool:  # before anything is computed
            together = list(pool.map(structured.solve, right_sides))
        alone = [structured.solve(right_side) for right_side in right_sides]
        np.testing.assert_array_equal(together, alone)

    @pytest.mark.parametrize("size", [300, 5000])
    def test_a_copy_solves_like_it(self, size: int) -> None:
        structured = ToeplitzGram(size, spread_primes(size, 8), np.ones(8))
        right_side = np.random.default_rng(9).normal(size=size)
        solution = structured.solve(right_side, total=1.0)
        for copied in (copy.deepcopy(structured), pickle.loads(pickle.dumps(structured))):
            np.testing.assert_array_equal(copied.solve(right_side, total=1.0), solution)
            np.testing.assert_array_equal(copied.inverse_column, structured.inverse_column)

    def test_what_is_dropped_is_freed_at_once(self) -> None:
        """Its arrays would be many, if they had to wait for the collector of circles."""
        structured = ToeplitzGram(5000, spread_primes(5000, 8), np.ones(8))
        structured.solve(np.ones(5000))
        structured.inverse_trace()
        seen = weakref.ref(structured)
        gc.disable()
        try:
            del structured
            assert seen() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("size", [4095, 4096, 10_007, 30_000])
    def test_transforms_along_two_axes(self, size: int) -> None:
        """Sizes about and beyond the one where the transform splits into rows; a prime size too."""
        structured = ToeplitzGram(size, spread_primes(size, 12), np.linspace(1.0, 3.0, 12))
        right_sides = np.random.default_rng(size).normal(size=(3, size))
        for right_side in right_sides:
            residual = structured.multiply(structured.solve(right_side)) - right_side
            assert np.linalg.norm(residual) <= 1.01 * RESIDUAL_TARGET * np.linalg.norm(right_side)
        single = structured.solve_roughly(right_sides[0])
        assert np.linalg.norm(structured.multiply(single) - right_sides[0]) <= 1e-4 * np.linalg.norm(right_sides[0])
        probe = size // 3
        unit = np.zeros(size)
        unit[probe] = 1.0
        assert structured.inverse_diagonal()[probe] == pytest.approx(structured.solve(unit)[probe], rel=1e-9)
        assert structured.inverse_diagonal().sum() == pytest.approx(structured.inverse_trace(), rel=1e-10)

    def test_the_preconditioner_is_symmetric_positive_definite_and_helps(self) -> None:
        size, moduli = 600, [7, 11, 31, 47, 101, 251, 389, 569]
        weights = np.linspace(0.5, 2.0, len(moduli))
        precondition = _Preconditioner(size, moduli, weights.tolist(), np.float64)
        matrix = np.array([precondition(row).copy() for row in np.eye(size)])
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        assert np.linalg.eigvalsh(matrix)[0] > 0
        dense = gram(size, moduli, weights)
        factor = np.linalg.cholesky(matrix)
        assert np.linalg.cond(factor.T @ dense @ factor) < 0.2 * np.linalg.cond(dense)

    @pytest.mark.usefixtures("first_column_solver")
    def test_neighbouring_primes_still_solve(self) -> None:
        """The eight primes 401..443 for k = 1024: cond(A) = 252, and 25 times the error of subsets (MATH 3.2)."""
        moduli = [401, 409, 419, 421, 431, 433, 439, 443]
        structured = ToeplitzGram(1024, moduli, np.ones(8))
        right_side = np.random.default_rng(8).normal(size=1024)
        residual = structured.multiply(structured.solve(right_side)) - right_side
        assert np.linalg.norm(residual) <= 1e-8 * np.linalg.norm(right_side)
        assert expected_error(1024, moduli, np.ones(8)) == pytest.approx(25.370907594510, rel=1e-9)

    @pytest.mark.usefixtures("first_column_solver")
    def test_where_newton_steps_fail_at_first(self) -> None:
        """The first twenty primes above 150 for k = 1024: cond(T) is about 1e8, too much for single precision."""
        structured = ToeplitzGram(1024, CROWDED, np.ones(20))
        unit = np.eye(1024)[0]
        assert np.linalg.norm(structured.multiply(structured.inverse_column) - unit) <= 1e-9
        dense = gram(1024, CROWDED, np.ones(20))
        assert structured.inverse_trace() == pytest.approx(np.trace(np.linalg.inv(dense)), rel=1e-3)


class TestRefusals:
    def test_rank_loss_names_the_sum(self) -> None:
        with pytest.raises(EstimateError, match=r"sum\(m - 1\) = 58 must be at least 59"):
            ToeplitzGram(60, [29, 31], [1.0, 1.0])
        assert ToeplitzGram(59, [29, 31], [1.0, 1.0]).inverse_trace() > 0  # one less is just enough

    def test_restriction_that_loses_rank(self) -> None:
        with pytest.raises(EstimateError, match=r"sum\(m - 1\) = 28"):
            ToeplitzGram(59, [29, 31], [1.0, 1.0]).restricted([True, False])
        with pytest.raises(EstimateError, match="do not determine 59"):
            ToeplitzGram(59, [29, 31], [1.0, 1.0]).restricted([False, False])

    @pytest.mark.parametrize(
        ("size", "moduli", "weights"),
        [
            (0, [7], [1.0]),
            (5, [7, 7], [1.0, 1.0]),
            (5, [7, 1], [1.0, 1.0]),
            (5, [7, 21], [1.0, 1.0]),
            (5, [7, 5], [1.0]),
            (5, [7, 5], [1.0, 0.0]),
            (5, [7, 5], [1.0, -1.0]),
            (5, [7, 5], [1.0, float("nan")]),
            (5, [7, 5], [1.0, float("inf")]),
        ],
    )
    def test_malformed_systems(self, size: int, moduli: list[int], weights: list[float]) -> None:
        with pytest.raises(ParameterError):
            ToeplitzGram(size, moduli, weights)

    def test_malformed_arguments(self) -> None:
        structured = ToeplitzGram(10, [7, 5], [1.0, 1.0])
        with pytest.raises(ParameterError, match=r"10 entries, got shape \(9,\)"):
            structured.solve(np.zeros(9))
        for stack in (np.zeros((2, 10)), np.zeros(())):
            with pytest.raises(ParameterError, match="10 entries, got shape"):
                structured.solve(stack)
        with pytest.raises(ParameterError, match="10 entries, got shape"):
            structured.solve_roughly(np.zeros(()))
        with pytest.raises(ParameterError, match="one coefficient"):
            structured.sandwich_diagonal([1.0])
        with pytest.raises(ParameterError, match="one flag"):
            structured.restricted([True])

    def test_no_convergence_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(toeplitz_system, "_LEVINSON_LIMIT", 0)
        monkeypatch.setattr(toeplitz_system, "_FIRST_LIMIT", 1)
        monkeypatch.setattr(toeplitz_system, "ITERATION_LIMIT", 5)
        with pytest.raises(EstimateError, match=r"within 5 conjugate gradient steps.*badly conditioned"):
            ToeplitzGram(1024, CROWDED, np.ones(20)).inverse_trace()


def test_expected_error_is_the_mean_light_variance_per_report() -> None:
    size, moduli = 60, [13, 23, 41, 61]
    variances = np.array([3.0, 2.0, 4.0, 5.0])
    dense = gram(size, moduli, 1 / (4 * variances))
    assert expected_error(size, moduli, variances) == pytest.approx(np.trace(np.linalg.inv(dense)) / size, rel=1e-9)


def test_expected_error_of_one_covering_modulus_is_that_of_its_block() -> None:
    assert expected_error(50, [53], [2.5]) == pytest.approx(2.5, rel=1e-12)
