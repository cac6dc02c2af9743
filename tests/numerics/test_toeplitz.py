"""Folding, tiling and the Toeplitz Gram matrix, against dense and sparse linear algebra."""

import copy
import gc
import itertools
import pickle
import warnings
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from sunzi._typing import Floats
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics import toeplitz
from sunzi.numerics.toeplitz import RESIDUAL_TARGET, ToeplitzGram, adjoint, fold, tile

System = tuple[ToeplitzGram, Floats]

SIZES = [1, 2, 3, 5, 30, 60, 101, 300]
NEIGHBOURS = [401, 409, 419, 421, 431, 433, 439, 443]


def primes_from(start: int) -> Iterator[int]:
    return (n for n in itertools.count(max(2, start)) if all(n % d for d in range(2, int(n**0.5) + 1)))


def primes_below(limit: int) -> list[int]:
    return list(itertools.takewhile(lambda prime: prime < limit, primes_from(2)))


# For k = 1024, cond(T) is about 1e8.
CROWDED = list(itertools.islice(primes_from(151), 20))


def make(size: int, moduli: Sequence[int], weights: ArrayLike | None = None) -> ToeplitzGram:
    return ToeplitzGram(size, tuple(moduli), np.ones(len(moduli)) if weights is None else np.array(weights))


def incidence(modulus: int, size: int) -> Floats:
    """A_m, entry by entry."""
    return np.equal.outer(np.arange(modulus), np.arange(size) % modulus).astype(np.float64)


def gram(size: int, moduli: Sequence[int], weights: ArrayLike) -> Floats:
    """T, entry by entry."""
    total = np.zeros((size, size))
    for modulus, weight in zip(moduli, np.asarray(weights), strict=True):
        matrix = incidence(modulus, size)
        total += weight * matrix.T @ matrix
    return total


def random_system(size: int, seed: int) -> tuple[list[int], Floats]:
    """Distinct primes of full rank, some above the size; weights over two orders of magnitude, far from 1."""
    generator = np.random.default_rng([size, seed])
    pool = generator.permutation(primes_below(size + max(20, size // 5))).tolist()
    moduli: list[int] = []
    while sum(modulus - 1 for modulus in moduli) < 1.5 * size or len(moduli) < 3:
        moduli.append(pool.pop())
    return moduli, 1e6 * 10.0 ** generator.uniform(-2, 0, len(moduli))


def spread_primes(size: int, count: int) -> list[int]:
    candidates = np.array(primes_below(size))
    places = np.searchsorted(candidates, np.linspace(size / (20 * count), 0.95 * size, count))
    return candidates[places].tolist()


def relative_residual(structured: ToeplitzGram, solution: Floats, right_side: Floats) -> float:
    return float(np.linalg.norm(structured.multiply(solution) - right_side) / np.linalg.norm(right_side))


@pytest.fixture(params=list(itertools.product(SIZES, [0, 1])), ids=lambda p: f"k{p[0]}-seed{p[1]}")
def system(request: pytest.FixtureRequest) -> System:
    size, seed = request.param
    moduli, weights = random_system(size, seed)
    return make(size, moduli, weights), gram(size, moduli, weights)


@pytest.fixture(params=["levinson", "conjugate gradients"])
def both_column_solvers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "conjugate gradients":
        monkeypatch.setattr(toeplitz, "_LEVINSON_LIMIT", 0)


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

    @pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
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


@pytest.mark.usefixtures("both_column_solvers")
class TestInverseAgainstDense:
    def test_multiply(self, system: System) -> None:
        structured, dense = system
        vector = np.random.default_rng(1).normal(size=structured.size)
        np.testing.assert_allclose(structured.multiply(vector), dense @ vector, rtol=1e-11, atol=1e-11 * dense[0, 0])
        np.testing.assert_allclose(structured.first_column, dense[:, 0], rtol=1e-13)

    def test_inverse(self, system: System) -> None:
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
        tolerance = 1e-12 * max(block @ block for block in folded)
        np.testing.assert_allclose(structured.ones_spreads, spreads, rtol=1e-6, atol=tolerance)

    def test_product_diagonal(self, system: System) -> None:
        structured, dense = system
        inverse = np.linalg.inv(dense)
        for modulus in (*structured.moduli, 2, 7, structured.size + 1):
            matrix = incidence(modulus, structured.size)
            expected = np.diag(inverse @ matrix.T @ matrix)
            np.testing.assert_allclose(
                structured.product_diagonal(modulus), expected, rtol=1e-7, atol=1e-8 * abs(inverse).max()
            )

    def test_product_floors(self, system: System, monkeypatch: pytest.MonkeyPatch) -> None:
        structured, _ = system
        squares = np.array([structured.product_diagonal(modulus) ** 2 for modulus in structured.moduli])
        np.testing.assert_array_equal(structured.product_floors, squares)  # below 512 items each has its own interval
        monkeypatch.setattr(toeplitz, "_INTERVALS", 4)
        coarse = make(structured.size, structured.moduli, structured.weights).product_floors
        length = -(-structured.size // 4)
        intervals = np.split(squares, range(length, structured.size, length), axis=1)
        np.testing.assert_array_equal(coarse, np.array([part.min(axis=1) for part in intervals]).T)

    def test_sandwich_diagonal(self, system: System) -> None:
        structured, dense = system
        inverse = np.linalg.inv(dense)
        coefficients = np.random.default_rng(5).uniform(0, 3, len(structured.moduli))
        expected = np.diag(inverse @ gram(structured.size, structured.moduli, coefficients) @ inverse)
        np.testing.assert_allclose(
            structured.sandwich_diagonal(coefficients), expected, rtol=1e-6, atol=1e-8 * expected.max()
        )

    def test_apply_inverse_to_a_vector_and_to_stacks(self, system: System) -> None:
        structured, dense = system
        right_sides = np.random.default_rng(3).normal(size=(2, 3, structured.size))
        solutions, expected = structured.apply_inverse(right_sides), right_sides @ np.linalg.inv(dense)
        assert np.linalg.norm(solutions - expected) <= 1e-9 * np.linalg.norm(expected)
        alone = structured.apply_inverse(right_sides[1, 2])
        np.testing.assert_allclose(alone, solutions[1, 2], atol=1e-13 * abs(alone).max())


@pytest.mark.usefixtures("both_column_solvers")
class TestSolveAgainstDense:
    def test_solve(self, system: System) -> None:
        structured, dense = system
        right_sides = np.random.default_rng(2).normal(size=(5, structured.size))
        solutions = np.array([structured.solve(right_side) for right_side in right_sides])
        residuals = solutions @ dense - right_sides
        assert (np.linalg.norm(residuals, axis=1) <= 1e-9 * np.linalg.norm(right_sides, axis=1)).all()
        expected = np.linalg.solve(dense, right_sides.T).T
        np.testing.assert_allclose(solutions, expected, rtol=1e-6, atol=1e-8 * abs(expected).max())

    @pytest.mark.parametrize("total", [0.0, 1.0, -30.0])
    def test_solve_to_a_total(self, total: float, system: System) -> None:
        """The constrained least squares solution, by a Lagrange multiplier."""
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

    def test_the_right_side_is_not_touched(self, system: System) -> None:
        structured, _ = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        before = right_side.copy()
        structured.solve(right_side)
        structured.solve(right_side, total=1.0)
        structured.apply_inverse(right_side)
        np.testing.assert_array_equal(right_side, before)

    def test_solutions_scale_with_the_right_side(self, system: System) -> None:
        """Also where squares underflow or overflow."""
        structured, _ = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        solution = structured.solve(right_side)
        for exponent in (-900, -100, 100, 900):
            scaled = structured.solve(np.ldexp(right_side, exponent))
            np.testing.assert_array_equal(np.ldexp(scaled, -exponent), solution)
        single = right_side.astype(np.float32)
        np.testing.assert_array_equal(structured.solve(single), structured.solve(single.astype(np.float64)))

    def test_nan_and_zero(self, system: System) -> None:
        structured, _ = system
        right_side = np.random.default_rng(2).normal(size=structured.size)
        right_side[right_side.argmax()] = np.nan
        assert np.isnan(structured.solve(right_side)).all()
        np.testing.assert_array_equal(structured.solve(np.zeros(structured.size)), 0.0)


class TestLargerSystems:
    def test_agrees_with_sparse_least_squares(self) -> None:
        size, moduli = 1024, spread_primes(1024, 14)
        generator = np.random.default_rng(7)
        weights = generator.uniform(0.5, 2.0, len(moduli))
        blocks = [generator.normal(size=modulus) for modulus in moduli]
        roots = np.sqrt(weights)
        matrix = scipy.sparse.csr_array(
            np.concatenate([root * incidence(modulus, size) for root, modulus in zip(roots, moduli, strict=True)])
        )
        goal = np.concatenate([root * block for root, block in zip(roots, blocks, strict=True)])
        expected = scipy.sparse.linalg.lsmr(matrix, goal, atol=1e-13, btol=1e-13, maxiter=5000)[0]
        solution = make(size, moduli, weights).solve(adjoint(blocks, moduli, weights, size))
        np.testing.assert_allclose(solution, expected, rtol=1e-8, atol=1e-9 * abs(expected).max())

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [10, 50, 300, 1501])
    @pytest.mark.parametrize("kind", ["two above half", "two apart", "three", "many small"])
    @pytest.mark.usefixtures("both_column_solvers")
    def test_few_or_small_moduli_against_a_dense_solve(self, kind: str, size: int) -> None:
        """Right sides along large and small eigenvalues. Two moduli above half of 1501 values have cond(T) = 6e4: the
        residual is as small, but the solution is less exact.
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
        structured, dense = make(size, moduli, weights), gram(size, moduli, weights)
        truth = np.random.default_rng(size).normal(size=(2, size))
        right_sides = np.stack([dense @ truth[0], truth[1]])
        solutions = np.array([structured.solve(right_side) for right_side in right_sides])
        residuals = solutions @ dense - right_sides
        assert (np.linalg.norm(residuals, axis=1) <= 1e-9 * np.linalg.norm(right_sides, axis=1)).all()
        expected = np.linalg.solve(dense, right_sides.T).T
        tolerance = 5e-8 if (kind, size) == ("two above half", 1501) else 1e-9
        assert (np.linalg.norm(solutions - expected, axis=1) <= tolerance * np.linalg.norm(expected, axis=1)).all()

    def test_the_ones_where_small_moduli_make_the_norm_large(self) -> None:
        structured = make(1501, spread_primes(1501, 16))
        assert relative_residual(structured, structured.ones_solution, np.ones(1501)) <= 1e-9

    def test_a_total_that_removes_nearly_all_of_the_right_side(self) -> None:
        """The residual is relative to the remaining right side."""
        structured = make(5000, [1361, 1259, 1753, 1709, 2503])
        right_side = 1 + 1e-5 * np.random.default_rng(0).normal(size=5000)
        added = structured.multiply(structured.solve(right_side, total=0.0)) - right_side
        assert np.linalg.norm(added - added.mean()) <= 1e-9 * np.linalg.norm(right_side + added.mean())

    @pytest.mark.parametrize("size", [4095, 4096, 10_007, 30_000])
    def test_sizes_above_levinson(self, size: int) -> None:
        structured = make(size, spread_primes(size, 12), np.linspace(1.0, 3.0, 12))
        for right_side in np.random.default_rng(size).normal(size=(3, size)):
            solution = structured.solve(right_side)
            assert relative_residual(structured, solution, right_side) <= 1.01 * RESIDUAL_TARGET
        unit, probe = np.zeros(size), size // 3
        unit[probe] = 1.0
        assert structured.inverse_diagonal()[probe] == pytest.approx(structured.solve(unit)[probe], rel=1e-9)
        assert structured.inverse_diagonal().sum() == pytest.approx(structured.inverse_trace(), rel=1e-10)


class TestBadConditioning:
    @pytest.mark.usefixtures("both_column_solvers")
    def test_neighbouring_primes_still_solve(self) -> None:
        """cond(A) = 252, and 25 times the error of subsets (docs/mathematics.md §3.2)."""
        structured, right_side = make(1024, NEIGHBOURS), np.random.default_rng(8).normal(size=1024)
        assert relative_residual(structured, structured.solve(right_side), right_side) <= 1e-9
        scaled = ToeplitzGram(1024, NEIGHBOURS, np.full(8, 1 / 8))
        assert scaled.inverse_trace() / 1024 == pytest.approx(25.370907594510, rel=1e-9)

    @pytest.mark.usefixtures("both_column_solvers")
    @pytest.mark.parametrize("total", [None, 1.0])
    def test_crowded_primes_still_solve(self, total: float | None) -> None:
        structured, right_side = make(1024, CROWDED), np.random.default_rng(8).normal(size=1024)
        added = structured.multiply(structured.solve(right_side, total=total)) - right_side
        constant = 0.0 if total is None else added.mean()
        assert np.linalg.norm(added - constant) <= 1e-9 * np.linalg.norm(right_side + constant)

    @pytest.mark.usefixtures("both_column_solvers")
    def test_the_trace_of_crowded_primes(self) -> None:
        structured = make(1024, CROWDED)
        assert relative_residual(structured, structured.inverse_column, np.eye(1024)[0]) <= 1e-9
        expected = np.trace(np.linalg.inv(gram(1024, CROWDED, np.ones(20))))
        assert structured.inverse_trace() == pytest.approx(expected, rel=1e-3)

    @pytest.mark.slow
    @pytest.mark.usefixtures("both_column_solvers")
    def test_a_residual_that_rounding_prevents_is_reported_once(self) -> None:
        """With cond(T) = 4e9 the solution is so long that storing it already leaves a residual above 1e-9."""
        structured = make(1024, list(itertools.islice(primes_from(113), 20)))
        right_sides = np.random.default_rng(8).normal(size=(2, 1024))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            solutions = [structured.solve(right_side) for right_side in right_sides]
        assert [warning.category for warning in caught] == [scipy.linalg.LinAlgWarning]
        assert "20 moduli from 113 to 227 nearly fail to determine 1024 frequencies" in str(caught[0].message)
        for solution, right_side in zip(solutions, right_sides, strict=True):
            residual = np.linalg.norm(structured.multiply(solution) - right_side)
            assert residual > 1e-9 * np.linalg.norm(right_side)
            assert residual <= 1e-15 * structured.weights.sum() * np.linalg.norm(solution)

    @pytest.mark.parametrize(("size", "start"), [pytest.param(2000, 307, marks=pytest.mark.slow), (1024, 61)])
    def test_decoding_stays_exact_where_any_right_side_does_not(self, size: int, start: int) -> None:
        """A right side made of residue sums has little of the worst eigenvectors, even with cond(T) = 2e15."""
        structured = make(size, list(itertools.islice(primes_from(start), 20)))
        noise = [np.random.default_rng(8).normal(size=modulus) for modulus in structured.moduli]
        right_side = adjoint(noise, structured.moduli, structured.weights, size)
        assert relative_residual(structured, structured.solve(right_side), right_side) <= 1e-9

    @pytest.mark.parametrize("size", [1024, 5000])
    @pytest.mark.parametrize("error", [1e-3, 1.0])
    def test_a_poor_inverse_is_refined_or_replaced(
        self, size: int, error: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exactly, noise = ToeplitzGram.apply_inverse, np.random.default_rng(9).normal(size=size)
        monkeypatch.setattr(ToeplitzGram, "apply_inverse", lambda self, b: exactly(self, b) * (1 + error * noise))
        structured, right_side = make(size, spread_primes(size, 8)), np.random.default_rng(8).normal(size=size)
        assert relative_residual(structured, structured.solve(right_side), right_side) <= 1e-9

    def test_no_convergence_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(toeplitz, "_LEVINSON_LIMIT", 0)
        monkeypatch.setattr(toeplitz, "_ITERATION_LIMIT", 5)
        with pytest.raises(EstimateError, match="size 1024 is too badly conditioned"):
            make(1024, CROWDED).inverse_trace()


class TestObject:
    def test_threads_may_share_it(self) -> None:
        structured = make(5000, spread_primes(5000, 8))
        right_sides = np.random.default_rng(9).normal(size=(40, 5000))
        with ThreadPoolExecutor(4) as pool:  # before anything is computed
            together = list(pool.map(structured.solve, right_sides))
        alone = [structured.solve(right_side) for right_side in right_sides]
        np.testing.assert_array_equal(together, alone)

    @pytest.mark.parametrize("size", [300, 5000])
    def test_a_copy_solves_like_it(self, size: int) -> None:
        structured = make(size, spread_primes(size, 8))
        right_side = np.random.default_rng(9).normal(size=size)
        solution = structured.solve(right_side, total=1.0)
        for copied in (copy.deepcopy(structured), pickle.loads(pickle.dumps(structured))):
            np.testing.assert_array_equal(copied.solve(right_side, total=1.0), solution)
            np.testing.assert_array_equal(copied.inverse_column, structured.inverse_column)

    def test_memory_is_freed_without_the_garbage_collector(self) -> None:
        structured = make(5000, spread_primes(5000, 8))
        structured.solve(np.ones(5000))
        seen = weakref.ref(structured)
        gc.disable()
        try:
            del structured
            assert seen() is None
        finally:
            gc.enable()

    def test_rank_loss_names_the_sum(self) -> None:
        with pytest.raises(EstimateError, match=r"sum\(m - 1\) = 58 must be at least 59"):
            make(60, [29, 31])
        with pytest.raises(EstimateError, match="do not determine 59"):
            make(59, [])
        assert make(59, [29, 31]).inverse_trace() > 0  # one less is just enough

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
            make(size, moduli, weights)

    def test_malformed_arguments(self) -> None:
        structured = make(10, [7, 5])
        for stack in (np.zeros(9), np.zeros((2, 10)), np.zeros(())):
            with pytest.raises(ParameterError, match="10 entries, got shape"):
                structured.solve(stack)
        for stack in (np.zeros(()), np.zeros((2, 9))):
            with pytest.raises(ParameterError, match="10 entries, got shape"):
                structured.apply_inverse(stack)
        with pytest.raises(ParameterError, match="one coefficient"):
            structured.sandwich_diagonal([1.0])
