"""The system's random words: no word is used twice, and they arrive as the system gives them."""

import copy
import os
import pickle
import threading

import pytest

from sunzi.client import randomness
from sunzi.client.randomness import DerivedSource, SystemSource
from sunzi.plan import make_plan


@pytest.fixture(autouse=True, scope="module")
def fixed_words_of_a_file():
    """This file is about the system's own words."""


@pytest.fixture(autouse=True)
def fixed_words_of_a_test():
    """As above."""


def test_words_are_the_systems_bytes_in_little_endian_order(monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda size: bytes(index % 251 for index in range(size)))
    expected = tuple(int.from_bytes(bytes(range(start, start + 8)), "little") for start in (0, 8, 16))
    assert SystemSource().words(3) == expected
    assert SystemSource().words(1000)[:3] == expected


def test_every_request_goes_to_the_system(monkeypatch):
    sizes, genuine = [], os.urandom
    monkeypatch.setattr(randomness.os, "urandom", lambda size: sizes.append(size) or genuine(size))
    source = SystemSource()
    assert [len(source.words(count)) for count in (3, 0, 1000)] == [3, 0, 1000]
    assert sizes == [24, 0, 8000]


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


@pytest.mark.parametrize("duplicate", [lambda source: pickle.loads(pickle.dumps(source)), copy.copy, copy.deepcopy])
def test_a_copy_draws_other_words(duplicate):
    source = SystemSource()
    assert not set(duplicate(source).words(100)) & set(source.words(100))


def test_forking_clients_send_different_reports():
    """If parent and child used the same words, their noise would cancel."""
    client = make_plan("rappor", 200, 1).client()
    client.report(3)
    of_child = in_a_forked_child(lambda: client.report(3))
    assert len(of_child) == 25
    assert client.report(3) != of_child


def test_threads_never_share_words():
    source = SystemSource()
    taken, lock = [], threading.Lock()
    barrier = threading.Barrier(4)

    def draw():
        barrier.wait()
        own = [word for size in range(60) for word in source.words(size % 9)]
        with lock:
            taken.extend(own)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 4 * sum(size % 9 for size in range(60))
    assert len(set(taken)) == len(taken)


def test_derived_words_are_one_stream_however_they_are_taken():
    whole, parts = DerivedSource(bytes(32)), DerivedSource(bytes(32))
    assert whole.words(11) == parts.words(3) + parts.words(0) + parts.words(1) + parts.words(7)
    assert DerivedSource(bytes(31) + b"1").words(4) != DerivedSource(bytes(32)).words(4)
