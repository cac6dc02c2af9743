"""The table of protocols: one column per axis, with its heading, its meaning and its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Self

from sunzi.batch import READERS, BatchGuarantee, rounded
from sunzi.formatting import percent_of_three_digits, with_prefix
from sunzi.planning.axes import Axes


@dataclass(frozen=True)
class AxisColumn:
    """One axis in the table."""

    heading: str
    meaning: str
    text: Callable[[Axes], str]


def _detected(axes: Axes) -> str:
    return percent_of_three_digits(axes.detectable_share) if axes.detectable_share < inf else "none"


def _bits(axes: Axes) -> str:
    if axes.max_bits != axes.bits:
        return f"{axes.bits:,.0f} ({axes.max_bits:,})"
    return f"{axes.bits:,.6g}" if axes.bits < 1e6 else f"{axes.bits:,.0f}"


_ACCURACY = (
    AxisColumn(
        "error",
        "root mean squared error of all frequencies, if values are equally frequent; with --histogram skewed, if they "
        "follow Zipf's law with exponent 1.1",
        lambda axes: percent_of_three_digits(axes.mean_error),
    ),
    AxisColumn(
        "efficiency",
        "the least mean squared error of any protocol over that of this one, if values are equally frequent; at 80 % "
        "the best protocol would need 80 % of the users",
        lambda axes: percent_of_three_digits(axes.efficiency),
    ),
)
_OTHERS = (
    AxisColumn(
        "rare",
        "standard error of the frequency of a value that nobody holds",
        lambda axes: percent_of_three_digits(axes.standard_error),
    ),
    AxisColumn(
        "largest",
        "expected maximum of that error over all values",
        lambda axes: percent_of_three_digits(axes.largest_error),
    ),
    AxisColumn("detects", "the smallest frequency distinguished from 0 at 95 % confidence with 80 % power", _detected),
    AxisColumn("bits", "mean report size (and the maximum)", _bits),
    AxisColumn("tally", "memory for the counters", lambda axes: f"{with_prefix(axes.tally_bytes)}B"),
    AxisColumn(
        "work",
        "operations to decode",
        lambda axes: "-" if axes.work is None else with_prefix(axes.work).strip(),
    ),
    AxisColumn(
        "attack",
        "how often the best attacker guesses a value from its report",
        lambda axes: percent_of_three_digits(axes.attackability),
    ),
    AxisColumn(
        "push",
        "how much 1 % fake clients can add to a value",
        lambda axes: "-" if axes.push is None else percent_of_three_digits(axes.push),
    ),
)


def _central(batch: BatchGuarantee) -> AxisColumn:
    return AxisColumn(
        "central",
        "proven epsilon of a batch of all reports (and the epsilon that an attack reaches), with delta = "
        f"{batch.delta:g}, if all clients follow the plan, one person's value is replaced and no smaller "
        f"batch is published, for a reader who {READERS[batch.reader]}",
        lambda axes: "-" if axes.batch is None else _bracket(axes.batch),
    )


def _bracket(batch: BatchGuarantee) -> str:
    bound = rounded(batch.epsilon, 3, up=True)
    return bound if batch.attack_epsilon is None else f"{bound} ({rounded(batch.attack_epsilon, 3, up=False)})"


@dataclass(frozen=True)
class AxesTable:
    """The columns of a table, one per axis."""

    columns: tuple[AxisColumn, ...]

    @classmethod
    def of(cls, found: Iterable[Axes | None]) -> Self:
        """The table of these figures, with what batches reveal only where that was requested."""
        batch = next((axes.batch for axes in found if axes is not None and axes.batch is not None), None)
        return cls((*_ACCURACY, *(() if batch is None else (_central(batch),)), *_OTHERS))

    @property
    def header(self) -> list[str]:
        """The headings."""
        return ["protocol", *(column.heading for column in self.columns)]

    @property
    def legend(self) -> list[str]:
        """A sentence per column."""
        return [f"{column.heading}: {column.meaning}." for column in self.columns]

    def cells(self, protocol: str, axes: Axes | None) -> list[str]:
        """The row of a protocol, one cell per heading; dashes if it has no figures."""
        return [protocol, *("-" if axes is None else column.text(axes) for column in self.columns)]
