"""Estimates of cross tables: cells, margins, conditional shares, and a test of independence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import chdtrc  # importing scipy.stats takes half a second

from sunzi._typing import Floats
from sunzi.client.errors import DomainError, ParameterError
from sunzi.domains.records import RecordDomain
from sunzi.errors import EstimateError, needing_matplotlib
from sunzi.numerics import intervals, simplex
from sunzi.numerics.effects import Attributes, Effects, spread, subsets
from sunzi.results.estimate import Estimate
from sunzi.results.uncertainty import JointErrors, Method, QueryErrors, Target, check_target, sum_intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TESTED_CELLS = 2500


@dataclass(frozen=True, eq=False)
class TableUncertainty:
    """The errors of a table combined from views (docs/mathematics.md §14), given the reports of every view."""

    effects: Effects
    wanted: Attributes
    views: Mapping[Attributes, tuple[ViewErrors, int]]
    """The covariance of one report's errors, and the number of reports, for every view with reports."""
    plausible: Mapping[Attributes, Floats]
    """The histogram of every view at which variances are computed."""
    frequencies: Floats
    reports: int

    def query(self, rows: Floats) -> QueryErrors:
        """The errors of linear queries on the table."""
        covariance, excess = np.zeros((len(rows), len(rows))), np.zeros(rows.shape)
        for view, (errors, reports) in self.views.items():
            if set(view).isdisjoint(self.wanted):
                continue
            directions = self.effects.rows(rows, self.wanted, view)
            added, more = errors.query(directions, self.plausible[view], reports)
            covariance += added
            excess += self._on_cells(more, view)
        return QueryErrors(rows, covariance, excess, self.frequencies, self.reports)

    def _on_cells(self, excess: Floats, view: Attributes) -> Floats:
        """What the cells of a view contribute to the cells of the table: the mean over attributes that it lacks."""
        sizes, count = self.effects.sizes, len(excess)
        table = excess.reshape(count, *(sizes[attribute] for attribute in view))
        others = tuple(1 + place for place, attribute in enumerate(view) if attribute not in self.wanted)
        table = table.mean(axis=others) if others else table
        shared = tuple(attribute for attribute in view if attribute in self.wanted)
        return _over(table.reshape(count, -1), shared, self.wanted, sizes)

    @cached_property
    def _patterns(self) -> list[_Patterns]:
        """The patterns of all views that share attributes with the table.

        The weight of a view's cell for the estimate of a cell c depends only on which attributes agree with c, so that
        sums over these patterns take the place of rows with a weight for every cell.
        """
        found = []
        for view in self.views:
            shared = tuple(attribute for attribute in self.wanted if attribute in view)
            if shared:
                table = self.plausible[view].reshape([self.effects.sizes[attribute] for attribute in view])
                found.append(_Patterns(view, shared, *self._entries(view, shared), _agreeing(table, view, shared)))
        return found

    @cached_property
    def _of_cells(self) -> tuple[Floats, Floats]:
        """The variance of every cell about a population, and its slope in the cell's own frequency."""
        shape = [self.effects.sizes[attribute] for attribute in self.wanted]
        weights = np.maximum(self.frequencies, 0.0).reshape(shape) + 1e-12
        variances, excess, own = np.zeros(shape), np.zeros(shape), 0.0
        for patterns in self._patterns:
            errors, reports = self.views[patterns.view]
            squares = {pattern: entry**2 for pattern, entry in patterns.entries.items()}
            heavy = np.clip(patterns.mean(squares), min(squares.values()), max(squares.values()))
            squared_mean = patterns.mean(patterns.entries) ** 2
            found = (errors.light * patterns.sum(squares) + errors.heavy * heavy - squared_mean) / reports
            variances = variances + spread(found, patterns.shared, self.wanted)
            rate = errors.heavy / reports
            among = _agreeing(weights, self.wanted, patterns.shared)
            total = sum(among[pattern] * square for pattern, square in squares.items())
            excess = excess + rate * spread(np.asarray(total), patterns.shared, self.wanted)
            own += rate * squares[patterns.shared]
        outside = (excess - own * weights) / (weights.sum() - weights)
        slopes = own - outside + 2 / (self.frequencies.size * self.reports)
        return variances.reshape(-1), slopes.reshape(-1)

    def _entries(self, view: Attributes, shared: Attributes) -> tuple[dict[Attributes, float], dict[Attributes, int]]:
        """For each set of attributes in which a view's cell agrees with c, and differs in the others: its weight for
        the estimate of c, and how many such cells there are.
        """
        effects, sizes = self.effects, self.effects.sizes
        scale = effects.weights[view] / (effects.cells(view) * effects.cells(self.wanted))
        beyond = effects.cells(attribute for attribute in view if attribute not in shared)
        entries, counts = {}, {}
        for pattern in ((), *subsets(shared)):
            parts = (
                effects.cells(part)
                / effects.information[part]
                * prod((attribute in pattern) - 1 / sizes[attribute] for attribute in part)
                for part in subsets(shared)
            )
            entries[pattern] = scale * sum(parts)
            counts[pattern] = beyond * prod(sizes[attribute] - 1 for attribute in shared if attribute not in pattern)
        return entries, counts

    def margin(self, wanted: Attributes) -> TableUncertainty:
        """The errors of the table of some of the attributes."""
        places = tuple(place for place, attribute in enumerate(self.wanted) if attribute not in wanted)
        table = self.frequencies.reshape([self.effects.sizes[attribute] for attribute in self.wanted])
        return replace(self, wanted=wanted, frequencies=table.sum(axis=places).reshape(-1))

    def covariances(self, margin: TableUncertainty) -> Floats:
        """The covariance of every cell with the cell of a margin that it is part of, about the reporters."""
        shape = [self.effects.sizes[attribute] for attribute in self.wanted]
        found = np.zeros(shape)
        for patterns in self._patterns:
            known = tuple(attribute for attribute in margin.wanted if attribute in patterns.view)
            if not known:
                continue
            errors, reports = self.views[patterns.view]
            entries, _ = margin._entries(patterns.view, known)
            of_sums = {
                pattern: entries[tuple(attribute for attribute in pattern if attribute in known)]
                for pattern in patterns.entries
            }
            products = {pattern: entry * of_sums[pattern] for pattern, entry in patterns.entries.items()}
            means = patterns.mean(patterns.entries) * patterns.mean(of_sums)
            added = (errors.light * patterns.sum(products) + errors.heavy * patterns.mean(products) - means) / reports
            found = found + spread(np.asarray(added), patterns.shared, self.wanted)
        sums = self.spread(margin.frequencies, margin)
        return found.reshape(-1) - self.frequencies * (1 - sums) / self.reports

    def spread(self, values: Floats, margin: TableUncertainty) -> Floats:
        """Numbers of the cells of a margin, for every cell of the table."""
        return _over(values, margin.wanted, self.wanted, self.effects.sizes)

    def variances(self, target: Target) -> Floats:
        """The variance of every cell."""
        if target == "population":
            return self._of_cells[0]
        return self._of_cells[0] - self.frequencies * (1 - self.frequencies) / self.reports

    def interval(self, confidence: float, target: Target, method: Method) -> tuple[Floats, Floats]:
        """Intervals of every cell."""
        near = self._nearest
        variances, slopes = near.variances(target), near._of_cells[1]
        return sum_intervals(
            self.frequencies, near.frequencies, variances, slopes, self.reports, confidence, target, method
        )

    @cached_property
    def _nearest(self) -> TableUncertainty:
        """The errors at the nearest histograms: estimates of few reports lie far beyond 0 and 1."""
        plausible = {view: simplex.project(table) for view, table in self.plausible.items()}
        return replace(self, plausible=plausible, frequencies=simplex.project(self.frequencies))


def _over(values: Floats, part: Attributes, wanted: Attributes, sizes: Sequence[int]) -> Floats:
    """Numbers of the cells of some attributes, for every cell of a table with more of them; along the last axis."""
    leading = values.shape[:-1]
    table = spread(values.reshape(*leading, *(sizes[attribute] for attribute in part)), part, wanted)
    return np.broadcast_to(table, (*leading, *(sizes[attribute] for attribute in wanted))).reshape(*leading, -1)


@dataclass(frozen=True)
class _Patterns:
    """How the estimates of the cells c of a table depend on a view, by the attributes in which its cells agree with c
    while they differ in the others that both have.
    """

    view: Attributes
    shared: Attributes
    """The attributes that the view and the table both have."""
    entries: Mapping[Attributes, float]
    """The weight of a cell of the view."""
    counts: Mapping[Attributes, int]
    """The number of cells of the view."""
    masses: Mapping[Attributes, Floats]
    """The frequency of these cells, for every c."""

    def sum(self, weights: Mapping[Attributes, float]) -> float:
        """The sum over all cells of the view, with a weight for every pattern."""
        return sum(self.counts[pattern] * weight for pattern, weight in weights.items())

    def mean(self, weights: Mapping[Attributes, float]) -> Floats:
        """The mean weight over the frequencies of the view's cells, for every c."""
        return np.asarray(sum(self.masses[pattern] * weight for pattern, weight in weights.items()))


def _agreeing(table: Floats, attributes: Attributes, shared: Attributes) -> dict[Attributes, Floats]:
    """For every cell c of the shared attributes: how much of the table agrees with c in exactly these attributes."""
    others = tuple(place for place, attribute in enumerate(attributes) if attribute not in shared)
    joint = table.sum(axis=others)
    margins = {}
    for part in ((), *subsets(shared)):
        summed = joint.sum(axis=tuple(place for place, attribute in enumerate(shared) if attribute not in part))
        margins[part] = spread(np.asarray(summed), part, shared)
    return {
        pattern: np.asarray(
            sum(
                (-1) ** (len(part) - len(pattern)) * margin
                for part, margin in margins.items()
                if set(pattern) <= set(part)
            )
        )
        for pattern in margins
    }


class ViewErrors(JointErrors, Protocol):
    """The errors of one report of a view."""

    @property
    def light(self) -> float:
        """d0."""

    @property
    def heavy(self) -> float:
        """d1."""


@dataclass(frozen=True)
class ConditionalShare:
    """The share of some values among the records with others. Unless ``is_bounded``, the frequency of those records
    among the reporters is not significantly above 0, so the interval is unbounded.
    """

    value: float
    low: float
    high: float
    confidence: float
    is_bounded: bool


@dataclass(frozen=True)
class IndependenceTest:
    """A test of "the two attributes are independent", whose covariance accounts for the noise."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class TableEstimate(Estimate):
    """A table of some attributes: an estimate with one value per cell. Tables of one tally have consistent margins."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes in the order of the table's axes."""
        return tuple(self._records.attributes)

    @property
    def _records(self) -> RecordDomain:
        assert isinstance(self.domain, RecordDomain), "a plan of tables makes it"
        return self.domain

    @property
    def table(self) -> Floats:
        """The frequencies as an array with one axis per attribute."""
        return self.frequencies.reshape(self._records.sizes)

    def cell(self, index: int) -> dict[str, str]:
        """The attributes of a cell with their labels."""
        parts = zip(self._records.attributes.items(), self._records.digits(index), strict=True)
        return {name: domain.shown(digit) for (name, domain), digit in parts}

    def margin(self, *names: str) -> TableEstimate:
        """The table of some of the attributes, summed over the others, with intervals.

        Parameters
        ----------
        names: attributes of this table.
        """
        numbers = self._numbers(names)
        known = self._table_uncertainty
        part = known.margin(tuple(known.wanted[number] for number in numbers))
        domain = self._records.part(numbers)
        return TableEstimate(domain, self.reports, part.frequencies, part, weights=self.weights, plan=self.plan)

    @property
    def _table_uncertainty(self) -> TableUncertainty:
        found = self._known_uncertainty()
        assert isinstance(found, TableUncertainty), "a plan of tables makes it"
        return found

    def _numbers(self, names: str | Sequence[str]) -> tuple[int, ...]:
        """The places of attributes; the error for one of another table of the plan says so."""
        of_plan = self.plan.domain if self.plan is not None else None
        if isinstance(of_plan, RecordDomain) and isinstance(names, (str, list, tuple)):
            for name in [names] if isinstance(names, str) else names:
                if isinstance(name, str) and name in of_plan.attributes and name not in self.attributes:
                    raise ParameterError(
                        f"attribute {name!r} is not in this table of {' × '.join(self.attributes)}; name the table to "
                        f"estimate: table=[{name!r}, …] in Python, --table {name},… on the command line"
                    )
        return self._records.numbers(names)

    def _matching(self, values: object) -> Floats:
        """1 for the cells with these values, 0 for others."""
        if not isinstance(values, Mapping) or not values:
            raise ParameterError(f"give a mapping of attributes to values, got {values!r}")
        self._numbers(list(values))
        found = np.ones(self._records.sizes)
        for axis, (name, domain) in enumerate(self._records.attributes.items()):
            if name in values:
                chosen = np.zeros(domain.size)
                try:
                    chosen[domain.exact_index(values[name])] = 1.0
                except DomainError as error:
                    raise DomainError(f"attribute {name!r}: {error}") from None
                found = found * chosen.reshape([-1 if place == axis else 1 for place in range(found.ndim)])
        return found.reshape(-1)

    def share(
        self,
        values: Mapping[str, object],
        given: Mapping[str, object],
        confidence: float = 0.95,
        *,
        target: Target = "reporters",
    ) -> ConditionalShare:
        """The share of some values among the records with others, by Fieller's method.

        Parameters
        ----------
        values: attributes and their values, whose share to compute.
        given: other attributes and their values.
        confidence, target: as in :meth:`interval`.

        >>> import sunzi
        >>> plan = sunzi.make_tables({"version": ["1", "2"], "crashed": ["no", "yes"]}, [("version", "crashed")], 3)
        >>> records = [{"version": "2", "crashed": "yes"}] * 3000 + [{"version": "2", "crashed": "no"}] * 7000
        >>> estimate = plan.estimate(plan.simulate(records, seed=1))
        >>> found = estimate.share({"crashed": "yes"}, given={"version": "2"})
        >>> found.low < 0.3 < found.high
        True
        """
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        condition = self._matching(given)
        rows = np.stack([self._matching(values) * condition, condition])
        both = next((name for name in values if name in given), None)
        if both is not None:
            raise ParameterError(f"{both!r} is in both values and given")
        found = self._query(rows)
        (part, whole), covariance = found.values.tolist(), found.covariance("reporters").tolist()
        sampled = self.reports if target == "population" else inf
        return _fieller(part, whole, covariance[0][0], covariance[1][1], covariance[0][1], sampled, confidence)

    def shares(
        self, given: str | Sequence[str], confidence: float = 0.95, *, target: Target = "reporters"
    ) -> list[ConditionalShare]:
        """For every cell, its share among the records with the same values of some attributes.

        Parameters
        ----------
        given: one or more attributes of this table, not all.
        confidence, target: as in :meth:`interval`.

        >>> import sunzi
        >>> plan = sunzi.make_tables({"version": ["1", "2"], "crashed": ["no", "yes"]}, [("version", "crashed")], 3)
        >>> records = [{"version": "2", "crashed": "yes"}] * 3000 + [{"version": "2", "crashed": "no"}] * 7000
        >>> found = plan.estimate(plan.simulate(records, seed=1)).shares("version")
        >>> [share.is_bounded for share in found]
        [False, False, True, True]
        """
        numbers = self._numbers(given)
        if len(numbers) == len(self.attributes):
            raise ParameterError(f"shares need an attribute that is not given, got all of {list(self.attributes)}")
        confidence = intervals.check_confidence(confidence)
        check_target(target)
        known = self._table_uncertainty
        margin = known.margin(tuple(known.wanted[number] for number in numbers))
        wholes, errors = (known.spread(each, margin) for each in (margin.frequencies, margin.variances("reporters")))
        columns = (known.frequencies, wholes, known.variances("reporters"), errors, known.covariances(margin))
        sampled = self.reports if target == "population" else inf
        return [
            _fieller(part, whole, part_variance, whole_variance, covariance, sampled, confidence)
            for part, whole, part_variance, whole_variance, covariance in np.column_stack(columns).tolist()
        ]

    def independence(self) -> IndependenceTest:
        """Whether the two attributes of this table are independent in the population: a χ² test.

        The covariance of all cells accounts for the noise. Pearson's test on an estimated table does not, and rejects
        far too often. Where noise is small, very small p-values need expected counts of about 5, as Pearson's do.

        >>> import sunzi
        >>> plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"]}, [("a", "b")], epsilon=3)
        >>> records = [{"a": x, "b": x} for x in "01"] * 5000
        >>> plan.estimate(plan.simulate(records, seed=1)).independence().p_value < 1e-6
        True
        """
        sizes = self._records.sizes
        if len(sizes) != 2:
            raise EstimateError(f"a test of independence needs a table of two attributes, got {list(self.attributes)}")
        if prod(sizes) > _MOST_TESTED_CELLS:
            raise EstimateError(
                f"a test of independence takes at most {_MOST_TESTED_CELLS} cells, got {prod(sizes)}; regroup first"
            )
        known = self._table_uncertainty
        table = self.table
        margins = table.sum(axis=1), table.sum(axis=0)
        bases = [_contrasts(size) for size in sizes]
        # The product of margins is not linear, so it is linearised at the estimated margins.
        sides = [
            base @ (np.eye(size) - np.outer(margin, np.ones(size)))
            for base, size, margin in zip(bases, sizes, margins, strict=True)
        ]
        residuals = (bases[0] @ (table - np.outer(*margins)) @ bases[1].T).reshape(-1)
        projected = [simplex.project(margin) for margin in margins]
        flat = {known.wanted: np.outer(*projected), known.wanted[:1]: projected[0], known.wanted[1:]: projected[1]}
        plausible = {
            view: flat[view].reshape(-1) if view in flat else known.plausible[view] for view in known.plausible
        }
        under = replace(known, plausible=plausible, frequencies=flat[known.wanted].reshape(-1))
        covariance = under.query(np.asarray(np.kron(*sides), dtype=np.float64)).population
        statistic = float(residuals @ np.linalg.solve(covariance, residuals))
        degrees = (sizes[0] - 1) * (sizes[1] - 1)
        return IndependenceTest(statistic, degrees, float(chdtrc(degrees, statistic)))

    def plot(
        self,
        path: str | Path | None = None,
        *,
        top: int = 20,
        confidence: float = 0.95,
        target: Target = "reporters",
        truth: Sequence[float] | Floats | None = None,
    ) -> Figure:
        """A heat map of two attributes with their margins, in which cells that may be noise are grey; for other numbers
        of attributes bars, as for any estimate. Needs the ``plot`` extra.

        Parameters
        ----------
        path: where to save the picture, if anywhere; the suffix sets the format.
        top, truth: for bars.
        confidence, target: as in :meth:`interval`.
        """
        if len(self.attributes) != 2 or truth is not None:
            return super().plot(path, top=top, confidence=confidence, target=target, truth=truth)
        with needing_matplotlib():
            from sunzi.display.record_plots import plot_table
        return plot_table(self, path, confidence=confidence, target=target)

    def __repr__(self) -> str:
        """The attributes and the number of reports."""
        return f"TableEstimate({' × '.join(self.attributes)}, {self.reports} reports)"


def _fieller(
    part: float,
    whole: float,
    part_variance: float,
    whole_variance: float,
    covariance: float,
    sampled: float,
    confidence: float,
) -> ConditionalShare:
    """Fieller's interval for the ratio of two estimates (docs/mathematics.md §14), from their errors about the
    reporters, who are ``sampled`` users of a population.
    """
    factor = intervals.normal_quantile(confidence) ** 2
    sampling = max(whole, 0.0) / sampled
    constant = part**2 - factor * part_variance
    middle = part * whole - factor * (covariance - sampling / 2)
    square = whole**2 - factor * (whole_variance - sampling)
    value = part / whole if whole else inf
    if square <= 0:
        return ConditionalShare(value, -inf, inf, confidence, False)
    reach = max(middle**2 - constant * square, 0.0) ** 0.5
    return ConditionalShare(value, (middle - reach) / square, (middle + reach) / square, confidence, True)


def _contrasts(size: int) -> Floats:
    """size − 1 orthonormal rows that sum to 0."""
    basis, _ = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))
    return basis[:, 1:].T
