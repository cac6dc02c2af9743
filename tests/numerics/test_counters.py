"""Exact counts, dense or sparse, with results that do not depend on the form."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.errors import ParameterError
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.errors import TallyError
from sunzi.numerics.counters import LARGEST_EXACT_TOTAL, Counters, expected_filled

LENGTHS = [1, 7, 4096, 4097, 20_000]


def counted(length, cells):
    return Counters.of_cells(length, np.array(cells, dtype=np.int64))


@given(st.sampled_from(LENGTHS).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), max_size=60))))
def test_counting_is_bincount(case):
    length, cells = case
    counters = counted(length, cells)
    expected = np.bincount(cells, minlength=length)
    assert np.array_equal(counters.dense(), expected)
    indices, values = counters.nonzero()
    assert indices.tolist() == sorted(set(cells))
    assert np.array_equal(expected[indices], values)
    assert counters.total() == len(cells)
    assert counters.filled == len(set(cells))
    assert counters.length == length


@given(
    st.sampled_from(LENGTHS).flatmap(
        lambda n: st.tuples(st.just(n), *(st.lists(st.integers(0, n - 1), max_size=40) for _ in range(3)))
    )
)
def test_addition_counts_both_in_any_order(case):
    length, *parts = case
    first, second, third = (counted(length, cells) for cells in parts)
    whole = counted(length, [cell for cells in parts for cell in cells])
    assert (first + second) + third == whole
    assert first + (second + third) == whole
    assert third + first + second == whole
    assert Counters.zeros(length) + first == first


@pytest.mark.parametrize("length", LENGTHS)
def test_parts_are_slices(length):
    generator = np.random.default_rng(length)
    for number in (3, 10 * length):
        counters = counted(length, generator.integers(0, length, number))
        for start, stop in ((0, length), (0, length // 2), (length // 3, length), (length // 2, length // 2 + 1)):
            part = counters.part(start, stop)
            assert part.length == stop - start
            assert np.array_equal(part.dense(), counters.dense()[start:stop])
            assert part.total() == counters.dense()[start:stop].sum()
            assert np.array_equal(part.nonzero()[0], np.flatnonzero(counters.dense()[start:stop]))


def test_memory_follows_the_observations_until_the_vector_is_cheaper():
    sparse = counted(10_000_000, np.arange(0, 1_000_000, 1000))
    assert sparse.is_sparse
    assert sparse.stored == 1000
    full = counted(10_000, np.arange(10_000))
    assert not full.is_sparse
    assert full.stored == 10_000
    small = counted(100, [5])
    assert not small.is_sparse


def test_the_form_is_a_matter_of_density_not_of_history():
    """Sparse counters that fill up become dense, and a dense vector of zeros becomes sparse; both equal their twins."""
    length = 8192
    parts = [counted(length, np.arange(start, length, 8)) for start in range(8)]
    total = Counters.zeros(length)
    assert total.is_sparse
    for part in parts:
        total += part
    assert not total.is_sparse
    assert np.array_equal(total.dense(), np.ones(length, dtype=np.int64))
    zeros = Counters(length, None, np.zeros(length, dtype=np.int64))
    assert zeros.is_sparse
    assert zeros == Counters.zeros(length)


def test_equality_ignores_the_form_but_not_the_length():
    values = np.zeros(4100, dtype=np.int64)
    values[[3, 4000]] = [2, 5]
    sparse = Counters(4100, np.array([3, 4000]), np.array([2, 5]))
    assert Counters(4100, None, values) == sparse
    assert sparse != Counters(4101, np.array([3, 4000]), np.array([2, 5]))
    assert sparse != Counters(4100, np.array([3, 4000]), np.array([2, 6]))
    assert sparse != Counters(4100, np.array([3, 4001]), np.array([2, 5]))
    assert sparse != "counters"


@pytest.mark.parametrize("length", [10, 100_000])
def test_counts_cannot_be_changed(length):
    counters = counted(length, [1, 2])
    held = counters.nonzero()[1] if counters.is_sparse else counters.dense()
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 7
    with pytest.raises(TypeError):
        hash(counters)


def test_different_lengths_do_not_add():
    with pytest.raises(ParameterError, match="cannot add"):
        counted(5, [1]) + counted(6, [1])


def test_extremes():
    assert counted(5, [1, 1, 3]).extremes() == (0, 2)
    assert Counters.zeros(100_000).extremes() == (0, 0)
    sparse = counted(100_000, [7, 7, 9])
    assert sparse.extremes()[1] == 2
    assert sparse.extremes()[0] >= 0


def test_totals_do_not_wrap_around():
    assert Counters(5, None, np.full(5, 2**62)).total() == 5 * 2**62
    assert Counters(3, None, np.array([2**62, -(2**62), -7])).total() == -7
    assert Counters(3, None, np.array([2**40, 2**31, 1])).total() == 2**40 + 2**31 + 1


def test_counts_beyond_32_bits_are_exact():
    large = Counters(3, None, np.array([2**40, 0, 2**62], dtype=np.int64))
    assert (large + counted(3, [0])).dense().tolist() == [2**40 + 1, 0, 2**62]
    sparse = Counters(10_000, np.array([2, 9]), np.array([2**62, 1]))
    assert (sparse + counted(10_000, [2, 9])).nonzero()[1].tolist() == [2**62 + 1, 2]


def test_expected_filled_is_the_mean_of_random_draws():
    drawn = [np.unique(np.random.default_rng(run).integers(0, 50, 40)).size for run in range(2000)]
    sure = NormalDist().inv_cdf(1 - 0.5e-6)
    assert abs(expected_filled(50, 40) - np.mean(drawn)) < sure * np.std(drawn) / math.sqrt(2000)
    assert expected_filled(1, 5) == 1
    assert expected_filled(50, math.inf) == 50


@pytest.mark.parametrize("length", [7, 20_000])
def test_sums_beyond_63_bits_are_refused(length):
    """Dense and sparse; the largest count itself is fine, and so are two large counts in different cells."""
    large = Counters(length, np.array([3]), np.array([2**62]))
    other = Counters(length, np.array([4]), np.array([2**63 - 1]))
    assert (large + other).dense()[3:5].tolist() == [2**62, 2**63 - 1]
    with pytest.raises(TallyError, match="exceeds 2"):
        large + large


@pytest.mark.parametrize("design", [Cyclotomic(13, 4), Projective(3, 3)], ids=["cyclotomic", "projective"])
@pytest.mark.parametrize("filled", [2, None])
def test_point_counts_are_exact_or_refused(design, filled):
    """Few cells are added up, all of them go through a transform; a total of 5·2^62 would wrap around to 2^62."""
    cells = np.arange(filled or design.counter_count)
    each = LARGEST_EXACT_TOTAL // cells.size
    counters = Counters(design.counter_count, cells, np.full(cells.size, each))
    unit = Counters(design.counter_count, cells, np.ones(cells.size, dtype=np.int64))
    expected = each * design.point_counts(unit, design.points)
    np.testing.assert_array_equal(design.point_counts(counters, design.points), expected)
    for huge in (LARGEST_EXACT_TOTAL, 2**62):
        counters = Counters(design.counter_count, cells, np.full(cells.size, huge))
        with pytest.raises(TallyError, match="decoded exactly"):
            design.point_counts(counters, design.points)


@pytest.mark.parametrize("design", [Singletons(5), Subsets(5, 2)], ids=["singletons", "subsets"])
def test_point_counts_that_are_the_counters_themselves_have_no_limit(design):
    counters = Counters(5, None, np.full(5, 2**63 - 1))
    assert design.point_counts(counters, 5).tolist() == [2**63 - 1] * 5
