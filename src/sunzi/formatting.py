"""What people read: counts, sizes and percentages, labels cut to a width, and what a plan guarantees in a sentence."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

from sunzi.client.epsilon import privacy_in_words

_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


class StatesLifetime(Protocol):
    """A plan, which this module does not import."""

    @property
    def epsilon(self) -> Fraction:
        """ε of one report."""

    @property
    def lifetime(self) -> Fraction | None:
        """The lifetime budget of devices."""


def counted(number: int, noun: str) -> str:
    """``1 report``, ``2,000 reports``; the plural adds an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def bits_in_words(bits: float) -> str:
    """``1 bit``, ``4.75 bits``."""
    return f"{bits:g} bit" if bits == 1 else f"{bits:g} bits"


def byte_size(size: int) -> str:
    """``357 bytes``, ``75,104 bytes (75.1 kB)``."""
    exact = counted(size, "byte")
    for unit, prefix in _PREFIXES:
        if size >= 10 * unit or (size >= unit and prefix == "T"):
            return f"{exact} ({size / unit:,.1f} {prefix}B)"
    return exact


def with_prefix(value: float) -> str:
    """Two digits and a prefix for the unit that follows: ``1.5 k``, ``34 M``."""
    for unit, prefix in _PREFIXES:
        if value >= 0.9995 * unit:
            scaled = value / unit
            return f"{scaled:.1f} {prefix}" if scaled < 9.95 else f"{scaled:,.0f} {prefix}"
    return f"{value:.0f} "


def percent(fraction: float, decimals: int | None = None) -> str:
    """A percentage with this number of decimals, by default enough to show two significant digits."""
    percentage = 100 * fraction
    if decimals is None:
        decimals = _decimals(percentage)
    return f"{percentage:.{decimals}f} %"


def signed_percent(fraction: float, decimals: int) -> str:
    """A percentage with its sign, for changes: ``+1.2 %``, ``-1.2 %``."""
    return f"{'' if fraction < 0 else '+'}{percent(fraction, decimals)}"


def percent_of_three_digits(fraction: float) -> str:
    """A percentage with three significant digits, in fixed-point notation down to 0.001 %."""
    percentage = 100 * fraction
    if percentage >= 99.95:
        return f"{percentage:,.0f} %"
    return f"{percentage:#.3g} %" if percentage >= 0.001 else f"{percentage:.2g} %"


def decimals_for(standard_errors: Iterable[float]) -> int:
    """Decimals for a column of percentages that show two digits of the median standard error."""
    errors = sorted(standard_errors)
    return _decimals(100 * errors[len(errors) // 2]) if errors else 2


def _decimals(percentage: float) -> int:
    return 2 if percentage == 0 else min(12, max(0, 1 - math.floor(math.log10(abs(percentage)))))


def privacy_bound(epsilon: Fraction) -> str:
    """Return what ε guarantees, in one sentence."""
    return f"epsilon = {epsilon}: {privacy_in_words(epsilon)}"


def lifetime_in_words(epsilon: Fraction, lifetime: Fraction) -> str:
    """Return what a device's lifetime budget pays for, and what follows, in one sentence."""
    pays = f"a device with a lifetime budget of {lifetime} pays for {counted(lifetime // epsilon, 'different answer')}"
    return f"{pays}; then it repeats its latest report, so that shares of new values lag (docs/privacy.md)"


def lifetime_note(plan: StatesLifetime) -> str:
    """The same as a sentence of its own; empty if a plan states no lifetime budget."""
    if plan.lifetime is None:
        return ""
    text = lifetime_in_words(plan.epsilon, plan.lifetime)
    return f"{text[0].upper()}{text[1:]}."


def attacker_success(attackability: float, choices: int, guessed: str = "the value") -> str:
    """Return what one report reveals: how often the best guess is right with the report and without it.

    Parameters
    ----------
    attackability: the success rate with the report.
    choices: how many values the attacker chooses among.
    guessed: what it guesses, in words.
    """
    informed = "over 99.9" if attackability > 0.999 else f"{100 * attackability:.3g}"
    return (
        f"someone who sees a report guesses {guessed} correctly {informed} % of the time, compared with "
        f"{100 / choices:.3g} % without it, if all values are equally likely"
    )


def printable(text: str) -> str:
    """Return text with non-printable characters escaped."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def display_width(text: str) -> int:
    """Return the number of columns a text occupies: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def shortened(text: str, width: int) -> str:
    """Return text of at most ``width`` columns; an ellipsis replaces the middle of a longer one."""
    if display_width(text) <= width:
        return text
    end = _beginning(text[::-1], (width - 1) // 2)[::-1]
    return _beginning(text, width - 1 - display_width(end)) + "…" + end


def _beginning(text: str, width: int) -> str:
    """Return as much of the text as fits into these columns."""
    used = 0
    for position, character in enumerate(text):
        used += display_width(character)
        if used > width:
            return text[:position]
    return text
