from math import erfc, exp, inf, sqrt

import numpy as np
import pytest

from sunzi.numerics.blanket import Blanket
from sunzi.numerics.losses import BatchAttack, LossDistribution


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
    one = randomised_response(1)
    two = one.plus(one)
    p = exp(1) / (exp(1) + 1)
    assert one.mass == pytest.approx([1 - p, 0, p])
    assert two.delta(0.5) == pytest.approx(p**2 * (1 - exp(0.5 - 2)))
    assert two.epsilons(1e-9)[1] <= 2 * (1 + 1e-3)


@pytest.mark.parametrize(
    ("block_size", "users", "moments", "rules"),
    [
        (1, 10**6, (0.0103, 0.0288, 0.0618, 0.229), (0.0095, 0.0264, 0.0566, 0.209)),
        (18, 10**5, (0.112, 0.311, 0.669, 2.51), ()),
    ],
)
def test_composition_of_batches(
    block_size: int, users: int, moments: tuple[float, ...], rules: tuple[float, ...]
) -> None:
    """ε = 4 of 1, 7, 30 and 365 batches of 1,024 values, δ = 1e-8: by adding up losses it is smaller than by adding up
    Rényi moments, which an independent program did, and within a percent of the Gaussian rule.
    """
    losses = Blanket.of_block(1024, block_size, exp(4), 0.0).losses(users, 1e-17)
    found = [losses.times(times).epsilons(1e-8)[1] for times in (1, 7, 30, 365)]
    assert all(0.91 * moment < epsilon < moment for epsilon, moment in zip(found, moments, strict=True))
    assert all(epsilon == pytest.approx(rule, rel=1e-2) for epsilon, rule in zip(found, rules, strict=False))


def randomised_response(local: float) -> LossDistribution:
    """Its loss takes two values, which lie on the grid."""
    e = exp(local)
    return LossDistribution.of_profile(lambda epsilon: max(0.0, (e - exp(epsilon)) / (e + 1)), local, local)


@pytest.mark.parametrize("step", [0.01, 0.3])
def test_coarser_losses_tell_a_little_more(step: float) -> None:
    fine = randomised_response(step).times(9)
    coarse = fine.coarser()
    assert coarse.step == 2 * fine.step
    assert coarse.mass.sum() == pytest.approx(fine.mass.sum(), rel=1e-12)
    losses = coarse.step * (coarse.lowest + np.arange(coarse.mass.size))
    assert coarse.mass @ np.exp(-losses) == pytest.approx(1, rel=1e-7)  # it is a pair of distributions again
    for epsilon in np.linspace(0, 9 * step, 30):
        assert fine.delta(epsilon) * (1 - 1e-12) <= coarse.delta(epsilon) <= fine.delta(epsilon) + step / 2


def test_coarser_evidence_tells_a_little_less() -> None:
    generator = np.random.default_rng(3)
    fine = BatchAttack(1.0, *generator.dirichlet(np.ones(15), size=2))
    for epsilon in (0, 0.1, 0.5, 2):
        assert fine.coarser().delta(epsilon) <= fine.delta(epsilon)
    assert fine.coarser().here.sum() == pytest.approx(1)
    assert fine.plus(fine.coarser()).step == 2


def test_sums_on_coarser_grids_stay_close() -> None:
    """The same 2,000 losses with and without a limit on the number of cells."""
    one = randomised_response(0.01)
    exact = one.mass / one.mass.sum()
    total = np.ones(1)
    for _ in range(2000):
        total = np.convolve(total, exact[[0, 2]])
    losses = 0.01 * (2 * np.arange(2001) - 2000)
    limited = one.times(2000)
    assert limited.mass.size < 2**11
    for epsilon in (0.2, 1, 2, 3):
        true = float(total @ np.maximum(1 - np.exp(np.minimum(epsilon - losses, 0)), 0))
        assert true * (1 - 1e-9) <= limited.delta(epsilon) <= true * 1.01


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
