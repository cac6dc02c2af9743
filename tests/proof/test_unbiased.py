"""Every protocol's estimate is unbiased: exactly on expected tallies, and measured in simulations and on real bytes."""

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.subsets import Subsets
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue

SIZE = 43
HISTOGRAMS = ["uniform", "zipf", "spike"]
MODULAR = {"moduli": (5, 11, 17, 23)}
# Few enough blocks to list, including truncated designs and moduli above the domain.
LISTED = [
    ("grr", SIZE, 1, {}),
    ("ss", 11, 1, {}),
    ("ss", SIZE, 3, {}),
    ("ss-compact", SIZE, 1, {}),
    ("ss-compact", SIZE, 3, {"classes": 15, "points": 61}),
    ("pgr", SIZE, 1, {}),
    ("pgr", SIZE, 2, {"order": 8}),
    ("rappor", SIZE, 1, {}),
    ("oue", SIZE, "1/10", {}),
    ("mss", 14, 1, {"moduli": (5, 7, 11)}),
    ("mss", 14, 1, {"moduli": (3, 17)}),
    ("mss", SIZE, 3, MODULAR),
    ("mss-compact", SIZE, 1, MODULAR),
    ("mss-compact", SIZE, "1/2", {"moduli": (5, 13, 47)}),
    ("mss-compact", SIZE, 5, {}),
]


def frequencies_for(size):
    generator = np.random.default_rng(size)
    yield np.full(size, 1 / size)
    yield np.eye(size)[size // 3]
    yield from generator.dirichlet(np.full(size, 0.1), size=4)


@pytest.mark.parametrize(("name", "size", "epsilon", "options"), LISTED)
def test_expected_tallies_give_back_the_histogram(name, size, epsilon, options):
    """With planned weights it is linear in the counts once block sizes are fixed, so this proves exact unbiasedness."""
    plan = make_plan(name, size, epsilon, **options)
    for frequencies in frequencies_for(size):
        estimate = plan.estimate(oracle.expected_tally(plan, frequencies), weights="planned")
        np.testing.assert_allclose(estimate.frequencies, frequencies, rtol=0, atol=1e-9)


def _planned(plan, tally):
    return plan.estimate(tally, weights="planned").frequencies


@pytest.mark.parametrize("histogram", HISTOGRAMS)
@pytest.mark.parametrize("name", catalogue())
def test_simulated_runs_have_the_right_mean(name, histogram):
    """False alarms: one in a million per test, over its 43 items."""
    runs, users = 120, 1500
    plan = make_plan(name, SIZE, 1, **(MODULAR if name.startswith("mss") else {}))
    values, truth = statistics.values_of(statistics.histogram(histogram, SIZE), users)
    mean = np.mean([_planned(plan, plan.simulate(values, seed=run)) for run in range(runs)], axis=0)
    errors = np.sqrt(statistics.stated_variances(plan.protocol, truth, users) / runs)
    assert np.abs((mean - truth) / errors).max() < statistics.normal_bound(SIZE)


@pytest.mark.parametrize("name", catalogue())
def test_reports_through_bytes_have_the_mean_of_simulated_ones(name):
    """False alarms: one in a million per test, over 43 items against the truth and 43 against the simulation."""
    runs, users = 20, 600
    plan = make_plan(name, SIZE, 1, **(MODULAR if name.startswith("mss") else {}))
    values, truth = statistics.values_of(statistics.histogram("zipf", SIZE), users)
    sent = [plan.tally(plan.client(seed=run).report_batch(values)) for run in range(runs)]
    drawn = [plan.simulate(values, seed=run + runs) for run in range(runs)]
    means = [np.mean([_planned(plan, tally) for tally in tallies], axis=0) for tallies in (sent, drawn)]
    errors = np.sqrt(statistics.stated_variances(plan.protocol, truth, users) / runs)
    bound = statistics.normal_bound(2 * SIZE)
    assert np.abs((means[0] - truth) / errors).max() < bound
    assert np.abs((means[0] - means[1]) / errors).max() < bound * 2**0.5


@pytest.mark.parametrize(
    "designs", [[Subsets(7, 3), Subsets(13, 2)], [Cyclotomic(7, 2), Cyclotomic(13, 4, with_zero=True)]]
)
def test_the_drawing_of_whole_runs_has_the_law_of_the_messages(designs):
    """The proofs of coverage draw counts instead of reports; these have exactly the probabilities of the messages."""
    name = "mss" if designs[0].kind == "subsets" else "mss-compact"
    plan = statistics.plan_of_designs(name, 15, 1, designs)
    sampler = statistics.Sampler(plan)
    for block, response in zip(sampler.blocks, plan.protocol.responses, strict=True):
        np.testing.assert_allclose(block.kept_matrix(), oracle.message_matrix(response), rtol=1e-12)
    holders = np.tile(np.arange(15) * 20, (400, 1))
    tallies = sampler.tallies(holders, np.random.default_rng(1))
    supports = np.mean([measured_supports(plan.protocol, tally) for tally in tallies], axis=0)
    means, errors = expected_supports(plan.protocol, holders[0])
    assert np.abs((supports - means) / errors).max() < statistics.normal_bound(supports.size) / 400**0.5


def measured_supports(protocol, tally):
    blocks = enumerate(protocol.responses)
    return np.concatenate([oracle.support_counts(response.design, tally.block(index)) for index, response in blocks])


def expected_supports(protocol, holders):
    """Mean and standard deviation of every block's support counts, with each user choosing one of the blocks."""
    means, errors = [], []
    for response in protocol.responses:
        residues = np.bincount(np.arange(holders.size) % response.design.points, holders, response.design.points)
        chances = np.array([response.probabilities.true, response.probabilities.false]) / len(protocol.responses)
        others = holders.sum() - residues
        means.append(residues * chances[0] + others * chances[1])
        errors.append(np.sqrt(residues * chances[0] * (1 - chances[0]) + others * chances[1] * (1 - chances[1])))
    return np.concatenate(means), np.concatenate(errors)
