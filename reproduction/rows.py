"""Single rows of a table."""

from __future__ import annotations

from .experiment import Row


def number_in(row: Row, name: str) -> float:
    """A number that the row must have."""
    value = row[name]
    assert isinstance(value, (int, float)), f"{name} is {value!r}"
    return float(value)
