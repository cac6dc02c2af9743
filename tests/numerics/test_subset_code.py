"""The arithmetic code of subsets: every word of small codes, and all engines against the definition in integers."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sunzi.client.designs.subset_code import MOST_POINTS
from sunzi.client.errors import ParameterError, ReportError
from sunzi.numerics import kernels, subset_code
from sunzi.numerics.subset_code import SubsetCode

ENGINES = ["compiled", "interpreted", "together", "one by one"]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """One engine for all rows. The interpreted kernels are the compiled ones run by Python, which checks every
    index.
    """
    use(request.param, monkeypatch)
    return request.param


def use(engine, monkeypatch):
    loops = None
    if engine == "interpreted":
        loops = kernels
    elif engine == "compiled":
        loops = kernels.load()
        if loops is None:
            pytest.skip("numba is not installed, or SUNZI_NO_NUMBA is set")
    monkeypatch.setattr(kernels, "load_if_worthwhile", lambda seconds: loops)
    monkeypatch.setattr(subset_code, "_FEW_ROWS", 0 if engine == "together" else 1 << 60)


def slow_bits(points, block_size):
    """The definition of B, in integers."""
    bits = max(0, math.comb(points, block_size).bit_length() - 2)
    while 2**bits * (2**40 - points * (points + 1) // 2) < math.comb(points, block_size) * 2**40:
        bits += 1
    return bits


def interval(chosen, points):
    """The final interval of the definition in units of words, low and high end, rounded down and up."""
    low, width, left, shift = 0, 2**48, len(chosen), 0
    members = set(chosen)
    for point in range(points):
        rest = points - point
        if left in (0, rest):
            break
        share = width // rest * left
        if point in members:
            width = share
            left -= 1
        else:
            low += share
            width -= share
        while width < 2**40:
            low, width, shift = low * 256, width * 256, shift + 8
    unit = 48 + shift - slow_bits(points, len(chosen))
    return low >> unit, -(-low >> unit), -(-(low + width) >> unit)


def slow_word(chosen, points):
    """The first integer at or above the low end."""
    _, word, end = interval(chosen, points)
    assert word < end, "the interval contains no word"
    return word


def as_row(word, bits):
    """The bits from the highest on in bytes; the last byte as a number."""
    last = 1 + (bits - 1) % 8
    return [*(word >> last).to_bytes((bits - last) // 8, "big"), word % 2**last]


def rows_of(words, bits):
    return np.array([as_row(word, bits) for word in words], dtype=np.uint8).reshape(len(words), -1)


def subsets_of(points, block_size):
    return np.array(list(itertools.combinations(range(points), block_size)))


def random_subset(points, block_size, seed):
    return np.random.default_rng(seed).permutation(points)[:block_size]


def accepted(code, rows):
    """Which of these words are accepted, asked one by one."""

    def is_accepted(row):
        try:
            return code.count(row[None]).sum() == code.block_size
        except ReportError:
            return False

    return [row for row in rows if is_accepted(row)]


# --- proof: every word of every small code


@pytest.mark.slow
@pytest.mark.parametrize("points", range(2, 13))
def test_every_word_of_small_codes(points, monkeypatch):
    """Exactly C(m,w) of the 2^B words are accepted, one per subset; encoding inverts decoding."""
    for block_size in range(1, points):
        code, chosen = SubsetCode(points, block_size), subsets_of(points, block_size)
        every = rows_of(range(2**code.bits), code.bits)
        expected = [slow_word(subset, points) for subset in chosen.tolist()]
        assert len(set(expected)) == math.comb(points, block_size)
        for engine in ("compiled", "together", "one by one") if kernels.load() else ("together", "one by one"):
            use(engine, monkeypatch)
            words = code.encode(chosen)
            assert np.array_equal(words, rows_of(expected, code.bits))
            assert np.array_equal(code.decode(words), chosen)
            if engine != "together":
                assert sorted(map(bytes, accepted(code, every))) == sorted(map(bytes, words))


def test_every_word_of_some_small_codes(engine):
    for points, block_size in [(2, 1), (3, 2), (5, 2), (7, 3), (8, 7)]:
        code, chosen = SubsetCode(points, block_size), subsets_of(points, block_size)
        words = code.encode(chosen)
        expected = [slow_word(subset, points) for subset in chosen.tolist()]
        assert np.array_equal(words, rows_of(expected, code.bits)), engine
        assert np.array_equal(code.decode(words), chosen)
        every = rows_of(range(2**code.bits), code.bits)
        assert sorted(map(bytes, accepted(code, every))) == sorted(map(bytes, words))


# --- engines agree with the definition


@pytest.mark.slow
@given(st.integers(2, 700), st.floats(0, 1), st.integers(0, 2**32))
@example(256, 0.0, 0)  # one chosen: the last 9 bits come from one state
@example(700, 0.0, 0)
@example(700, 1.0, 0)
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_definition(points, share, seed):
    block_size = min(max(1, round(share * points)), points - 1)
    chosen = np.sort([random_subset(points, block_size, seed + row) for row in range(3)], axis=1)
    code = SubsetCode(points, block_size)
    assert code.bits == slow_bits(points, block_size)
    expected = rows_of([slow_word(row, points) for row in chosen.tolist()], code.bits)
    for engine in ("compiled", "together", "one by one") if kernels.load() else ("together", "one by one"):
        with pytest.MonkeyPatch.context() as patch:
            use(engine, patch)
            assert np.array_equal(code.encode(chosen[:, ::-1]), expected)
            assert np.array_equal(code.decode(expected), chosen)
            assert np.array_equal(code.count(expected), np.bincount(chosen.ravel(), minlength=points))


@pytest.mark.parametrize(
    ("points", "block_size"),
    [(2203, 40), (5000, 1350), (5000, 4990), pytest.param(22_000, 5_900, marks=pytest.mark.slow)],
)
def test_random_and_extreme_subsets(engine, points, block_size):
    if engine == "interpreted":  # too slow for more
        points, block_size = points // 10, block_size // 10
    code = SubsetCode(points, block_size)
    firsts = [0, points - block_size, (points - block_size) // 2]
    runs = [np.arange(first, first + block_size) for first in firsts]
    chosen = np.sort([*runs, *(random_subset(points, block_size, seed) for seed in range(2))], axis=1)
    words = code.encode(chosen)
    assert np.array_equal(code.decode(words), chosen)
    assert np.array_equal(code.count(words), np.bincount(chosen.ravel(), minlength=points))
    if points < 3000:
        assert np.array_equal(words, rows_of([slow_word(row, points) for row in chosen.tolist()], code.bits))


@pytest.mark.parametrize(
    ("points", "block_size"),
    [
        *((64, 17), (131, 24), (300, 150)),
        *(pytest.param(*large, marks=pytest.mark.slow) for large in ((1009, 270), (1999, 20))),
    ],
)
def test_carries_run_through_whole_words(engine, points, block_size):
    """The subset whose interval contains a round fraction such as 1/2: its low end is 0.0111… and its word 0.1000…"""
    code = SubsetCode(points, block_size)
    longest = 0
    for round_word in {eighths << code.bits >> 3 for eighths in range(1, 8)}:
        for word in (round_word, round_word - 1, round_word + 1):
            rows = accepted(code, rows_of([word], code.bits))
            if not rows:
                continue
            (chosen,) = code.decode(np.array(rows))
            below, expected, _ = interval(chosen.tolist(), points)
            assert word == expected
            longest = max(longest, (below ^ word).bit_length())
            assert np.array_equal(code.encode(chosen[None]), rows)
    assert longest > code.bits - 8


@pytest.mark.slow
def test_largest_codes(monkeypatch):
    """m = 2^20 − 1, with few and with nearly all points chosen; only the tail of such words exceeds 9 bits."""
    if kernels.load() is None:
        pytest.skip("slow without numba")
    for block_size in (1, 5, MOST_POINTS - 5, MOST_POINTS - 1):
        code = SubsetCode(MOST_POINTS, block_size)
        chosen = np.sort([random_subset(MOST_POINTS, block_size, seed) for seed in range(4)], axis=1)
        use("compiled", monkeypatch)
        words = code.encode(chosen)
        assert np.array_equal(code.decode(words), chosen)
        use("one by one", monkeypatch)
        assert np.array_equal(code.encode(chosen[:1]), words[:1])
        assert np.array_equal(code.decode(words[:1]), chosen[:1])


@given(st.integers(1, 2**20 - 1), st.integers(0, 2**48), st.integers(0, 2))
@example(1, 2**48, 0)
@example(2**20 - 1, 2**48, 0)
@example(2**20 - 1, (2**28 - 1) * (2**20 - 1), 2)  # just below a multiple
def test_quotients_are_exact_in_doubles(rest, width, step):
    """⌊(R + 1/2)·(1/N)⌋ = ⌊R/N⌋, also next to the multiples of N."""
    for number in {width, min(width // rest * rest + step, 2**48), max(width // rest * rest - 1, 0)}:
        assert math.floor((number + 0.5) * (1.0 / rest)) == number // rest


def test_groups_and_chunks_join_seamlessly(engine, monkeypatch):
    code = SubsetCode(150, 20)
    chosen = np.sort([random_subset(150, 20, seed) for seed in range(75)], axis=1)
    monkeypatch.setattr(subset_code, "_CELLS_AT_ONCE", 11 * 150)
    words = code.encode(chosen)
    assert np.array_equal(words, np.concatenate([code.encode(row[None]) for row in chosen])), engine
    assert np.array_equal(code.decode(words), chosen)
    assert np.array_equal(code.count(words), np.bincount(chosen.ravel(), minlength=150))


def test_no_rows(engine):
    code = SubsetCode(150, 20)
    words = code.encode(np.empty((0, 20), dtype=np.int64))
    assert words.shape == (0, code.length), engine
    assert code.decode(words).shape == (0, 20)
    assert not code.count(words).any()


def test_any_order_and_any_integers(engine):
    code = SubsetCode(40, 5)
    chosen = np.array([[3, 39, 0, 17, 18]])
    words = code.encode(chosen)
    assert np.array_equal(words, code.encode(np.sort(chosen))), engine
    for dtype in (np.int32, np.uint8, np.uint64):
        assert np.array_equal(code.encode(chosen.astype(dtype)), words)
    assert np.array_equal(code.encode(np.asfortranarray(np.tile(chosen, (3, 1)))), np.tile(words, (3, 1)))


def test_words_never_change():
    # Reports on the wire are words, so these bytes are part of the format.
    assert SubsetCode(10, 3).encode([[1, 4, 8]]).tolist() == [as_row(slow_word([1, 4, 8], 10), 7)]
    assert SubsetCode(10, 3).encode([[1, 4, 8]]).tobytes().hex() == "38"
    assert SubsetCode(200, 5).encode([[0, 50, 99, 100, 199]]).tobytes().hex() == "04646a56"


# --- the length of words


@pytest.mark.parametrize("points", [*range(2, 40), 255, 256, 257, 1023, 1024, 4097])
def test_bits_are_the_definition(points):
    for block_size in {*range(1, min(points, 30)), points // 2, points - 2, points - 1} - {0}:
        assert SubsetCode(points, block_size).bits == slow_bits(points, block_size)


@pytest.mark.parametrize("points", [100, 1_000, 10_711, 22_000])
@pytest.mark.parametrize("epsilon", [1, 2, 5])
def test_bits_are_those_of_the_number_of_subsets(points, epsilon):
    block_size = round(points / (math.exp(epsilon) + 1))
    assert SubsetCode(points, block_size).bits == (math.comb(points, block_size) - 1).bit_length()


def test_a_bit_more_where_rounding_needs_it():
    """log2 C(m,w) lies within m²/2^41 bits below a whole number."""
    assert (math.comb(65_537, 7_812) - 1).bit_length() == 34_534
    assert SubsetCode(65_537, 7_812).bits == slow_bits(65_537, 7_812) == 34_535


def test_powers_of_two_take_a_bit_more():
    """C(m,1) = m words of a power of two leave no room for rounding."""
    assert [SubsetCode(m, 1).bits for m in (2, 3, 4, 255, 256, 257)] == [2, 2, 3, 8, 9, 9]


# --- refusals


def test_words_of_no_subset_are_refused(engine):
    code = SubsetCode(300, 100)
    good = code.encode(random_subset(300, 100, 1)[None])
    bad = next(word for word in itertools.count() if not accepted(code, rows_of([word], code.bits)))
    rows = np.concatenate([good, rows_of([bad], code.bits)])
    for reading in (code.decode, code.count):
        with pytest.raises(ReportError, match="no subset of 100 out of 300 points"):
            reading(rows)
    assert engine


def test_a_second_word_is_refused(engine):
    """Some interval contains two words; only the first is accepted."""
    code = SubsetCode(60, 16)
    for seed in range(50):
        chosen = np.sort(random_subset(60, 16, seed))
        _, word, end = interval(chosen.tolist(), 60)
        if word + 1 < end:
            assert len(accepted(code, rows_of([word, word + 1], code.bits))) == 1, engine
            return
    raise AssertionError("no such interval found")


@pytest.mark.parametrize("length", [0, 1, 7, 9])
def test_words_of_another_length_are_refused(length):
    code = SubsetCode(70, 20)
    assert code.length == 8
    with pytest.raises(ReportError, match="8 bytes"):
        code.decode(np.zeros((1, length), dtype=np.uint8))


def test_padding_is_refused():
    code = SubsetCode(70, 20)
    assert code.bits % 8
    word = code.encode(np.arange(20)[None])
    word[0, -1] |= 1 << (code.bits % 8)
    with pytest.raises(ReportError, match=f"{code.bits} bits"):
        code.count(word)


@pytest.mark.parametrize("chosen", [[0, 1, 1], [0, 1, 70], [-1, 0, 1], [0, 1], [0, 1, 2, 3], [0.0, 1.0, 2.0]])
def test_invalid_subsets_are_refused(engine, chosen):
    with pytest.raises(ParameterError):
        SubsetCode(70, 3).encode([chosen])
    with pytest.raises(ParameterError):
        SubsetCode(70, 3).encode(chosen)
    assert engine


@pytest.mark.parametrize(
    ("points", "block_size"), [(0, 0), (1, 1), (-3, 0), (5, 6), (5, 5), (5, 0), (5, -1), (1 << 20, 3)]
)
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
