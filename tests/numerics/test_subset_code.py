"""The enumerative code of subsets, against a slow version of its definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sunzi.errors import ParameterError, ReportError
from sunzi.numerics import subset_code
from sunzi.numerics.subset_code import SubsetCode


def zigzag(size, count):
    """The possible values of t, in the normative order."""
    left, right = size // 2, size - size // 2
    middle = count * left // size
    order = [middle]
    for step in range(1, size + 1):
        order += [middle + step, middle - step]
    return [t for t in order if max(0, count - right) <= t <= min(count, left)]


def slow_rank(chosen, size, leaf_size=64):
    """The module's definition, literally. `chosen` is ascending."""
    if size <= leaf_size:
        return sum(math.comb(offset, i + 1) for i, offset in enumerate(chosen))
    left = size // 2
    on_left = [point for point in chosen if point < left]
    on_right = [point - left for point in chosen if point >= left]
    earlier = itertools.takewhile(lambda t: t != len(on_left), zigzag(size, len(chosen)))
    before = sum(math.comb(left, t) * math.comb(size - left, len(chosen) - t) for t in earlier)
    left_rank, right_rank = slow_rank(on_left, left, leaf_size), slow_rank(on_right, size - left, leaf_size)
    return before + left_rank * math.comb(size - left, len(on_right)) + right_rank


def random_subset(points, block_size, seed):
    return np.random.default_rng(seed).permutation(points)[:block_size]


@pytest.mark.slow
@pytest.mark.parametrize("leaf_size", [1, 2, 3, 64])
@pytest.mark.parametrize("tabulated_size", [0, 2048])
def test_bijection_on_every_small_set(leaf_size, tabulated_size, monkeypatch):
    monkeypatch.setattr(subset_code, "_LEAF_SIZE", leaf_size)
    monkeypatch.setattr(subset_code, "_TABULATED_SIZE", tabulated_size)
    for points in range(1, 13):
        for block_size in range(points + 1):
            code = SubsetCode(points, block_size)
            decoded = code.unrank_many(range(code.size))
            assert decoded.shape == (math.comb(points, block_size), block_size)
            assert sorted(map(tuple, decoded.tolist())) == list(itertools.combinations(range(points), block_size))
            assert code.rank_many(decoded) == list(range(code.size))
            assert [slow_rank(chosen, points, leaf_size) for chosen in decoded.tolist()] == list(range(code.size))


@given(st.integers(1, 700), st.floats(0, 1), st.integers(0, 2**32))
@example(64, 0.5, 0)
@example(65, 0.5, 0)
@example(129, 0.5, 1)  # one half is a leaf of 64 points, the other a node of 65
@example(700, 0.0, 0)
@example(700, 1.0, 0)
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_definition(points, share, seed):
    block_size = round(share * points)
    chosen = random_subset(points, block_size, seed)
    code = SubsetCode(points, block_size)
    rank = code.rank(chosen)
    assert rank == slow_rank(sorted(chosen.tolist()), points)
    assert code.unrank(rank).tolist() == sorted(chosen.tolist())


@pytest.mark.parametrize(("points", "block_size"), [(130, 50), (1000, 3), (1000, 270), (1999, 1500), (5000, 300)])
def test_unlikely_subsets_agree_too(points, block_size):
    # With all points at one end, the sums of nodes on the way are far outside the table.
    code = SubsetCode(points, block_size)
    for first in (0, points - block_size, (points - block_size) // 2):
        chosen = list(range(first, first + block_size))
        rank = code.rank(chosen)
        assert rank == slow_rank(chosen, points)
        assert code.unrank(rank).tolist() == chosen
    for rank in (0, 1, code.size // 3, code.size - 2, code.size - 1):
        assert slow_rank(code.unrank(rank).tolist(), points) == rank


@given(st.integers(1, 22_000), st.floats(0, 1), st.integers(0, 2**32))
@example(22_000, 5_900 / 22_000, 0)
@settings(max_examples=25, deadline=None)
def test_round_trip(points, share, seed):
    code = SubsetCode(points, round(share * points))
    chosen = random_subset(points, code.block_size, seed)
    rank = code.rank(chosen)
    assert rank.bit_length() <= code.bits
    assert np.array_equal(code.unrank(rank), np.sort(chosen))


@given(st.integers(1, 300), st.floats(0, 1), st.integers(0, 40), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_many_at_once_are_one_by_one(points, share, rows, seed):
    code = SubsetCode(points, round(share * points))
    chosen = np.array([random_subset(points, code.block_size, seed + row) for row in range(rows)], dtype=np.int64)
    chosen = chosen.reshape(rows, code.block_size)
    ranks = code.rank_many(chosen)
    assert ranks == [code.rank(row) for row in chosen]
    decoded = code.unrank_many(ranks)
    assert decoded.dtype == np.int64
    assert np.array_equal(decoded, np.sort(chosen, axis=1))
    assert np.array_equal(decoded, np.array([code.unrank(rank) for rank in ranks]).reshape(decoded.shape))


def test_chunks_join_seamlessly(monkeypatch):
    code = SubsetCode(150, 20)
    chosen = np.array([random_subset(150, 20, seed) for seed in range(23)])
    whole = code.rank_many(chosen)
    monkeypatch.setattr(subset_code, "_ENTRIES_PER_CHUNK", 5 * 150)
    assert code.rank_many(chosen) == whole
    assert np.array_equal(code.unrank_many(whole), np.sort(chosen, axis=1))


def test_ranks_never_change():
    # Reports on the wire are ranks, so these numbers are part of the format.
    assert SubsetCode(10, 3).rank([1, 4, 8]) == 63
    assert SubsetCode(200, 5).rank([0, 50, 99, 100, 199]) == 806236249
    every_fourth_and_more = [*range(0, 1009, 4), *range(1, 35, 2)]
    assert SubsetCode(1009, 270).rank(every_fourth_and_more) % (2**61 - 1) == 1543792542742891845


@pytest.mark.parametrize("points", [1, 2, 64, 65, 1000])
def test_trivial_codes_have_no_bits(points):
    for block_size in (0, points):
        code = SubsetCode(points, block_size)
        assert (code.size, code.bits) == (1, 0)
        assert code.rank(range(block_size)) == 0
        assert code.unrank(0).tolist() == list(range(block_size))


@pytest.mark.parametrize(("points", "block_size"), [(2, 1), (64, 32), (65, 1), (2203, 40), (22_000, 5_900)])
def test_size_and_bits(points, block_size):
    code = SubsetCode(points, block_size)
    assert code.size == math.comb(points, block_size)
    assert 2 ** (code.bits - 1) < code.size <= 2**code.bits


@pytest.mark.parametrize(("points", "block_size"), [(5, 2), (64, 32), (65, 0), (300, 100)])
def test_ranks_out_of_range_are_refused(points, block_size):
    code = SubsetCode(points, block_size)
    for rank in (-1, code.size, 2**20_000):
        with pytest.raises(ReportError, match=f"C\\({points}, {block_size}\\)"):
            code.unrank(rank)
        with pytest.raises(ReportError):
            code.unrank_many([0, rank])


@pytest.mark.parametrize("chosen", [[0, 1, 1], [0, 1, 70], [-1, 0, 1], [0, 1], [0, 1, 2, 3], [0.0, 1.0, 2.0]])
def test_invalid_subsets_are_refused(chosen):
    with pytest.raises(ParameterError):
        SubsetCode(70, 3).rank(chosen)


@pytest.mark.parametrize(("points", "block_size"), [(0, 0), (-3, 0), (5, 6), (5, -1)])
def test_impossible_parameters_are_refused(points, block_size):
    with pytest.raises(ParameterError):
        SubsetCode(points, block_size)


def test_codes_are_values():
    code = SubsetCode(70, 3)
    assert code == SubsetCode(70, 3)
    assert hash(code) == hash(SubsetCode(70, 3))
    assert code != SubsetCode(70, 4)
    with pytest.raises(AttributeError):
        code.points = 71
