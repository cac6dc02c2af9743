"""Columns of values, as lists, arrays and the columns of any data frame library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.client.errors import DomainError, shown


def check_column(values: object, expected: str) -> Iterable[Any]:
    """Accept only an ordered sequence of values. Other iterables would be misread: a table as its column names, a
    masked array as including its masked values.
    """
    kind = type(values).__name__
    if isinstance(values, Mapping) or hasattr(type(values), "columns"):
        found = f"a table ({kind}); name one of its columns"
    elif isinstance(values, (str, bytes, bytearray, memoryview)) or not isinstance(values, Iterable):
        found = shown(values)
    elif isinstance(values, (set, frozenset)):
        found = f"a {kind}, which has no order; make it a list, or sort it"
    elif isinstance(values, np.ma.MaskedArray):
        found = "a masked array; fill in its masked values, or remove them"
    elif getattr(values, "ndim", 1) != 1:
        found = f"an array ({kind}) that is not one-dimensional"
    else:
        return values
    raise DomainError(f"{expected}, got {found}")


def as_list(values: Any) -> list[Any]:
    """A column of any data frame library as a list of Python's own values."""
    listed: list[Any] = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return listed


def as_array(values: Any) -> NDArray[Any]:
    """A column of any data frame library as a numpy vector; Python's own values stay objects."""
    if isinstance(values, np.ndarray):
        return values
    if not hasattr(values, "to_numpy"):
        return np.fromiter(values, dtype=object)
    arrow = {"zero_copy_only": False} if hasattr(values, "to_pylist") else {}  # else it refuses nulls by itself
    array: NDArray[Any] = values.to_numpy(**arrow)
    return array
