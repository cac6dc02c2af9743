"""The least-squares problem of halving levels, against dense matrices and all ranges."""

import numpy as np
import pytest

from sunzi.numerics.dyadic import Dyadic, bin_energies, level_shares, workload_energies

LEVELS = 5
SIZE = 1 << LEVELS


@pytest.fixture(scope="module")
def tree():
    return Dyadic(np.array([0.0, 0.3, 0.7, 0.1, 0.4]))


def averaging(level):
    return np.kron(np.eye(1 << level), np.ones((1, SIZE >> level)))


def gram(weights):
    return sum(weight * averaging(level).T @ averaging(level) for level, weight in enumerate(weights, start=1))


def all_ranges():
    return np.array([(low, high) for low in range(SIZE) for high in range(low + 1, SIZE + 1)]).T


def indicator(low, high):
    return np.where((np.arange(SIZE) >= low) & (np.arange(SIZE) < high), 1.0, 0.0)


def test_solving_inverts_the_matrix_on_rows_that_sum_to_0(tree):
    rows = np.random.default_rng(1).normal(size=(3, SIZE))
    np.testing.assert_allclose(
        tree.solve(rows) @ gram(tree.weights), rows - rows.mean(axis=1, keepdims=True), atol=1e-12
    )


def test_combining_levels_is_least_squares_with_sum_1(tree):
    generator = np.random.default_rng(2)
    found = [generator.dirichlet(np.ones(1 << level)) for level in range(1, LEVELS + 1)]
    combined = tree.combine([None, *found[1:]])
    # The gradient of the weighted squares is a multiple of 1, the gradient of the sum.
    pairs = zip(tree.weights, found, range(1, LEVELS + 1), strict=True)
    gradient = sum(weight * averaging(level).T @ (averaging(level) @ combined - seen) for weight, seen, level in pairs)
    assert combined.sum() == pytest.approx(1)
    assert np.ptp(gradient) < 1e-12


def test_sums_over_ranges_are_those_of_the_solved_rows(tree):
    frequencies = np.random.default_rng(3).dirichlet(np.ones(SIZE))
    low, high = all_ranges()
    sums = tree.range_sums(low, high, np.concatenate([[0.0], np.cumsum(frequencies)]))
    solved = tree.solve(np.array([indicator(*ends) for ends in zip(low, high, strict=True)]))
    for level in range(1, LEVELS + 1):
        means = tree.node_sums(solved, level) / (SIZE >> level)
        nodes = tree.node_sums(frequencies, level)
        np.testing.assert_allclose(sums.squares[:, level - 1], (means**2).sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(sums.weighted[:, level - 1], means**2 @ nodes, atol=1e-12)
        np.testing.assert_allclose(sums.means[:, level - 1], means @ nodes, atol=1e-12)
        squares = np.repeat(means**2, SIZE >> level, axis=1)
        for row, start, stop, found in zip(squares, low, high, sums.contrasts[:, level - 1], strict=True):
            inside = indicator(start, stop) == 1
            rest = row[~inside].mean() if not inside.all() else 0.0
            assert found == pytest.approx(row[inside].mean() - rest, abs=1e-12)


def test_the_workload_is_all_ranges_and_all_prefixes():
    low, high = all_ranges()
    rows = np.array([indicator(*ends) for ends in zip(low, high, strict=True)])
    norms = [((rows @ averaging(level).T) ** 2).sum(axis=1) / (SIZE >> level) for level in range(LEVELS + 1)]
    means = [(norm.mean() + norm[low == 0].mean()) / 2 for norm in norms]
    np.testing.assert_allclose(workload_energies(LEVELS), np.diff(means))


@pytest.mark.parametrize("costs", [[0.2, 0.5, 1.0, 2.0], [1.0, 0.6, 0.9, 2.0], [0.2, 0.2, 0.2, 0.2]])
def test_no_other_shares_are_better(costs):
    costs, energies = np.array(costs), workload_energies(4)

    def mean_variance(shares):
        spectrum = np.cumsum((shares / costs)[::-1])[::-1]
        return (energies / spectrum).sum()

    best = level_shares(costs, energies)
    assert best.sum() == pytest.approx(1)
    assert best.min() >= -1e-12
    generator = np.random.default_rng(4)
    for other in generator.dirichlet(np.full(4, 0.5), 2000):
        assert mean_variance(best) <= mean_variance(0.9 * best + 0.1 * other) * (1 + 1e-9)


def test_energies_of_single_bins():
    norms = [(averaging(level) ** 2).sum(axis=0).mean() / (SIZE >> level) for level in range(LEVELS + 1)]
    assert bin_energies(LEVELS) == pytest.approx(np.diff(norms))
