"""The interface of an experiment: cells to measure, a picture, and evidence about claims of the paper.

A cell is one point of a figure, given by parameters that JSON can represent. Its result depends only on them, the seed
and the measurement's version, so finished cells can be kept and a run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from .claims import Claim, Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .table import Table

Scale = Literal["tiny", "quick", "full"]
"""``full`` is the paper's own size, ``quick`` shows every trend within minutes, ``tiny`` is for tests."""

Value = str | int | float | None
Row = dict[str, Value]


@dataclass(frozen=True)
class Cell:
    """One point to measure. ``cost`` is an estimate of its seconds, for the order of work and the time left; it is not
    part of the cell's identity.
    """

    parameters: tuple[tuple[str, Any], ...]
    cost: float = field(default=1.0, compare=False)

    @classmethod
    def of(cls, cost: float = 1.0, /, **parameters: Any) -> Cell:
        """A cell from named parameters: numbers, strings, None, or tuples of them."""
        return cls(tuple(sorted(parameters.items())), cost)

    def __getitem__(self, name: str) -> Any:
        """One parameter."""
        return dict(self.parameters)[name]

    def key(self, measurement: str, version: int, seed: int) -> str:
        """The name of a finished cell's file."""
        terms = [measurement, version, seed, self.parameters]
        return hashlib.sha256(json.dumps(terms).encode()).hexdigest()[:32]

    def seeds(self, seed: int, trials: int) -> list[list[int]]:
        """A seed for each trial, independent between trials, cells and seeds of runs."""
        text = hashlib.sha256(json.dumps(self.parameters).encode()).digest()
        words = np.frombuffer(text, dtype=np.uint32).tolist()
        children = np.random.SeedSequence([seed, *words]).spawn(trials)
        return [child.generate_state(4).tolist() for child in children]


@dataclass(frozen=True)
class Evidence:
    """What one experiment measured about one claim, whether it supports the claim, and why: first in the paper's own
    setting, then beyond it. Either part may be missing; a text without a finding is not judged.
    """

    claim: Claim
    why: str
    measured: str = ""
    finding: Finding | None = None
    beyond: str = ""
    beyond_finding: Finding | None = None


def finding(share: float) -> Finding:
    """``for`` if a claim is true of all points, ``in part`` if it is true of some."""
    if share >= 1:
        return "for"
    return "in part" if share > 0 else "against"


def finding_of(*parts: bool) -> Finding:
    """For a claim with several parts: ``for`` if all are true, ``in part`` if any is."""
    return finding(sum(parts) / len(parts))


class Experiment(ABC):
    """One figure or table of the paper."""

    name: ClassVar[str]
    """As in ``sunzi reproduce NAME``; the file has the same name, with _ for -."""
    title: ClassVar[str]
    reproduces: ClassVar[str]
    """The paper's figure, table or paragraph."""
    measurement: ClassVar[str] = ""
    """What the cells measure; experiments with the same measurement share finished cells. By default the name."""
    version: ClassVar[int] = 1
    """The version of the measurement: increment it when :meth:`measure` changes its results."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Columns of the table, in order; if empty, all."""
    alone: ClassVar[bool] = False
    """Whether cells are timed, so that nothing else may run at the same time."""

    @abstractmethod
    def cells(self, scale: Scale) -> list[Cell]:
        """The points to measure."""

    @abstractmethod
    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """Measure one point. The cell's parameters are added to every row by the runner."""

    @abstractmethod
    def draw(self, table: Table) -> Figure:
        """The picture of all rows."""

    @abstractmethod
    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Evidence about the paper's claims; at most one piece per claim."""

    def notes(self, table: Table) -> Sequence[str]:  # noqa: ARG002 - most have none
        """Paragraphs for the report: the measurement, and further findings."""
        return ()

    def key(self, cell: Cell, seed: int) -> str:
        """The name of the cell's file."""
        return cell.key(self.measurement or self.name, self.version, seed)
