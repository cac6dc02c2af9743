"""Rows of digits as numbers modulo a prime: all ways of computing them agree with the definition."""

import numpy as np
import pytest

from sunzi.numerics.polynomial_hash import AlignedDigits, all_endings, ending_digits, extended, residues


def defined(row, base, modulus):
    """As docs/mathematics.md §18 says, in Python's integers."""
    found = 0
    for digit in row:
        found = (found * base + digit) % modulus
    return found


def ragged(generator, rows, width, most):
    digits = generator.integers(1, most + 1, (rows, width)).astype(np.uint16)
    digits[np.arange(width) >= generator.integers(0, width + 1, rows)[:, None]] = 0
    return digits


@pytest.mark.parametrize(("most", "modulus"), [(28, 597_869), (257, (1 << 26) - 5), (1, 7), (40_000, 50_021)])
def test_residues_are_the_definition(most, modulus):
    generator = np.random.default_rng(most)
    digits, base = ragged(generator, 200, 9, most), int(generator.integers(1, modulus))
    expected = [defined([digit for digit in row if digit], base, modulus) for row in digits.tolist()]
    assert residues(digits.astype(np.int64), base, modulus).tolist() == expected
    assert AlignedDigits.of(digits, most + 1).residues(base, modulus).tolist() == expected


def test_endings_extend_beginnings():
    tokens, base, modulus = 3, 11, 101
    beginnings = np.array([[1, 2], [3, 3]], dtype=np.uint16)
    endings = ending_digits(tokens, 3, np.arange(27))
    assert [tuple(row) for row in endings[:4].tolist()] == [(1, 1, 1), (1, 1, 2), (1, 1, 3), (1, 2, 1)]
    found = extended(residues(beginnings, base, modulus), all_endings(tokens, 3, base, modulus), 3, base, modulus)
    whole = [residues(np.hstack([np.tile(row, (27, 1)), endings]), base, modulus) for row in beginnings]
    assert found.tolist() == np.array(whole).tolist()
    assert ending_digits(tokens, 0, np.arange(1)).shape == (1, 0)
