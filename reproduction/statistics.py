"""Many trials in one row."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from .experiment import Row

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def summary(values: Sequence[float], *, quantiles: Sequence[float] = ()) -> Row:
    """trials, mean, its standard_error, and the quantiles asked for as q0.05 and so on."""
    array = np.asarray(values, dtype=np.float64)
    error = float(array.std(ddof=1)) / sqrt(array.size) if array.size > 1 else None
    row: Row = {"trials": int(array.size), "mean": float(array.mean()), "standard_error": error}
    for level, value in zip(quantiles, np.quantile(array, quantiles).tolist() if quantiles else [], strict=True):
        row[f"q{level:g}"] = value
    return row
