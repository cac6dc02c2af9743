"""The decoded views of a tally of prefixes: for every cell, the frequency that a text in it would have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers

if TYPE_CHECKING:
    from sunzi.domains.texts import Digits
    from sunzi.protocols.prefix_views import PrefixView
    from sunzi.tally import Tally

Cells = NDArray[np.float32]


@dataclass(frozen=True)
class ViewTable:
    """One decoded view."""

    view: PrefixView
    reports: int
    values: Cells
    """For every cell, the frequency of a text in it, if the other texts are spread evenly over the cells."""

    @classmethod
    def of(cls, view: PrefixView, tally: Tally, number: int) -> ViewTable:
        """Decode a view: supports, debiased for the noise and for random collisions."""
        reports, rates = tally.block_reports[number], view.response.probabilities
        support = view.response.design.point_counts(tally.block(number), view.cells)
        found = (support / reports - rates.false) / rates.gap
        found -= 1 / view.cells
        found /= 1 - 1 / view.cells
        return cls(view, reports, found.astype(np.float32))

    @property
    def standard_error(self) -> float:
        """The standard error of a cell without a frequent text."""
        return float((self.view.null_variance / self.reports) ** 0.5)

    @property
    def spread(self) -> float:
        """The empirical variance over the cells: noise plus texts."""
        return float(np.mean(np.square(self.values, dtype=np.float64)))

    def at(self, cells: Integers) -> Cells:
        """The values of these cells."""
        return self.values[cells]

    def without(self, cells: Integers, frequencies: Floats) -> ViewTable:
        """The table with texts of known frequency subtracted."""
        values = self.values + np.float32(frequencies.sum() / (self.view.cells - 1))  # none of them is spread evenly
        np.subtract.at(values, cells, frequencies.astype(np.float32))
        return ViewTable(self.view, self.reports, values)


def view_tables(views: Mapping[int, PrefixView], tally: Tally) -> list[ViewTable]:
    """The tables of these views."""
    return [ViewTable.of(view, tally, number) for number, view in views.items()]


def least_squares(tables: list[ViewTable], digits: Digits) -> Floats:
    """The frequencies of texts, from tables that see whole texts: weighted least squares over the cells, so that the
    other views separate texts that collide in one.
    """
    from scipy.sparse.linalg import cg

    normal, right = normal_equations(tables, digits)
    found, _ = cg(normal, right, x0=right / normal.diagonal(), rtol=1e-10)
    return np.asarray(found)


def normal_equations(tables: list[ViewTable], digits: Digits) -> tuple[Any, Floats]:
    """The sparse matrix and the right side of the least squares; the inverse of the matrix has the variances."""
    from scipy.sparse import coo_array, diags_array, eye_array

    count = len(digits)
    normal: Any = diags_array(np.zeros(count))
    right, total = np.zeros(count), 0.0
    for table in tables:
        cells, places = np.unique(table.view.points(digits.astype(np.int64)), return_inverse=True)
        weight = 1 / table.standard_error**2
        members = coo_array((np.ones(count), (places, np.arange(count))), shape=(cells.size, count)).tocsr()
        normal = normal + weight * (members.T @ members)
        right += weight * (members.T @ table.at(cells).astype(np.float64))
        total += weight
    # Texts that share all their cells are not identifiable; a small multiple of the identity splits them evenly.
    return normal + 1e-9 * total * eye_array(count), right
