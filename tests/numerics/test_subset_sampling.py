"""Drawing subsets: numpy against plain lists, compiled loops against numpy, and the distribution by enumeration."""

import itertools
import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.designs.subsets import Subsets
from sunzi.client.errors import ParameterError
from sunzi.numerics import kernels, subset_sampling
from sunzi.numerics.subset_sampling import (
    select_subsets,
    split_variates,
    word_bounds,
    word_surplus,
)

SHAPES = [(1, 1, 2), (1, 40, 2203), (11, 6, 7), (12, 6, 7), (13, 1, 50), (200, 27, 101), (40, 300, 1000), (0, 3, 9)]


def variates(rows, block_size, points, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.integers(0, points, rows)
    truth = generator.random(rows) < 0.5
    replaced = generator.integers(0, block_size, rows)
    picks = generator.integers(0, points - 1 - np.arange(block_size), (rows, block_size))
    return values, truth, replaced, picks, points


def slow_select(values, truth, replaced, picks, points):
    """The module's definition, literally."""
    subsets = []
    for value, true, replaced_at, row in zip(values, truth, replaced, picks, strict=True):
        order = [t if t < value else t + 1 for t in range(points - 1)]
        for i, pick in enumerate(row):
            order[i], order[i + pick] = order[i + pick], order[i]
        chosen = order[: len(row)]
        if true:
            chosen[replaced_at] = value
        subsets.append(chosen)
    return np.array(subsets, dtype=np.int64).reshape(np.shape(picks))


def slow_below(words, bounds):
    """Lemire's variates, and whether any word is rejected, in Python's integers."""
    products = [[int(word) * int(bound) for word, bound in zip(row, bounds, strict=True)] for row in words]
    variates = [[product >> 64 for product in row] for row in products]
    rejected = any(
        product % 2**64 < 2**64 % int(bound) for row in products for product, bound in zip(row, bounds, strict=True)
    )
    return np.array(variates, dtype=np.uint64).reshape(words.shape), rejected


@pytest.fixture(params=["compiled", "interpreted"])
def loops(request):
    """The kernels, and the same loops run by Python, which also checks every index."""
    if request.param == "interpreted":
        return kernels
    compiled = kernels.load()
    if compiled is None:
        pytest.skip("numba is not installed, or SUNZI_NO_NUMBA is set")
    return compiled


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_follows_the_definition(shape):
    arguments = variates(*shape)
    chosen = select_subsets(*arguments)
    assert chosen.dtype == np.int64
    assert np.array_equal(chosen, slow_select(*arguments))


@given(st.integers(2, 60), st.floats(0, 1), st.integers(0, 30), st.integers(0, 2**32))
def test_any_shape_follows_the_definition(points, share, rows, seed):
    arguments = variates(rows, max(1, round(share * (points - 1))), points, seed)
    assert np.array_equal(select_subsets(*arguments), slow_select(*arguments))


@pytest.mark.parametrize("entries", [1, 7 * 50, 20 * 50])
def test_chunks_join_seamlessly(entries, monkeypatch):
    monkeypatch.setattr(subset_sampling, "_ENTRIES_PER_CHUNK", entries)
    arguments = variates(47, 9, 50)
    assert np.array_equal(select_subsets(*arguments), slow_select(*arguments))


@pytest.mark.parametrize("truth", [False, True])
@pytest.mark.parametrize(("points", "block_size"), [(2, 1), (4, 3), (5, 2), (6, 3)])
def test_every_subset_is_equally_likely(points, block_size, truth):
    ranges = [range(block_size), *(range(points - 1 - i) for i in range(block_size))]
    draws = np.array(list(itertools.product(*ranges)))
    for value in range(points):
        rows = len(draws)
        chosen = select_subsets(np.full(rows, value), np.full(rows, truth), draws[:, 0], draws[:, 1:], points)
        frequency = Counter(frozenset(row) for row in chosen.tolist())
        expected = [set(c) for c in itertools.combinations(range(points), block_size) if (value in c) == truth]
        number = math.comb(points - 1, block_size - 1 if truth else block_size)
        assert frequency == dict.fromkeys(map(frozenset, expected), rows // number)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint64])
def test_any_integer_type_will_do(dtype):
    values, truth, replaced, picks, points = variates(30, 5, 40)
    chosen = select_subsets(values.astype(dtype), truth, replaced.astype(dtype), picks.astype(dtype), points)
    assert np.array_equal(chosen, slow_select(values, truth, replaced, picks, points))


def test_inputs_are_left_alone():
    arguments = variates(30, 5, 40)
    copies = [np.copy(argument) for argument in arguments]
    select_subsets(*arguments)
    assert all(np.array_equal(argument, copy) for argument, copy in zip(arguments, copies, strict=True))


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": [-1, 0]},
        {"values": [0, 5]},
        {"values": [0]},
        {"values": [0.5, 1.0]},
        {"truth": [True]},
        {"replaced": [0, 3]},
        {"replaced": [-1, 0]},
        {"picks": [[0, 0, 2], [0, 0, 0]]},
        {"picks": [[0, 0, 0], [-1, 0, 0]]},
        {"picks": [[4, 0, 0], [0, 0, 0]]},
        {"picks": [0, 0, 0]},
        {"picks": [[0] * 5] * 2},
        {"picks": np.empty((2, 0), dtype=np.int64)},
        {"points": 3},
        {"points": 2**31},
    ],
)
def test_variates_out_of_range_are_refused(wrong):
    right = {"values": [0, 4], "truth": [True, False], "replaced": [0, 2], "picks": [[3, 2, 1], [0, 0, 0]], "points": 5}
    select_subsets(**right)
    with pytest.raises(ParameterError):
        select_subsets(**(right | wrong))


def shares(points, block_size):
    """The bounds of the variates, and the end of each word that they share."""
    shares = Subsets(points, block_size, "bitmap").shares
    bounds = np.array(list(itertools.chain.from_iterable(shares)), dtype=np.uint64)
    return bounds, np.cumsum([len(share) for share in shares])


def sample(loops, words, values, threshold, points, block_size, counts):
    """Count directly; drawing the subsets must succeed or fail alike, and give the same counts."""
    bounds, ends = shares(points, block_size)
    before, rows = counts.copy(), len(values)
    arguments = (words, values, threshold, bounds, ends, word_surplus(bounds, ends), points)
    counted = loops.sample_subsets(*arguments, np.empty((1, block_size), dtype=np.int64), counts)
    chosen = np.full((rows, block_size), -1)
    if rows:
        assert loops.sample_subsets(*arguments, chosen, np.empty(0, dtype=np.int64)) == counted
    if counted:
        assert np.array_equal(counts, before + np.bincount(chosen.ravel(), minlength=points))
    return counted, chosen


@pytest.mark.parametrize(
    ("points", "block_size", "expected"),
    [
        (9, 2, [3]),
        (2203, 40, [3, *range(5, 42, 2)]),  # 40 · 2202 · 2201 < 2^32, then two by two
        (65538, 3, [2, 4]),  # 3 · 65537, but 65536 · 65535 < 2^32 again
        (65540, 3, [2, 3, 4]),  # 65538 · 65537 ≥ 2^32
        (1 << 24, 300, [1, *range(2, 302)]),  # 300 · (2^24 − 1) ≥ 2^32
        (40, 39, None),
    ],
)
def test_a_word_takes_as_many_variates_as_fit(points, block_size, expected):
    bounds, ends = shares(points, block_size)
    assert bounds.tolist() == [block_size, *range(points - 1, points - 1 - block_size, -1)]
    assert expected is None or ends.tolist() == expected
    products = [math.prod(group.tolist()) for group in np.split(bounds, ends[:-1])]
    assert word_bounds(bounds, ends).tolist() == products
    assert all(product < 2**32 for product in products)
    following = [int(bounds[end]) for end in ends[:-1]]
    assert all(product * bound >= 2**32 for product, bound in zip(products, following, strict=False))


@pytest.mark.parametrize(("points", "block_size"), [(2, 1), (7, 3), (30, 29), (2203, 40), (70000, 20)])
def test_variates_are_digits_of_the_words_integer(points, block_size):
    bounds, ends = shares(points, block_size)
    joint = np.random.default_rng(3).integers(0, word_bounds(bounds, ends), (50, ends.size), dtype=np.uint64)
    variates = split_variates(joint, bounds, ends)
    assert variates.shape == (50, bounds.size)
    assert (variates >= 0).all()
    assert (variates < bounds.astype(np.int64)).all()
    again = np.zeros(joint.shape, dtype=np.uint64)
    for word, (first, end) in enumerate(itertools.pairwise([0, *ends.tolist()])):
        for column in range(first, end):
            again[:, word] = again[:, word] * bounds[column] + variates[:, column].astype(np.uint64)
    assert np.array_equal(again, joint)


@pytest.mark.parametrize("threshold", [0, 12345, 2**62, 2**63 + 2**62, 2**64 - 1])
@pytest.mark.parametrize(
    ("rows", "block_size", "points"), [(0, 2, 5), (300, 1, 2), (200, 27, 101), (60, 40, 2203), (60, 3, 70001)]
)
def test_sampling_is_its_parts(loops, rows, block_size, points, threshold):
    generator = np.random.default_rng(rows)
    bounds, ends = shares(points, block_size)
    words = generator.integers(1, 2**64, (rows, ends.size + 1), dtype=np.uint64)
    values = generator.integers(0, points, rows)
    joint, rejected = slow_below(words[:, 1:], word_bounds(bounds, ends))
    assert not rejected
    variates = split_variates(joint, bounds, ends)
    truth = words[:, 0] < np.uint64(threshold)
    expected = select_subsets(values, truth, variates[:, 0], variates[:, 1:], points)
    counts = np.full(points, 3, dtype=np.int64)
    counted, chosen = sample(loops, words, values, np.uint64(threshold), points, block_size, counts)
    assert counted
    assert np.array_equal(chosen, expected)
    assert np.array_equal(counts, np.bincount(expected.ravel(), minlength=points) + 3)


def test_sampling_takes_a_python_integer(loops):
    words = np.array([[2**63, 2**63 + 2**50], [2**63 + 1, 2**63 + 2**50]], dtype=np.uint64)
    counts = np.zeros(9, dtype=np.int64)
    assert sample(loops, words, np.array([5, 5]), 2**63 + 1, 9, 2, counts)[0]
    once = counts[5]
    assert sample(loops, words, np.array([5, 5]), 7, 9, 2, counts)[0]
    assert counts[5] == once == 1


@pytest.mark.parametrize("column", [1, 2, 3])
def test_sampling_falls_back_whole(loops, column):
    words = np.random.default_rng(1).integers(1, 2**64, (20, 4), dtype=np.uint64)
    assert shares(4000, 6)[1].size == 3
    words[13, column] = 0  # 0 is rejected for every bound that is not a power of two
    counts = np.arange(4000)
    assert not sample(loops, words, np.zeros(20, dtype=np.int64), np.uint64(2**63), 4000, 6, counts)[0]
    assert np.array_equal(counts, np.arange(4000))


@pytest.mark.parametrize(("points", "block_size"), [(12, 3), (4000, 3)])
def test_sampling_rejects_where_the_rule_does(loops, points, block_size):
    """The last rejected and the first accepted word, at every position of a row."""
    bounds, ends = shares(points, block_size)
    for word, product in enumerate(word_bounds(bounds, ends).tolist(), start=1):
        limit = 2**64 % product
        lows = [(candidate, candidate * product % 2**64) for candidate in edge_words(product)]
        assert {low < limit for _, low in lows} == {True, False}
        for candidate, low in lows:
            words = np.full((1, ends.size + 1), (1 << 63) + (1 << 50), dtype=np.uint64)
            words[0, word] = candidate
            counts = np.zeros(points, dtype=np.int64)
            assert sample(loops, words, np.array([1]), np.uint64(1), points, block_size, counts)[0] == (low >= limit)


@pytest.mark.parametrize(("points", "block_size"), [(12, 3), (2203, 40), (65540, 3)])
def test_surplus_is_what_is_left_of_all_words(points, block_size):
    bounds, ends = shares(points, block_size)
    assert word_surplus(bounds, ends).tolist() == [2**64 % product for product in word_bounds(bounds, ends).tolist()]


def edge_words(bound):
    """Words around the smallest whose product with the bound reaches a multiple of 2^64."""
    first = [-(-(high << 64) // bound) for high in (1, 2, bound // 2, bound - 1)]
    return sorted({0, 1, *first, *(word - 1 for word in first), *(word + 1 for word in first)})


@pytest.mark.parametrize("value", [-1, 12])
def test_sampling_leaves_wrong_values_to_the_caller(loops, value):
    words = np.random.default_rng(1).integers(1, 2**64, (2, 2), dtype=np.uint64)
    counts = np.zeros(12, dtype=np.int64)
    assert not sample(loops, words, np.array([0, value]), np.uint64(2**63), 12, 3, counts)[0]
    assert not counts.any()


@pytest.mark.parametrize(
    ("block_size", "points", "cells", "shape"),
    [(11, 12, 12, (1, 11)), (3, 12, 11, (1, 3)), (3, 3, 3, (1, 3)), (3, 12, 12, (2, 3)), (3, 12, 0, (1, 3))],
)
def test_sampling_refuses_wrong_shapes(loops, block_size, points, cells, shape):
    words = np.ones((2, 2), dtype=np.uint64)
    bounds = np.arange(1, block_size + 2, dtype=np.uint64)
    ends = np.array([1, block_size + 1]) if block_size == 11 else np.array([block_size + 1])
    chosen, counts = np.zeros(shape, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    surplus = np.zeros(ends.size, dtype=np.uint64)
    with pytest.raises(ValueError, match="must"):
        loops.sample_subsets(
            words, np.zeros(2, dtype=np.int64), np.uint64(1), bounds, ends, surplus, points, chosen, counts
        )


def run_python(code, **environment):
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | environment)


def test_small_work_does_not_import_numba():
    run_python(
        "import sys; from sunzi.numerics.subset_sampling import select_subsets\n"
        "assert select_subsets([3], [True], [0], [[2, 1]], 9).tolist() == [[3, 0]]\n"
        "assert 'numba' not in sys.modules"
    )


def test_environment_forces_numpy():
    run_python(
        "import sys; from sunzi.numerics import kernels\n"
        "assert kernels.load() is None and kernels.load_if_worthwhile(1e9) is None\n"
        "assert 'numba' not in sys.modules",
        SUNZI_NO_NUMBA="1",
    )


def test_missing_numba_is_not_an_error():
    run_python(
        "import sys; sys.modules['numba'] = None\n"
        "from sunzi.numerics import kernels, subset_sampling\n"
        "assert kernels.load() is None\n"
        "assert subset_sampling.select_subsets([3], [True], [0], [[2, 1]], 9).tolist() == [[3, 0]]"
    )


def test_kernels_compile_where_nothing_can_be_stored(monkeypatch):
    numba = pytest.importorskip("numba")
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit("int64(int64)", cache=True)(abs_difference_to_ten)
    assert kernels._compiled(numba, "int64(int64)", abs_difference_to_ten)(3) == 7


def abs_difference_to_ten(number):
    return abs(number - 10)


def test_loops_read_arrays_that_may_not_be_written(loops):
    """The operating system's words and a user's column are read-only."""
    words = np.frombuffer(np.random.default_rng(1).bytes(8 * 50 * 2), dtype=np.uint64).reshape(50, 2)
    bounds, ends = shares(40, 5)
    surplus, one = word_surplus(bounds, ends), np.empty((1, 5), dtype=np.int64)
    assert ends.size == 1
    for array in (bounds, ends, surplus):
        array.setflags(write=False)
    values = np.arange(50) % 40
    values.setflags(write=False)
    frozen, writable = np.zeros(40, dtype=np.int64), np.zeros(40, dtype=np.int64)
    rest = (np.uint64(2**63), bounds, ends, surplus, 40, one)
    assert loops.sample_subsets(words, values, *rest, frozen)
    assert loops.sample_subsets(words.copy(), values.copy(), *rest, writable)
    assert frozen.sum() == 250
    assert np.array_equal(frozen, writable)
