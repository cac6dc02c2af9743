"""Maximum likelihood over all histograms, against listed messages and against a case solved by hand."""

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.designs.singletons import Singletons
from sunzi.numerics.counters import Counters
from sunzi.plan import make_plan
from sunzi.protocols.likelihood import CountedBlocks, maximum_likelihood

pytestmark = pytest.mark.slow

SIZE = 43


def log_likelihood(plan, tally, frequencies):
    """Σ_y c_y·log P(y) up to a constant, with every message listed."""
    total = 0.0
    for index, response in enumerate(oracle.blocks_of(plan.protocol)):
        residues = np.bincount(np.arange(SIZE) % response.design.points, frequencies, response.design.points)
        total += tally.block(index).dense() @ np.log(oracle.message_matrix(response) @ residues)
    return total


def likelihood_gradient(plan, tally, frequencies):
    """(1/n)·∂/∂f_x: at the maximum it is 1 where f_x > 0, and at most 1 elsewhere."""
    gradient = np.zeros(SIZE)
    for index, response in enumerate(oracle.blocks_of(plan.protocol)):
        points = response.design.points
        residues = np.bincount(np.arange(SIZE) % points, frequencies, points)
        table = oracle.message_matrix(response)
        per_residue = (tally.block(index).dense() / (table @ residues)) @ table
        gradient += per_residue[np.arange(SIZE) % points]
    return gradient / tally.reports


@pytest.mark.parametrize("histogram", ["uniform", "zipf", "spike"])
@pytest.mark.parametrize("name", ["grr", "ss-compact", "pgr", "mss-compact"])
def test_where_blocks_are_counted_the_constrained_copy_has_the_greatest_likelihood(name, histogram):
    plan = make_plan(name, SIZE, 1, **({"moduli": (7, 11, 31, 37)} if name.startswith("mss") else {}))
    values, _ = statistics.values_of(statistics.histogram(histogram, SIZE), 3000)
    tally = plan.simulate(values, seed=31)
    estimate = plan.estimate(tally)
    best = estimate.postprocess("constrained").frequencies
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1, abs=1e-9)
    reached = log_likelihood(plan, tally, best)
    assert reached >= log_likelihood(plan, tally, estimate.postprocess("simplex").frequencies)
    gradient = likelihood_gradient(plan, tally, best)
    # By concavity, no histogram has a log-likelihood larger by more than n·(max gradient − 1).
    assert tally.reports * (gradient.max() - 1) < 1
    assert best @ np.abs(gradient - 1) < 1e-3


@pytest.mark.parametrize("held", [[60, 40], [100, 0], [70, 30]])
def test_two_values_are_solved_by_hand(held):
    """P(0) = (1 + (o − 1)·f)/(o + 1) must be the share of reports that say 0, if an f in [0, 1] gives it."""
    odds = 3.0
    counters = Counters(2, None, np.array(held))
    found = maximum_likelihood([CountedBlocks(Singletons(2), counters, odds)], np.full(2, 0.5))
    share = held[0] / sum(held)
    expected = min(max((share * (odds + 1) - 1) / (odds - 1), 0), 1)
    assert found == pytest.approx([expected, 1 - expected], abs=1e-4)


def test_blocks_of_several_designs_are_fitted_together():
    """Residues mod 3 and mod 5 of a single value: together they name it, each alone does not."""
    value, odds = 7, 1e6
    blocks = [
        CountedBlocks(Singletons(modulus), Counters.of_cells(modulus, np.full(50, value % modulus)), odds)
        for modulus in (3, 5)
    ]
    assert maximum_likelihood(blocks, np.full(12, 1 / 12))[value] > 0.99
