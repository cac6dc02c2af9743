"""How much a caller may ask an analysis for, checked where the analysis begins."""

from __future__ import annotations

from sunzi.errors import ParameterError

_MOST = 10**8


def check_amount(name: str, amount: int, least: int = 1) -> None:
    """As many as there must be, and not more than memory holds."""
    if not least <= amount <= _MOST:
        shown = f"{amount:,}" if amount <= _MOST**2 else "more"
        raise ParameterError(f"{name} must be from {least} to {_MOST:,}, got {shown}")


def check_seed(seed: int | None) -> None:
    """What numpy's generators take."""
    if seed is not None and seed < 0:
        raise ParameterError(f"the seed must not be negative, got {seed}")
