"""The interface of a design: a family of blocks over v points in which every point, and every pair of points, lies in
equally many blocks (docs/mathematics.md §1).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs import design as client
from sunzi.client.designs.design import index_bits
from sunzi.numerics.counters import Counters
from sunzi.wire import Payloads, payload_integers

READING_WORK = 8.0
"""The operations of reading and counting one integer, as measured in the time of one operation of a transform."""

_CELLS_AT_ONCE = 1 << 20
_MOST_QUESTIONS = 1 << 28
_MOST_COUNTED = 1 << 22


@dataclass(frozen=True)
class DecodingCost:
    """How much work decoding is, and by which route.

    Operations are elementary (an addition, a multiplication, a memory access in a loop); a transform of length N counts
    as N·log2 N. Work done once per plan, and standard errors, are left out. Constants differ between routes by small
    factors, so compare orders of magnitude.
    """

    operations: float
    route: str


@dataclass(frozen=True)
class Design(client.Design):
    """A family of blocks of ``block_size`` points out of ``points``, and how client and server name one block.

    A *message* names a block; ``messages`` is an array whose first axis runs over reports. Subclasses are frozen
    dataclasses that validate their fields in ``__post_init__``: every instance is a 2-design. A subclass provides
    ``kind``, ``points``, ``block_size``, ``message_count`` and ``draw_bounds`` as fields or properties, and the
    abstract methods.

    >>> from sunzi.designs import Subsets
    >>> design = Subsets(points=5, block_size=2)
    >>> design.points, design.message_count, design.contains(np.array([[0, 3]]), np.array([3])).tolist()
    (5, 10, [True])
    """

    counts_blocks: ClassVar[bool] = True
    """Whether there is one counter per message, which makes the tally a sufficient statistic."""

    if TYPE_CHECKING:  # at run time, dataclasses would take an inherited property for the default of a field

        @property
        def message_count(self) -> int:
            """Number of distinct messages, each naming a block; equally many contain any given point."""

    @cached_property
    def draw_bounds(self) -> NDArray[np.uint64]:
        """After the truth word, a report draws one uniform integer below each of these."""
        return draw_bounds_array(*self.bounds)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The same, for one report."""
        return tuple(self.draw_bounds.tolist())

    @property
    def draw_count(self) -> int:
        """How many integers a report draws after the truth word."""
        return len(self.bounds)

    def payload(self, value: int, truth: bool, variates: Sequence[int]) -> int:
        """The response to one value; designs that plans of version 1 name have their own."""
        drawn = np.array([variates], dtype=np.uint64)
        return payload_integers(self.encode(self.respond(np.array([value]), np.array([truth]), drawn)))[0]

    def is_member(self, payload: int, point: int) -> bool:
        """Whether the block of a payload contains a point."""
        return bool(self.contains(self.decode(np.array([payload], dtype=np.uint64)), np.array([point]))[0])

    @property
    def counter_count(self) -> int:
        """Number of counters in a tally of this design."""
        return self.message_count

    @property
    def counter_weight(self) -> int:
        """How many counters one report increments."""
        return 1

    @property
    def class_count(self) -> int:
        """Messages form this many runs of equal length; a report of any value falls into each with equal
        probability.
        """
        return 1

    @classmethod
    def smallest(cls) -> tuple[Self, ...]:
        """Two small designs of this kind, on different numbers of points, for exhaustive checks; empty if there are
        none.
        """
        return ()

    @abstractmethod
    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """A uniform message whose block contains the value (where ``truth``) or misses it: a pure function of the
        variates.

        Compute both branches and select one, so that the time taken does not depend on the branch.
        """

    @abstractmethod
    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether each message's block contains the point in the same row."""

    def incidence(self, messages: Integers, limit: int | None = None) -> NDArray[np.bool_]:
        """Whether each message's block (row) contains each point (column); of all points, or those below ``limit``."""
        columns = self.points if limit is None else limit
        found = np.empty((len(messages), columns), dtype=np.bool_)
        step = max(1, _CELLS_AT_ONCE // columns)
        for start in range(0, len(messages), step):
            part = messages[start : start + step]
            points = np.tile(np.arange(columns), len(part))
            contained = self.contains(np.repeat(part, columns, axis=0), points)
            found[start : start + step] = contained.reshape(len(part), columns)
        return found

    def first_support_shares(self, points: Integers) -> Floats | None:
        """For the i-th of these distinct points, the share of messages that contain it and none before it.

        Exact, by asking every message; None if there are too many.
        """
        if self.message_count * min(points.size, self.points / self.block_size) > _MOST_QUESTIONS:
            return None
        rest = self.every_message()
        counts = []
        for point in points.tolist():
            contained = self.contains(rest, np.full(len(rest), point))
            counts.append(int(np.count_nonzero(contained)))
            rest = rest[~contained]
        return np.array(counts) / self.message_count

    def third_share(self, points: tuple[int, int, int]) -> float:
        """Among the messages whose block contains the first point and not the second, the share that contain the third;
        or more, where that would take too long to count.
        """
        if self.message_count > _MOST_COUNTED:
            return 1.0
        messages = self.every_message()
        first, second, third = (self.contains(messages, np.full(len(messages), point)) for point in points)
        return float(np.count_nonzero(first & ~second & third) / np.count_nonzero(first & ~second))

    def every_message(self) -> Integers:
        """All messages, each once; only for small designs."""
        return np.arange(self.message_count)

    @abstractmethod
    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """For every point below ``limit``, how many of the counted reports name a block that contains it. Exact."""

    def point_counts_cost(self, reports: float, limit: int) -> DecodingCost | None:  # noqa: ARG002 - for designs that know
        """The cost of :meth:`point_counts` for a tally of about ``reports`` reports; None if unknown."""
        return None

    def best_message(self, values: Floats) -> tuple[Integers, float]:
        """A message whose block has the largest sum of ``values``, and that sum."""
        sums = self.block_sums(values)
        message = int(np.argmax(sums))
        return np.array(message, dtype=np.int64), float(sums[message])

    def block_sums(self, values: Floats) -> Floats:  # noqa: ARG002 - for designs that count blocks
        """For every message, the sum of ``values[x]`` over the points x < len(values) of its block; only where
        ``counts_blocks``.
        """
        raise TypeError(f"the {self.kind} design does not count blocks, so block sums are unavailable")

    def spread(self, weights: Floats, limit: int) -> Floats:  # noqa: ARG002 - for designs that count blocks
        """The transpose of :meth:`block_sums`: for every point below ``limit`` the weight of the messages whose block
        contains it.
        """
        raise TypeError(f"the {self.kind} design does not count blocks, so block sums are unavailable")

    def count(self, messages: Integers) -> Counters:
        """Tally messages into ``counter_count`` counters."""
        return Counters.of_cells(self.counter_count, messages)

    def count_payloads(self, payloads: Payloads) -> Counters:
        """The counts of encoded messages; override it where there is a faster way than decoding them first."""
        return self.count(self.decode(payloads))

    def respond_words(self, words: NDArray[np.uint64], values: Integers, threshold: int) -> Integers | None:  # noqa: ARG002 - for designs that can
        """The responses to these rows of 64-bit words, where there is a fast path; None where there is none, or if a
        word is rejected.
        """
        return None

    def count_words(self, words: NDArray[np.uint64], values: Integers, threshold: int) -> Counters | None:  # noqa: ARG002 - for designs that can
        """The counts of these responses, under the same conditions."""
        return None

    def missing_messages(self, limit: int) -> int:
        """N⁰: the messages whose block contains no point below ``limit`` (docs/mathematics.md §4)."""
        if self.points - limit < self.block_size:
            return 0
        return int(np.count_nonzero(self.block_sums(np.ones(limit)) < 0.5))

    @property
    def payload_bits(self) -> int:
        """Bits of one encoded message: exactly ⌈log2 message_count⌉ unless the design says otherwise."""
        return index_bits(self.message_count)

    def encode(self, messages: Integers) -> Payloads:
        """Messages as payloads of ``payload_bits`` bits; by default a message is its own number."""
        return messages.astype(np.uint64)

    def decode(self, payloads: Payloads) -> Integers:
        """The inverse of :meth:`encode`. The caller has checked that integers are below ``payload_limit``; payloads
        that are bytes are checked here, and raise ReportError if no client sends them.
        """
        return np.asarray(payloads, dtype=np.uint64).view(np.int64)  # below 2^53, so the same number

    @property
    def payload_limit(self) -> int | None:
        """Encoded messages lie in [0, payload_limit), at most 2^53; None if they are rows of bytes."""
        return self.message_count

    @property
    def reading_work(self) -> float:
        """Operations of reading one report and counting it, in the unit of :class:`DecodingCost`: for an integer, a few
        steps of unpacking, a comparison and a counter.
        """
        return READING_WORK


def draw_bounds_array(*values: int) -> NDArray[np.uint64]:
    """A read-only array for :attr:`Design.draw_bounds`; read-only because privacy depends on it.

    Parameters
    ----------
    values: the bound of every variate that a response draws.

    >>> draw_bounds_array(3, 7)
    array([3, 7], dtype=uint64)
    """
    result = np.array(values, dtype=np.uint64)
    result.flags.writeable = False
    return result


def subset_first_support_shares(points: int, block_size: int, places: int) -> Floats:
    """w/(v−i)·Π_{t<i}(v−w−t)/(v−t): :meth:`Design.first_support_shares` of all subsets of w out of v points."""
    place = np.arange(places, dtype=np.float64)
    missed = np.maximum((points - block_size - place) / (points - place), 0.0)
    none_before = np.concatenate([[1.0], np.cumprod(missed)[:-1]])
    return np.asarray(none_before * np.minimum(block_size / (points - place), 1.0))
