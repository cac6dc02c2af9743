"""All subsets of w points: the design of SubsetSelection, optimal in error and long in bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.designs.base import (
    DecodingCost,
    Design,
    Payloads,
    draw_bounds_array,
    integer_parameter,
    only_parameters,
    subset_first_support_shares,
)
from sunzi.errors import ParameterError, PlanError, ReportError
from sunzi.numerics import kernels
from sunzi.numerics.bits import WIDEST_NARROW, byte_length
from sunzi.numerics.checks import whole_number
from sunzi.numerics.counters import Counters
from sunzi.numerics.subset_code import SubsetCode
from sunzi.numerics.subset_sampling import select_subsets, split_variates, variate_bounds, word_bounds, word_ends

ENUMERATIVE, BITMAP = "enumerative", "bitmap"
MOST_POINTS = 1 << 24
# Past this size ranking a subset takes tens of milliseconds, and a bitmap costs at most a few times the bits.
MOST_ENUMERATED = 1 << 15


@dataclass(frozen=True)
class Subsets(Design):
    """The C(v,w) subsets of size w; a message is the array of its points.

    ``code`` is "enumerative", ⌈log2 C(v,w)⌉ bits, or "bitmap", v bits. By default it is enumerative up to 32,768
    points, beyond which ranking a subset takes too long.
    """

    kind = "subsets"
    counts_blocks = False

    points: int
    block_size: int
    code: str = ""

    def __post_init__(self) -> None:
        if not 2 <= self.points <= MOST_POINTS:
            raise ParameterError(
                f"a design of subsets needs between 2 and 2^24 points, got {self.points}; use a compact design"
            )
        object.__setattr__(self, "block_size", whole_number("block_size", self.block_size, 1, self.points - 1))
        if not self.code:
            object.__setattr__(self, "code", ENUMERATIVE if self.points <= MOST_ENUMERATED else BITMAP)
        if self.code not in (ENUMERATIVE, BITMAP):
            raise ParameterError(f"code must be {ENUMERATIVE!r} or {BITMAP!r}, got {self.code!r}")
        if self.code == ENUMERATIVE and self.points > MOST_ENUMERATED:
            raise ParameterError(
                f"the enumerative code supports at most {MOST_ENUMERATED} points, got {self.points}; "
                f"use code={BITMAP!r} or a compact design"
            )

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
        return variate_bounds(self.points, self.block_size)

    @cached_property
    def _word_ends(self) -> Integers:
        return word_ends(self._variate_bounds)

    @cached_property
    def draw_bounds(self) -> NDArray[np.uint64]:
        """One for each word, which serves several variates."""
        return draw_bounds_array(*word_bounds(self._variate_bounds, self._word_ends))

    @cached_property
    def message_count(self) -> int:
        """C(v,w), which can have thousands of bits."""
        return comb(self.points, self.block_size)

    @cached_property
    def _ranking(self) -> SubsetCode:
        return SubsetCode(self.points, self.block_size)

    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """w other points by a partial shuffle; where ``truth``, the value replaces one of them."""
        split = split_variates(variates, self._variate_bounds, self._word_ends)
        return select_subsets(values, truth, split[:, 0], split[:, 1:], self.points)

    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether the message lists the point."""
        return np.any(messages == points[:, None], axis=1)

    def incidence(self, messages: Integers) -> NDArray[np.bool_]:
        """From the points that a message lists."""
        found = np.zeros((len(messages), self.points), dtype=np.bool_)
        np.put_along_axis(found, messages, True, axis=1)
        return found

    def first_support_shares(self, points: Integers) -> Floats:
        """w/(v−i)·Π_{t<i}(v−w−t)/(v−t)."""
        return subset_first_support_shares(self.points, self.block_size, points.size)

    def count(self, messages: Integers) -> Counters:
        """One counter per point; every report adds 1 to w of them."""
        return Counters.of_cells(self.points, messages.reshape(-1))

    def count_words(self, words: NDArray[np.uint64], values: Integers, threshold: int) -> Counters | None:
        """One compiled pass over the words, where numba is installed."""
        compiled = kernels.load_if_worthwhile(words.size)
        counts = np.zeros(self.points, dtype=np.int64)
        if compiled is None or compiled.sample_and_count(
            words, values, np.uint64(threshold), self._variate_bounds, self._word_ends, self.points, counts
        ):
            return None
        return Counters(self.points, None, counts)

    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """The counters themselves."""
        return counters.part(0, limit).dense()

    def point_counts_cost(self, reports: float, limit: int) -> DecodingCost:  # noqa: ARG002 - the same for any number
        """One read per point."""
        return DecodingCost(limit, "counters")

    def best_message(self, values: Floats) -> tuple[Integers, float]:
        """The w points of the largest values."""
        largest = np.argpartition(values, values.size - self.block_size)[values.size - self.block_size :]
        return np.sort(largest).astype(np.int64), float(values[largest].sum())

    def missing_messages(self, limit: int) -> int:
        """The subsets of the points at or above ``limit``."""
        return comb(self.points - limit, self.block_size)

    @property
    def payload_bits(self) -> int:
        """⌈log2 C(v,w)⌉, or v for the bitmap."""
        return self._ranking.bits if self.code == ENUMERATIVE else self.points

    @property
    def payload_limit(self) -> int:
        """C(v,w), or 2^v for the bitmap."""
        return self._ranking.size if self.code == ENUMERATIVE else 1 << self.points

    def encode(self, messages: Integers) -> Payloads:
        """Ranks, or bitmaps read as integers."""
        if self.code == BITMAP:
            return [_bitmap(message, self.points) for message in messages]
        ranks = self._ranking.rank_many(messages)
        return np.array(ranks, dtype=np.uint64) if self.payload_bits <= WIDEST_NARROW else ranks

    def decode(self, payloads: Payloads) -> Integers:
        """Subsets in ascending order; a bitmap with another number of ones is refused."""
        if self.code == BITMAP:
            return _read_bitmaps(payloads, self.points, self.block_size)
        return self._ranking.unrank_many([int(payload) for payload in payloads])

    def parameters(self) -> dict[str, Any]:
        """Sizes and the name of the code."""
        return {"points": self.points, "block_size": self.block_size, "code": self.code}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Read the parameters from a plan."""
        only_parameters(parameters, ["points", "block_size", "code"])
        points = integer_parameter(parameters, "points", 2, MOST_POINTS)
        block_size = integer_parameter(parameters, "block_size", 1, points - 1)
        if not parameters["code"]:
            raise PlanError(f"code must be {ENUMERATIVE!r} or {BITMAP!r}, got {parameters['code']!r}")
        try:
            return cls(points, block_size, str(parameters["code"]))
        except ParameterError as error:
            raise PlanError(str(error)) from None


def _bitmap(message: Integers, points: int) -> int:
    bits = np.zeros(points, dtype=np.uint8)
    bits[message] = 1
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def _read_bitmaps(payloads: Payloads, points: int, block_size: int) -> Integers:
    subsets = np.empty((len(payloads), block_size), dtype=np.int64)
    for row, payload in enumerate(payloads):
        raw = np.frombuffer(int(payload).to_bytes(byte_length(points), "little"), dtype=np.uint8)
        chosen = np.flatnonzero(np.unpackbits(raw, count=points, bitorder="little"))
        if chosen.size != block_size:
            raise ReportError(f"a report must name {block_size} points, this one names {chosen.size}")
        subsets[row] = chosen
    return subsets
