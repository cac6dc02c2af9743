"""The table of protocols: one column per axis, with its heading, its meaning and its cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

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


COLUMNS = (
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
"""All axes, in the order of the table."""

AXES_HEADER = ("protocol", *(column.heading for column in COLUMNS))
AXES_LEGEND = tuple(f"{column.heading}: {column.meaning}." for column in COLUMNS)


def axes_cells(protocol: str, axes: Axes | None) -> list[str]:
    """The row of a protocol, one cell per heading; dashes if it has no figures."""
    return [protocol, *("-" if axes is None else column.text(axes) for column in COLUMNS)]
