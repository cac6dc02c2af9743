"""Sums of multiples of vectors."""

import numpy as np
import pytest

from sunzi.numerics.scaled_sums import PIECE, ScaledSums


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
def test_a_multiple_is_added_in_place(size: int, precision: type[np.floating]) -> None:
    generator = np.random.default_rng(size)
    giver, receiver = generator.normal(size=(2, size)).astype(precision)
    given, expected = giver.copy(), receiver + precision(-2.5) * giver
    add = ScaledSums.between(giver, receiver)
    add(-2.5)
    np.testing.assert_allclose(receiver, expected, rtol=0, atol=32 * np.finfo(precision).eps)
    np.testing.assert_array_equal(giver, given)


def test_every_pair_has_its_weight() -> None:
    givers, receiver = np.eye(3), np.zeros(3)
    sums = ScaledSums(np.float64)
    for giver, weight in zip(givers, (1.0, 2.0, 4.0), strict=True):
        sums.append(giver, receiver, weight)
    sums(3.0)
    sums(-1.0)
    np.testing.assert_array_equal(receiver, [2.0, 4.0, 8.0])
