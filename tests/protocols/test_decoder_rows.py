"""Rows of the decoder, against simulated collections and crafted reports."""

import math
from statistics import NormalDist

import numpy as np
import pytest

import sunzi
from sunzi import wire
from sunzi.designs.response import BlockResponse
from sunzi.numerics.toeplitz import fold
from sunzi.planning import push_bound
from sunzi.protocols.block_protocols import BlockProtocol
from sunzi.protocols.decoder_rows import best_division
from sunzi.protocols.modular import ModularMessages
from sunzi.protocols.modular_variance import ModularVariance
from sunzi.protocols.unary import UnaryProtocol

pytestmark = pytest.mark.slow

# Two-sided normal quantile for one false alarm in a million.
SURE = NormalDist().inv_cdf(1 - 0.5e-6)
MODULAR = ("mss", "mss-compact")


def spread_over(size: int, users: int, items: np.ndarray) -> np.ndarray:
    """Users who hold these items as evenly as their number allows."""
    return np.resize(items, users) if items.size else np.empty(0, dtype=np.int64)


def frequencies(plan: sunzi.Plan, values: np.ndarray, runs: int) -> np.ndarray:
    """Estimates of repeated collections, one per row."""
    return np.array(
        [plan.estimate(plan.simulate(values, seed=run), weights="planned").frequencies for run in range(runs)]
    )


@pytest.mark.parametrize(("name", "epsilon"), [("mss", 4), ("mss-compact", 1), ("mss-compact", 4)])
def test_decoder_rows_predict_the_variance_of_simulated_collections(name, epsilon):
    """Ten of 60 items are empty; their squared errors in units of the prediction average to 1 over many collections."""
    size, users, runs, empty = 60, 800, 400, np.arange(3, 60, 6)
    plan = sunzi.make_plan(name, size, epsilon)
    values = spread_over(size, users, np.setdiff1d(np.arange(size), empty))
    histogram = np.bincount(values, minlength=size) / users
    residues = [fold(histogram, modulus) for modulus in plan.protocol.moduli]
    predicted = [row.population_variance(residues) / users for row in plan.protocol.decoder_rows(empty.tolist())]
    squares = frequencies(plan, values, runs)[:, empty] ** 2 / np.array(predicted)
    each = squares.mean(axis=1)
    assert abs(each.mean() - 1) < SURE * each.std() / math.sqrt(runs) + 0.01
    assert each.std() / math.sqrt(runs) < 0.03


@pytest.mark.parametrize("name", MODULAR)
def test_decoder_rows_are_the_decoder(name):
    """The rows applied to residue estimates give the decoder's estimate, with the decoder's variance."""
    plan = sunzi.make_plan(name, 50, 2)
    protocol = plan.protocol
    tally = plan.simulate(np.arange(2000) % 50, seed=1)
    estimate = plan.estimate(tally, weights="planned")
    ones = protocol.gram.ones_solution
    items = [0, 7, 49]
    share = np.full(50, (1 - 0.3) / 49)
    share[7] = 0.3
    variance = ModularVariance(protocol.gram, protocol.moments, protocol.planned_weights, [1 / 16] * 16).full(share)
    for row in protocol.decoder_rows(items):
        total = ones[row.item] / ones.sum()
        for index, (response, part) in enumerate(zip(protocol.responses, row.parts, strict=True)):
            support = response.design.point_counts(tally.block(index), response.design.points)
            rates = response.probabilities
            total += part @ ((support / tally.block_reports[index] - rates.false) / rates.gap)
        assert total == pytest.approx(estimate.frequencies[row.item], abs=1e-9)
        residues = [fold(share, modulus) for modulus in protocol.moduli]
        assert row.population_variance(residues) == pytest.approx(variance[row.item], rel=0.02)
        if row.item == 7:
            constant, linear, square = row.variance_by_share()
            at_hand = constant + linear * 0.3 + square * 0.09
            assert at_hand == pytest.approx(row.population_variance(residues) - 0.3 * 0.7, rel=1e-9)


# --- poisoning --------------------------------------------------------------------------------------------------------


def lies(plan: sunzi.Plan, item: int, shares: tuple[float, ...], users: int) -> bytes:
    """A batch of crafted reports, each supporting the item as much as a report can."""
    protocol = plan.protocol
    counts = [round(share * users) for share in shares]
    if isinstance(protocol, UnaryProtocol):
        bits = np.zeros((counts[0], protocol.domain_size), dtype=np.uint8)
        bits[:, item] = 1
        messages = np.packbits(bits, axis=1, bitorder="little")
    elif isinstance(protocol, BlockProtocol):
        messages = supporting(protocol.response, item, counts[0])
    else:
        row = next(protocol.decoder_rows([item]))
        parts = [
            np.repeat(response.design.best_message(part)[0][None], count, axis=0)
            for response, part, count in zip(protocol.responses, row.parts, counts, strict=True)
        ]
        if protocol.name == "mss":
            messages = ModularMessages(np.repeat(np.arange(len(counts)), counts), tuple(parts))
        else:
            messages = np.concatenate([part + start for part, start in zip(parts, protocol._offsets[:-1], strict=True)])
    encoded = protocol.encode(messages)
    return wire.encode_batch(protocol.report_layout, plan.digest, encoded)


def supporting(response: BlockResponse, item: int, count: int) -> np.ndarray:
    """Messages whose block contains the item."""
    design = response.design
    variates = np.zeros((count, design.draw_count), dtype=np.uint64)
    return design.respond(np.full(count, item), np.full(count, True), variates)


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("grr", 3), ("ss", 1), ("ss-compact", 2), ("pgr", 1), ("rappor", 1), ("oue", 2), ("mss", 1), ("mss-compact", 1),
     ("mss", 4), ("mss-compact", 3)],
)  # fmt: skip
def test_crafted_reports_push_as_far_as_predicted(name, epsilon):
    size, item, users, runs, share = 50, 13, 20_000, 40, 0.05
    plan = sunzi.make_plan(name, size, epsilon)
    predicted = push_bound(plan, share, item)
    liars = plan.tally(lies(plan, item, predicted.shares, users))
    honest = spread_over(size, users - liars.reports, np.delete(np.arange(size), item))
    reached = [
        plan.estimate(plan.simulate(honest, seed=run) + liars, weights="planned").frequencies[item]
        for run in range(runs)
    ]
    noise = SURE * np.std(reached) / math.sqrt(runs)
    assert noise < 0.15 * predicted.expected
    assert abs(np.mean(reached) - predicted.expected) < noise + 0.01 * predicted.expected
    assert predicted.expected <= predicted.bound * (1 + 1e-9)
    assert sum(predicted.shares) == pytest.approx(share)


def test_fake_clients_in_one_block_push_it_as_the_formula_predicts():
    """All fake clients in one block j: λ(v_j − h_j·g_j) with λ = φ/((1−φ)/ℓ + φ), at most φ·ℓ·max."""
    plan = sunzi.make_plan("mss-compact", 50, 1)
    row = next(plan.protocol.decoder_rows([13]))
    gains = [
        response.largest_gain(part) - part @ residues
        for response, part, residues in zip(plan.protocol.responses, row.parts, row.others_spread_evenly(), strict=True)
    ]
    count, share, best = len(gains), 0.05, int(np.argmax(gains))
    shares = tuple(share * (index == best) for index in range(count))
    liars = plan.tally(lies(plan, 13, shares, 20_000))
    honest = spread_over(50, 19_000, np.delete(np.arange(50), 13))
    reached = [
        plan.estimate(plan.simulate(honest, seed=run) + liars, weights="planned").frequencies[13] for run in range(40)
    ]
    alone = share / ((1 - share) / count + share) * gains[best]
    assert abs(np.mean(reached) - alone) < SURE * np.std(reached) / math.sqrt(40) + 0.01 * alone
    divided = push_bound(plan, share, 13).expected
    assert alone <= divided <= share * count * max(gains)


@pytest.mark.parametrize("name", MODULAR)
def test_no_message_is_a_better_lie(name):
    plan = sunzi.make_plan(name, 12, 1, moduli=[5, 7, 13])
    row = next(plan.protocol.decoder_rows([4]))
    for response, part in zip(plan.protocol.responses, row.parts, strict=True):
        design = response.design
        messages = design.every_message()
        inside = np.column_stack([design.contains(messages, np.full(len(messages), p)) for p in range(design.points)])
        rates = response.probabilities
        every = ((inside - rates.false) / rates.gap) @ part
        assert response.largest_gain(part) == pytest.approx(every.max())


@pytest.mark.parametrize("name", MODULAR)
def test_the_bound_holds_for_any_values_of_the_honest_users(name):
    protocol = sunzi.make_plan(name, 30, 3).protocol
    row = next(protocol.decoder_rows([6]))
    gains = np.array([pair[0].largest_gain(pair[1]) for pair in zip(protocol.responses, row.parts, strict=True)])
    bound = row.push(0.02).bound
    for value in range(30):
        honest = [part[value % part.size] for part in row.parts]
        assert best_division(gains - honest, 0.02)[1] <= bound


def test_no_division_of_the_liars_is_better():
    generator = np.random.default_rng(2)
    for share in (0.001, 0.05, 0.4):
        gains = generator.normal(2, 3, 9)
        shares, best = best_division(gains, share)
        assert shares.sum() == pytest.approx(share)
        tried = share * generator.dirichlet(np.full(9, 0.5), 20_000)
        reached = (gains * tried / ((1 - share) / 9 + tried)).sum(axis=1)
        assert reached.max() <= best + 1e-12
        assert reached.max() > 0.8 * best
    assert best_division([-1.0, -2.0], 0.1)[1] == 0


def test_no_division_is_better_with_unequal_blocks():
    """Nor does any reach the bound φ·max v_j/p_j."""
    generator = np.random.default_rng(3)
    blocks = np.array([0.5, 0.3, 0.15, 0.05])
    for share in (0.001, 0.05, 0.4):
        gains = generator.uniform(0, 3, 4)
        shares, best = best_division(gains, share, blocks)
        assert shares.sum() == pytest.approx(share)
        tried = share * generator.dirichlet(np.full(4, 0.5), 5_000)
        reached = (gains * tried / ((1 - share) * blocks + tried)).sum(axis=1)
        assert 0.95 * best < reached.max() <= best + 1e-12
        assert best <= share * (gains / blocks).max()
