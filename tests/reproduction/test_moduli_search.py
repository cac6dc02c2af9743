"""The paper's search: its claims, and what is true of them."""

import sys
from fractions import Fraction
from math import ceil, exp, inf, log, prod
from pathlib import Path

import numpy as np
import pytest

from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError
from sunzi.designs.choice import optimal_block_size
from sunzi.planning import evaluate_moduli, search_cache
from sunzi.protocols.modular_variance import BlockMoments

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.conditioning import condition_number
from reproduction.moduli_search import PaperSearch, paper_search

from reproduction import moduli_search


@pytest.fixture(autouse=True)
def private_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(search_cache.VARIABLE, str(tmp_path / "cache"))


def dense_error(size, moduli, epsilon):
    lags = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    moments = [BlockMoments.at(modulus, optimal_block_size(modulus, epsilon), epsilon) for modulus in moduli]
    gram = sum((lags % each.points == 0) / (len(moduli) * each.light) for each in moments)
    return np.trace(np.linalg.inv(gram)) / size


@pytest.fixture(scope="module")
def found():
    return paper_search(1024, 1, seed=3)


def test_result_is_valid_and_its_error_exact(found):
    assert all(map(is_prime, found.moduli))
    assert len(set(found.moduli)) == len(found.moduli) <= 20
    assert prod(found.moduli) >= 1024
    assert sum(found.moduli) - len(found.moduli) >= 1024
    again = condition_number(1024, 1, found.moduli)
    assert found.kappa == pytest.approx(again, rel=1e-12)  # rounding of transforms depends on memory alignment
    assert found.kappa <= 10
    assert found.error == pytest.approx(dense_error(1024, found.moduli, Fraction(1)), rel=1e-8)
    assert found.error == pytest.approx(evaluate_moduli(1024, 1, "mss", found.moduli).error, rel=2e-3)
    assert not found.used_fallback
    assert found.trials >= 19


def test_statements_of_theorem_4_are_reported_beside_the_truth(found):
    count = len(found.moduli)
    assert found.t_star == ceil(log(1024) / log(1024 / (20 * count)))
    assert found.alpha == pytest.approx((20 + exp(1)) / (1 / 20 + exp(1)))
    assert found.kappa_bound == pytest.approx(found.alpha * (count + found.t_star) / (count - found.t_star))
    allowed = 10 / found.alpha
    assert found.l_theory == pytest.approx((1 + allowed) / (allowed - 1) * found.t_star)
    assert 1 <= found.alpha_true < found.alpha


def test_the_true_numbers_can_exceed_the_papers_bounds():
    found = paper_search(1024, 5)
    assert found.kappa > found.kappa_bound
    assert found.alpha_true > found.alpha


def test_bounds_are_infinite_where_the_theorem_says_nothing():
    found = paper_search(100, "1/2")
    assert found.t_star == found.kappa_bound == found.l_theory == inf  # the band reaches below 1
    assert paper_search(1024, "1/2").l_theory == inf  # alpha exceeds kappa_max


def test_seed_decides():
    assert paper_search(120, 1, seed=4) == paper_search(120, 1, seed=4)
    assert paper_search(120, 1, seed=4).moduli != paper_search(120, 1, seed=5).moduli


def test_without_trials_only_the_deterministic_moduli_are_left():
    found = paper_search(100, 1, trials=0, kappa_max=1e4, most_moduli=3)
    assert found.used_fallback
    assert found.trials == 0
    # Bumping from left to right moves a window over the primes: the first windows with sum(m - 1) >= 100.
    pair, triple = (53, 59), (31, 37, 41)
    expected = {moduli: dense_error(100, moduli, Fraction(1)) for moduli in (pair, triple)}
    assert found.moduli in expected
    assert found.error == pytest.approx(min(expected.values()), rel=1e-8)


def test_best_error_of_all_counts_wins():
    by_count = [
        paper_search(60, 1, most_moduli=most, seed=8).error  # the same draws, stopped earlier
        for most in range(2, 12)
    ]
    assert by_count == sorted(by_count, reverse=True)


def test_progress_follows_the_numbers_of_moduli():
    calls = []
    paper_search(50, 1, most_moduli=5, progress=calls.append)
    assert calls == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain_size": 1}, "domain_size must be at least 2"),
        ({"most_moduli": 1}, "most_moduli must be at least 2"),
        ({"kappa_max": 0.5}, "kappa_max must be at least 1"),
        ({"beta": 1.0}, "beta must be above 1"),
        ({"trials": -1}, "trials must be at least 0"),
        ({"kappa_max": 1.0, "trials": 2}, "raise kappa_max"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ParameterError, match=message):
        paper_search(**{"domain_size": 50, "epsilon": 1, **arguments})


def test_found_is_a_frozen_value(found):
    assert isinstance(found, PaperSearch)
    with pytest.raises(AttributeError):
        found.error = 0.0


def test_the_papers_search_is_cached(monkeypatch):
    first = paper_search(60, 1, most_moduli=6)
    monkeypatch.setattr(moduli_search, "_Finder", None)  # a second search would fail
    progress = []
    assert paper_search(60, 1, most_moduli=6, progress=progress.append) == first
    assert progress == [1.0]
    for different in ({"seed": 1}, {"beta": 19.0}, {"kappa_max": 9.0}, {"trials": 9}, {"most_moduli": 7}):
        with pytest.raises(TypeError):
            paper_search(60, 1, **{"most_moduli": 6, **different})
