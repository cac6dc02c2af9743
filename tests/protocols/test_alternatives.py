"""Formulas of other methods, against simulations of these methods."""

from fractions import Fraction

import numpy as np
import pytest
from benchmarks.record_errors import range_error
from benchmarks.record_references import HISTOGRAMS, MEANS, TABLES, pairs_of

from sunzi.numerics.dyadic import bin_energies, workload_energies
from sunzi.protocols.alternatives import ONE_HISTOGRAM, mean_alternatives, ordered_alternatives, table_alternatives

SIZE = 64
USERS, RUNS = 3000, 80


def is_near(measured, expected):
    """Within 6 standard errors and 2 %: a false alarm in 1e-8."""
    return abs(np.mean(measured) - expected) <= 6 * np.std(measured) / len(measured) ** 0.5 + 0.02 * expected


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 3])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        (ONE_HISTOGRAM, "flat histogram"),
        ("hierarchical Hadamard", "hierarchical Hadamard"),
        ("HaarHRR", "HaarHRR"),
    ],
)
def test_ranges_and_bins(name, reference, epsilon):
    generator, ranges, bins = np.random.default_rng(1), [], []
    for _ in range(RUNS):
        values = generator.integers(0, SIZE, USERS)
        errors = HISTOGRAMS[reference](values, SIZE, epsilon, generator) - 1 / SIZE
        ranges.append(range_error(errors))
        bins.append((errors**2).mean())
    for measured, energies in ((ranges, workload_energies(6)), (bins, bin_energies(6))):
        assert is_near(measured, ordered_alternatives(Fraction(epsilon), energies)[name] / USERS)


def test_levels_of_an_odd_height_end_at_single_bins():
    assert all(0 < variance < 1e4 for variance in ordered_alternatives(Fraction(1), bin_energies(5)).values())


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("name", list(MEANS))
def test_means(name, epsilon):
    generator = np.random.default_rng(1)
    spread, worst = mean_alternatives(Fraction(epsilon))[name]
    numbers = generator.uniform(-1, 1, 40_000)
    assert is_near((MEANS[name](numbers, epsilon, generator) - numbers) ** 2, spread)
    measured = [(MEANS[name](np.full(40_000, number), epsilon, generator) - number) ** 2 for number in (0.0, 1.0)]
    assert is_near(max(measured, key=np.mean), worst)


def test_laplace_needs_no_simulation():
    assert mean_alternatives(Fraction(2))["Laplace"] == (2.0, 2.0)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        (ONE_HISTOGRAM, "all combinations"),
        ("splitting epsilon", "splitting ε"),
        ("one table per user", "one pair per user"),
    ],
)
def test_tables(name, reference):
    """With three values and ε/3 = 1, splitting ε by subsets is randomised response."""
    sizes, epsilon, generator, errors = (3, 2, 3), 3, np.random.default_rng(1), []
    for _ in range(RUNS):
        columns = np.array([generator.integers(0, size, USERS) for size in sizes])
        found = TABLES[reference](columns, sizes, epsilon, generator)
        errors.append([((found[pair] - 1 / found[pair].size) ** 2).mean() for pair in pairs_of(sizes)])
    for place, pair in enumerate(pairs_of(sizes)):
        expected = table_alternatives(Fraction(epsilon), sizes, pair, 3)[name] / USERS
        assert is_near(np.array(errors)[:, place], expected)
