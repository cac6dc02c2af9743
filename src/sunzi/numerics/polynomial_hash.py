"""Rows of digits as numbers modulo a prime: h = 0; h = (h·b + digit) mod m for every digit (docs/mathematics.md §18).

With m below 2^26 every step stays below 2^53, so that programs whose numbers are doubles compute the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers

LARGEST_MODULUS = 1 << 26

_TABLE_SIZE = 1 << 16


def residues(digits: NDArray[Any], base: int, modulus: int) -> Integers:
    """The residue of every row; the zeros after its digits are padding."""
    found = np.zeros(len(digits), dtype=np.int64)
    for column in digits.T:
        found = np.where(column > 0, (found * base + column) % modulus, found)
    return found


@dataclass(frozen=True)
class AlignedDigits:
    """Many rows, several digits taken together and moved to the right, so that equal steps serve all rows: zeros before
    the first digit leave h at 0.
    """

    digit_count: int
    """Digits lie below this."""
    together: int
    blocks: tuple[NDArray[np.uint16], ...]

    @classmethod
    def of(cls, digits: NDArray[np.uint16], digit_count: int) -> AlignedDigits:
        """Align rows of digits below ``digit_count``."""
        together = 1
        while digit_count ** (together + 1) <= _TABLE_SIZE:
            together += 1
        rows, width = digits.shape
        padded = -(-width // together) * together
        lengths = np.count_nonzero(digits, axis=1)
        aligned = np.zeros((padded, rows), dtype=np.uint16)
        for length in np.unique(lengths).tolist():
            chosen = np.flatnonzero(lengths == length)
            for column in range(length):
                aligned[padded - length + column, chosen] = digits[chosen, column]
        blocks = []
        for place in range(0, padded, together):
            block = aligned[place]
            for column in range(1, together):  # below 2^16 by the choice of ``together``
                block = block * np.uint16(digit_count) + aligned[place + column]
            blocks.append(block)
        return cls(digit_count, together, tuple(blocks))

    def residues(self, base: int, modulus: int) -> Integers:
        """As :func:`residues`."""
        table = self._table(base, modulus)
        factor = pow(base, self.together, modulus)
        found = table[self.blocks[0]]
        for block in self.blocks[1:]:
            found = (found * factor + table[block]) % modulus
        return found

    def _table(self, base: int, modulus: int) -> Integers:
        table = np.zeros(1, dtype=np.int64)
        for _ in range(self.together):
            table = (table[:, None] * base + np.arange(self.digit_count)).reshape(-1) % modulus
        return table


def extended(residue: Integers, ends: Integers, length: int, base: int, modulus: int) -> Integers:
    """The residues of all prefixes (rows) with all endings of one length (columns), from those of each."""
    return (residue[:, None] * pow(base, length, modulus) + ends) % modulus


def all_endings(tokens: int, length: int, base: int, modulus: int) -> Integers:
    """The residues of all rows of ``length`` digits from 1 to ``tokens``, the last digit running fastest."""
    found = np.zeros(1, dtype=np.int64)
    for _ in range(length):
        found = (found[:, None] * base + np.arange(1, tokens + 1)).reshape(-1) % modulus
    return found


def ending_digits(tokens: int, length: int, places: Integers) -> NDArray[np.uint16]:
    """The digits of these places in the order of :func:`all_endings`."""
    columns: Sequence[Integers] = [places // tokens**power % tokens + 1 for power in range(length - 1, -1, -1)]
    return np.array(columns, dtype=np.uint16).reshape(length, places.size).T
