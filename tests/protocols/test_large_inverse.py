"""Variances on large domains, against those of the formed matrix."""

import numpy as np
import pytest
from block_information import information_of

from sunzi.client.epsilon import parse_epsilon
from sunzi.designs.choice import best_cyclotomic
from sunzi.protocols import information as module


@pytest.mark.parametrize(
    ("points", "whole", "tolerance"),
    [((37, 61, 83, 113, 137, 149), False, 0.06), ((37, 61, 83, 113, 137, 149), True, 0.06), ((521,), True, 0.05)],
)
def test_large_domains_are_inverted_within_a_few_per_cent(points, whole, tolerance, monkeypatch):
    designs, size = [best_cyclotomic(modulus, parse_epsilon(3))[0] for modulus in points], min(500, sum(points) - 90)
    frequencies = 1 / np.arange(1.0, size + 1) ** 1.1
    for pilot in (np.full(size, 1 / size), np.random.default_rng(5).permutation(frequencies / frequencies.sum())):
        monkeypatch.setattr(module, "_MOST_ADDITIONS", 1 << 40)
        exact = information_of(designs, size, pilot, whole, epsilon=3).variances
        monkeypatch.setattr(module, "_MOST_ADDITIONS", 0)
        found = information_of(designs, size, pilot, whole, epsilon=3).variances
        assert np.abs(found / exact - 1).max() < tolerance
        assert found.mean() == pytest.approx(exact.mean(), rel=0.02)
