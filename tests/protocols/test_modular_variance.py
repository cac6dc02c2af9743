"""The error at the flat histogram, against covariances listed report by report and dense algebra."""

from itertools import combinations
from math import exp

import numpy as np
import pytest

from sunzi import make_plan
from sunzi.protocols.modular_variance import BlockMoments, ModularVariance, flat_error

FLAT_SETTINGS = [
    ("mss", 12, 1, (5, 7, 11)),
    ("mss", 12, 3, (5, 7, 11)),
    ("mss", 10, 2, (7, 13)),
    ("mss", 16, 4, None),
    ("mss", 30, 3, None),
    ("mss", 64, 1, None),
    ("mss", 64, 5, None),
    ("mss", 64, 8, None),
    ("mss", 100, 5, (13, 37, 53, 61, 97)),
    ("mss", 211, 6, None),
    ("mss-compact", 60, 1, None),
    ("mss-compact", 100, 4, None),
]


def listed_covariance(points: int, size: int, epsilon: float, residues: np.ndarray) -> np.ndarray:
    """The covariance of one debiased report, by listing all blocks."""
    blocks = np.array([[a in block for a in range(points)] for block in combinations(range(points), size)], dtype=float)
    true = size * exp(epsilon) / (size * exp(epsilon) + points - size)
    false = (size - true) / (points - 1)
    inside = blocks[:, 0].sum()
    chances = np.where(blocks, true / inside, (1 - true) / (len(blocks) - inside)) @ residues
    debiased = (blocks - false) / (true - false)
    return (debiased.T * chances) @ debiased - np.outer(residues, residues)


def dense_error(protocol, histogram: np.ndarray) -> float:
    """The mean variance of one report about the users at hand: decoder times covariance times decoder."""
    size, weights = protocol.domain_size, protocol.planned_weights
    matrices = [np.equal.outer(np.arange(m), np.arange(size) % m).astype(float) for m in protocol.moduli]
    inverse = np.linalg.inv(sum(w * a.T @ a for w, a in zip(weights, matrices, strict=True)))
    ones = inverse.sum(axis=1)
    correction = np.eye(size) - np.outer(ones, np.ones(size)) / ones.sum()
    total = np.zeros(size)
    for response, weight, matrix in zip(protocol.responses, weights, matrices, strict=True):
        design = response.design
        covariance = listed_covariance(design.points, design.block_size, float(protocol.epsilon), matrix @ histogram)
        decoder = weight * correction @ inverse @ matrix.T
        total += len(weights) * np.einsum("ia,ab,ib->i", decoder, covariance, decoder)
    return float(np.mean(total - histogram * (1 - histogram)))


def linear_error(protocol, histogram: np.ndarray) -> float:
    """The same from the library."""
    count = len(protocol.moduli)
    variance = ModularVariance(protocol.gram, protocol.moments, protocol.planned_weights, [1 / count] * count)
    return float(np.mean(variance.full(histogram) - histogram * (1 - histogram)))


@pytest.mark.parametrize(("epsilon", "moduli"), [(1, (5, 7, 11)), (3, (5, 7, 11)), (1, (7, 13)), (2, (3, 5, 7))])
def test_errors_by_histogram_are_those_of_listed_reports(epsilon, moduli):
    size = 12
    protocol = make_plan("mss", size, epsilon, moduli=moduli).protocol
    steep = np.arange(1, size + 1) ** -1.1
    for histogram in (np.full(size, 1 / size), steep / steep.sum(), np.eye(size)[3]):
        assert linear_error(protocol, histogram) == pytest.approx(dense_error(protocol, histogram), rel=1e-9)


@pytest.mark.parametrize(("size", "epsilon"), [(5, 1), (7, 2), (11, 1), (11, 5)])
def test_a_modulus_of_the_domains_size_is_subset_selection(size, epsilon):
    alone = make_plan("mss", size, epsilon, moduli=[size])
    flat = np.full(size, 1 / size)
    assert alone.expected_mse(1) == pytest.approx(make_plan("ss", size, epsilon).expected_mse(1), rel=1e-9)
    assert alone.expected_mse(1) == pytest.approx(dense_error(alone.protocol, flat), rel=1e-9)


@pytest.mark.parametrize(("name", "size", "epsilon", "moduli"), FLAT_SETTINGS)
def test_the_flat_error_is_right_within_six_per_cent(name, size, epsilon, moduli):
    """No modulus divides these sizes, so that some residues hold one value more than others."""
    plan = make_plan(name, size, epsilon, **({} if moduli is None else {"moduli": moduli}))
    exact = linear_error(plan.protocol, np.full(size, 1 / size))
    assert 0.995 * exact < plan.expected_mse(1) < 1.06 * exact


@pytest.mark.parametrize(("size", "epsilon"), [(64, 3), (64, 5), (100, 5), (256, 5), (40, 8)])
def test_the_planned_weights_are_nearly_the_best_at_the_flat_histogram(size, epsilon):
    """Against the inverse variance at empty residues, and against weights a little off to either side."""
    protocol = make_plan("mss", size, epsilon).protocol
    flat, count = np.full(size, 1 / size), len(protocol.moduli)

    def error(weights):
        gram = type(protocol.gram)(size, protocol.moduli, weights)
        return ModularVariance(gram, protocol.moments, weights, [1 / count] * count).full(flat).mean()

    planned = protocol.planned_weights
    assert error(planned) < error(np.array([1 / moments.light for moments in protocol.moments]))
    for power in (0.8, 1.25):
        assert error(planned) < 1.005 * error(planned**power)


def test_pairs_of_values_that_share_a_residue_are_counted():
    moments = BlockMoments(points=5, light=1.0, heavy=2.0, mixed=0.0, constant=0.0)
    for size in (3, 5, 12, 20):
        shares = np.bincount(np.arange(size) % 5) / size
        assert moments.flat(size) == pytest.approx(1 + 2 * (shares @ shares))


@pytest.mark.parametrize("epsilon", [10, 20, 32])
def test_errors_stay_positive_where_hardly_any_is_left(epsilon):
    protocol = make_plan("mss", 20, epsilon, moduli=[23, 29]).protocol
    assert 0 < flat_error(protocol.gram, 20) < 1e-2
