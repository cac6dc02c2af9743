"""Every figure on the axes, against simulated collections and against slow, obvious code."""

import json
import math
from statistics import NormalDist

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.numerics.incidence import cheapest_route
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.planning import evaluate, push_bound, skewed_histogram
from sunzi.planning.axes import ErrorCurve, error_curve, expected_largest, tally_bytes
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_protocols import BlockProtocol
from sunzi.protocols.modular import ModularMessages
from sunzi.protocols.unary import UnaryProtocol

# Two-sided normal quantile for one false alarm in a million.
SURE = NormalDist().inv_cdf(1 - 0.5e-6)
MODULAR = ("mss", "mss-compact")


def spread_over(size: int, users: int, items: np.ndarray) -> np.ndarray:
    """Users who hold these items as evenly as their number allows."""
    return np.resize(items, users) if items.size else np.empty(0, dtype=np.int64)


def frequencies(plan: sunzi.Plan, values: np.ndarray, runs: int, weights: str = "efficient") -> np.ndarray:
    """Estimates of repeated collections, one per row."""
    tallies = (plan.simulate(values, seed=run) for run in range(runs))
    return np.array([plan.estimate(tally, weights=weights).frequencies for tally in tallies])


# --- error ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "size", "epsilon"), [("mss", 60, 4), ("mss-compact", 60, 1), ("mss", 211, 5)])
def test_few_items_stand_for_all(name, size, epsilon):
    protocol = sunzi.make_plan(name, size, epsilon).protocol
    every = np.array([row.variance_by_share() for row in protocol.decoder_rows(range(size))]).mean(axis=0)
    curve = error_curve(protocol)
    assert curve.constant == pytest.approx(every[0], rel=0.02)
    for share in (0.05, 0.5, 1.0):
        exact = math.sqrt(every @ [1, share, share**2] / 1000)
        assert curve.standard_error(1000, share) == pytest.approx(exact, rel=0.02)


def test_values_that_share_residues_add_to_the_error():
    """At ε = 5 and 100 values the error of an empty item is far above what it would be if all residues were empty."""
    plan = sunzi.make_plan("mss", 100, 5)
    protocol = plan.protocol
    error = evaluate(plan, 1000).standard_error
    assert 0.85 < error / math.sqrt(plan.expected_mse(1000)) < 1  # no user holds it, so its own share adds nothing
    empty = len(protocol.moduli) * protocol.planned_weights**2 * [moments.light for moments in protocol.moments]
    assert error > 1.4 * math.sqrt(protocol.gram.sandwich_diagonal(empty).mean() / 1000)
    alone = sunzi.make_plan("grr", 100, 5).protocol.probabilities
    assert evaluate(sunzi.make_plan("ss-compact", 100, 5), 1000).standard_error == math.sqrt(alone.variance(0) / 1000)


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_mean_errors_are_those_of_the_plan(name):
    plan = sunzi.make_plan(name, 40, 3)
    flat, skewed = evaluate(plan, 500), evaluate(plan, 500, "skewed")
    assert flat.skewed_error is None
    assert flat.mean_error**2 == skewed.flat_error**2 == pytest.approx(plan.expected_mse(500))
    assert skewed.mean_error**2 == pytest.approx(plan.expected_mse(500, skewed_histogram(40)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in sunzi.catalogue() if name not in MODULAR])
def test_standard_error_of_support_protocols(name):
    """An empty item's squared error over many collections, against the formula."""
    users, runs = 500, 1000
    plan = sunzi.make_plan(name, 20, 2)
    errors = frequencies(plan, spread_over(20, users, np.delete(np.arange(20), 10)), runs, "planned")[:, 10]
    measured = (errors**2).mean()
    assert (
        abs(measured / evaluate(plan, users).standard_error ** 2 - 1) < SURE * (errors**2).std() / measured / runs**0.5
    )


def test_largest_error_of_normals():
    assert expected_largest(1) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-6)
    assert expected_largest(2) == pytest.approx(2 / math.sqrt(math.pi), rel=1e-6)
    draws = np.abs(np.random.default_rng(3).standard_normal((4000, 300))).max(axis=1)
    assert abs(expected_largest(300) - draws.mean()) < SURE * draws.std() / math.sqrt(4000)
    assert 6 < expected_largest(1 << 30) < 7


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "ss-compact", "mss-compact"])
def test_largest_error_of_collections(name):
    size, users, runs = 120, 30_000, 150
    plan = sunzi.make_plan(name, size, 1)
    values = spread_over(size, users, np.arange(size))
    largest = np.abs(frequencies(plan, values, runs) - 1 / size).max(axis=1)
    expected = evaluate(plan, users).largest_error
    assert abs(largest.mean() - expected) < SURE * largest.std() / math.sqrt(runs) + 0.02 * expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon", "users"), [("grr", 2, 4000), ("oue", 1, 4000), ("ss-compact", 3, 3000), ("mss", 4, 3000)]
)
def test_detectable_share_is_detected_four_times_in_five(name, epsilon, users):
    size, item, runs = 40, 11, 600
    plan = sunzi.make_plan(name, size, epsilon)
    result = evaluate(plan, users)
    curve, share = error_curve(plan.protocol), result.detectable_share
    holders = round(share * users)
    others = spread_over(size, users - holders, np.delete(np.arange(size), item))
    weights = "planned" if name in MODULAR else "efficient"
    estimates = frequencies(plan, np.concatenate([np.full(holders, item), others]), runs, weights)[:, item]
    threshold = NormalDist().inv_cdf(0.975) * curve.standard_error(users)
    detected = np.mean(np.abs(estimates) > threshold)
    assert abs(detected - 0.8) < SURE * math.sqrt(0.16 / runs) + 0.015
    assert estimates.std() == pytest.approx(curve.standard_error(users, share), rel=SURE / math.sqrt(2 * runs) + 0.03)


def test_detectable_share_solves_its_equation():
    curve = ErrorCurve(2.0, 0.7, -0.3)
    for users in (30, 1000):
        share = curve.detectable_share(users)
        power = NormalDist().inv_cdf(0.8) * curve.standard_error(users, share)
        assert share == pytest.approx(NormalDist().inv_cdf(0.975) * curve.standard_error(users) + power)
    assert curve.detectable_share(1) == math.inf
    assert evaluate(sunzi.make_plan("grr", 1000, 1), 10).to_dict()["detectable_share"] is None


# --- bits, words, memory, work ----------------------------------------------------------------------------------------


class CountingSource(ReproducibleSource):
    """A source that counts the words it returns."""

    taken = 0

    def array(self, count):
        self.taken += count
        return super().array(count)


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_bits_and_words_are_those_of_real_reports(name):
    users = 4000
    plan = sunzi.make_plan(name, 90, 1)
    result, source = evaluate(plan, users), CountingSource(5)
    batch = plan.client(source=source).report_batch(np.arange(users) % 90)
    bits = 8 * len(batch) / users
    widths = np.array(plan.protocol.report_layout.payload_bits)
    slack = SURE * widths.std() / math.sqrt(users) + 8 * 128 / users  # the batch has a header
    assert abs(bits - result.bits) <= slack
    assert result.max_bits == plan.max_report_bits
    assert source.taken / users == pytest.approx(result.client_words, rel=0.03)


@pytest.mark.parametrize(
    ("name", "size", "epsilon", "users"),
    [("ss-compact", 1024, 5, 3000), ("mss-compact", 1024, 3, 2000), ("pgr", 3000, 1, 500), ("mss", 1024, 1, 300)],
)
def test_tally_bytes_are_those_of_real_tallies(name, size, epsilon, users):
    plan = sunzi.make_plan(name, size, epsilon)
    tally = plan.simulate(np.arange(users) % size, seed=1)
    held = tally.counters.stored * (16 if tally.counters.is_sparse else 8)
    result = evaluate(plan, users)
    assert result.tally_counters == tally.counters.length
    assert result.tally_bytes == pytest.approx(held, rel=0.05)
    assert tally_bytes(plan.protocol.tally_layout, 10**9) == 8 * tally.counters.length


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "epsilon", "users"), [(1024, 1, 100), (1024, 1, 100_000), (1024, 5, 1000), (600, 5, 9)]
)
def test_the_route_is_the_one_taken(size, epsilon, users):
    values = np.arange(users) % size
    compact = sunzi.make_plan("ss-compact", size, epsilon)
    added = compact.protocol.design.additions_are_cheaper(compact.simulate(values, seed=1).block(0).filled)
    assert evaluate(compact, users).decode_route == ("additions" if added else "transforms")
    projective = sunzi.make_plan("pgr", size, epsilon)
    filled = projective.simulate(values, seed=1).block(0).filled
    assert evaluate(projective, users).decode_route == cheapest_route(projective.protocol.design.space, filled, size)


def test_work_grows_with_what_is_done():
    plan = sunzi.make_plan("ss-compact", 1024, 5)
    few, many = (plan.protocol.decoding_cost(reports) for reports in (100, 1000))
    assert few.route == many.route == "additions"
    additions = 900 * plan.protocol.design.block_size
    assert many.operations - few.operations == pytest.approx(additions, rel=0.01)
    messages = plan.protocol.design.message_count * math.log2(plan.protocol.design.points)
    assert few.operations == pytest.approx(24 * messages, rel=0.05)  # to all messages and back, twelve times
    modular = sunzi.make_plan("mss", 1024, 1).protocol
    assert modular.linear_cost(1000).operations == pytest.approx(sum(modular.moduli) + 72 * 1024)
    assert modular.decoding_cost(1000).operations == pytest.approx(sum(modular.moduli) + 13 * 72 * 1024)
    assert (
        sunzi.make_plan("oue", 77, 1).protocol.domain_size
        == sunzi.make_plan("oue", 77, 1).protocol.decoding_cost(9).operations
    )


def test_work_counts_reading_every_report():
    """Compact reports are integers; a subset is read point by point, a unary report bit by bit."""
    for name in sunzi.catalogue():
        plan = sunzi.make_plan(name, 1024, 1)
        found = evaluate(plan, 5000)
        assert found.read_work == 5000 * plan.protocol.reading_work
        assert found.work == found.read_work + found.decode_work == found.to_dict()["work"]
    work = {name: sunzi.make_plan(name, 1024, 1).protocol.reading_work for name in sunzi.catalogue()}
    assert work["grr"] == work["ss-compact"] == work["pgr"] < work["mss-compact"] < 10
    assert work["ss"] == 2 * 1024
    assert work["rappor"] == work["oue"] == 1024
    moduli = sunzi.make_plan("mss", 1024, 1).protocol.moduli
    assert work["mss"] == pytest.approx(1 + sum(moduli) / len(moduli))
    assert sunzi.make_plan("mss", 1024, 1, code="arithmetic").protocol.reading_work == 2 * work["mss"] - 1
    assert sunzi.make_plan("ss", 1024, 1, code="bitmap").protocol.reading_work == 1024


# --- attackability ----------------------------------------------------------------------------------------------------


def guesses(protocol: Protocol, values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The guess of a Bayes-optimal attacker for one report of each value: the values with the largest likelihood."""
    size = protocol.domain_size
    messages = protocol.randomize(values, ReproducibleSource(8))
    points = np.arange(size)
    supported = np.zeros((values.size, size), dtype=bool)
    if isinstance(protocol, UnaryProtocol):
        supported[:] = np.unpackbits(messages, axis=1, count=size, bitorder="little")
    elif isinstance(protocol, BlockProtocol):
        for point in points:
            supported[:, point] = protocol.design.contains(messages, np.full(values.size, point))
    elif isinstance(messages, ModularMessages):
        for index, (response, part) in enumerate(zip(protocol.responses, messages.parts, strict=True)):
            rows = np.flatnonzero(messages.selectors == index)
            for point in points:
                residues = np.full(rows.size, point % response.design.points)
                supported[rows, point] = response.design.contains(part, residues)
    else:
        selectors = np.searchsorted(protocol._offsets, messages, side="right") - 1
        for index, response in enumerate(protocol.responses):
            rows = np.flatnonzero(selectors == index)
            part = messages[rows] - protocol._offsets[index]
            for point in points:
                residues = np.full(rows.size, point % response.design.points)
                supported[rows, point] = response.design.contains(part, residues)
    supported[~supported.any(axis=1)] = True  # it contains none of them, so all are equally likely
    return (generator.random(supported.shape) * supported).argmax(axis=1)


@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("name", sunzi.catalogue())
def test_attackability_is_the_success_of_the_best_attacker(name, epsilon):
    plan = sunzi.make_plan(name, 30, epsilon)
    values = np.arange(30_000) % 30
    success = np.mean(guesses(plan.protocol, values, np.random.default_rng(4)) == values)
    chance = evaluate(plan, 100).attackability
    assert abs(success - chance) < SURE * math.sqrt(chance * (1 - chance) / values.size)


# --- the whole --------------------------------------------------------------------------------------------------------


def test_efficiency_is_the_share_of_users_that_the_best_protocol_needs():
    best = evaluate(sunzi.make_plan("ss", 30, 1), 1000)
    assert best.efficiency == pytest.approx(1, abs=1e-12)
    worse = evaluate(sunzi.make_plan("rappor", 30, 1), 1000)
    assert worse.efficiency == pytest.approx((best.flat_error / worse.flat_error) ** 2)
    assert evaluate(sunzi.make_plan("ss", 30, 1), 1000 * worse.efficiency).flat_error == pytest.approx(worse.flat_error)
    assert worse.to_dict()["efficiency"] == worse.efficiency


@pytest.mark.parametrize("name", sunzi.catalogue())
@pytest.mark.parametrize("size", [2, 3, 5])
def test_tiny_domains_have_axes(name, size):
    result = evaluate(sunzi.make_plan(name, size, "1/2"), 100)
    assert 0 < result.efficiency < 1 + 1e-9
    assert 0 < result.standard_error < 10
    assert result.push > 0
    json.dumps(result.to_dict(), allow_nan=False)


def test_wrong_arguments_are_named():
    plan = sunzi.make_plan("grr", 5, 1)
    with pytest.raises(ParameterError, match="users must be at least 1, got 0"):
        evaluate(plan, 0)
    with pytest.raises(ParameterError, match="share of fake clients must lie between 0 and 1, got 1"):
        push_bound(plan, 1.0)
    with pytest.raises(ParameterError, match="item must lie between 0 and 4, got 5"):
        push_bound(plan, 0.1, 5)


class Silent(Protocol):
    """A kind of protocol that the axes do not know."""

    name = "silent"
    domain_size = 5
    choose = from_parameters = parameters = randomize = encode = decode = count = estimate = None
    words_per_report = expected_mse = worst_mse = attackability = support_probabilities = None


def test_unknown_kinds_are_refused_by_name():
    with pytest.raises(ParameterError, match="'silent'"):
        error_curve(Silent())
    assert Silent().decoding_cost(10) is None
    assert Silent().reading_work is None


def test_what_a_batch_reveals_is_computed_on_request():
    plan = sunzi.make_plan("grr", 1024, 2)
    assert evaluate(plan, 10_000).batch is None
    found = evaluate(plan, 10_000, delta=1e-8)
    assert found.batch == plan.batch_guarantee(10_000, 1e-8)
    record = found.to_dict()
    assert (record["central_epsilon"], record["central_attack"]) == (found.batch.epsilon, found.batch.attack_epsilon)
    assert (record["delta"], record["honest_share"], record["reader"]) == (1e-8, 1, "reports")
    assert record["adjacency"] == "one value is replaced"
    assert record["minimum_reports"] == record["honest_reports"] == 10_000
    assert evaluate(plan, 10_000).to_dict()["central_epsilon"] is None
