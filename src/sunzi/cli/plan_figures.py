"""Figures of a plan for people: what its privacy means, and a row of the table that compares protocols."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from sunzi.cli.numbers import percent_of_three_digits, with_prefix

if TYPE_CHECKING:
    from sunzi.planning import Axes

AXES_HEADER = ("protocol", "error", "largest", "detects", "bits", "tally", "work", "attack", "push")

AXES_LEGEND = (
    "error: standard error of the frequency of a value that nobody holds; largest: the expected maximum over all "
    "values.",
    "detects: the smallest frequency distinguished from 0 at 95 % confidence with 80 % power.",
    "bits: mean report size (and the maximum). tally: memory for the counters. work: operations to decode.",
    "attack: how often the best attacker guesses a value from its report. push: how much 1 % fake clients can add to "
    "a value.",
)


def privacy_bound(epsilon: Fraction) -> str:
    """Return what ε guarantees, in one sentence."""
    bound = f"at most {_factor(epsilon)} times as likely under one value as under any other"
    return f"epsilon = {epsilon}: any report is {bound}"


def _factor(epsilon: Fraction) -> str:
    try:
        return f"{math.exp(epsilon):,.3g}"
    except OverflowError:
        return f"e^{float(epsilon):.4g}"


def attacker_success(attackability: float, domain_size: int) -> str:
    """Return what one report reveals: how often the best guess is right with the report and without it."""
    informed = "over 99.9" if attackability > 0.999 else f"{100 * attackability:.3g}"
    return (
        f"someone who sees a report guesses the value correctly {informed} % of the time, compared with "
        f"{100 / domain_size:.3g} % without it, if all values are equally likely"
    )


def axes_cells(axes: Axes) -> list[str]:
    """Return the cells of one row, in the order of ``AXES_HEADER``."""
    mean = f"{axes.bits:,.6g}" if axes.bits < 1e6 else f"{axes.bits:,.0f}"
    return [
        axes.protocol,
        percent_of_three_digits(axes.standard_error),
        percent_of_three_digits(axes.largest_error),
        percent_of_three_digits(axes.detectable_share) if axes.detectable_share < math.inf else "none",
        mean if axes.max_bits == axes.bits else f"{axes.bits:,.0f} ({axes.max_bits:,})",
        f"{with_prefix(axes.tally_bytes)}B",
        "-" if axes.decode_work is None else with_prefix(axes.decode_work).strip(),
        percent_of_three_digits(axes.attackability),
        "-" if axes.push is None else percent_of_three_digits(axes.push),
    ]
