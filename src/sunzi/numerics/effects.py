"""Effects of tables: the least-squares estimate of cross tables from several overlapping ones.

A *view* is the table of some attributes S, estimated with weight w_S. With all views T = Σ_S w_S·A_SᵀA_S is diagonal in
the effects of the analysis of variance: the parts of a table over the attributes U whose sum along every attribute is
0. So all tables follow from effects, agree in their margins, and no matrix is inverted (docs/mathematics.md §14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from sunzi._typing import Floats

Attributes = tuple[int, ...]
"""Numbers of attributes, rising."""

_STEPS = 2000
_STILL = 1e-7
_SMALLEST_SHARE = 1e-3


def subsets(attributes: Attributes) -> Iterator[Attributes]:
    """All subsets but the empty one, small ones first."""
    for number in range(1, len(attributes) + 1):
        yield from combinations(attributes, number)


def effect(table: Floats, attributes: Attributes, wanted: Attributes) -> Floats:
    """Sum a table over all attributes but the wanted ones, then centre it along each of them.

    Parameters
    ----------
    table: one axis per attribute, after any number of leading axes.
    attributes: which attributes its last axes are.
    wanted: some of them.
    """
    leading = table.ndim - len(attributes)
    others = tuple(leading + place for place, attribute in enumerate(attributes) if attribute not in wanted)
    found = table.sum(axis=others)
    for axis in range(leading, found.ndim):
        found = found - found.mean(axis=axis, keepdims=True)
    return found


def spread(effect_: Floats, wanted: Attributes, attributes: Attributes) -> Floats:
    """An effect with new axes of length 1 for the other attributes, so that it adds to their table."""
    leading = effect_.ndim - len(wanted)
    sizes = iter(effect_.shape[leading:])
    axes = tuple(next(sizes) if attribute in wanted else 1 for attribute in attributes)
    return effect_.reshape(*effect_.shape[:leading], *axes)


@dataclass(frozen=True, eq=False)
class Effects:
    """Which effects a collection of views determines, and how well."""

    sizes: tuple[int, ...]
    """How many values each attribute has."""
    weights: Mapping[Attributes, float]
    """w_S of every view S."""

    def cells(self, attributes: Iterable[int]) -> int:
        """The number of cells of a table."""
        return prod(self.sizes[attribute] for attribute in attributes)

    @cached_property
    def information(self) -> dict[Attributes, float]:
        """τ_U = Σ_{S⊇U} w_S/k_S of every effect U that some view determines."""
        found: dict[Attributes, float] = {}
        for view, weight in self.weights.items():
            for part in subsets(view):
                found[part] = found.get(part, 0.0) + weight / self.cells(view)
        return found

    def combine(self, tables: Mapping[Attributes, Floats]) -> dict[Attributes, Floats]:
        """All effects, from the estimated table of every view."""
        totals: dict[Attributes, Floats] = {}
        for view, table in tables.items():
            for part in subsets(view):
                added = self.weights[view] / self.cells(view) * effect(table, view, part)
                totals[part] = totals[part] + added if part in totals else added
        return {part: total / self.information[part] for part, total in totals.items()}

    def table(self, effects: Mapping[Attributes, Floats], wanted: Attributes) -> Floats:
        """The table of the wanted attributes, which sums to 1."""
        total = np.full([self.sizes[attribute] for attribute in wanted], 1 / self.cells(wanted))
        for part in subsets(wanted):
            total = total + spread(effects[part], part, wanted) * (self.cells(part) / self.cells(wanted))
        return total

    def rows(self, queries: Floats, wanted: Attributes, view: Attributes) -> Floats:
        """How linear queries on a table depend on a view: one row per query, one weight per cell of the view.

        Parameters
        ----------
        queries: one row per query, one weight per cell of the wanted table.
        wanted: the attributes of that table.
        view: the attributes of the view.
        """
        shape = [self.sizes[attribute] for attribute in view]
        total = np.zeros((len(queries), *shape))
        table = queries.reshape(len(queries), *(self.sizes[attribute] for attribute in wanted))
        for part in subsets(tuple(attribute for attribute in wanted if attribute in view)):
            mean = effect(table, wanted, part) * (self.cells(part) / self.cells(wanted))
            total += spread(mean, part, view) / self.information[part]
        return total.reshape(len(queries), -1) * (self.weights[view] / self.cells(view))


def cell_variance(effects: Effects, wanted: Attributes) -> float:
    """The mean variance of a cell of a table at the flat histogram, about a population, for one report in all."""
    return sum(
        coefficient / effects.information[part] for part, coefficient in _coefficients(effects.sizes, wanted).items()
    )


def _coefficients(sizes: Sequence[int], wanted: Attributes) -> dict[Attributes, float]:
    """How much 1/τ_U adds to the mean variance of a cell: the number of the effect's dimensions over k_M²."""
    cells = prod(sizes[attribute] for attribute in wanted)
    return {part: prod(sizes[attribute] - 1 for attribute in part) / cells**2 for part in subsets(wanted)}


def view_shares(
    sizes: Sequence[int], wanted: Sequence[Attributes], variances: Mapping[Attributes, float]
) -> dict[Attributes, float]:
    """How often to ask for each view, for the least sum over the wanted tables of their mean variances; sums to 1.

    A multiplicative algorithm (Silvey, Titterington and Torsney 1978): every step lowers the sum.

    Parameters
    ----------
    sizes: how many values each attribute has.
    wanted: the tables.
    variances: the candidates, with the mean variance of a cell of one report that answers this view.
    """
    views, parts = list(variances), sorted({part for table in wanted for part in subsets(table)})
    costs = np.zeros(len(parts))
    for table in wanted:
        for part, coefficient in _coefficients(sizes, table).items():
            costs[parts.index(part)] += coefficient
    cells = np.array([prod(sizes[attribute] for attribute in view) for view in views])
    gains = np.array([[set(part) <= set(view) for part in parts] for view in views])
    gains = gains / (cells * [variances[view] for view in views])[:, np.newaxis]
    shares = np.full(len(views), 1 / len(views))
    for _ in range(_STEPS):
        before = shares
        shares = shares * np.sqrt(gains @ (costs / (shares @ gains) ** 2))
        shares /= shares.sum()
        if np.abs(shares - before).max() < _STILL:
            break
    kept = shares >= _SMALLEST_SHARE
    if not (kept @ gains > 0).all():  # a rare view that is the only one with some effect stays
        kept[:] = True
    total = float(shares[kept].sum())
    return {view: float(share) / total for view, share, keep in zip(views, shares, kept, strict=True) if keep}
