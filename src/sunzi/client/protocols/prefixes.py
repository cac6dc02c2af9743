"""Open domains: views of prefixes and of whole texts, modulo primes (docs/mathematics.md §18).

Search views propose texts, count views estimate them. No report serves both, so any search is valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from ..domains.labels import Domain
from ..domains.texts import OpenDomain
from ..errors import PlanError, shown
from ..strict_json import integer_parameter, keys_of, only_parameters
from .views import View, ViewsProtocol

Role = Literal["search", "count"]

LARGEST_MODULUS = 1 << 26


@dataclass(frozen=True)
class PrefixView(View):
    """The first ``digits`` digits of a text as a number in base ``base`` modulo ``cells``."""

    digits: int
    base: int
    role: Role

    def cell_of(self, text: Sequence[int]) -> int:
        """The cell of a row of digits, which zeros follow."""
        cell = 0
        for digit in text[: self.digits]:
            if digit:
                cell = (cell * self.base + digit) % self.cells
        return cell


@dataclass(frozen=True)
class PrefixViews(ViewsProtocol):
    """Prefixes and whole texts, modulo primes."""

    name = "prefixes"
    designs = frozenset({"cyclotomic", "projective", "singletons"})
    view_kind: ClassVar[type[PrefixView]] = PrefixView

    views: tuple[PrefixView, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        depths: dict[str, set[int]] = {"search": set(), "count": set()}
        for view in self.views:
            depths[view.role].add(view.digits)
        for role, seen in depths.items():
            if not seen:
                raise PlanError(f"a plan of prefixes needs a view with the role {role}")
        whole = max(view.digits for view in self.views)
        if depths["count"] != {whole}:
            raise PlanError(f"every view that counts must see all {whole} digits of a text")
        if whole not in depths["search"]:
            raise PlanError(f"a view that searches must see all {whole} digits of a text")

    def point_of(self, selector: int, index: Any) -> int:
        """The cell of the view."""
        return self.views[selector].cell_of(index)

    def map_of(self, number: int) -> dict[str, Any]:
        """The prefix."""
        view = self.views[number]
        return {"prefix": {"digits": view.digits, "base": view.base, "modulus": view.cells, "role": view.role}}

    @classmethod
    def check_domain(cls, domain: Domain) -> None:
        """Only an open domain has prefixes."""
        if not isinstance(domain, OpenDomain):
            raise PlanError(f"prefixes needs an open domain, OpenDomain('letters', longest=12), got {domain!r}")

    def check_attributes(self, domain: Domain) -> None:
        """Check that no view sees more digits than a text has, and that count views see all."""
        assert isinstance(domain, OpenDomain), "check_domain has refused other domains"
        for view in self.views:
            if view.base < domain.end:
                raise PlanError(f"the base of a view must be at least {domain.end}, one per token, got {view.base}")
        deepest = max(view.digits for view in self.views)
        if deepest != domain.width:
            raise PlanError(f"texts have up to {domain.width} digits including their end, but the views see {deepest}")

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the views from a plan."""
        only_parameters(parameters, ["views"])
        views = []
        for each, share, response in cls.read_views(parameters, "prefix", epsilon):
            prefix = keys_of("a prefix", each, ["digits", "base", "modulus", "role"])
            if prefix["role"] not in ("search", "count"):
                raise PlanError(f"the role of a view must be search or count, got {shown(prefix['role'])}")
            modulus = integer_parameter(prefix, "modulus", 2, LARGEST_MODULUS)
            base = integer_parameter(prefix, "base", 1, modulus)
            digits = integer_parameter(prefix, "digits", 1, 1 << 11)
            views.append(cls.view_kind(modulus, share, response, digits, base, prefix["role"]))
        return cls(domain_size, tuple(views))
