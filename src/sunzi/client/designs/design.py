"""What a client needs of a design: a family of blocks over v points in which every point, and every pair of points,
lies in equally many blocks (docs/mathematics.md §1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self


@dataclass(frozen=True)
class Design(ABC):
    """A family of blocks of ``block_size`` points out of ``points``, and how a payload names one block.

    Subclasses are frozen dataclasses that validate their fields in ``__post_init__``: every instance is a 2-design.
    """

    kind: ClassVar[str]
    """The name in a plan's JSON."""

    if TYPE_CHECKING:  # at run time, dataclasses would take an inherited property for the default of a field

        @property
        def points(self) -> int:
            """Number of points."""

        @property
        def block_size(self) -> int:
            """Number of points in every block."""

        @property
        def bounds(self) -> tuple[int, ...]:
            """After the truth word, a report draws one uniform integer below each of these."""

        @property
        def payload_bits(self) -> int:
            """Bits of one payload."""

        @property
        def payload_limit(self) -> int | None:
            """Payloads lie in [0, payload_limit), at most 2^53; None if they are longer and checked on reading."""

    @property
    def work(self) -> int:
        """The random integers that a response draws after the truth word, and the points that it goes through."""
        return len(self.bounds)

    @abstractmethod
    def payload(self, value: int, truth: bool, variates: Sequence[int]) -> int:
        """The payload of a uniform block that contains the value (if ``truth``) or misses it: a pure function of the
        variates, which computes both branches and selects one.
        """

    @abstractmethod
    def is_member(self, payload: int, point: int) -> bool:
        """Whether the block of a payload contains a point."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What a plan records in addition to ``kind``, as JSON: integers below 2^53, strings, booleans and lists."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`parameters`; raises PlanError or ParameterError on anything that is not such a
        design.
        """


def index_bits(count: int) -> int:
    """⌈log2 count⌉, the bits of an index below ``count``."""
    return (count - 1).bit_length()
