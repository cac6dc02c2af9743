"""The truth about small batches, by enumeration of every dataset: bounds are never below it, attacks never above."""

from itertools import combinations_with_replacement
from math import exp

import numpy as np
import pytest
from tests.support.batches import batch_laws, report_laws, sum_deltas, true_deltas

import sunzi
from sunzi.numerics.blanket import Blanket

SHARES = (0.05, 0.15, 0.3, 0.5, 0.65, 0.8, 0.95)
SETTINGS = {
    "grr of 2": ("grr", 2, {}),
    "grr of 3": ("grr", 3, {}),
    "grr of 4": ("grr", 4, {}),
    "ss of 4": ("ss", 4, {"block_size": 2}),
    "ss of 5": ("ss", 5, {"block_size": 2}),
    "pgr of 6": ("pgr", 6, {"order": 2}),
    "ss-compact of 5": ("ss-compact", 5, {"classes": 2}),
    "oue of 2": ("oue", 2, {}),
    "oue of 3": ("oue", 3, {}),
    "rappor of 2": ("rappor", 2, {}),
    "rappor of 3": ("rappor", 3, {}),
    "mss of 4": ("mss", 4, {"moduli": [2, 3, 5]}),
    "mss-compact of 5": ("mss-compact", 5, {"moduli": [3, 5]}),
}
"""As wide a choice as enumeration allows: 1,729 points with all ε and batch sizes."""


@pytest.mark.filterwarnings("ignore::sunzi.PlanWarning")
@pytest.mark.parametrize("local", [0.5, 1, 2, 4])
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_and_attacks_enclose_the_truth(setting: str, local: float) -> None:
    name, size, options = SETTINGS[setting]
    plan = sunzi.make_plan(name, size, local, **options)
    laws, blanket = report_laws(plan), plan.protocol.blanket()
    generic, clones = Blanket(blanket.odds, 1 / (blanket.odds + 1)), Blanket.of_any(blanket.odds)
    epsilons = [local * share for share in SHARES]
    for users in range(1, 6 if laws.shape[1] < 9 else 5):
        for epsilon, truth in zip(epsilons, true_deltas(laws, users, epsilons), strict=True):
            bound = blanket.largest_delta(users, epsilon)
            assert blanket.least_delta(users, epsilon) - 1e-12 <= truth <= bound + 1e-13
            assert bound <= blanket.chernoff_delta(users, epsilon) + 1e-15
            assert bound <= generic.largest_delta(users, epsilon) * (1 + 1e-8) + 1e-15
            assert generic.largest_delta(users, epsilon) <= clones.largest_delta(users, epsilon) * (1 + 1e-8)


def test_the_bound_is_reached() -> None:
    plan = sunzi.make_plan("grr", 4, 1)
    blanket = plan.protocol.blanket()
    truth = true_deltas(report_laws(plan), 5, [0.95])[0]
    assert truth == pytest.approx(blanket.largest_delta(5, 0.95), rel=1e-8)


def test_the_variation_ratio_formula_is_no_bound() -> None:
    """It lets a report that favours neither value hide among all others of that kind; but it hides only among those
    drawn from the blanket.
    """
    for name, size, local, users, epsilon, published in (
        ("grr", 4, 1, 6, 0.6, 0.010136),
        ("oue", 3, 2, 4, 1.2, 0.0296),
    ):
        plan = sunzi.make_plan(name, size, local)
        blanket = plan.protocol.blanket()
        truth = true_deltas(report_laws(plan), users, [epsilon])[0]
        formula = variation_ratio(blanket.odds, blanket.one, users, epsilon)
        assert formula == pytest.approx(published, rel=2e-3)
        assert truth > 1.2 * formula
        assert truth <= blanket.largest_delta(users, epsilon)


def variation_ratio(odds: float, one: float, users: int, epsilon: float) -> float:
    """δ of Wang et al. (VLDB 2024): the victim sends the two telling reports with probabilities odds·one and one, all
    others each with probability one; all other reports are one message.
    """
    victim = np.array([[odds * one, one, 1 - (odds + 1) * one], [one, odds * one, 1 - (odds + 1) * one]])
    others = np.array([one, one, 1 - 2 * one])
    laws = np.vstack([victim, others])
    for dataset, batch in zip(combinations_with_replacement(range(3), users - 1), batch_laws(laws, users), strict=True):
        if set(dataset) <= {2}:
            return float(np.maximum(batch[0] - exp(epsilon) * batch[1], 0).sum())
    raise AssertionError


@pytest.mark.parametrize("name", ["oue", "rappor"])
@pytest.mark.parametrize("local", [0.5, 2, 4])
def test_sums_of_bits(name: str, local: float) -> None:
    plan = sunzi.make_plan(name, 3, local)
    sums = plan.protocol.counts_blanket()
    epsilons = [local * share for share in SHARES]
    for users in (2, 3, 5, 8):
        bound, attack = sums.losses(users), sums.attack(users)
        for epsilon, truth in zip(epsilons, sum_deltas(plan, users, epsilons), strict=True):
            assert attack.delta(epsilon) - 1e-12 <= truth <= bound.delta(epsilon) + 1e-12


def test_a_figure_for_sums_is_none_for_reports() -> None:
    """The sums of bits tell far less than the reports."""
    plan = sunzi.make_plan("rappor", 100, 10)
    sums = plan.batch_guarantee(100_000, 1e-9, reader="tally")
    reports = plan.batch_guarantee(100_000, 1e-9)
    assert sums.epsilon < 0.41
    assert reports.attack is not None
    assert reports.attack > 5.2
