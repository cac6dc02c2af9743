"""The information of counted reports, against matrices formed from every message's probability."""

import numpy as np
import oracle
import pytest
from block_information import information_of, response_of

from sunzi.client.epsilon import parse_epsilon
from sunzi.designs.choice import best_cyclotomic
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.toeplitz import fold
from sunzi.protocols.information import MessageInformation, PointInformation, block_information
from sunzi.protocols.modular_variance import BlockMoments

BLOCKS = [Subsets(7, 3), Subsets(11, 2), Singletons(7), Cyclotomic(13, 4, with_zero=True), Cyclotomic(7, 2)]
WHOLE = [Cyclotomic(13, 4, with_zero=True), Cyclotomic(31, 5), Projective(2, 3), Projective(3, 3)]


def pilots(size, seed=4):
    generator = np.random.default_rng(seed)
    yield np.full(size, 1 / size)
    yield np.eye(size)[size // 2]
    yield from generator.dirichlet(np.full(size, 0.3), size=3)


def fisher(response, pilot):
    """Σ_y P(y|·)P(y|·)ᵀ/P(y) of one report, from the list of all messages."""
    chances = oracle.message_matrix(response)[:, : pilot.size]
    return chances.T @ (chances / (chances @ pilot)[:, None])


@pytest.mark.parametrize("design", BLOCKS)
def test_the_information_of_point_counts_inverts_their_covariance(design):
    response = response_of(design)
    points, listed = design.points, design.kind != "subsets" or design.points < 10
    for pilot in pilots(points):
        # Compact designs are treated as if all subsets of their size were blocks; only those are compared.
        covariance = oracle.block_covariance(
            response, pilot, listed=listed and design.kind in ("subsets", "singletons")
        )
        found = PointInformation(BlockMoments.of(response), 1.0, pilot, points).formed()
        centred = np.eye(points) - 1 / points
        expected = np.linalg.pinv(covariance)
        np.testing.assert_allclose(centred @ found @ centred, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("design", WHOLE)
def test_the_information_of_messages_is_fishers(design):
    response = response_of(design)
    for size in (design.points, design.points - 2):
        for pilot in pilots(size):
            block = MessageInformation(design, response.odds, 50.0, pilot)
            expected = 50 * fisher(response, pilot)
            np.testing.assert_allclose(block.formed(), expected, rtol=1e-9)
            np.testing.assert_allclose(block.diagonal, np.diag(expected), rtol=1e-9)
            vector = np.random.default_rng(1).normal(size=size)
            np.testing.assert_allclose(block.apply(vector), expected @ vector, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("whole", [False, True])
def test_scores_are_unbiased(whole):
    """E r = W·g for every g, whatever the pilot is."""
    design = Cyclotomic(13, 4)
    response = response_of(design)
    for pilot in pilots(13):
        block = block_information(response, 1.0, pilot, whole)
        for truth in pilots(13, seed=8):
            chances = oracle.message_matrix(response) @ truth
            rates = response.probabilities
            shares = (design.spread(chances, 13) - rates.false) / rates.gap
            score = block.score(chances if whole else shares)
            np.testing.assert_allclose(score, block.apply(truth), atol=1e-9 * np.abs(score).max())


def dense(information):
    """T as a matrix, and V."""
    matrix = np.array([information.multiply(row) for row in np.eye(information.size)])
    return matrix, oracle.constrained_inverse(matrix)


@pytest.mark.parametrize("whole", [False, True])
def test_solutions_and_variances_of_residues(whole):
    designs, size = [best_cyclotomic(modulus, parse_epsilon(2))[0] for modulus in (13, 31, 37)], 43
    for pilot in pilots(size):
        information = information_of(designs, size, pilot, whole)
        matrix, covariance = dense(information)
        np.testing.assert_allclose(information.variances, np.diag(covariance), rtol=1e-8)
        assert information.trace() == pytest.approx(np.trace(covariance), rel=1e-8)
        truth = next(pilots(size, seed=3))
        goal = matrix @ truth + np.random.default_rng(2).normal(size=size) * np.sqrt(np.diag(matrix))
        found = information.solve(goal, np.full(size, 1 / size))
        exact = truth + covariance @ (goal - matrix @ truth)
        assert np.abs((found - exact) / np.sqrt(np.diag(covariance))).max() < 1e-3
        assert found.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("whole", [False, True])
def test_variances_with_a_wrong_pilot(whole):
    """V·Cov(Σ A_jᵀ r_j)·V; at the pilot itself it is V."""
    designs, size = [best_cyclotomic(modulus, parse_epsilon(2))[0] for modulus in (13, 31, 37)], 43
    truths = list(pilots(size, seed=8))
    for pilot, truth in zip(pilots(size), truths, strict=True):
        information = information_of(designs, size, pilot, whole)
        _, covariance = dense(information)
        np.testing.assert_allclose(information.sandwich(pilot), covariance, rtol=1e-7)
        if not whole:
            continue
        total = np.zeros((size, size))
        for design, block in zip(designs, information.blocks, strict=True):
            tiles, chances = oracle.residue_matrix(design.points, size), oracle.message_matrix(response_of(design))
            scores = np.array([block.score(message) for message in np.eye(design.message_count)]) @ tiles[: len(tiles)]
            likely = chances @ tiles @ truth
            mean = scores.T @ likely
            total += 1000 * ((scores.T * likely) @ scores - np.outer(mean, mean))
        expected = np.diag(covariance @ total @ covariance)
        np.testing.assert_allclose(information.sandwich(truth).diagonal(), expected, rtol=1e-7)


@pytest.mark.parametrize("whole", [False, True])
def test_own_responses(whole):
    """The columns of V·A_jᵀ·W_j, at the item's own residue."""
    designs, size = [Cyclotomic(13, 4), Cyclotomic(31, 5), Cyclotomic(37, 4)], 43
    for pilot in pilots(size):
        information = information_of(designs, size, pilot, whole)
        _, covariance = dense(information)
        for block, found in zip(information.blocks, information.own_responses(), strict=True):
            folded = np.array([fold(row, block.points) for row in covariance])
            exact = (folded @ block.formed())[np.arange(size), np.arange(size) % block.points]
            np.testing.assert_allclose(found, exact, atol=1e-8)


@pytest.mark.parametrize("design", WHOLE)
def test_equal_jumps_keep_squares_and_cubes(design):
    """Message y moves an estimate by 1/μ_y, up to a factor that 1{x in y}·(E − 1)/μ_y normalises, with P0·μ_y."""
    response, odds = response_of(design), response_of(design).odds
    table = oracle.incidence(design).astype(float)
    _, probability = map(float, response.message_probabilities())
    for pilot in pilots(design.points):
        mixture = 1 + (odds - 1) * table @ pilot
        rate, gap = MessageInformation(design, odds, 10.0, pilot).jump_rates()
        steps = table / mixture[:, None] / (probability * (odds - 1) * (table.T @ (1 / mixture)))
        for power in (2, 3):
            np.testing.assert_allclose(rate / gap**power, probability * mixture @ steps**power, rtol=1e-6)
