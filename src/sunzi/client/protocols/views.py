"""Several questions about one record: a report answers one of them, with the whole ε (docs/mathematics.md §13, §14).

A *view* is a public map of the record to the cells of a small table: the node of an ordered value at one level, the
values of some attributes, or a text modulo a prime. A client draws a view with public probabilities, independent of its
record, and reports the cell through a block response.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

from ..designs.response import BlockResponse
from ..errors import PlanError, shown
from ..randomness import WordSource
from ..reports import Report
from ..strict_json import integer_parameter, keys_of
from .selection import JointMessages

MOST_VIEWS = 1 << 12
SHARE_BITS = 32


@dataclass(frozen=True)
class View:
    """One question: how often it is asked, and how it is answered."""

    cells: int
    share: int
    """Out of 2^32."""
    response: BlockResponse


@dataclass(frozen=True)
class ViewsProtocol(JointMessages):
    """Views of a record, each with the whole ε; a report answers one of them.

    The selector of a report is the number of views j with share_0 + … + share_j ≤ u, u the upper 32 bits of its word.
    """

    designs: ClassVar[frozenset[str]] = frozenset({"cyclotomic", "singletons"})
    """The kinds of design that a view may have."""

    domain_size: int
    views: tuple[View, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.views) <= MOST_VIEWS:
            raise PlanError(f"{self.name} needs between 1 and {MOST_VIEWS} views, got {len(self.views)}")
        if len({view.response.epsilon for view in self.views}) != 1:
            raise PlanError("all block responses of a plan must have the same epsilon")
        for view in self.views:
            design = view.response.design
            if design.kind not in self.designs:
                raise PlanError(f"{self.name} uses the designs {sorted(self.designs)}, got {design.kind!r}")
            if design.points < view.cells:
                raise PlanError(f"a view has {view.cells} cells, but its design only {design.points} points")
            if view.share < 1:
                raise PlanError(f"the share of a view must be at least 1, got {view.share}")
        total = sum(view.share for view in self.views)
        if total != 1 << SHARE_BITS:
            raise PlanError(f"the shares of all views must add up to 2^{SHARE_BITS}, got {total}")

    @cached_property
    def responses(self) -> tuple[BlockResponse, ...]:
        """The block responses of the views."""
        return tuple(view.response for view in self.views)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(accumulate(view.share for view in self.views))

    def select(self, count: int, source: WordSource) -> list[int]:
        """Each view with its share. For exhaustive checks, words of fewer bits give shares rounded to these bits."""
        bits = source.word_bits
        return [bisect_right(self._ends, (word << SHARE_BITS) >> bits) for word in source.words(count)]

    def draw_cell(self, index: Any, source: WordSource) -> tuple[int, int]:
        """A view and the cell of the value."""
        (view,) = self.select(1, source)
        return view, self.point_of(view, index)

    def answer(self, question: int, cell: int, source: WordSource) -> Report:
        """The response of a cell to its view."""
        (payload,) = self.responses[question].make_payloads([cell], source)
        return self.numbered(question, payload)

    def parameters(self) -> dict[str, Any]:
        """The views in order."""
        listed = [
            {**self.map_of(number), "share": view.share, "response": view.response.parameters()}
            for number, view in enumerate(self.views)
        ]
        return {"views": listed}

    @abstractmethod
    def map_of(self, number: int) -> dict[str, Any]:
        """The map of a view, as a plan names it."""

    @classmethod
    def read_views(
        cls, parameters: Mapping[str, Any], name: str, epsilon: Fraction
    ) -> list[tuple[Any, int, BlockResponse]]:
        """The map, share and response of every view in a plan.

        Parameters
        ----------
        parameters: the parameters of the plan.
        name: the key of a view's map.
        epsilon: ε.
        """
        listed = parameters["views"]
        if not isinstance(listed, list) or len(listed) > MOST_VIEWS:
            raise PlanError(f"views must be a list of at most {MOST_VIEWS} views, got {shown(listed)}")
        found = []
        for each in listed:
            view = keys_of("a view", each, [name, "share", "response"])
            share = integer_parameter(view, "share", 1, 1 << SHARE_BITS)
            found.append((view[name], share, cls.response_kind.from_parameters(view["response"], epsilon)))
        return found
