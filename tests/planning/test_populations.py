"""Simulated populations: their probabilities, their draws, and the texts that name them."""

from statistics import NormalDist

import numpy as np
import pytest

from sunzi.errors import ParameterError
from sunzi.planning.populations import UNIFORM, Population


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
