"""Attackability equals the success of the best attacker: by listing all messages, and by simulating the attacker."""

from itertools import product
from math import exp

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import make_plan

EPSILONS = ["1/2", 1, 3, 5]
PLANNED = [
    ("grr", 7, {}),
    ("ss", 7, {}),
    ("ss", 7, {"block_size": 3}),
    ("ss", 9, {"block_size": 8}),
    ("ss-compact", 13, {"classes": 4, "points": 13}),
    ("ss-compact", 9, {"classes": 3, "points": 13}),  # truncated
    ("ss-compact", 3, {"classes": 6, "points": 31}),  # so strongly that many blocks miss the domain
    ("pgr", 13, {"order": 3}),
    ("pgr", 10, {"order": 3}),  # truncated
    ("pgr", 3, {"order": 4}),  # some hyperplanes miss the domain
    ("pgr", 5, {"order": 7}),
    ("rappor", 6, {}),
    ("oue", 6, {}),
    ("oue", 2, {}),
    ("mss", 10, {"moduli": (3, 5, 7)}),
    ("mss", 10, {"moduli": (3, 11)}),  # a modulus above the domain
    ("mss", 6, {"moduli": (2, 13, 17)}),
    ("mss-compact", 20, {"moduli": (5, 7, 13)}),
    ("mss-compact", 10, {"moduli": (3, 31)}),
]
CHOSEN = [
    ("mss", 8, [Subsets(5, 2), Subsets(13, 3)]),
    ("mss", 4, [Subsets(13, 2)]),
    ("mss-compact", 4, [Cyclotomic(31, 6), Singletons(3)]),
    ("mss-compact", 5, [Cyclotomic(29, 7, with_zero=True)]),
]


def message_table(plan):
    """P(y|x) of every message of any protocol, one row per message."""
    protocol, size = plan.protocol, plan.domain.size
    if not protocol.responses:
        bits = np.array(list(product([False, True], repeat=size)))
        rates = np.where(np.eye(size, dtype=bool), protocol.probabilities.true, protocol.probabilities.false)
        return np.where(bits[:, None, :], rates[None], 1 - rates[None]).prod(axis=2)
    blocks = oracle.blocks_of(protocol)
    rows = [oracle.message_matrix(block)[:, np.arange(size) % block.design.points] for block in blocks]
    return np.vstack(rows) / len(blocks)


def check_listed(plan):
    table = message_table(plan)
    np.testing.assert_allclose(table.sum(axis=0), 1, rtol=1e-12)
    assert plan.attackability == pytest.approx(table.max(axis=1).sum() / plan.domain.size, rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("name", "size", "options"), PLANNED)
def test_the_formula_is_the_sum_over_all_messages(name, size, options, epsilon):
    check_listed(make_plan(name, size, epsilon, **options))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("name", "size", "designs"), CHOSEN)
def test_the_formula_holds_for_designs_far_above_the_domain(name, size, designs, epsilon):
    plan = statistics.plan_of_designs(name, size, epsilon, designs)
    check_listed(plan)
    # Both terms of the formula matter: some blocks miss the domain completely.
    missing = [
        response.design.missing_messages(min(size, response.design.points)) for response in plan.protocol.responses
    ]
    assert sum(missing) > 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_closed_forms(epsilon):
    odds = exp(make_plan("grr", 2, epsilon).epsilon)
    assert make_plan("grr", 50, epsilon).attackability == pytest.approx(odds / (odds + 49))
    subsets = make_plan("ss", 50, epsilon)
    size = subsets.protocol.design.block_size
    assert subsets.attackability == pytest.approx(odds / (size * odds + 50 - size))
    modular = make_plan("mss", 1000, epsilon)
    terms = [
        response.design.points * odds / (response.design.block_size * (odds - 1) + response.design.points)
        for response in modular.protocol.responses
    ]
    assert max(modular.protocol.moduli) <= 1000
    assert modular.attackability == pytest.approx(np.mean(terms) / 1000)


@pytest.mark.parametrize(
    ("name", "size", "options"),
    [
        ("grr", 20, {}),
        ("ss", 12, {}),
        ("ss-compact", 9, {"classes": 3, "points": 13}),
        ("pgr", 17, {"order": 4}),
        ("rappor", 8, {}),
        ("oue", 8, {}),
        ("mss", 10, {"moduli": (3, 5, 7)}),
        ("mss-compact", 10, {"moduli": (3, 31)}),
    ],
)
def test_a_simulated_attacker_succeeds_as_often(name, size, options):
    """Guess the most likely value for each of 40,000 reports of the shipped randomiser; the first one wins ties.

    False alarms: one in a million per test.
    """
    games = 40_000
    plan = make_plan(name, size, 2, **options)
    secrets = np.random.default_rng(1).integers(size, size=games)
    likelihoods = likelihood_table(plan, plan.protocol.randomize(secrets, ReproducibleSource(2)), games)
    success = np.mean(np.argmax(likelihoods, axis=1) == secrets)
    error = np.sqrt(plan.attackability * (1 - plan.attackability) / games)
    assert abs(success - plan.attackability) < statistics.normal_bound(1) * error


def likelihood_table(plan, messages, games):
    """For every report and value, 1 if the report supports the value: the likelihood depends on nothing else."""
    protocol, size = plan.protocol, plan.domain.size
    table = np.zeros((games, size))
    if hasattr(protocol, "response"):
        for value in range(size):
            table[:, value] = protocol.design.contains(messages, np.full(games, value))
    elif not protocol.responses:
        # A value whose bit is set is more likely than one whose bit is not; all values with set bits are equally
        # likely.
        table = np.unpackbits(messages, axis=1, count=size, bitorder="little").astype(float)
    elif protocol.name == "mss-compact":
        starts = np.concatenate([[0], np.cumsum([response.design.message_count for response in protocol.responses])])
        for index, response in enumerate(protocol.responses):
            mine = (messages >= starts[index]) & (messages < starts[index + 1])
            table[mine] = supported(response.design, messages[mine] - starts[index], size)
    else:
        for index, (response, part) in enumerate(zip(protocol.responses, messages.parts, strict=True)):
            table[messages.selectors == index] = supported(response.design, part, size)
    return table


def supported(design, messages, size):
    columns = [design.contains(messages, np.full(len(messages), value % design.points)) for value in range(size)]
    return np.stack(columns, axis=1)
