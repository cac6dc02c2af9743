"""An n-gram model of texts, learned from public examples: the probability of a token given the one or two before it.

Only the search uses it. A wrong prior finds fewer texts but causes no bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.domains.texts import Digits

_LARGEST_TABLE = 1 << 22
# Additive smoothing: the total weight per context of pseudocounts in proportion to the tokens' frequencies.
_SMOOTHING = 1.0
_TEXTS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class TextPrior:
    """ln P(next digit | context); a context is the last one or two digits, with 0 before the first."""

    digit_count: int
    """An exclusive upper bound of digits; 0 marks the beginning of a text."""
    memory: int
    logarithms: NDArray[np.float32]
    """For every context (rows) and digit (columns, from 1)."""

    @classmethod
    def of(cls, digits: Digits, end: int) -> TextPrior:
        """Learn from rows of digits up to ``end``."""
        count = end + 1
        memory = 2 if count**3 <= _LARGEST_TABLE else 1
        counts = np.zeros((count**memory, count))
        for start in range(0, len(digits), _TEXTS_AT_ONCE):
            rows = digits[start : start + _TEXTS_AT_ONCE].astype(np.int64)
            context = np.zeros(len(rows), dtype=np.int64)
            for column in rows.T:
                used = column > 0
                np.add.at(counts, (context[used], column[used]), 1.0)
                context = (context * count + column) % count**memory
        shares = counts[:, 1:].sum(axis=0) + 1
        smoothed = counts[:, 1:] + _SMOOTHING * shares / shares.sum()
        return cls(count, memory, np.log(smoothed / smoothed.sum(axis=1, keepdims=True)).astype(np.float32))

    def contexts(self, digits: Digits) -> Integers:
        """The context after each row of digits."""
        context = np.zeros(len(digits), dtype=np.int64)
        for column in digits.astype(np.int64).T:
            context = np.where(column > 0, self.after(context, column), context)
        return context

    def after(self, context: Integers, digit: Integers) -> Integers:
        """The context after one more digit."""
        return np.asarray((context * self.digit_count + digit) % self.digit_count**self.memory)

    def chances(self, context: Integers) -> NDArray[np.float32]:
        """ln P of every digit, by context."""
        return self.logarithms[context]
