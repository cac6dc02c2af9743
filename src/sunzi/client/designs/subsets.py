"""All subsets of w points: the design of SubsetSelection, optimal in error and long in bits.

Position t of a list holds point t if t < x, otherwise t + 1: the v − 1 points other than x, ascending. Step i = 0, …,
w − 1 swaps positions i and i + picks[i], for picks[i] uniform below v − 1 − i. Positions 0 … w − 1 are the chosen
points. For the truth, x replaces the one at ``replaced``, uniform below w. So a lie is a uniform w-subset without x and
the truth a uniform w-subset with x, from the same number of variates and with the same work.

One random word gives several variates. In the order ``replaced``, picks[0], picks[1], …, a word takes as many of them
as keep the product of their bounds below 2^32; a uniform integer below that product, written in mixed radix with the
first variate as its most significant digit, is that many independent uniform variates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Self

from ..errors import ParameterError, whole_number
from ..strict_json import integer_parameter, only_parameters
from .design import Design
from .subset_code import MOST_POINTS as MOST_CODED
from .subset_code import decode_subset, encode_subset, word_bits

ARITHMETIC, BITMAP = "arithmetic", "bitmap"
MOST_POINTS = 1 << 24
MOST_PER_WORD = (1 << 32) - 1
"""The largest product of bounds that share one word: a word is then rejected less than once in 2^32."""
_DIGITS = bytes([*b"01"]) + bytes(254)


@dataclass(frozen=True)
class Subsets(Design):
    """The C(v,w) subsets of size w.

    ``code`` is "arithmetic", about log2 C(v,w) bits (docs/mathematics.md §9), or "bitmap", v bits.
    """

    kind = "subsets"

    points: int
    block_size: int
    code: str = ""

    def __post_init__(self) -> None:
        if not 2 <= self.points <= MOST_POINTS:
            raise ParameterError(
                f"a design of subsets needs between 2 and 2^24 points, got {self.points}; use a compact design"
            )
        object.__setattr__(self, "block_size", whole_number("block_size", self.block_size, 1, self.points - 1))
        if self.code not in (ARITHMETIC, BITMAP):
            raise ParameterError(f"code must be {ARITHMETIC!r} or {BITMAP!r}, got {self.code!r}")
        if self.code == ARITHMETIC and self.points > MOST_CODED:
            raise ParameterError(
                f"the arithmetic code supports at most {MOST_CODED} points, got {self.points}; "
                f"use code={BITMAP!r} or a compact design"
            )

    @cached_property
    def shares(self) -> tuple[tuple[int, ...], ...]:
        """For every word the bounds of the variates that it gives."""
        found: list[tuple[int, ...]] = []
        share, product = [self.block_size], self.block_size
        for bound in range(self.points - 1, self.points - 1 - self.block_size, -1):
            product *= bound
            if product > MOST_PER_WORD:
                found.append(tuple(share))
                share, product = [], bound
            share.append(bound)
        return (*found, tuple(share))

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """One for each word, which serves several variates."""
        return tuple(map(prod, self.shares))

    @property
    def work(self) -> int:
        """The points that a response shuffles, and its 1 + w variates."""
        return self.points + 1 + self.block_size

    @cached_property
    def payload_bits(self) -> int:
        """The bits of the arithmetic code, or v for the bitmap."""
        return word_bits(self.points, self.block_size) if self.code == ARITHMETIC else self.points

    @property
    def payload_limit(self) -> None:
        """None: payloads are long, and not all of them name a subset."""
        return None

    def payload(self, value: int, truth: bool, variates: Sequence[int]) -> int:
        """w other points by a partial shuffle; where ``truth``, the value replaces one of them."""
        replaced, *picks = self._variates(variates)
        order = list(range(self.points))
        del order[value]
        for place, pick in enumerate(picks):
            other = place + pick
            order[place], order[other] = order[other], order[place]
        order[replaced] = (order[replaced], value)[truth]
        members = bytearray(self.points)
        for point in order[: self.block_size]:
            members[point] = 1
        if self.code == BITMAP:
            return int(members[::-1].translate(_DIGITS), 2)
        return int.from_bytes(encode_subset(members, self.block_size, self.payload_bits), "little")

    def _variates(self, joint: Sequence[int]) -> list[int]:
        """The variates, from one integer per word: its digits in mixed radix."""
        found: list[int] = []
        for number, share in zip(joint, self.shares, strict=True):
            digits, rest = [], number
            for bound in reversed(share):
                rest, digit = divmod(rest, bound)
                digits.append(digit)
            found += reversed(digits)
        return found

    def is_member(self, payload: int, point: int) -> bool:
        """Whether the subset contains the point."""
        if self.code == BITMAP:
            return bool(payload >> point & 1)
        word = payload.to_bytes((self.payload_bits + 7) // 8, "little")
        return point in (decode_subset(word, self.points, self.block_size, self.payload_bits) or ())

    def parameters(self) -> dict[str, Any]:
        """Sizes and the name of the code."""
        return {"points": self.points, "block_size": self.block_size, "code": self.code}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Read the parameters from a plan."""
        only_parameters(parameters, ["points", "block_size", "code"])
        points = integer_parameter(parameters, "points", 2, MOST_POINTS)
        block_size = integer_parameter(parameters, "block_size", 1, points - 1)
        return cls(points, block_size, str(parameters["code"] or "none"))
