"""What a client needs of a protocol: to make reports, and to say what they cost a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..designs.response import BlockResponse
from ..domains.labels import Domain
from ..errors import PlanError
from ..randomness import WordSource
from ..reports import Report, ReportLayout


@dataclass(frozen=True)
class Protocol(ABC):
    """A randomiser for one domain size and ε.

    Subclasses are frozen dataclasses that validate in ``__post_init__`` everything that privacy depends on.
    """

    name: ClassVar[str]
    response_kind: ClassVar[type[BlockResponse]] = BlockResponse
    """The class of the block responses that a plan's parameters are read as."""

    if TYPE_CHECKING:  # at run time, dataclasses would take an inherited property for the default of a field

        @property
        def domain_size(self) -> int:
            """k, the number of values."""

        @property
        def epsilon(self) -> Fraction:
            """The privacy budget of one report."""

        @property
        def report_layout(self) -> ReportLayout:
            """How a report is laid out in bytes."""

    @abstractmethod
    def make_reports(self, indices: Sequence[Any], source: WordSource) -> list[Report]:
        """One report per index. ε-LDP for each value if the words are uniform."""

    def draw_cell(self, index: Any, source: WordSource) -> tuple[int, int] | None:  # noqa: ARG002 - for those that draw
        """The question of one report, drawn independently of the value, and the cell of the value that answers it.

        A memoising device keeps its question, and its noise for every cell. None for protocols that report on the value
        itself.
        """
        return None

    def answer(self, question: int, cell: int, source: WordSource) -> Report:  # noqa: ARG002 - for those that draw
        """One report of the cell that :meth:`draw_cell` found."""
        raise TypeError(f"{self.name} reports do not answer a question")

    @property
    def work(self) -> int:
        """What a report costs the device: the random integers that it draws and the points that it goes through, at
        most (docs/format.md, 11).
        """
        return 0

    def is_supported(self, report: Report, index: Any) -> bool | None:  # noqa: ARG002 - for those that know
        """Whether a report names the value; None if that cannot be said."""
        return None

    def naming_rates(self, report: Report) -> tuple[float, float]:  # noqa: ARG002 - for those that know
        """How often reports like this one name the value, and another value that they can tell from it."""
        return 1.0, 1.0

    @classmethod
    def check_domain(cls, domain: Domain) -> None:
        """Raise PlanError unless the protocol supports this domain."""
        if len(domain.sizes) != 1:
            raise PlanError(f"{cls.name} is for single values; for records plan tables, for texts prefixes")

    def check_attributes(self, domain: Domain) -> None:  # noqa: B027 - most protocols have nothing to check
        """Raise PlanError unless the parameters fit the domain's attributes, for protocols about records and texts."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Every integer that a client needs, as JSON values."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """The instance that a plan describes; validates everything, raises PlanError."""
