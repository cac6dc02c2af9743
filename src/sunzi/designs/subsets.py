"""All subsets of w points: the design of SubsetSelection, optimal in error and long in bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import comb
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs import subsets as client
from sunzi.client.designs.subset_code import MOST_POINTS as MOST_CODED
from sunzi.client.designs.subsets import ARITHMETIC, BITMAP
from sunzi.client.errors import ReportError
from sunzi.designs.base import DecodingCost, Design, subset_first_support_shares
from sunzi.numerics import kernels
from sunzi.numerics.counters import Counters
from sunzi.numerics.subset_code import SubsetCode
from sunzi.numerics.subset_sampling import (
    select_subsets,
    split_variates,
    word_surplus,
)
from sunzi.wire import Payloads

_LONGEST_BITMAP = 1.25
"""How many times the bits of the arithmetic code a bitmap may have, to be chosen for its speed."""
_CELLS_AT_ONCE = 1 << 24
_SECONDS_PER_WORD = 2e-8
"""How long numpy takes for one random word of a response, roughly."""


@dataclass(frozen=True)
class Subsets(client.Subsets, Design):
    """The C(v,w) subsets of size w; a message is the array of its points.

    ``code`` is "arithmetic", about log2 C(v,w) bits (docs/mathematics.md §9), or "bitmap", v bits. By default it is
    arithmetic below 2^20 points, where that code ends.

    >>> design = Subsets(points=5, block_size=2)
    >>> design.points, design.message_count
    (5, 10)
    """

    counts_blocks = False

    def __post_init__(self) -> None:
        if not self.code:
            object.__setattr__(self, "code", ARITHMETIC if self.points <= MOST_CODED else BITMAP)
        super().__post_init__()

    @property
    def counter_count(self) -> int:
        """One counter per point: there are too many messages to count."""
        return self.points

    @property
    def counter_weight(self) -> int:
        """One for each point of the block."""
        return self.block_size

    @classmethod
    def smallest(cls) -> tuple[Self, ...]:
        """The designs of 2 of 5 and 2 of 3 points."""
        return cls(5, 2), cls(3, 2)

    @cached_property
    def _variate_bounds(self) -> NDArray[np.uint64]:
        """Which chosen point the value replaces, then one pick per point."""
        return np.fromiter(chain.from_iterable(self.shares), dtype=np.uint64, count=1 + self.block_size)

    @cached_property
    def _word_ends(self) -> Integers:
        """Where the variates of each word end."""
        return np.cumsum([len(share) for share in self.shares], dtype=np.int64)

    @cached_property
    def _word_surplus(self) -> NDArray[np.uint64]:
        return word_surplus(self._variate_bounds, self._word_ends)

    @cached_property
    def message_count(self) -> int:
        """C(v,w), which can have thousands of bits."""
        return comb(self.points, self.block_size)

    @cached_property
    def _words(self) -> SubsetCode:
        return SubsetCode(self.points, self.block_size)

    def every_message(self) -> Integers:
        """All combinations, in lexicographic order."""
        return np.array(list(combinations(range(self.points), self.block_size)), dtype=np.int64)

    def third_share(self, points: tuple[int, int, int]) -> float:  # noqa: ARG002 - the same for any points
        """(w−1)/(v−2)."""
        return (self.block_size - 1) / (self.points - 2)

    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """w other points by a partial shuffle; where ``truth``, the value replaces one of them."""
        split = split_variates(variates, self._variate_bounds, self._word_ends)
        return select_subsets(values, truth, split[:, 0], split[:, 1:], self.points)

    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether the message lists the point."""
        return np.any(messages == points[:, None], axis=1)

    def incidence(self, messages: Integers, limit: int | None = None) -> NDArray[np.bool_]:
        """From the points that a message lists."""
        found = np.zeros((len(messages), self.points), dtype=np.bool_)
        np.put_along_axis(found, messages, True, axis=1)
        return found[:, :limit]

    def first_support_shares(self, points: Integers) -> Floats:
        """w/(v−i)·Π_{t<i}(v−w−t)/(v−t)."""
        return subset_first_support_shares(self.points, self.block_size, points.size)

    def count(self, messages: Integers) -> Counters:
        """One counter per point; every report adds 1 to w of them."""
        return Counters.of_cells(self.points, messages.reshape(-1))

    def respond_words(self, words: NDArray[np.uint64], values: Integers, threshold: int) -> Integers | None:
        """One compiled pass over the words, where numba is installed and no subclass overrides what it replaces."""
        chosen = np.empty((values.size, self.block_size), dtype=np.int64)
        return chosen if self._sample(words, values, threshold, chosen, np.empty(0, dtype=np.int64)) else None

    def count_words(self, words: NDArray[np.uint64], values: Integers, threshold: int) -> Counters | None:
        """The same pass, counting."""
        chosen, counts = np.empty((1, self.block_size), dtype=np.int64), np.zeros(self.points, dtype=np.int64)
        return Counters(self.points, None, counts) if self._sample(words, values, threshold, chosen, counts) else None

    def _sample(
        self, words: NDArray[np.uint64], values: Integers, threshold: int, chosen: Integers, counts: Integers
    ) -> bool:
        if type(self).respond is not Subsets.respond or type(self).count is not Subsets.count:
            return False  # the compiled loop would bypass them
        compiled = kernels.load_if_worthwhile(words.size * _SECONDS_PER_WORD)
        shares = self._variate_bounds, self._word_ends, self._word_surplus
        return compiled is not None and compiled.sample_subsets(
            words, values, np.uint64(threshold), *shares, self.points, chosen, counts
        )

    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """The counters themselves."""
        return counters.part(0, limit).dense()

    def point_counts_cost(self, reports: float, limit: int) -> DecodingCost:  # noqa: ARG002 - the same for any number
        """One read per point."""
        return DecodingCost(limit, "counters")

    @property
    def reading_work(self) -> float:
        """One operation per point of a bitmap, two per point of a word, with the compiled loop."""
        return self.points * (2.0 if self.code == ARITHMETIC else 1.0)

    def best_message(self, values: Floats) -> tuple[Integers, float]:
        """The w points of the largest values."""
        largest = np.argpartition(values, values.size - self.block_size)[values.size - self.block_size :]
        return np.sort(largest).astype(np.int64), float(values[largest].sum())

    def missing_messages(self, limit: int) -> int:
        """The subsets of the points at or above ``limit``."""
        return comb(self.points - limit, self.block_size)

    def encode(self, messages: Integers) -> Payloads:
        """Words of the arithmetic code, or bitmaps."""
        if self.code == ARITHMETIC:
            return self._words.encode(messages)
        return np.packbits(self.incidence(messages), axis=1, bitorder="little")

    def decode(self, payloads: Payloads) -> Integers:
        """Subsets in ascending order; a bitmap with another number of ones is refused."""
        if self.code == ARITHMETIC:
            return self._words.decode(payloads.astype(np.uint8, copy=False))
        return np.nonzero(self._bitmaps(payloads))[1].reshape(len(payloads), self.block_size)

    def count_payloads(self, payloads: Payloads) -> Counters:
        """One pass, without a list of the points."""
        if self.code == ARITHMETIC:
            return Counters(self.points, None, self._words.count(payloads.astype(np.uint8, copy=False)))
        counts = np.zeros(self.points, dtype=np.int64)
        step = max(1, _CELLS_AT_ONCE // self.points)
        for start in range(0, len(payloads), step):
            counts += self._bitmaps(payloads[start : start + step]).sum(axis=0, dtype=np.int64)
        return Counters(self.points, None, counts)

    def _bitmaps(self, payloads: Payloads) -> NDArray[np.uint8]:
        bits = np.unpackbits(payloads.astype(np.uint8, copy=False), axis=1, count=self.points, bitorder="little")
        for number in np.count_nonzero(bits, axis=1).tolist():
            if number != self.block_size:
                raise ReportError(f"a report must name {self.block_size} points, this one names {number}")
        return bits


def quickly_read(points: int, block_size: int) -> Subsets:
    """Subsets with the bitmap where it is at most a quarter longer than the arithmetic code (up to about ε = 1.15): a
    server reads it some 50 times faster. Else with the arithmetic code, up to 2^20 points, where it ends.
    """
    design = Subsets(points, block_size)
    return Subsets(points, block_size, BITMAP) if points <= _LONGEST_BITMAP * design.payload_bits else design
