"""What a design owes: a family of blocks over v points in which every point, and every pair of points, lies in equally
many (docs/mathematics.md §1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.errors import PlanError
from sunzi.frozen import Frozen
from sunzi.numerics.bits import WIDEST_NARROW, index_bits
from sunzi.numerics.counters import Counters

# Payloads of a few bits travel as one array, those of thousands of bits as Python's integers.
Payloads = NDArray[np.uint64] | list[int]


class Design(Frozen, ABC):
    """A family of blocks of ``block_size`` points out of ``points``, and how a client and a server speak of one block.

    A *message* names a block; ``messages`` is an array whose first axis runs over reports. Subclasses are frozen
    values, checked when they are made: a design that exists is a 2-design.
    """

    kind: ClassVar[str]
    """The name in a plan's JSON."""

    points: int
    block_size: int
    message_count: int
    """Number of distinct messages, each naming a block; equally many contain any given point."""
    draw_bounds: NDArray[np.uint64]
    """After the truth word, a report draws one uniform integer below each of these."""

    @property
    def draw_count(self) -> int:
        """How many integers a report draws after the truth word."""
        return int(self.draw_bounds.size)

    counter_count: int
    """Number of counters that a tally of this design has."""
    counter_weight: int = 1
    """How many counters one report adds 1 to."""
    counts_blocks: ClassVar[bool] = True
    """Whether there is one counter a message, which makes the tally a sufficient statistic."""

    @abstractmethod
    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """A uniform message whose block contains the value (where ``truth``) or misses it: a pure function of the
        variates.

        Both branches are computed and one is selected, so that the time taken does not depend on the branch.
        """

    @abstractmethod
    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether each message's block contains the point beside it."""

    @abstractmethod
    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """For every point below ``limit``, how many of the counted reports name a block that contains it. Exact."""

    def block_sums(self, values: Floats) -> Floats:
        """For every message, the sum of ``values[x]`` over the points x < len(values) of its block; only where
        ``counts_blocks``.
        """
        raise TypeError(f"the {self.kind} design does not count blocks, so it has no sums over {values.size} values")

    def spread(self, weights: Floats, limit: int) -> Floats:
        """The transpose of :meth:`block_sums`: for every point below ``limit`` the weight of the messages whose block
        contains it.
        """
        raise TypeError(
            f"the {self.kind} design does not count blocks, so {weights.size} weights reach no {limit} points"
        )

    def count(self, messages: Integers) -> Counters:
        """Tally messages into ``counter_count`` counters."""
        return Counters.of_cells(self.counter_count, messages)

    def count_words(self, words: NDArray[np.uint64], values: Integers, threshold: int) -> Counters | None:  # noqa: ARG002 - for those who can
        """The counts of the responses that these rows of 64-bit words give, if there is a short cut; None if not, or
        if a word is rejected.
        """
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
        """Messages as integers of ``payload_bits`` bits; the default is for designs whose messages are numbers
        already.
        """
        if self.payload_bits <= WIDEST_NARROW:
            return messages.astype(np.uint64)
        return [int(message) for message in messages]

    def decode(self, payloads: Payloads) -> Integers:
        """The inverse of :meth:`encode`. The caller has checked that every payload is below ``payload_limit``."""
        return np.asarray(payloads, dtype=np.uint64).view(np.int64)  # below 2^53, so the same number

    @property
    def payload_limit(self) -> int:
        """Encoded messages lie in [0, payload_limit); anything else is refused."""
        return self.message_count

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Everything but ``kind`` that a plan records of this design; integers below 2^53, strings, booleans and
        lists.
        """

    @classmethod
    @abstractmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`parameters`; raises PlanError on anything that is not such a design."""

    def __eq__(self, other: object) -> bool:
        """Equal kind and parameters."""
        return isinstance(other, Design) and self.kind == other.kind and self.parameters() == other.parameters()

    def __hash__(self) -> int:
        """By kind and size."""
        return hash((self.kind, self.points, self.block_size))


def bounds(*values: int) -> NDArray[np.uint64]:
    """What ``draw_bounds`` is made of: an array that cannot be written to, since privacy rests on it."""
    result = np.array(values, dtype=np.uint64)
    result.flags.writeable = False
    return result


def integer_parameter(parameters: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """A whole number in [low, high] from a plan, or PlanError naming it."""
    value = parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"{name} must be a whole number, got {value!r}")
    if not low <= value <= high:
        raise PlanError(f"{name} must lie between {low} and {high}, got {value}")
    return value


def only_parameters(parameters: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse unknown keys: a client must not ignore what it does not understand."""
    unknown = sorted(set(parameters) - set(names))
    missing = sorted(set(names) - set(parameters))
    if unknown or missing:
        raise PlanError(f"expected exactly {sorted(names)}; unknown: {unknown}, missing: {missing}")
