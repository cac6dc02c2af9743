"""Errors of methods that one might use instead of a plan of numbers or records, by formula (docs/mathematics.md §16).

All are variances of one report at the flat histogram. Each method answers as its paper says, with the whole ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, expm1, prod

import numpy as np

from sunzi._typing import Floats
from sunzi.designs.choice import optimal_block_size
from sunzi.numerics.dyadic import Dyadic
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.protocols.modular_variance import BlockMoments

ONE_HISTOGRAM = "one histogram of all"
# Below this ε the hybrid mechanism is that of Duchi et al.
_HYBRID_FROM = 0.61


def ordered_alternatives(epsilon: Fraction, energies: Floats) -> dict[str, float]:
    """The mean variance of a workload of ordered values, about a population.

    Parameters
    ----------
    epsilon: the privacy budget of a report.
    energies: 𝓔_i of the levels 1 … h, as :func:`~sunzi.numerics.dyadic.workload_energies` gives them.
    """
    levels = energies.size
    hadamard = ((exp(epsilon) + 1) / (exp(epsilon) - 1)) ** 2  # of a coefficient that is reported as one bit
    fours = np.zeros(levels)
    fours[1 - levels % 2 :: 2] = 1 / len(fours[1 - levels % 2 :: 2]) / hadamard
    spectra = {
        ONE_HISTOGRAM: np.full(levels, 1 / _cell_variance(1 << levels, epsilon)),
        "hierarchical Hadamard": Dyadic(fours).spectrum,
        "HaarHRR": 2 * Dyadic(np.ones(levels)).widths / (levels * hadamard),
    }
    return {name: float((energies / spectrum).sum()) for name, spectrum in spectra.items()}


def mean_alternatives(epsilon: Fraction) -> dict[str, tuple[float, float]]:
    """The variance about a number in [−1, 1]: for numbers spread evenly, and the largest."""
    odds, root = exp(epsilon), expm1(epsilon / 2)
    duchi = ((odds + 1) / (odds - 1)) ** 2, -1.0
    piecewise = (root + 4) / (3 * root**2), 1 / root
    share = 1 - exp(-epsilon / 2) if epsilon > _HYBRID_FROM else 0.0
    hybrid = [share * first + (1 - share) * second for first, second in zip(piecewise, duchi, strict=True)]
    # Each is constant + slope·t² at the number t.
    found = {
        "Laplace": (8 / float(epsilon) ** 2, 0.0),
        "Duchi et al.": duchi,
        "piecewise mechanism": piecewise,
        "hybrid mechanism": hybrid,
    }
    return {name: (constant + slope / 3, constant + max(slope, 0)) for name, (constant, slope) in found.items()}


def table_alternatives(epsilon: Fraction, sizes: Sequence[int], table: Sequence[int], tables: int) -> dict[str, float]:
    """The mean variance of a cell of a table, about a population.

    Parameters
    ----------
    epsilon: the privacy budget of a report.
    sizes: how many values each attribute of the record has.
    table: the attributes of the table.
    tables: how many tables are wanted.
    """
    cells, records = prod(sizes[attribute] for attribute in table), prod(sizes)
    spread = 1 - 1 / cells
    each = prod(_second_moment(sizes[attribute], epsilon / len(sizes)) for attribute in table)
    return {
        ONE_HISTOGRAM: _cell_variance(records, epsilon) * (records // cells) * spread,
        "splitting epsilon": each - 1 / cells**2,
        "one table per user": tables * _cell_variance(cells, epsilon) * spread,
    }


def _cell_variance(cells: int, epsilon: Fraction) -> float:
    """d̄ of a histogram by subset selection: the variance of a query whose weights sum to 0, over their squares."""
    moments = BlockMoments.at(cells, optimal_block_size(cells, epsilon), epsilon)
    return moments.light + moments.heavy / cells


def _second_moment(values: int, epsilon: Fraction) -> float:
    """The second moment of the debiased indicator of one value by subset selection, if values are equally frequent."""
    rates = SupportProbabilities.planned(values, optimal_block_size(values, epsilon), epsilon)
    held = rates.true * (1 - rates.false) ** 2 + (1 - rates.true) * rates.false**2
    others = rates.false * (1 - rates.false)
    return (held / values + others * (1 - 1 / values)) / rates.gap**2
