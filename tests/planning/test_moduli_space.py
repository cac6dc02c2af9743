"""Sums of diagonals, and the effect of one more modulus, against dense matrices."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.planning import evaluate_moduli
from sunzi.planning.moduli_candidates import block_family
from sunzi.planning.moduli_space import (
    LARGEST_DIRECT,
    Multiples,
    diagonal_sums,
    giving_away_less,
    places,
    search_space,
    start_with_cost,
    start_with_mean,
    trace_reductions,
)

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


def test_large_domains_are_searched_at_a_smaller_size():
    space = search_space(block_family("mss-compact", 100_000, Fraction(2)), 64)
    assert space.size < LARGEST_DIRECT
    moduli = [block.modulus for block in space.blocks]
    assert moduli == sorted(set(moduli))
    assert np.asarray(moduli) / 100_000 == pytest.approx(space.stand_ins / space.size, rel=0.02, abs=1e-4)
    rows = start_with_mean(space, (np.arange(12) + 0.5) / 12, 0.5)
    exact = evaluate_moduli(100_000, 2, "mss-compact", [moduli[row] for row in rows])
    assert space.error(rows) == pytest.approx(exact.error, rel=0.02)


def test_starts_have_the_requested_mean_or_cost():
    space = search_space(block_family("mss", 1024, Fraction(1)), 64)
    spots = places(16, np.random.default_rng(0))
    for mean in (0.2, 0.5, 0.8):
        rows = start_with_mean(space, spots, mean)
        assert len(set(rows.tolist())) == 16
        assert space.stand_ins[rows].mean() == pytest.approx(mean * 1024, rel=0.03)
    rows = start_with_cost(space, spots, 5000.0)
    assert 4800 < space.costs[rows].sum() <= 5000
    assert start_with_cost(space, spots, 10.0) is None


def test_repaired_starts_give_away_less():
    space = search_space(block_family("mss", 200, Fraction(5)), 64)
    rows = start_with_mean(space, places(12, np.random.default_rng(0)), 0.5)
    limit = 0.8 * space.guesses[rows].mean()
    repaired = giving_away_less(space, rows, limit)
    assert space.guesses[repaired].mean() <= limit
    assert len(set(repaired.tolist())) == 12
    assert giving_away_less(space, rows, 1e9).tolist() == sorted(rows.tolist(), key=lambda row: -space.guesses[row])
