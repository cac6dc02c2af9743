"""Solutions of Toeplitz systems against dense and sparse linear algebra, and what is promised of their residuals."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from numerics_systems import CROWDED, gram, primes_from, spread_primes
from numpy.typing import NDArray

from sunzi.errors import EstimateError
from sunzi.numerics import toeplitz_system
from sunzi.numerics.residues import ToeplitzGram, adjoint, expected_error
from sunzi.numerics.toeplitz_system import RESIDUAL_TARGET, ToeplitzSystem

BEYOND = ("two above half", 1501)


@pytest.mark.usefixtures("first_column_solver")
class TestAgainstDense:
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

    def test_no_convergence_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(toeplitz_system, "_LEVINSON_LIMIT", 0)
        monkeypatch.setattr(toeplitz_system, "_FIRST_LIMIT", 1)
        monkeypatch.setattr(toeplitz_system, "ITERATION_LIMIT", 5)
        with pytest.raises(EstimateError, match=r"within 5 conjugate gradient steps.*badly conditioned"):
            ToeplitzGram(1024, CROWDED, np.ones(20)).inverse_trace()
