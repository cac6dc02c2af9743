"""Cyclotomic designs: the accuracy of all subsets in about log2(k) + 1.44·ε bits (docs/mathematics.md §2).

m prime, e | m−1, g a primitive root, C_c = {g^(c+e·i)}. The base block D is a union of classes, with or without 0; the
blocks are B(a,b) = g^a·D + b for a in [e], b in Z_m. The affine group is 2-transitive on Z_m, so this is an exact
2-design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from ..errors import ParameterError, PlanError, shown
from ..strict_json import integer_list, integer_parameter, only_parameters
from .design import Design, index_bits
from .primes import is_prime, is_primitive_root

MOST_POINTS = 1 << 26
MOST_MESSAGES = 1 << 53


@dataclass(frozen=True)
class Cyclotomic(Design):
    """The e·m payloads a·m + b, each naming the block g^a·D + b of Z_m."""

    kind = "cyclotomic"

    points: int
    classes: int
    """e, the number of cosets of e-th powers."""
    union: tuple[int, ...] = (0,)
    """The classes that the base block joins."""
    with_zero: bool = False
    """Whether the base block contains 0, too."""
    generator: int = 0
    """g, a primitive root of the prime m = ``points``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "union", tuple(self.union))
        points, classes, union = self.points, self.classes, self.union
        if points > MOST_POINTS:
            raise ParameterError(f"a cyclotomic design needs at most 2^26 points, got {points}; use 'pgr' or 'grr'")
        if points < 2 or not is_prime(points):
            raise ParameterError(f"points must be a prime, got {points}")
        if classes < 1 or (points - 1) % classes:
            raise ParameterError(f"classes must divide {points - 1}, got {classes}")
        if not union or len(set(union)) != len(union) or not all(0 <= index < classes for index in union):
            raise ParameterError(f"union must name distinct classes in [0, {classes}), got {shown(list(union))}")
        # With another generator the "classes" would have fewer points, and reports could reveal the value.
        if not is_primitive_root(self.generator, points):
            raise ParameterError(f"generator must be a primitive root of {points}, got {self.generator}")
        if classes * points >= MOST_MESSAGES:
            raise ParameterError(f"{classes} classes of {points} points make too many messages")
        if not 1 <= self.block_size < points:
            raise ParameterError(f"the block must leave out at least one of {points} points, got all of them")

    @property
    def block_size(self) -> int:
        """The joined classes, and perhaps 0."""
        return len(self.union) * ((self.points - 1) // self.classes) + int(self.with_zero)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The multiplier, a point of D, a point outside D."""
        return (self.classes, self.block_size, self.points - self.block_size)

    @property
    def payload_bits(self) -> int:
        """The bits of a·m + b."""
        return index_bits(self.payload_limit)

    @property
    def payload_limit(self) -> int:
        """The number of blocks, e·m."""
        return self.classes * self.points

    def payload(self, value: int, truth: bool, variates: Sequence[int]) -> int:
        """a uniform; d uniform in g^a·D (truth) or in the rest; b = x − d; the payload a·m + b."""
        multiplier, inside, outside = variates
        place = (self.block_size + outside, inside)[truth]
        return multiplier * self.points + (value - self._point(multiplier, place)) % self.points

    def _point(self, multiplier: int, place: int) -> int:
        """g^a times the point at a place of this list: the classes of the union, 0 if it is with them, the other
        classes by ascending number, 0 if it is not.
        """
        zero_place = self.block_size - 1 if self.with_zero else self.points - 1
        which, within = divmod(place - (place > zero_place), (self.points - 1) // self.classes)
        chosen = self._class(which % self.classes)
        power = pow(self.generator, multiplier + chosen + self.classes * within, self.points)
        return power * (place != zero_place)

    def _class(self, which: int) -> int:
        """The class at this position: first those of the union, then the others by ascending number."""
        other = which - len(self.union)
        for known in sorted(self.union):
            other += known <= other
        return other if which >= len(self.union) else self.union[which]

    def is_member(self, payload: int, point: int) -> bool:
        """Whether (x − b)/g^a is in D: e-th powers tell the class."""
        multiplier, shift = divmod(payload, self.points)
        each = (self.points - 1) // self.classes
        power = pow(point - shift, each, self.points) * pow(self.generator, -multiplier * each, self.points)
        return power % self.points in self._joined if power else self.with_zero

    @cached_property
    def _joined(self) -> frozenset[int]:
        """What the points of each joined class are to the power of (m−1)/e."""
        each = (self.points - 1) // self.classes
        return frozenset(pow(self.generator, index * each, self.points) for index in self.union)

    def parameters(self) -> dict[str, Any]:
        """The integers that fix D."""
        return {
            "points": self.points,
            "classes": self.classes,
            "union": list(self.union),
            "with_zero": self.with_zero,
            "generator": self.generator,
            "block_size": self.block_size,
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """From a plan; the block size must be what the classes give."""
        only_parameters(parameters, ["points", "classes", "union", "with_zero", "generator", "block_size"])
        points = integer_parameter(parameters, "points", 2, MOST_POINTS)
        classes = integer_parameter(parameters, "classes", 1, points)
        generator = integer_parameter(parameters, "generator", 1, points)
        union, with_zero = integer_list("union", parameters["union"], classes), parameters["with_zero"]
        if not isinstance(with_zero, bool):
            raise PlanError(f"with_zero must be true or false, got {shown(with_zero)}")
        design = cls(points, classes, tuple(union), with_zero, generator)
        if integer_parameter(parameters, "block_size", 1, points) != design.block_size:
            raise PlanError(f"block_size must be {design.block_size} for these classes, got {parameters['block_size']}")
        return design
