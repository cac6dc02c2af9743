"""Projection onto the probability simplex, plain and weighted."""

from __future__ import annotations

import numpy as np

from sunzi._typing import Floats


def project(values: Floats) -> Floats:
    """The nearest point, in Euclidean distance, with non-negative entries that sum to 1: max(values − θ, 0)."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, values.size + 1)
    kept = np.flatnonzero(descending > excess)
    threshold = excess[kept[-1]] if kept.size else excess[0]
    return np.maximum(values - threshold, 0.0)


def project_weighted(values: Floats, variances: Floats) -> Floats:
    """Minimise Σ (x_i − values_i)²/variances_i over the simplex: max(values − θ·variances, 0), with θ found by
    sorting.
    """
    order = np.argsort(values / variances)[::-1]
    sorted_values, sorted_variances = values[order], variances[order]
    multiplier = (np.cumsum(sorted_values) - 1) / np.cumsum(sorted_variances)
    kept = np.flatnonzero(sorted_values > multiplier * sorted_variances)
    threshold = multiplier[kept[-1]] if kept.size else multiplier[0]
    return np.maximum(values - threshold * variances, 0.0)
