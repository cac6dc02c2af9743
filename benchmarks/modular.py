"""Modular decoding against a general sparse solver, and standard errors against one decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsmr

from benchmarks import settings
from benchmarks.measure import Comparison, compare
from benchmarks.results import Result
from sunzi.numerics import simplex
from sunzi.numerics.counters import Counters
from sunzi.numerics.toeplitz import fold
from sunzi.plan import Plan, make_plan
from sunzi.protocols.modular_estimation import ModularDecoder
from sunzi.protocols.modular_variance import ModularVariance
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally

Floats = NDArray[np.float64]

DOMAIN_SIZES = (22_000, 200_000, 1_000_000)
WARM_ROUNDS = {22_000: 9, 200_000: 7, 1_000_000: 3}
TOLERANCE = 1e-6
# After freeing an allocation of this size, the C library keeps smaller freed blocks instead of returning them.
_KEPT_BYTES = 30 << 20


def decode_mss(scale: float) -> Iterator[Result]:
    """MSS from tally to frequencies by planned weights, warm and on first use, against lsmr on the explicit sparse
    matrix. The allocator is warmed up first, so that lsmr does not wait for memory from the system.
    """
    _use_memory()
    for full_size in DOMAIN_SIZES:
        size, rounds = settings.domain_size(full_size, scale), settings.rounds(WARM_ROUNDS[full_size], scale)
        plan = make_plan("mss", size, settings.EPSILON)
        tally = modelled_tally(plan, settings.users(settings.USERS, scale))
        solve = partial(least_squares, decoder_of(plan, tally))
        warm = compare(partial(plan.estimate, tally, weights="planned"), solve, rounds)
        fresh = [forgetful(plan) for _ in range(rounds)]
        first = compare(partial(_decode_first, fresh, tally), solve, rounds, warm_up=False)
        yield _decoding(plan, "warm", warm, 5)
        yield _decoding(plan, "first", first, 0.5)


def _use_memory() -> None:
    """Free one large array. Otherwise a third of lsmr's time at 22,000 values would be page faults."""
    np.ones(_KEPT_BYTES // 8)


def _decode_first(plans: list[Plan], tally: Tally) -> Estimate:
    return plans.pop().estimate(tally, weights="planned")


def _decoding(plan: Plan, state: str, times: Comparison, bound: float) -> Result:
    size, moduli = plan.domain.size, len(plan.protocol.responses)
    wording = {"warm": "decode", "first": "decode for the first time"}[state]
    return Result(
        f"decode-mss/k-{size}/{state}",
        f"{wording} a tally of mss, {size:,} values",
        times.measured,
        "scipy's lsmr on a CSR matrix",
        times.reference,
        times.speedup,
        bound,
        "at least",
        {"domain_size": size, "epsilon": settings.EPSILON, "moduli": moduli, "tolerance": TOLERANCE},
    )


def forgetful(plan: Plan) -> Plan:
    """The same plan with empty caches."""
    return Plan(replace(plan.protocol), plan.domain)


def modelled_tally(plan: Plan, users: int) -> Tally:
    """A tally of ``users`` reports, drawn from the normal approximation of its counters: subsets of a million values
    would take hours to draw one by one.
    """
    protocol = plan.protocol
    generator = np.random.default_rng(settings.SEED)
    held = np.bincount(settings.values(users, protocol.domain_size), minlength=protocol.domain_size) / users
    blocks = []
    for response in protocol.responses:
        reports, design, rates = users // len(protocol.responses), response.design, response.probabilities
        means = reports * (rates.false + rates.gap * fold(held, design.points))
        noise = generator.standard_normal(design.points) * np.sqrt(reports * rates.false * (1 - rates.false))
        counts = np.clip(np.rint(means + noise), 0, reports).astype(np.int64)
        blocks.append(_summing_to(counts, reports * design.block_size, reports, generator))
    counters = Counters(protocol.tally_layout.length, None, np.concatenate(blocks))
    reports = users // len(protocol.responses) * len(protocol.responses)
    return Tally(plan.digest, protocol.tally_layout, reports, counters)


def _summing_to(counts: NDArray[np.int64], total: int, most: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The counts clipped to [0, most] and adjusted slightly, so that they have the total that every tally has."""
    while missing := total - int(counts.sum()):
        step = 1 if missing > 0 else -1
        room = np.flatnonzero((counts + step >= 0) & (counts + step <= most))
        counts[generator.permutation(room)[: abs(missing)]] += step
    return counts


def decoder_of(plan: Plan, tally: Tally) -> ModularDecoder:
    """The decoder of the plan's linear estimate."""
    decoder = plan.protocol.joint_fit(tally)
    assert isinstance(decoder, ModularDecoder), f"{plan.protocol.name} decodes no residues"
    return decoder


def least_squares(decoder: ModularDecoder) -> Floats:
    """The same frequencies by scipy's general solver, on the weighted rows of all blocks as one CSR matrix."""
    size, moduli = decoder.protocol.domain_size, decoder.moduli
    items, offsets = np.arange(size), np.concatenate([[0], np.cumsum(moduli)])
    rows = np.concatenate([items % modulus + offset for modulus, offset in zip(moduli, offsets, strict=False)])
    roots = np.sqrt(decoder.weights)
    matrix = sparse.csr_array(
        (np.repeat(roots, size), (rows, np.tile(items, len(moduli)))), shape=(int(offsets[-1]), size)
    )
    right_side = np.concatenate(
        [root * estimates for root, estimates in zip(roots, decoder.residue_estimates(), strict=True)]
    )
    solution: Floats = lsmr(matrix, right_side, atol=TOLERANCE, btol=TOLERANCE)[0]
    return solution


def standard_errors(scale: float) -> Iterator[Result]:
    """Standard errors of all items with planned weights, exact and by the quick bound, against one decoding."""
    for full_size in DOMAIN_SIZES:
        size, rounds = settings.domain_size(full_size, scale), settings.rounds(WARM_ROUNDS[full_size], scale)
        plan = make_plan("mss", size, settings.EPSILON)
        tally = modelled_tally(plan, settings.users(settings.USERS, scale))
        decoder = decoder_of(plan, tally)
        frequencies = simplex.project(plan.estimate(tally, weights="planned").frequencies)
        variance = ModularVariance(decoder.gram, decoder.moments, decoder.weights, decoder.reports)
        decode = partial(plan.estimate, tally, weights="planned")
        full = compare(partial(variance.full, frequencies), decode, max(1, rounds // 2))
        quick = compare(partial(variance.quick, frequencies), decode, rounds)
        yield _errors(plan, "full", full, 6 * len(decoder.moduli))
        yield _errors(plan, "quick", quick, 3)


def _errors(plan: Plan, kind: str, times: Comparison, bound: float) -> Result:
    size, moduli = plan.domain.size, len(plan.protocol.responses)
    wording = {"full": "standard errors of all items", "quick": "their quick upper bound"}[kind]
    return Result(
        f"standard-errors/k-{size}/{kind}",
        f"{wording}, {size:,} values",
        times.measured,
        "one decoding of the same plan",
        times.reference,
        times.slowdown,
        bound,
        "at most",
        {"domain_size": size, "epsilon": settings.EPSILON, "moduli": moduli},
    )
