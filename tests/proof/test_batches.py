"""The truth about small batches, by enumeration of every dataset: bounds are never below it, attacks never above."""

import warnings
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import exp

import numpy as np
import pytest
from tests.support.batches import batch_law, batch_laws, number_laws, report_laws, sum_deltas, true_deltas

import sunzi
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.numerics.blanket import Blanket
from sunzi.protocols.rounding import RoundedNumbers

SHARES = (0.05, 0.15, 0.3, 0.5, 0.65, 0.8, 0.95)
SETTINGS = {
    "grr of 2": ("grr", 2, {}, 7),
    "grr of 3": ("grr", 3, {}, 7),
    "grr of 4": ("grr", 4, {}, 7),
    "grr of 5": ("grr", 5, {}, 7),
    "ss of 4": ("ss", 4, {"block_size": 2}, 7),
    "ss of 4, blocks of 3": ("ss", 4, {"block_size": 3}, 7),
    "ss of 5": ("ss", 5, {"block_size": 2}, 5),
    "ss of 5, blocks of 3": ("ss", 5, {"block_size": 3}, 5),
    "ss of 6": ("ss", 6, {"block_size": 2}, 3),
    "pgr of 3": ("pgr", 3, {"order": 2}, 7),
    "pgr of 6": ("pgr", 6, {"order": 2}, 5),
    "pgr of 7": ("pgr", 7, {"order": 2}, 5),
    "ss-compact of 3": ("ss-compact", 3, {"classes": 2}, 7),
    "ss-compact of 5": ("ss-compact", 5, {"classes": 2}, 5),
    "oue of 2": ("oue", 2, {}, 7),
    "oue of 3": ("oue", 3, {}, 7),
    "rappor of 2": ("rappor", 2, {}, 7),
    "rappor of 3": ("rappor", 3, {}, 7),
    "mss of 3": ("mss", 3, {"moduli": [2, 3]}, 7),
    "mss of 4": ("mss", 4, {"moduli": [2, 3, 5]}, 5),
    "mss of 6": ("mss", 6, {"moduli": [3, 5]}, 5),
    "mss-compact of 4": ("mss-compact", 4, {"moduli": [2, 3]}, 7),
    "mss-compact of 5": ("mss-compact", 5, {"moduli": [3, 5]}, 5),
    "mss-compact of 6": ("mss-compact", 6, {"moduli": [2, 3, 5]}, 4),
}
"""Protocol, number of values, options, and the largest batch: as far as enumeration goes in a fraction of a second."""
LOCAL = (0.5, 1, 2, 4)


def least_delta(blanket: Blanket, users: int, epsilon: float) -> float:
    """What attackers reach who know the values of all others."""
    return max(attack.delta(epsilon) for attack in blanket.attacks(users))


@cache
def enumerated(setting: str, local: float) -> tuple[Blanket, list[tuple[int, float, float]]]:
    """The blanket, and the true δ of batches of up to that many users: users, ε, δ."""
    name, size, options, most = SETTINGS[setting]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sunzi.PlanWarning)
        protocol = sunzi.make_plan(name, size, local, **options).protocol
    laws, epsilons = report_laws(protocol), [local * share for share in SHARES]
    return protocol.blanket(), [
        (users, epsilon, truth)
        for users in range(1, most + 1)
        for epsilon, truth in zip(epsilons, true_deltas(laws, users, epsilons), strict=True)
    ]


def test_how_much_is_enumerated() -> None:
    assert len(LOCAL) * len(SHARES) * sum(most for *_, most in SETTINGS.values()) == 4060


@pytest.mark.parametrize("local", LOCAL)
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_and_attacks_enclose_the_truth(setting: str, local: float) -> None:
    blanket, points = enumerated(setting, local)
    generic, clones = Blanket(blanket.odds, 1 / (blanket.odds + 1)), Blanket.of_any(blanket.odds)
    for users, epsilon, truth in points:
        bound, of_odds = (each.largest_delta(users, epsilon) for each in (blanket, generic))
        assert least_delta(blanket, users, epsilon) - 1e-12 <= truth <= bound + 1e-13
        assert bound <= blanket.chernoff_delta(users, epsilon) + 1e-15
        assert bound <= of_odds * (1 + 1e-8) + 1e-15
        assert of_odds <= clones.largest_delta(users, epsilon) * (1 + 1e-8)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_same_enumeration_refutes_the_variation_ratio_formula(setting: str) -> None:
    """It lets a report that favours neither value hide among all others of that kind, whose mass is 1 − 2α; but it
    hides only among those drawn from the blanket. With two values and one block there are no such reports.
    """
    refuted = 0
    for local in LOCAL:
        blanket, points = enumerated(setting, local)
        for users, epsilon, truth in points:
            refuted += truth > 1e-12 + variation_ratio(blanket.odds, blanket.one, users, epsilon) * (1 + 1e-9)
    assert refuted == 0 if setting == "grr of 2" else refuted > 0


ATTRIBUTES = {"a": ["x", "y"], "b": ["1", "2", "3"]}
RECORDS = {
    "ordered": sunzi.make_ordered(0, 4, 4, 2).protocol,
    "tables": sunzi.make_tables(ATTRIBUTES, [("a", "b"), ("a",)], 2).protocol,
    "tables of two values": sunzi.make_tables({"a": ["x", "y"], "b": ["1", "2"]}, [("a",), ("b",)], 2).protocol,
    "number at its points": RoundedNumbers(5, BlockResponse(Singletons(3), Fraction(2))),
    "number between points": RoundedNumbers(4, BlockResponse(Singletons(3), Fraction(2))),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_and_numbers(name: str) -> None:
    protocol = RECORDS[name]
    laws = number_laws(protocol) if name.startswith("number") else report_laws(protocol)
    blanket, epsilons = protocol.blanket(), [2 * share for share in SHARES]
    for users in (1, 2, 3, 4) if laws.shape[0] < 6 else (1, 2, 3):
        for epsilon, truth in zip(epsilons, true_deltas(laws, users, epsilons), strict=True):
            assert least_delta(blanket, users, epsilon) - 1e-12 <= truth
            assert truth <= blanket.largest_delta(users, epsilon) + 1e-13


@pytest.mark.parametrize("local", [16, 24, 32])
def test_large_epsilon(local: int) -> None:
    """Where the blanket is tiny: no report hides another, and rounding must not make δ smaller."""
    for plan in (sunzi.make_plan("grr", 2, local), sunzi.make_plan("grr", 3, local), sunzi.make_plan("oue", 2, local)):
        laws, blanket = report_laws(plan.protocol), plan.protocol.blanket()
        epsilons = [local * share for share in SHARES]
        for epsilon, truth in zip(epsilons, true_deltas(laws, 3, epsilons), strict=True):
            assert least_delta(blanket, 3, epsilon) - 1e-9 <= truth <= blanket.largest_delta(3, epsilon) + 1e-12


def test_two_batches() -> None:
    """Every pair of datasets of three users, from the joint law of both batches."""
    plan = sunzi.make_plan("grr", 3, 1)
    blanket = plan.protocol.blanket()
    bound, attacks = blanket.losses(3, 1e-12).times(2), [attack.times(2) for attack in blanket.attacks(3)]
    batches = list(batch_laws(report_laws(plan.protocol), 3))
    for epsilon in (0.2, 0.8, 1.4):
        truth = 0.0
        for first, second in product(batches, repeat=2):
            for x, other in permutations(range(3), 2):
                here, there = np.outer(first[x], second[x]), np.outer(first[other], second[other])
                truth = max(truth, float(np.maximum(here - exp(epsilon) * there, 0).sum()))
        assert max(attack.delta(epsilon) for attack in attacks) - 1e-12 <= truth <= bound.delta(epsilon)


def test_the_bound_is_reached() -> None:
    plan = sunzi.make_plan("grr", 4, 1)
    blanket = plan.protocol.blanket()
    truth = true_deltas(report_laws(plan.protocol), 5, [0.95])[0]
    assert truth == pytest.approx(blanket.largest_delta(5, 0.95), rel=1e-8)


def test_the_variation_ratio_formula_is_no_bound() -> None:
    """The numbers that the published program prints, and the truth."""
    for name, size, local, users, epsilon, published, truth in (
        ("grr", 4, 1, 6, 0.6, 0.010136, 0.012450),
        ("oue", 3, 2, 4, 1.2, 0.0296, 0.0518),
    ):
        plan = sunzi.make_plan(name, size, local)
        blanket = plan.protocol.blanket()
        formula = variation_ratio(blanket.odds, blanket.one, users, epsilon)
        assert formula == pytest.approx(published, rel=2e-3)
        found = true_deltas(report_laws(plan.protocol), users, [epsilon])[0]
        assert found == pytest.approx(truth, rel=1e-3)
        assert found <= blanket.largest_delta(users, epsilon)


def variation_ratio(odds: float, one: float, users: int, epsilon: float) -> float:
    """δ of Wang et al. (VLDB 2024): the victim sends the two telling reports with probabilities odds·one and one, all
    others each with probability one; all other reports are one message.
    """
    rest = 1 - (odds + 1) * one
    laws = np.array([[odds * one, one, rest], [one, odds * one, rest], [one, one, 1 - 2 * one]])
    here, there, _ = batch_law(laws, [2] * (users - 1))
    return float(np.maximum(here - exp(epsilon) * there, 0).sum())


@pytest.mark.parametrize("name", ["oue", "rappor"])
@pytest.mark.parametrize("local", [0.5, 2, 4])
def test_sums_of_bits(name: str, local: float) -> None:
    plan = sunzi.make_plan(name, 3, local)
    sums = plan.protocol.counts_blanket()
    epsilons = [local * share for share in SHARES]
    for users in (2, 3, 5, 8):
        bound, attack = sums.losses(users), sums.attacks(users)[0]
        for epsilon, truth in zip(epsilons, sum_deltas(plan, users, epsilons), strict=True):
            assert attack.delta(epsilon) - 1e-12 <= truth <= bound.delta(epsilon) + 1e-12


def test_a_figure_for_sums_is_none_for_reports() -> None:
    """The sums of bits tell far less than the reports: by enumeration, and by an attack on a large batch."""
    for name in ("oue", "rappor"):
        few = sunzi.make_plan(name, 3, 4)
        told = true_deltas(report_laws(few.protocol), 4, [1.2])[0]
        assert sum_deltas(few, 4, [1.2])[0] < 0.95 * told
    plan = sunzi.make_plan("rappor", 100, 10)
    sums = plan.batch_guarantee(100_000, 1e-9, reader="tally")
    reports = plan.batch_guarantee(100_000, 1e-9)
    assert sums.epsilon < 0.41
    assert reports.attack_epsilon is not None
    assert reports.attack_epsilon > 5.2
