"""Server-side work for protocols with one design: tallying, and decoding by Fourier transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from benchmarks import children, settings
from benchmarks.clients import COMPACT
from benchmarks.measure import compare, seconds
from benchmarks.results import Result
from sunzi import wire
from sunzi.designs.base import Design
from sunzi.designs.projective import Projective
from sunzi.numerics import kernels
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import Plan, make_plan

FEW_USERS = 10_000

_MOST_INDICES = 6_000_000
_HYPERPLANES_AT_ONCE = 64


def tally(scale: float) -> Iterator[Result]:
    """From the bytes of a batch to a tally, with and without `fast`, against counting integers that are already
    unpacked.
    """
    yield from (Result.from_json(entry) for entry in tallies(scale))
    plain = children.call("servers:tallies", scale, {"SUNZI_NO_NUMBA": "1"})
    yield from (Result.from_json(entry) for entry in plain)


def tallies(scale: float) -> list[dict[str, Any]]:
    """The two compact protocols in this process, with numba if it is installed."""
    return [_tally(name, scale).to_json() for name in COMPACT]


def _tally(name: str, scale: float) -> Result:
    count, size = settings.users(settings.USERS, scale), settings.domain_size(settings.DOMAIN_SIZE, scale)
    fast = kernels.load() is not None
    plan = make_plan(name, size, settings.EPSILON)
    messages = plan.protocol.randomize(settings.values(count, size), ReproducibleSource(settings.SEED))
    batch = batch_of(plan, messages)
    counters = plan.protocol.tally_layout.length
    times = compare(
        partial(plan.tally, batch), partial(np.bincount, messages, minlength=counters), settings.rounds(15, scale)
    )
    return Result(
        f"tally/{name}/{'fast' if fast else 'plain'}",
        f"tally {count:,} reports of {name}, {'with' if fast else 'without'} numba",
        times.measured,
        "np.bincount of the unpacked integers",
        times.reference,
        times.slowdown,
        4 if fast else 7,
        "at most",
        {"users": count, "domain_size": size, "epsilon": settings.EPSILON, "bytes": len(batch), "counters": counters},
    )


def batch_of(plan: Plan, messages: Any) -> bytes:
    """The bytes of a client's batch with these messages."""
    protocol = plan.protocol
    return wire.encode_batch(protocol.report_layout, plan.digest, protocol.encode(messages))


def decode_compact(scale: float) -> Iterator[Result]:
    """Compact SS from tally to point counts, against its Fourier transforms alone or its additions alone."""
    count, size = settings.users(FEW_USERS, scale), settings.domain_size(settings.DOMAIN_SIZE, scale)
    for epsilon in settings.EPSILONS:
        plan = make_plan("ss-compact", size, epsilon)
        design = plan.protocol.responses[0].design
        if design.kind != "cyclotomic":
            continue  # tiny domains use no transform
        counters = plan.simulate(settings.values(count, size), seed=settings.SEED).block(0)
        additions, share = _additions(count * design.block_size, design.points)
        transforms = _transforms(design)
        adding = seconds(additions, 3) * share < seconds(transforms, 3)
        times = compare(
            partial(design.point_counts, counters, size),
            additions if adding else transforms,
            settings.rounds(9, scale),
        )
        part, cost = share if adding else 1.0, design.point_counts_cost(count, size)
        yield Result(
            f"decode-compact/epsilon-{epsilon}",
            f"decode {count:,} reports of ss-compact, ε = {epsilon}",
            times.measured,
            "its n·w additions alone" if adding else f"its {design.class_count + 1} real transforms alone",
            times.reference * part,
            times.slowdown / part,
            2,
            "at most",
            {
                "users": count,
                "domain_size": size,
                "epsilon": epsilon,
                "classes": design.class_count,
                "block_size": design.block_size,
                "library_adds": cost is not None and cost.route == "additions",
            },
        )


def _transforms(design: Design) -> Callable[[], None]:
    """e forward transforms and one backward transform of real vectors, padded to twice the number of points."""
    length = int(fft.next_fast_len(2 * design.points - 1, real=True))
    row = np.random.default_rng(settings.SEED).random(design.points)
    spectrum = fft.rfft(row, length)

    def run() -> None:
        for _ in range(design.class_count):
            fft.rfft(row, length, workers=1)
        fft.irfft(spectrum, length, workers=1)

    return run


def _additions(number: int, points: int) -> tuple[Callable[[], object], float]:
    """Count ``number`` points, or as many as fit in memory; also return the factor between the two."""
    taken = min(number, _MOST_INDICES)
    indices = np.random.default_rng(settings.SEED).integers(0, points, taken)
    return partial(np.bincount, indices, minlength=points), number / taken


def decode_pgr(scale: float) -> Iterator[Result]:
    """PGR on the 19,531 points of PG(6, 5) from tally to point counts, against the incidence matrix in blocks."""
    dimension = 7 if scale >= 1 else 4
    size = (5**dimension - 1) // 4
    plan = make_plan("pgr", size, "1.3863", order=5)
    design = plan.protocol.responses[0].design
    vectors = Projective(5, dimension).space.vectors(np.arange(size)).astype(np.float32)
    for count in (FEW_USERS, settings.USERS):
        users = settings.users(count, scale)
        counters = plan.simulate(settings.values(users, size), seed=settings.SEED).block(0)
        messages, weights = counters.nonzero()
        times = compare(
            partial(design.point_counts, counters, size),
            partial(incidence_product, vectors, messages, weights),
            settings.rounds(3, scale),
        )
        yield Result(
            f"decode-pgr/n-{users}",
            f"decode {users:,} reports of pgr, {size:,} values",
            times.measured,
            "incidence product in blocks",
            times.reference,
            times.speedup,
            20,
            "at least",
            {"users": users, "domain_size": size, "order": 5, "dimension": dimension},
        )


def incidence_product(
    vectors: NDArray[np.float32], messages: NDArray[np.int64], weights: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Σ_y c[y]·1{⟨x, y⟩ = 0} for every point x, one block of hyperplanes y at a time. As 5 is prime, products are
    integers modulo 5.
    """
    totals = np.zeros(len(vectors))
    for start in range(0, messages.size, _HYPERPLANES_AT_ONCE):
        chunk = slice(start, start + _HYPERPLANES_AT_ONCE)
        products = (vectors[messages[chunk]] @ vectors.T).astype(np.uint8)
        incident = (products % np.uint8(5) == 0).astype(np.float32)
        totals += weights[chunk].astype(np.float32) @ incident
    return totals
