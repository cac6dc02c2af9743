"""Cross tables: views of some attributes of a record (docs/mathematics.md §14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Self

from ..domains.labels import Domain
from ..domains.records import MOST_ATTRIBUTES, RecordDomain
from ..errors import PlanError, shown
from ..strict_json import integer_list, only_parameters
from .views import View, ViewsProtocol


@dataclass(frozen=True)
class TableViews(ViewsProtocol):
    """Tables of some attributes of a record."""

    name = "tables"
    view_kind: ClassVar[type[View]] = View

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if prod(self.sizes) != self.domain_size or min(self.sizes, default=0) < 2:
            raise PlanError(
                f"the sizes of the attributes are {list(self.sizes)}, but there are {self.domain_size} records"
            )
        if len(set(self.tables)) != len(self.tables):
            raise PlanError("a table occurs twice among the views")
        for view, table in zip(self.views, self.tables, strict=True):
            is_rising = all(low < high for low, high in pairwise(table))
            if not table or not is_rising or not 0 <= table[0] <= table[-1] < len(self.sizes):
                raise PlanError(
                    f"the attributes of a view must rise from 0 to {len(self.sizes) - 1}, got {list(table)}"
                )
            if view.cells != self.cells_of(table):
                raise PlanError(f"the table {list(table)} has {self.cells_of(table)} cells, got {view.cells}")

    def cells_of(self, table: tuple[int, ...]) -> int:
        """The number of combinations of these attributes."""
        return prod(self.sizes[attribute] for attribute in table)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """By how much the index of a record grows with each attribute's."""
        return tuple(prod(self.sizes[attribute + 1 :]) for attribute in range(len(self.sizes)))

    def point_of(self, selector: int, index: Any) -> int:
        """The cell of the table, numbered as records are."""
        cell = 0
        for attribute in self.tables[selector]:
            cell = cell * self.sizes[attribute] + index // self.steps[attribute] % self.sizes[attribute]
        return cell

    def parameters(self) -> dict[str, Any]:
        """The sizes of the attributes, and the views in order."""
        return {"sizes": list(self.sizes), **super().parameters()}

    def map_of(self, number: int) -> dict[str, Any]:
        """The places of the attributes."""
        return {"attributes": list(self.tables[number])}

    @classmethod
    def check_domain(cls, domain: Domain) -> None:
        """Only a domain of records has tables."""
        if not isinstance(domain, RecordDomain):
            raise PlanError(f"a plan of tables needs a domain of records, got {domain!r}")

    def check_attributes(self, domain: Domain) -> None:
        """Check that the sizes are those of the attributes."""
        if self.sizes != domain.sizes:
            raise PlanError(f"sizes must be {list(domain.sizes)}, those of the attributes, got {list(self.sizes)}")

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the views from a plan."""
        only_parameters(parameters, ["sizes", "views"])
        sizes = integer_list("sizes", parameters["sizes"], MOST_ATTRIBUTES)
        views, tables = [], []
        for each, share, response in cls.read_views(parameters, "attributes", epsilon):
            table = integer_list("attributes of a view", each, len(sizes))
            if any(not 0 <= attribute < len(sizes) for attribute in table):
                raise PlanError(f"the attributes of a view must be numbers below {len(sizes)}, got {shown(table)}")
            views.append(cls.view_kind(prod(sizes[attribute] for attribute in table), share, response))
            tables.append(tuple(table))
        return cls(domain_size, tuple(views), tuple(sizes), tuple(tables))
