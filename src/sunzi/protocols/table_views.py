"""Cross tables: views of some attributes of a record (docs/mathematics.md §14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Self

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, shown
from sunzi.client.protocols import tables as client
from sunzi.domains.labels import Domain
from sunzi.domains.records import RecordDomain
from sunzi.errors import EstimateError
from sunzi.formatting import counted
from sunzi.numerics import effects
from sunzi.numerics.effects import Attributes, Effects
from sunzi.protocols.alternatives import table_alternatives
from sunzi.protocols.base import PlannedError, check_reports, check_users
from sunzi.protocols.joint_fit import Solver
from sunzi.protocols.views import View, ViewsProtocol, best_response, integer_shares
from sunzi.results.cross_tables import TableEstimate, TableUncertainty
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally


@dataclass(frozen=True)
class TableViews(client.TableViews, ViewsProtocol):
    """Tables of some attributes of a record."""

    error_of = "a cell of a table"

    view_kind = View

    views: tuple[View, ...]

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction, sizes: Sequence[int], wanted: Sequence[Attributes]) -> Self:
        """The views and shares with the least variance of a cell, averaged in each table and over the wanted tables."""
        candidates = sorted(
            {part for table in wanted for part in effects.subsets(table)}, key=lambda part: (len(part), part)
        )
        cells = {part: prod(sizes[attribute] for attribute in part) for part in candidates}
        responses = {number: best_response(number, epsilon) for number in set(cells.values())}
        made = {part: View(cells[part], 1, responses[cells[part]]) for part in candidates}
        shares = effects.view_shares(sizes, wanted, {part: view.variance for part, view in made.items()})
        rounded = zip(shares, integer_shares(list(shares.values())), strict=True)
        views = [replace(made[part], share=share) for part, share in rounded]
        return cls(domain_size, tuple(views), tuple(sizes), tuple(shares))

    def points_of(self, channel: int, values: Integers) -> Integers:
        """The cells of the view's table."""
        cells = np.zeros(values.shape, dtype=np.int64)
        for attribute in self.tables[channel]:
            size = self.sizes[attribute]
            cells = cells * size + values // prod(self.sizes[attribute + 1 :]) % size
        return cells

    @property
    def guessed(self) -> str:
        """The whole record."""
        return "the whole record"

    def _smallest(self, views: tuple[View, ...]) -> Self:
        return type(self)(4, views, (2, 2), ((0,), (0, 1)))

    def effects(self, weights: Sequence[float]) -> Effects:
        """The least-squares problem with these weights of the views, without those of weight 0."""
        used = zip(self.tables, weights, strict=True)
        return Effects(self.sizes, {table: weight for table, weight in used if weight})

    def estimate(self, domain: Domain, tally: Tally, table: Sequence[str] | None = None) -> TableEstimate:
        """The table of some attributes, from all views at once.

        ``table`` names the attributes. By default it is the table of all attributes if that is a view, or else the view
        with the largest share.
        """
        check_reports(tally)
        assert isinstance(domain, RecordDomain), "the plan has checked it"
        solved = self.effects(self.weights(tally.block_reports))
        wanted = self._usual_table if table is None else domain.numbers(table)
        self._check_known(domain, solved, wanted)
        used = zip(self.tables, self.views, tally.block_reports, strict=True)
        moments = {part: (view.moments, reports) for part, view, reports in used if reports}
        parts = solved.combine(self._view_tables(self.histograms(tally)))
        plausible = {part: solved.table(parts, part).reshape(-1) for part in moments}
        frequencies = solved.table(parts, wanted).reshape(-1)
        uncertainty = TableUncertainty(solved, wanted, moments, plausible, frequencies, tally.reports)
        return TableEstimate(domain.part(wanted), tally.reports, frequencies, uncertainty, weights="planned")

    def _view_tables(self, cells: Sequence[Floats | None]) -> dict[Attributes, Floats]:
        """The estimated cells of the views as tables, without views that have no reports."""
        shapes = {table: [self.sizes[attribute] for attribute in table] for table in self.tables}
        pairs = zip(self.tables, cells, strict=True)
        return {table: found.reshape(shapes[table]) for table, found in pairs if found is not None}

    def linear_estimate(self, domain: Domain, tally: Tally) -> Estimate:
        """The linear map to the default table, with planned weights."""
        check_reports(tally)
        assert isinstance(domain, RecordDomain), "the plan has checked it"
        solved, wanted = self.effects(self._used(self._planned, tally)), self._usual_table
        self._check_known(domain, solved, wanted)
        found = solved.table(solved.combine(self._view_tables(self.histograms(tally))), wanted)
        return Estimate(domain.part(wanted), tally.reports, found.reshape(-1), None)

    def _solver(self, weights: Sequence[float]) -> Solver:
        solved = self.effects(weights)

        def solve(parts: Sequence[Floats | None], wanted: Sequence[int]) -> list[Floats]:
            found = solved.combine(self._view_tables(parts))
            tables = [self.tables[number] for number in wanted]
            needed = {part for table in tables for part in effects.subsets(table)}
            known = {part: found.get(part, np.zeros((1,) * len(part))) for part in needed}
            return [solved.table(known, table).reshape(-1) - 1 / self.cells_of(table) for table in tables]

        return solve

    def _rows_of(self, row: Floats) -> list[Floats]:
        solved = self.effects(self._planned)
        return [solved.rows(row[np.newaxis], self._usual_table, table)[0] for table in self.tables]

    def targets(self, number: int) -> list[int]:
        """Records in ``number`` different cells of the default table."""
        places = [prod(self.sizes[attribute + 1 :]) for attribute in self._usual_table]
        shape = [self.sizes[attribute] for attribute in self._usual_table]
        cells = self.cells_of(self._usual_table)
        if not 1 <= number <= cells:
            raise ParameterError(f"targets must be between 1 and {cells} cells, got {number}")
        chosen = [(2 * index + 1) * cells // (2 * number) for index in range(number)]
        digits = np.unravel_index(np.array(chosen), shape)
        return [sum(int(d) * place for d, place in zip(row, places, strict=True)) for row in zip(*digits, strict=True)]

    def target_row(self, targets: Sequence[int]) -> Floats:
        """The cells of these records in the default table."""
        row = np.zeros(self.cells_of(self._usual_table))
        row[self.points_of(self.tables.index(self._usual_table), np.array(targets))] = 1.0
        return row

    def pushed(self, domain: Domain, targets: Sequence[int]) -> str:
        """The cells of the default table."""
        assert isinstance(domain, RecordDomain), "the plan has checked it"
        names = " × ".join(domain.part(self._usual_table).attributes)
        return f"the summed frequency of {counted(int(self.target_row(targets).sum()), 'cell')} of {names}"

    @property
    def _usual_table(self) -> Attributes:
        every = tuple(range(len(self.sizes)))
        shares = {table: view.share for table, view in zip(self.tables, self.views, strict=True)}
        return every if every in shares else max(shares, key=lambda table: shares[table])

    def _check_known(self, domain: RecordDomain, solved: Effects, wanted: Attributes) -> None:
        names = list(domain.attributes)
        missing = next((part for part in effects.subsets(wanted) if part not in solved.information), None)
        if missing is None:
            return
        untold = " × ".join(names[attribute] for attribute in missing)
        if any(set(missing) <= set(table) for table in self.tables):
            raise EstimateError(
                f"no report covers {untold} yet: every report answers one randomly drawn table, and none of these have "
                "arrived. Wait for more reports"
            )
        asked = ", ".join("×".join(names[attribute] for attribute in table) for table in self.tables)
        raise EstimateError(
            f"this plan does not cover {untold}; its tables are {asked}. Choose one of them, or a margin of one"
        )

    def table_variance(self, wanted: Attributes, users: int) -> float:
        """The mean variance of a cell of a table at the flat histogram, about a population."""
        check_users(users)
        solved = self.effects(self._planned)
        if not wanted or any(part not in solved.information for part in effects.subsets(wanted)):
            asked = ", ".join(map(str, self.tables))
            raise ParameterError(f"no view covers the attributes {shown(wanted)}; this plan has the views {asked}")
        return effects.cell_variance(solved, wanted) / users

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """The MSE of a cell at the flat histogram, averaged over the tables of all views."""
        if histogram is not None:
            raise ParameterError("a plan of tables knows its error only at the flat histogram; omit histogram=")
        return float(np.mean([self.table_variance(table, users) for table in self.tables]))

    def planned_errors(
        self, domain: Domain, users: int, wanted: Sequence[Sequence[str]] | None = None
    ) -> list[PlannedError]:
        """The planned error of a cell of every table."""
        assert isinstance(domain, RecordDomain), "the plan has checked it"
        names = list(domain.attributes)
        tables = self.tables if wanted is None else [domain.numbers(table) for table in wanted]
        solved, errors = self.effects(self._planned), []
        for table in tables:
            self._check_known(domain, solved, table)
            cells = self.cells_of(table)
            sampling = (1 - 1 / cells) / cells / users  # it is part of the variance about a population
            others = table_alternatives(self.epsilon, self.sizes, table, len(tables))
            alternatives = {name: variance / users - sampling for name, variance in others.items()}
            question = " × ".join(names[attribute] for attribute in table)
            errors.append(PlannedError(question, self.table_variance(table, users) - sampling, alternatives))
        return errors

    def worst_mse(self, users: int) -> float:
        """An upper bound of the error at any histogram: frequent cells add at most |heavy| to every view."""
        check_users(users)
        worst = max((view.moments.light + abs(view.moments.heavy)) / view.variance for view in self.views)
        return worst * self.expected_mse(users)
