"""How much a caller may ask an analysis for, checked where the analysis begins."""

from __future__ import annotations

from sunzi.numerics.checks import whole_number

_MOST = 10**8
"""What memory holds."""


def check_amount(name: str, amount: int, least: int = 1) -> None:
    """As many as there must be, and not more than memory holds."""
    whole_number(name, amount, least, _MOST)


def check_seed(seed: int | None) -> None:
    """What numpy's generators take, or nothing for the operating system's randomness."""
    if seed is not None:
        whole_number("the seed", seed, 0)
