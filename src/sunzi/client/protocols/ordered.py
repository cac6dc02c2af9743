"""Ranges and quantiles: halving levels of an ordered domain (docs/mathematics.md §13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Self

from ..errors import PlanError, shown
from ..strict_json import only_parameters
from .views import View, ViewsProtocol


@dataclass(frozen=True)
class OrderedViews(ViewsProtocol):
    """Halving levels of an ordered domain of 2^h values: view ``level`` is the node x div 2^(h − level)."""

    name = "ordered"
    view_kind: ClassVar[type[View]] = View

    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        height = self.domain_size.bit_length() - 1
        if self.domain_size != 1 << height:
            raise PlanError(f"an ordered domain needs a power of two of bins, got {self.domain_size}")
        if any(low >= high for low, high in pairwise((0, *self.levels))) or self.levels[-1] != height:
            raise PlanError(f"levels must rise from at least 1 to {height}, got {list(self.levels)}")
        for view, level in zip(self.views, self.levels, strict=True):
            if view.cells != 1 << level:
                raise PlanError(f"level {level} has {1 << level} nodes, got {view.cells}")

    def point_of(self, selector: int, index: Any) -> int:
        """The node of the level."""
        return int(index >> (self.levels[-1] - self.levels[selector]))

    def map_of(self, number: int) -> dict[str, Any]:
        """The level."""
        return {"level": self.levels[number]}

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the views from a plan."""
        only_parameters(parameters, ["views"])
        views, levels = [], []
        for level, share, response in cls.read_views(parameters, "level", epsilon):
            if type(level) is not int or not 1 <= level <= domain_size.bit_length():
                raise PlanError(f"a level must be a whole number from 1, got {shown(level)}")
            views.append(cls.view_kind(1 << level, share, response))
            levels.append(level)
        return cls(domain_size, tuple(views), tuple(levels))
