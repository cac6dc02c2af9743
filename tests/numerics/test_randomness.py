"""Sources of words and uniform integers made from them: no word is used twice, and there is no bias."""

import copy
import os
import pickle
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.errors import ParameterError, RandomnessError
from sunzi.numerics import randomness
from sunzi.client.randomness import SystemSource
from sunzi.numerics.randomness import ReproducibleSource, ScriptedSource, uniform_below
from sunzi.plan import make_plan

POOL = randomness._POOL_WORDS


@pytest.fixture(autouse=True, scope="module")
def fixed_words_of_a_file():
    """This file is about the system's own words."""


@pytest.fixture(autouse=True)
def fixed_words_of_a_test():
    """As above."""


@pytest.fixture
def requests(monkeypatch):
    """The sizes, in bytes, of all requests to the operating system."""
    sizes = []
    genuine = os.urandom

    def counted(size):
        sizes.append(size)
        return genuine(size)

    monkeypatch.setattr(randomness.os, "urandom", counted)
    return sizes


def test_small_requests_share_one_call_to_the_system(requests):
    source = OperatingSystemSource()
    taken = np.concatenate([source.words(4) for _ in range(POOL // 4)])
    assert requests == [8 * POOL]
    assert len(set(taken.tolist())) == POOL
    source.words(1)
    assert requests == [8 * POOL, 8 * POOL]


def test_large_requests_go_straight_to_the_system(requests):
    source = OperatingSystemSource()
    assert source.words(POOL + 1).size == POOL + 1
    assert source.words(100_000).size == 100_000
    assert requests == [8 * (POOL + 1), 800_000]


def test_words_are_the_systems_bytes_in_little_endian_order(monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda size: bytes(index % 251 for index in range(size)))
    expected = [int.from_bytes(bytes(range(start, start + 8)), "little") for start in (0, 8, 16)]
    assert OperatingSystemSource().words(3).tolist() == expected
    assert OperatingSystemSource().words(POOL + 1)[:3].tolist() == expected


def test_words_handed_out_are_wiped_from_the_pool():
    source = OperatingSystemSource()
    taken = source.words(10)
    held = source._pool.words
    assert np.all(held[:10] == 0)
    assert np.count_nonzero(held[10:]) == POOL - 10  # a word is 0 by chance once in 2^64
    assert not np.shares_memory(taken, held)
    taken[:] = 1
    assert source.words(POOL - 10).size == POOL - 10
    assert not source._pool.words.any()


def test_all_sizes_are_delivered_and_never_a_word_twice():
    source = OperatingSystemSource()
    sizes = [0, 1, 2, POOL - 1, POOL, POOL + 1, 3, 0, 200, 200, 200, 7]
    parts = [source.words(size) for size in sizes]
    assert [part.size for part in parts] == sizes
    assert all(part.dtype == np.uint64 for part in parts)
    everything = np.concatenate(parts).tolist()
    assert len(set(everything)) == len(everything)


def in_a_forked_child(action):
    """The bytes that ``action`` returns in a child process, which always ends right after it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.write(writing, action())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return data


def test_a_forked_child_does_not_share_the_pool():
    """If parent and child used the same words, their noise would cancel."""
    source = OperatingSystemSource()
    source.words(5)
    of_child = np.frombuffer(in_a_forked_child(lambda: source.words(64).astype("<u8").tobytes()), dtype="<u8")
    of_parent = source.words(64)
    assert of_child.size == 64
    assert not set(of_child.tolist()) & set(of_parent.tolist())


def test_forking_clients_send_different_reports():
    client = make_plan("rappor", 200, 1).client()
    client.report(3)
    of_child = in_a_forked_child(lambda: client.report(3))
    assert len(of_child) == 25
    assert client.report(3) != of_child


@pytest.mark.parametrize("duplicate", [lambda source: pickle.loads(pickle.dumps(source)), copy.copy, copy.deepcopy])
def test_a_copy_starts_with_an_empty_pool(duplicate, requests):
    source = OperatingSystemSource()
    source.words(1)
    copied = duplicate(source)
    assert copied._pool is not source._pool
    assert not set(copied.words(100).tolist()) & set(source.words(100).tolist())
    assert requests == [8 * POOL, 8 * POOL]


def test_a_pickle_holds_no_word():
    source = OperatingSystemSource()
    source.words(1)
    waiting = source._pool.words[1:].tobytes()
    data = pickle.dumps(source)
    assert not any(waiting[start : start + 8] in data for start in range(0, len(waiting), 8))


def test_threads_never_share_words():
    source = OperatingSystemSource()
    source.words(3)
    taken, lock = [], threading.Lock()
    barrier = threading.Barrier(4)

    def draw():
        barrier.wait()
        own = [word for size in range(60) for word in source.words(size % 9).tolist()]
        with lock:
            taken.extend(own)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 4 * sum(size % 9 for size in range(60))
    assert len(set(taken)) == len(taken)


def test_a_seed_fixes_the_words():
    first, second, other = ReproducibleSource(7), ReproducibleSource(7), ReproducibleSource(8)
    words = first.words(1000)
    assert np.array_equal(words, np.concatenate([second.words(300), second.words(700)]))
    assert not np.array_equal(words, other.words(1000))
    assert np.array_equal(ReproducibleSource([1, 2]).words(5), ReproducibleSource([1, 2]).words(5))


def test_seeded_words_use_all_64_bits_evenly():
    """Each bit's share of ones is within 6.2 standard errors: a false alarm of 4e-8 over all bits."""
    words = ReproducibleSource(1).words(100_000)
    for bit in range(64):
        ones = int(np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)))
        assert abs(ones - 50_000) < 6.2 * np.sqrt(25_000)


def test_each_kind_says_whether_it_is_reproducible():
    assert not OperatingSystemSource.reproducible
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
    assert isinstance(client._source, OperatingSystemSource)


def test_seed_and_source_exclude_each_other():
    with pytest.raises(ParameterError, match="not both"):
        make_plan("grr", 5, 1).client(seed=1, source=OperatingSystemSource())


def test_a_script_refuses_to_go_past_its_end():
    source = ScriptedSource([1, 2, 3])
    assert source.words(2).tolist() == [1, 2]
    assert source.remaining == 1
    with pytest.raises(RandomnessError, match="2 words requested, but the script has only 1 left"):
        source.words(2)
    assert source.words(1).tolist() == [3]
    assert source.words(0).size == 0
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
                variate = uniform_below(source.words(1).reshape(1, 1), np.array([bound], dtype=np.uint64), source)
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
