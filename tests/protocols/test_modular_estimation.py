"""Decoding of residues: unbiased with any weights and blocks, least squares, and options that are refused."""

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics import toeplitz
from sunzi.numerics.counters import Counters
from sunzi.plan import make_plan
from sunzi.tally import Tally

SIZE = 43
MODULAR = {"moduli": (5, 11, 17, 23)}


def frequencies_for(size):
    generator = np.random.default_rng(size)
    yield np.full(size, 1 / size)
    yield np.eye(size)[size // 3]
    yield from generator.dirichlet(np.full(size, 0.1), size=4)


@pytest.mark.parametrize("name", ["mss", "mss-compact"])
def test_the_papers_weights_are_unbiased(name):
    plan = make_plan(name, SIZE, 3, **MODULAR)
    for frequencies in frequencies_for(SIZE):
        estimate = plan.estimate(oracle.expected_tally(plan, frequencies), weights="paper")
        np.testing.assert_allclose(estimate.frequencies, frequencies, rtol=0, atol=1e-9)
        assert estimate.is_unbiased


def test_a_block_without_reports_leaves_an_unbiased_estimate():
    plan = make_plan("mss", 14, 1, moduli=(5, 7, 11))
    for frequencies in frequencies_for(14):
        full = oracle.expected_tally(plan, frequencies)
        counts = full.counts.copy()
        counts[:5] = 0
        rest = full.reports - full.block_reports[0]
        tally = Tally(full.fingerprint, full.layout, rest, Counters(counts.size, None, counts))
        np.testing.assert_allclose(plan.estimate(tally, weights="planned").frequencies, frequencies, rtol=0, atol=1e-9)


def test_the_first_decoding_of_a_plan_and_later_ones_are_the_least_squares_solution(monkeypatch):
    """The inverse is computed by iteration, as on large domains."""
    monkeypatch.setattr(toeplitz, "_LEVINSON_LIMIT", 0)
    size = 500
    plan = make_plan("mss", size, 2)
    values, _ = statistics.values_of(statistics.histogram("zipf", size), 3000)
    tally = plan.simulate(values, seed=3)
    expected = oracle.decode(plan.protocol, tally)
    first, later = (plan.estimate(tally, weights="planned").frequencies for _ in range(2))
    np.testing.assert_array_equal(first, later)
    assert np.linalg.norm(first - expected) <= 1e-9 * np.linalg.norm(expected)
    assert first.sum() == pytest.approx(1, abs=1e-12)


def test_quick_errors_are_upper_bounds_of_the_full_ones():
    plan = make_plan("mss", SIZE, 1, **MODULAR)
    tally = plan.simulate(np.arange(2000) % SIZE, seed=1)
    full, quick = plan.estimate(tally, weights="planned"), plan.estimate(tally, errors="quick")
    assert np.array_equal(full.frequencies, quick.frequencies)
    assert np.all(quick.standard_errors() >= full.standard_errors() * (1 - 1e-9))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"flavour": 1}, "mss does not accept the options {'flavour': 1}: .*flavour"),
        ({"ridge": "x"}, "ridge must be a number, got 'x'"),
        ({"ridge": float("inf")}, "ridge must be a number, got inf"),
        ({"ridge": -1}, "ridge must be at least 0"),
    ],
)
def test_options_of_estimates(options, reason):
    plan = make_plan("mss", 30, 1, moduli=[17, 19, 23])
    tally = plan.simulate(np.arange(3000) % 30, seed=1)
    with pytest.raises(ParameterError, match=reason):
        plan.estimate(tally, **options)


def test_too_few_reports_for_the_moduli():
    plan = make_plan("mss", 100, 1)
    with pytest.raises(EstimateError, match=r"only 1 of 16 moduli have reports yet, .* 100 values apart; collect more"):
        plan.estimate(plan.simulate([1], seed=1))
    assert plan.estimate(plan.simulate([1], seed=1), ridge=1.0).frequencies.shape == (100,)
