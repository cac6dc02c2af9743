from math import erfc, exp, inf, sqrt

import numpy as np
import pytest

from sunzi.numerics.blanket import Blanket
from sunzi.numerics.losses import LossDistribution


def gaussian(mu: float, epsilon: float) -> float:
    """δ of the Gaussian mechanism with sensitivity ``mu`` standard deviations."""

    def below(x: float) -> float:
        return erfc(-x / sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("times", [1, 7, 30, 365])
def test_gaussian_losses_add_up(times: int) -> None:
    one = LossDistribution.of_profile(lambda epsilon: gaussian(0.02, epsilon), 0.18, 0.18 / 96)
    total = one.times(times)
    for share in (0.5, 2, 4):
        epsilon = share * 0.02 * sqrt(times)
        true = gaussian(0.02 * sqrt(times), epsilon)
        assert true * (1 - 1e-9) <= total.delta(epsilon) <= 1.05 * true + 1e-15


def test_randomised_response_is_exact() -> None:
    """Its loss takes two values, which lie on the grid."""
    local = 1.0
    one = LossDistribution.of_profile(lambda epsilon: max(0.0, (exp(1) - exp(epsilon)) / (exp(1) + 1)), local, local)
    two = one.plus(one)
    p = exp(1) / (exp(1) + 1)
    assert one.mass == pytest.approx([1 - p, 0, p])
    assert two.delta(0.5) == pytest.approx(p**2 * (1 - exp(0.5 - 2)))
    assert two.epsilons(1e-9)[1] <= 2 * (1 + 1e-3)


def test_composition_of_batches() -> None:
    """Within a percent of the Gaussian rule where batches are large."""
    blanket = Blanket.of_block(1024, 1, exp(4), 0.0)
    losses = blanket.losses(10**6, 1e-17)
    for times, rule in ((1, 0.0095), (7, 0.0264), (30, 0.0566), (365, 0.209)):
        assert losses.times(times).epsilons(1e-8)[1] == pytest.approx(rule, rel=2e-2)


def test_tiny_batches_by_enumeration() -> None:
    """Two batches of three users, from the joint law of both multisets."""
    e, epsilon = exp(1), 0.8
    p, q = e / (e + 2), 1 / (e + 2)
    law = np.array([[p, q, q], [q, p, q], [q, q, p]])
    counts = {}
    for first in range(3):
        for second in range(3):
            for own in range(3):
                key = tuple(np.bincount([first, second, own], minlength=3))
                chance = law[2, first] * law[2, second]
                here, there = counts.get(key, (0.0, 0.0))
                counts[key] = (here + chance * law[0, own], there + chance * law[1, own])
    pairs = np.array(list(counts.values()))
    here, there = (np.outer(pairs[:, side], pairs[:, side]).reshape(-1) for side in (0, 1))
    truth = float(np.maximum(here - exp(epsilon) * there, 0).sum())
    bound = Blanket.of_block(3, 1, e, 0.0).losses(3, 1e-12).times(2).delta(epsilon)
    assert truth <= bound <= 2 * truth


def test_unbounded_losses() -> None:
    assert LossDistribution(0.1, 0, np.array([0.5]), 0.5).epsilons(1e-3) == (inf, inf)
    assert LossDistribution(0.1, 0, np.array([1e-30, 1e-30])).times(3).mass.sum() == 0
