"""Sources of words and uniform integers made from them: no word is used twice, and there is no bias."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.errors import ParameterError, RandomnessError
from sunzi.client.randomness import SystemSource
from sunzi.numerics.randomness import ReproducibleSource, ScriptedSource, uniform_below
from sunzi.plan import make_plan


def test_a_seed_fixes_the_words():
    first, second, other = ReproducibleSource(7), ReproducibleSource(7), ReproducibleSource(8)
    words = first.words(1000)
    assert words == second.words(300) + second.words(700)
    assert words != other.words(1000)
    assert ReproducibleSource([1, 2]).words(5) == ReproducibleSource([1, 2]).words(5)


def test_seeded_words_use_all_64_bits_evenly():
    """Each bit's share of ones is within 6.2 standard errors: a false alarm of 4e-8 over all bits."""
    words = ReproducibleSource(1).array(100_000)
    for bit in range(64):
        ones = int(np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)))
        assert abs(ones - 50_000) < 6.2 * np.sqrt(25_000)


def test_each_kind_says_whether_it_is_reproducible():
    assert not SystemSource.reproducible
    assert ReproducibleSource.reproducible
    assert ScriptedSource.reproducible


@pytest.mark.parametrize("arguments", [{"seed": 7}, {"seed": 0}, {"source": ScriptedSource([1, 2, 3])}])
def test_a_reproducible_client_says_that_it_protects_nobody(arguments):
    client = make_plan("grr", 5, 1).client(**arguments)
    assert client.is_private is False
    assert "protects nobody" in repr(client)


def test_a_client_is_private_by_default():
    client = make_plan("grr", 5, 1).client()
    assert client.is_private is True
    assert "private" in repr(client)
    assert "protects nobody" not in repr(client)
    assert isinstance(client._source, SystemSource)


def test_seed_and_source_exclude_each_other():
    with pytest.raises(ParameterError, match="not both"):
        make_plan("grr", 5, 1).client(seed=1, source=SystemSource())


def test_a_script_refuses_to_go_past_its_end():
    source = ScriptedSource([1, 2, 3])
    assert source.words(2) == (1, 2)
    assert source.remaining == 1
    with pytest.raises(RandomnessError, match="2 words requested, but the script has only 1 left"):
        source.words(2)
    assert source.words(1) == (3,)
    assert source.words(0) == ()
    with pytest.raises(RandomnessError):
        source.words(1)


@pytest.mark.parametrize(("words", "bits"), [([8], 3), ([1 << 40], 32), ([0], 0), ([0], 33), ([0], 63), ([0], 65)])
def test_a_script_refuses_words_and_widths_that_do_not_fit(words, bits):
    with pytest.raises(ParameterError):
        ScriptedSource(words, bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8])
def test_uniform_integers_are_exactly_uniform_on_narrow_words(bits):
    """Over all words of b bits, the accepted ones give every integer below the bound equally often."""
    words = np.arange(1 << bits, dtype=np.uint64)
    for bound in range(1, (1 << bits) + 1):
        given_by = Counter()
        for word in words.tolist():
            source = ScriptedSource([word], bits)
            try:
                variate = uniform_below(source.array(1).reshape(1, 1), np.array([bound], dtype=np.uint64), source)
            except RandomnessError:
                continue
            given_by[int(variate[0, 0])] += 1
        assert given_by == dict.fromkeys(range(bound), (1 << bits) // bound)


@pytest.mark.parametrize("columns", [1, 2, 16, 17, 40])
def test_matrices_are_drawn_as_documented(columns):
    """Compared with a plain loop: all words first, then rejected cells replaced in row-major order, round by round."""
    generator = np.random.default_rng(columns)
    bits, rounds = 4, 0
    for _ in range(60):
        bounds = generator.integers(1, 17, columns)
        words = generator.integers(0, 16, (3, columns))
        fresh = generator.integers(0, 16, 2000)
        source = ScriptedSource(fresh.astype(np.uint64), bits)
        found = uniform_below(words.astype(np.uint64), bounds.astype(np.uint64), source)
        expected, used, needed = slow_matrix(words.tolist(), bounds.tolist(), fresh.tolist(), bits)
        assert found.tolist() == expected
        assert source.remaining == 2000 - used
        rounds = max(rounds, needed)
    assert rounds >= 2


def slow_matrix(words, bounds, fresh, bits):
    result = [[0] * len(bounds) for _ in words]
    pending = [(row, column, word) for row, cells in enumerate(words) for column, word in enumerate(cells)]
    used = rounds = 0
    while True:
        rejected = []
        for row, column, word in pending:
            high, low = divmod(word * bounds[column], 1 << bits)
            result[row][column] = high
            if low < (1 << bits) % bounds[column]:
                rejected.append((row, column))
        if not rejected:
            return result, used, rounds
        pending = [(row, column, fresh[used + offset]) for offset, (row, column) in enumerate(rejected)]
        used, rounds = used + len(rejected), rounds + 1


BOUNDS = st.one_of(
    st.integers(1, 2**32 - 1),
    st.integers(1, 40).map(lambda step: 2**32 - step),
    st.integers(0, 31).map(lambda power: 2**power),
    st.integers(-2, 2).map(lambda step: 2**31 + step),
)
WORDS = st.one_of(
    st.integers(0, 2**64 - 1), st.integers(0, 2**33), st.integers(1, 2**33).map(lambda step: 2**64 - step)
)


@given(st.lists(st.tuples(WORDS, BOUNDS), min_size=1, max_size=20))
def test_full_words_and_large_bounds_against_exact_integers(pairs):
    """96-bit products computed in 64-bit steps, against Python's integers; rejected words are replaced."""
    words = np.array([[word for word, _ in pairs]], dtype=np.uint64)
    bounds = np.array([bound for _, bound in pairs], dtype=np.uint64)
    sure = 2**63 + 12345  # its product's low half is large for every bound here, or it is rejected and drawn again
    fresh = [sure + 2 * index * 0x123456789 for index in range(2000)]
    source = ScriptedSource(np.array(fresh, dtype=np.uint64))
    found = uniform_below(words, bounds, source)
    expected, used, _ = slow_matrix(words.tolist(), bounds.tolist(), fresh, 64)
    assert found.tolist() == expected
    assert source.remaining == len(fresh) - used
    assert all(variate < bound for variate, bound in zip(found[0].tolist(), bounds.tolist(), strict=True))


@pytest.mark.parametrize("bound", [3, 2**31 - 1, 2**32 - 1, 2**32 - 5])
def test_rejection_begins_exactly_at_the_surplus(bound):
    """The smallest words have the smallest low halves: below 2^64 mod s they are rejected, from there on accepted."""
    surplus = 2**64 % bound
    inverse = pow(bound, -1, 2**64)
    for low, passes in ((surplus, True), (surplus - 1, False), (0, False)):
        word = low * inverse % 2**64
        assert word * bound % 2**64 == low
        source = ScriptedSource([])
        arguments = (np.array([[word]], dtype=np.uint64), np.array([bound], dtype=np.uint64), source)
        if passes:
            assert uniform_below(*arguments).tolist() == [[word * bound >> 64]]
        else:
            with pytest.raises(RandomnessError):
                uniform_below(*arguments)


def test_powers_of_two_never_reject():
    words = np.array([[0], [1], [2**64 - 1], [2**63]], dtype=np.uint64)
    found = uniform_below(words, np.array([2**31], dtype=np.uint64), ScriptedSource([]))
    assert found[:, 0].tolist() == [0, 0, 2**31 - 1, 2**30]


@pytest.mark.parametrize("seed", [-1, "seven", 1.5])
def test_bad_seeds_are_named(seed: object) -> None:
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        make_plan("grr", 5, 1).client(seed=seed)
