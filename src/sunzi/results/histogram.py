"""Histograms: one frequency per value, as rows and as data frames, estimated or post-processed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, whole_number
from sunzi.display.markup import for_notebook, plain_table
from sunzi.domains.labels import Domain
from sunzi.errors import MissingExtraError
from sunzi.formatting import percent

Postprocessing = Literal["clip", "simplex", "significant", "constrained"]
POSTPROCESSING: tuple[Postprocessing, ...] = get_args(Postprocessing)


@dataclass(frozen=True)
class Row:
    """One value of a histogram. Post-processed histograms have no errors: the last three are NaN there.

    ``label`` is "index 3" where the labels are in a file that was not read.
    """

    label: str
    index: int
    frequency: float
    count: float
    standard_error: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(ABC):
    """One frequency per value: its length is the number of values, and iteration gives one row per value."""

    domain: Domain
    reports: int
    frequencies: Floats

    def __post_init__(self) -> None:
        """Take a read-only copy of the frequencies."""
        object.__setattr__(self, "frequencies", read_only(self.frequencies))

    @property
    def counts(self) -> Floats:
        """Estimated numbers of users: frequencies times reports."""
        return self.frequencies * self.reports

    @abstractmethod
    def rows(self, indices: Sequence[int] | NDArray[np.intp]) -> list[Row]:
        """The rows of these values."""

    def __len__(self) -> int:
        """The number of values."""
        return self.domain.size

    def __getitem__(self, value: object) -> Row:
        """The row of one value: a label, or an index where there are no labels. An unknown one is an error."""
        return self.rows([self.domain.exact_index(value)])[0]

    def __contains__(self, value: object) -> bool:
        """Whether a label, or an index where there are no labels, has a row."""
        return int(self.domain.locate([value])[0]) >= 0

    def __iter__(self) -> Iterator[Row]:
        """The rows of all values, in the domain's order."""
        return iter(self.rows(range(self.domain.size)))


@dataclass(frozen=True, eq=False, repr=False)
class PostprocessedHistogram(Histogram):
    """Frequencies after post-processing: easier to present, no longer unbiased, and therefore without intervals.

    ``method`` names the post-processing and ``effect`` describes its bias.
    """

    method: Postprocessing | Literal["smooth"]
    effect: str

    def rows(self, indices: Sequence[int] | NDArray[np.intp]) -> list[Row]:
        """The rows of values with these indices, without errors."""
        return [
            Row(self.domain.shown(index), int(index), float(self.frequencies[index]), float(self.counts[index]))
            for index in indices
        ]

    def top(self, number: int = 10) -> list[Row]:
        """The ``number`` most frequent values, most frequent first."""
        return self.rows(largest(self.frequencies, number))

    def to_frame(self, library: str | None = None) -> Any:
        """A pandas or polars data frame with label, frequency and count."""
        columns = {"label": labels_column(self.domain), self.method: self.frequencies, "count": self.counts}
        return data_frame(columns, library)

    def __repr__(self) -> str:
        """Size, method and effect."""
        return f"PostprocessedHistogram({self.domain.size} values, {self.method}: {self.effect})"

    def _repr_html_(self) -> str:
        """The most frequent values as a table, for notebooks."""
        rows = [(row.label, percent(row.frequency, 2), f"{row.count:,.0f}") for row in self.top()]
        content = f'{plain_table(["value", self.method, "users"], rows)}\n<p class="soft">{escape(self.effect)}.</p>'
        return for_notebook(content)


def read_only(values: Floats) -> Floats:
    """A read-only copy."""
    values = np.array(values, dtype=np.float64)
    values.setflags(write=False)
    return values


def largest(values: Floats, number: int) -> NDArray[np.intp]:
    """The indices of the largest values, the largest first."""
    return np.argsort(-values, kind="stable")[: whole_number("number", number, 0)]


def labels_column(domain: Domain) -> list[str] | Integers:
    """The labels of all values; their indices where there are none."""
    if domain.is_indices:
        return np.arange(domain.size)
    return list(domain.labels or map(domain.shown, range(domain.size)))


def data_frame(columns: dict[str, Any], library: str | None) -> Any:
    """The columns as a data frame of the requested library, or of the first one installed."""
    if library not in (None, "pandas", "polars"):
        raise ParameterError(f"library must be pandas or polars, got {library!r}")
    for name in (library,) if library else ("pandas", "polars"):
        try:
            module = __import__(name)
        except ModuleNotFoundError:
            continue
        return module.DataFrame(columns)
    raise MissingExtraError("to_frame", "frames")
