"""Folding, tiling and the Toeplitz Gram matrix, against dense linear algebra."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg.blas
from hypothesis import given
from hypothesis import strategies as st
from numerics_systems import gram, incidence
from numpy.typing import NDArray

from sunzi.errors import EstimateError, ParameterError
from sunzi.numerics import residues
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
from sunzi.numerics.toeplitz_system import multiply


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


class TestPreconditioner:
    def test_it_is_symmetric_positive_definite_and_helps(self) -> None:
        size, moduli = 600, [7, 11, 31, 47, 101, 251, 389, 569]
        weights = np.linspace(0.5, 2.0, len(moduli))
        precondition = _Preconditioner(size, moduli, weights.tolist(), np.float64)
        matrix = np.array([precondition(row).copy() for row in np.eye(size)])
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        assert np.linalg.eigvalsh(matrix)[0] > 0
        dense = gram(size, moduli, weights)
        factor = np.linalg.cholesky(matrix)
        assert np.linalg.cond(factor.T @ dense @ factor) < 0.2 * np.linalg.cond(dense)


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


def test_expected_error_is_the_mean_light_variance_per_report() -> None:
    size, moduli = 60, [13, 23, 41, 61]
    variances = np.array([3.0, 2.0, 4.0, 5.0])
    dense = gram(size, moduli, 1 / (4 * variances))
    assert expected_error(size, moduli, variances) == pytest.approx(np.trace(np.linalg.inv(dense)) / size, rel=1e-9)


def test_expected_error_of_one_covering_modulus_is_that_of_its_block() -> None:
    assert expected_error(50, [53], [2.5]) == pytest.approx(2.5, rel=1e-12)
