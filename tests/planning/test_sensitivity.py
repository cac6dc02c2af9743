"""Sums of diagonals, and what they say about one more modulus, against dense matrices."""

import numpy as np
import pytest

from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.planning.sensitivity import Multiples, diagonal_sums, trace_reductions

SIZE, MODULI = 60, (7, 13, 19, 23, 37, 43, 53)
WEIGHTS = np.array([1.0, 0.7, 2.0, 0.5, 1.3, 1.0, 0.9])


def block(modulus, size=SIZE):
    lags = np.subtract.outer(np.arange(size), np.arange(size))
    return (lags % modulus == 0).astype(float)


def dense():
    return sum(weight * block(modulus) for modulus, weight in zip(MODULI, WEIGHTS, strict=True))


def test_diagonal_sums_are_those_of_the_inverse_and_its_square():
    inverse = np.linalg.inv(dense())
    first, second = diagonal_sums(ToeplitzGram(SIZE, MODULI, WEIGHTS))
    assert first == pytest.approx([np.trace(inverse, lag) for lag in range(SIZE)], abs=1e-9)
    assert second == pytest.approx([np.trace(inverse @ inverse, lag) for lag in range(SIZE)], abs=1e-9)


def test_sums_over_multiples_are_traces():
    symmetric = np.random.default_rng(1).standard_normal(SIZE)
    lags = np.abs(np.subtract.outer(np.arange(SIZE), np.arange(SIZE)))
    counts = np.bincount(lags[0])  # a Toeplitz matrix whose diagonals sum to the sequence
    assert counts.tolist() == [1] * SIZE
    matrix = (symmetric / np.arange(SIZE, 0, -1))[lags]
    moduli = [2, 3, 11, 59, 61]
    expected = [np.trace(matrix @ block(modulus)) for modulus in moduli]
    assert Multiples(SIZE, moduli).sums(symmetric) == pytest.approx(expected)


def test_reductions_have_the_right_slope():
    tiny, others = 1e-6, [5, 11, 17, 29, 31, 41, 47, 59]
    gram, trace = ToeplitzGram(SIZE, MODULI, WEIGHTS), np.trace(np.linalg.inv(dense()))
    predicted = trace_reductions(gram, Multiples(SIZE, others), others, np.full(len(others), 1 / tiny))
    actual = [trace - np.trace(np.linalg.inv(dense() + tiny * block(modulus))) for modulus in others]
    assert predicted == pytest.approx(actual, rel=1e-3)


def test_reductions_rank_whole_blocks_well():
    others = [5, 11, 17, 29, 31, 41, 47, 59]
    gram, trace = ToeplitzGram(SIZE, MODULI, WEIGHTS), np.trace(np.linalg.inv(dense()))
    predicted = trace_reductions(gram, Multiples(SIZE, others), others, np.ones(len(others)))
    actual = [trace - np.trace(np.linalg.inv(dense() + block(modulus))) for modulus in others]
    assert np.corrcoef(predicted, actual)[0, 1] > 0.95
    assert predicted == pytest.approx(actual, rel=0.5)
