"""The axes of a plan as cells of a table for a person."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sunzi.planning.axes import Axes

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

LEGEND = (
    "error: standard error of the share of a value that nobody holds, and the largest to expect among all values.",
    "detects: the smallest share told from 0 with 95 % confidence in 80 % of all collections.",
    "bits: of a report, in the mean (and at most). tally: memory for the counters. work: operations to decode.",
    "attack: how often the best attacker guesses a value from its report. push: how far 1 % of liars raise a value.",
)


def axes_header() -> list[str]:
    """Column names, the protocol's first."""
    return ["protocol", "error", "largest", "detects", "bits", "tally", "work", "attack", "push"]


def axes_cells(axes: Axes) -> list[str]:
    """One row."""
    mean = f"{axes.bits:,.6g}" if axes.bits < 1e6 else f"{axes.bits:,.0f}"
    return [
        axes.protocol,
        share(axes.standard_error),
        share(axes.largest_error),
        share(axes.detectable_share) if axes.detectable_share < inf else "none",
        mean if axes.max_bits == axes.bits else f"{axes.bits:,.0f} ({axes.max_bits:,})",
        f"{with_unit(axes.tally_bytes)}B",
        "-" if axes.decode_work is None else with_unit(axes.decode_work).strip(),
        share(axes.attackability),
        "-" if axes.push is None else share(axes.push),
    ]


def share(value: float) -> str:
    """Three digits of a percentage, without powers of ten."""
    percentage = 100 * value
    if percentage >= 99.95:
        return f"{percentage:,.0f} %"
    return f"{percentage:#.3g} %" if percentage >= 0.001 else f"{percentage:.2g} %"


def with_unit(value: float) -> str:
    """Two digits, thousands as k, millions as M."""
    for unit, name in _UNITS:
        if value >= 0.9995 * unit:
            scaled = value / unit
            return f"{scaled:.1f} {name}" if scaled < 9.95 else f"{scaled:,.0f} {name}"
    return f"{value:.0f} "
