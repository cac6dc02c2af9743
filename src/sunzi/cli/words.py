"""Numbers and terms in plain words, the same in every command."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction


def epsilon_in_words(epsilon: Fraction) -> str:
    """What ε guarantees for one report."""
    return (
        f"epsilon = {epsilon}: any report is at most {_factor(epsilon)} times as likely under one value as under any "
        "other"
    )


def guess_in_words(attackability: float, domain_size: int) -> str:
    """What one report reveals: the success of the best guess with the report and without it, on a uniform prior."""
    with_report = "over 99.9" if attackability > 0.999 else f"{100 * attackability:.3g}"
    return (
        f"someone who sees a report guesses the value right {with_report} % of the time, compared with "
        f"{100 / domain_size:.3g} % without it, if all values are equally likely"
    )


def _factor(epsilon: Fraction) -> str:
    try:
        return f"{math.exp(epsilon):,.3g}"
    except OverflowError:
        return f"e^{float(epsilon):.4g}"


def counted(number: int, noun: str) -> str:
    """``1 report``, ``2,000 reports``; the noun's plural takes an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_in_words(size: int) -> str:
    """A number of bytes, and in larger units if it is large."""
    exact = counted(size, "byte")
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= 10 * unit or (size >= unit and unit == 10**12):
            return f"{exact} ({size / unit:,.1f} {name})"
    return exact


def percent(frequency: float, decimals: int | None = None) -> str:
    """A share of a hundred with so many decimals, or with as many as show two digits."""
    share = 100 * frequency
    if decimals is None:
        decimals = _decimals(share)
    return f"{share:.{decimals}f} %"


def decimals_for(standard_errors: Iterable[float]) -> int:
    """Decimals of a percentage that show two digits of the typical error, for a column of percentages."""
    errors = sorted(standard_errors)
    return _decimals(100 * errors[len(errors) // 2]) if errors else 2


def _decimals(share: float) -> int:
    return 2 if share == 0 else min(12, max(0, 1 - math.floor(math.log10(abs(share)))))
