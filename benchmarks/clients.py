"""Client-side work: randomising against drawing its words alone and against a peer; sampling subsets against numpy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks import settings
from benchmarks.children import PeerClient, UnavailableError
from benchmarks.measure import compare, paired, seconds
from benchmarks.results import Result
from sunzi.client.randomness import SystemSource, WordSource
from sunzi.numerics import kernels
from sunzi.numerics.randomness import ReproducibleSource, word_array
from sunzi.plan import make_plan

COMPACT = ("ss-compact", "mss-compact")


class _Requests(WordSource):
    """Words from the operating system; records the size of each request."""

    reproducible = False

    def __init__(self) -> None:
        self._system = SystemSource()
        self.counts: list[int] = []

    def read(self, count: int) -> bytes:
        """Return the next ``count`` words."""
        self.counts.append(count)
        return self._system.read(count)


def randomise_against_words(scale: float) -> Iterator[Result]:
    """Randomising against drawing the same operating-system words in requests of the same sizes."""
    count = settings.users(settings.USERS, scale)
    for name in COMPACT:
        size = settings.domain_size(settings.DOMAIN_SIZE, scale)
        protocol = make_plan(name, size, settings.EPSILON).protocol
        values = settings.values(count, size)
        requests = _Requests()
        protocol.randomize(values, requests)

        source = SystemSource()
        times = compare(
            partial(protocol.randomize, values, source),
            partial(_draw, source, requests.counts),
            settings.rounds(7, scale),
        )
        yield Result(
            f"randomise-vs-words/{name}",
            f"randomise {count:,} users by {name}",
            times.measured,
            "its random words alone",
            times.reference,
            times.slowdown,
            5,
            "at most",
            {"users": count, "domain_size": size, "epsilon": settings.EPSILON, "words": sum(requests.counts)},
        )


def _draw(source: WordSource, counts: list[int]) -> None:
    for count in counts:
        word_array(source, count)


def randomise_against_peer(scale: float) -> Iterator[Result]:
    """Randomising one user against multi-freq-ldpy's SubsetSelection client, which has the same error."""
    count, peers = settings.users(settings.USERS, scale), max(2, round(200 * scale))
    size = settings.domain_size(settings.DOMAIN_SIZE, scale)
    peer = PeerClient(size, settings.EPSILON)
    for name in COMPACT:
        protocol = make_plan(name, size, settings.EPSILON).protocol
        randomise = partial(protocol.randomize, settings.values(count, size), SystemSource())
        randomise()
        readings = []
        for _ in range(settings.rounds(5, scale)):
            start = process_time()
            randomise()
            readings.append(((process_time() - start) / count, peer.seconds(peers) / peers))
        times = paired(readings)
        yield Result(
            f"randomise-vs-peer/{name}",
            f"randomise one user by {name}",
            times.measured,
            "multi-freq-ldpy's SS_Client",
            times.reference,
            times.speedup,
            500,
            "at least",
            {"users": count, "peer_users": peers, "domain_size": size, "epsilon": settings.EPSILON},
        )
    peer.close()


POINTS, BLOCK_SIZE, SUBSET_EPSILON = 2203, 40, 4


def sample_and_count(scale: float) -> Iterator[Result]:
    """Sampling subsets and counting their points with numba, against taking the w smallest of random keys; per user."""
    if kernels.load() is None:
        raise UnavailableError("it measures compiled loops; install the extra with pip install 'sunzi[fast]'")
    count, argpartitioned = settings.users(90_000, scale), max(2, round(1000 * scale))
    protocol = make_plan("ss", POINTS, SUBSET_EPSILON, block_size=BLOCK_SIZE).protocol
    values = settings.values(count, POINTS)
    generator = np.random.default_rng(settings.SEED)
    streams: list[tuple[str, WordSource, float]] = [
        ("simulation", ReproducibleSource(settings.SEED), 50),
        ("system", SystemSource(), 25),
    ]
    for stream, source, bound in streams:
        times = compare(
            partial(protocol.sample, values, source),
            partial(_argpartition, values[:argpartitioned], generator),
            settings.rounds(9, scale),
        )
        words = count * round(protocol.words_per_report)
        yield Result(
            f"sample-and-count/{stream}",
            f"sample and count one subset of {BLOCK_SIZE} of {POINTS} points, {stream} words",
            times.measured / count,
            "numpy's argpartition of random keys",
            times.reference / argpartitioned,
            times.speedup * count / argpartitioned,
            bound,
            "at least",
            {
                "users": count,
                "reference_users": argpartitioned,
                "points": POINTS,
                "block_size": BLOCK_SIZE,
                "words_alone": seconds(partial(source.words, words), settings.rounds(5, scale)) / count,
            },
        )


def _argpartition(values: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """SubsetSelection as usually written in numpy: a coin gives the value the smallest or the largest key."""
    keys = generator.random((values.size, POINTS))
    truth = generator.random(values.size) < 0.5
    keys[np.arange(values.size), values] = np.where(truth, -1.0, 2.0)
    chosen = np.argpartition(keys, BLOCK_SIZE, axis=1)[:, :BLOCK_SIZE]
    return np.bincount(chosen.reshape(-1), minlength=POINTS)
