"""Simulated populations: their probabilities, their draws, and the texts that name them."""

from statistics import NormalDist

import numpy as np
import pytest

from sunzi.client.errors import ParameterError
from sunzi.planning.populations import UNIFORM, Population, skewed_histogram


@pytest.mark.parametrize("text", ["uniform", "spike", "zipf:1", "zipf:2.5", "zipf:0"])
def test_populations_are_drawn_as_their_chances_say(text):
    population = Population.parse(text)
    assert str(population) == text
    chances = population.chances(30)
    assert chances.sum() == pytest.approx(1)
    drawn = np.bincount(population.draw(30, 50_000, 3), minlength=30)
    spread = np.sqrt(50_000 * chances * (1 - chances))
    assert np.all(np.abs(drawn - 50_000 * chances) <= NormalDist().inv_cdf(1 - 0.5e-6 / 30) * spread + 1)


def test_zipf_falls_by_its_power():
    chances = Population.parse("zipf:2").chances(10)
    assert chances[0] / chances[3] == pytest.approx(16)
    assert Population.parse("zipf") == Population.parse("zipf:1")


def test_draws_repeat_with_their_seed():
    first, again, other = (UNIFORM.draw(100, 50, seed).tolist() for seed in (1, 1, [1, 2]))
    assert first == again != other


@pytest.mark.parametrize("text", ["gauss", "spike:2", "zipf:", "zipf:x", "zipf:-1", "zipf:nan", ""])
def test_unknown_populations_are_refused(text):
    with pytest.raises(ParameterError, match=r"population must be|exponent must be"):
        Population.parse(text)


@pytest.mark.parametrize("size", [2, 7, 1000])
def test_the_skewed_histogram_is_a_shuffled_zipf_law(size):
    found = skewed_histogram(size)
    assert np.sort(found)[::-1] == pytest.approx(Population("zipf", 1.1).chances(size))
    assert (found == skewed_histogram(size)).all()


def test_its_order_is_fixed_and_looks_random():
    ranks = np.argsort(-skewed_histogram(1000))
    assert ranks[:5].tolist() == [410, 821, 366, 503, 254]
    assert abs(np.corrcoef(np.argsort(ranks), np.arange(1000))[0, 1]) < 0.1


def test_huge_domains_have_uniform_populations_only():
    drawn = UNIFORM.draw(5**20, 1000, seed=1)
    assert 0 <= drawn.min() < drawn.max() < 5**20
    with pytest.raises(ParameterError, match="95,367,431,640,625 values, too many for zipf:1; take a uniform"):
        Population("zipf", 1).draw(5**20, 10, seed=1)
