"""Several questions about one record: a report answers one of them, with the whole ε (docs/mathematics.md §13, §14).

A *view* is a public map of the record to the cells of a small table: the node of an ordered value at one level, or the
values of some attributes. A client draws a view by public shares, which say nothing about its record, and reports the
cell through a block response. The server joins all views by weighted least squares.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.cross_tables import TableEstimate, TableUncertainty
from sunzi.designs.base import DecodingCost, only_parameters
from sunzi.designs.choice import choose_compact, subset_error
from sunzi.designs.response import BlockResponse
from sunzi.domain import Domain
from sunzi.errors import EstimateError, ParameterError, PlanError
from sunzi.numerics import dyadic, effects
from sunzi.numerics.checks import shown
from sunzi.numerics.effects import Attributes, Effects
from sunzi.numerics.randomness import WordSource
from sunzi.ordered import OrderedEstimate, TreeUncertainty
from sunzi.protocols.base import PlannedError, check_histogram, check_reports, check_users
from sunzi.protocols.channel import Channel
from sunzi.protocols.modular_variance import BlockMoments
from sunzi.protocols.selection import JointMessages
from sunzi.records import RecordDomain
from sunzi.tally import Tally
from sunzi.wire import EncodedReports

SHARE_BITS = 32
MOST_VIEWS = 1 << 12
_DESIGNS = frozenset({"cyclotomic", "singletons"})
# With fewer reports than this the finest level says next to nothing, and would be weighted by chance.
_LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class View:
    """One question: how often it is asked, and how it is answered."""

    cells: int
    share: int
    """Out of 2^32."""
    response: BlockResponse

    @cached_property
    def moments(self) -> BlockMoments:
        """Second moments of one debiased report."""
        return BlockMoments.of(self.response)

    @property
    def variance(self) -> float:
        """The mean variance of a cell for one report, if all cells are equally frequent."""
        return self.moments.light + self.moments.heavy / self.cells

    def histogram(self, tally: Tally, index: int) -> Floats:
        """The estimated frequencies of the cells, which sum to 1."""
        support = self.response.design.point_counts(tally.block(index), self.cells)
        rates = self.response.probabilities
        found = (support / tally.block_reports[index] - rates.false) / rates.gap
        return found + (1 - found.sum()) / self.cells


@dataclass(frozen=True)
class ViewsProtocol(JointMessages):
    """Views of a record, each with the whole ε; a report answers one of them.

    The selector of a report is the number of views j with share_0 + … + share_j ≤ u, u the upper 32 bits of its word.
    """

    domain_size: int
    views: tuple[View, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.views) <= MOST_VIEWS:
            raise PlanError(f"{self.name} needs between 1 and {MOST_VIEWS} views, got {len(self.views)}")
        if len({view.response.epsilon for view in self.views}) != 1:
            raise PlanError("all block responses of a plan must have the same epsilon")
        for view in self.views:
            design = view.response.design
            if design.kind not in _DESIGNS:
                raise PlanError(f"{self.name} uses the designs {sorted(_DESIGNS)}, got {design.kind!r}")
            if design.points < view.cells:
                raise PlanError(f"a view has {view.cells} cells, but its design only {design.points} points")
            if view.share < 1:
                raise PlanError(f"the share of a view must be at least 1, got {view.share}")
        total = sum(view.share for view in self.views)
        if total != 1 << SHARE_BITS:
            raise PlanError(f"the shares of all views must add up to 2^{SHARE_BITS}, got {total}")

    @property
    def responses(self) -> tuple[BlockResponse, ...]:
        """The block responses of the views."""
        return tuple(view.response for view in self.views)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """None: analyses of single reports assume that a value is one point modulo each channel's size."""
        return ()

    @cached_property
    def _bounds(self) -> NDArray[np.uint64]:
        return np.cumsum([view.share for view in self.views[:-1]], dtype=np.uint64)

    def draw_selectors(self, count: int, source: WordSource) -> NDArray[np.uint16]:
        """Each view by its share; words of fewer bits give shares rounded to these bits, for exhaustive checks."""
        words = source.words(count)
        shift = source.word_bits - SHARE_BITS
        upper = words >> np.uint64(shift) if shift >= 0 else words << np.uint64(-shift)
        return np.searchsorted(self._bounds, upper, side="right").astype(np.uint16)

    def draw_cell(self, value: int, source: WordSource) -> tuple[int, int]:
        """A view and the cell of the value."""
        view = int(self.draw_selectors(1, source)[0])
        return view, int(self.points(view, np.array([value]))[0])

    def respond(self, question: int, cell: int, source: WordSource) -> EncodedReports:
        """The response of a cell to its view."""
        message = self.responses[question].randomize(np.array([cell]), source)
        return self.encode(message + self._offsets[question])

    @property
    def words_per_report(self) -> float:
        """The selector and a block response."""
        return 1 + sum(view.response.words_per_report * view.share for view in self.views) / (1 << SHARE_BITS)

    @property
    def attackability(self) -> float:
        """The attacker names the likeliest cell of the view, and guesses the rest of the record."""
        sums = sum(view.response.best_guess_sum(view.cells) * view.share for view in self.views)
        return sums / (1 << SHARE_BITS) / self.domain_size

    @property
    def reading_work(self) -> float:
        """The mean over the views."""
        return sum(view.response.design.reading_work * view.share for view in self.views) / (1 << SHARE_BITS)

    def decoding_cost(self, reports: int) -> DecodingCost | None:
        """Every view by its own route."""
        costs = [view.response.design.point_counts_cost(reports, view.cells) for view in self.views]
        known = [cost for cost in costs if cost is not None]
        return (
            DecodingCost(sum(cost.operations for cost in known), known[0].route) if len(known) == len(costs) else None
        )

    def weights(self, reports: Sequence[float]) -> list[float]:
        """How much each view's estimate weighs: its reports over their variance at the flat histogram."""
        return [number / view.variance for view, number in zip(self.views, reports, strict=True)]

    @property
    def _planned(self) -> list[float]:
        return self.weights([view.share / (1 << SHARE_BITS) for view in self.views])

    def parameters(self) -> dict[str, Any]:
        """The views in order."""
        listed = [
            {**self._map(index), "share": view.share, "response": view.response.parameters()}
            for index, view in enumerate(self.views)
        ]
        return {"views": listed}

    @abstractmethod
    def _map(self, index: int) -> dict[str, Any]:
        """The map of a view, as a plan names it."""


def integer_shares(shares: Sequence[float]) -> list[int]:
    """Shares out of 2^32 as positive integers; the largest one takes the rounding."""
    total = 1 << SHARE_BITS
    rounded = [max(1, round(share * total)) for share in shares]
    rounded[rounded.index(max(rounded))] += total - sum(rounded)
    return rounded


def _read_views(parameters: Mapping[str, Any], name: str, epsilon: Fraction) -> list[tuple[Any, int, BlockResponse]]:
    """The map, share and response of every view."""
    listed = parameters["views"]
    if not isinstance(listed, list) or len(listed) > MOST_VIEWS:
        raise PlanError(f"views must be a list of at most {MOST_VIEWS} views")
    found = []
    for view in listed:
        if not isinstance(view, Mapping) or set(view) != {name, "share", "response"}:
            raise PlanError(f"a view has the keys {name}, response and share, got {shown(view)}")
        if type(view["share"]) is not int:
            raise PlanError(f"the share of a view must be a whole number, got {shown(view['share'])}")
        found.append((view[name], view["share"], BlockResponse.from_parameters(view["response"], epsilon)))
    return found


@dataclass(frozen=True)
class OrderedViews(ViewsProtocol):
    """Halving levels of an ordered domain of 2^h values: view ``level`` is the node x div 2^(h − level)."""

    name = "ordered"
    question = "a single bin"

    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        height = self.domain_size.bit_length() - 1
        if self.domain_size != 1 << height:
            raise PlanError(f"an ordered domain needs a power of two of bins, got {self.domain_size}")
        if any(low >= high for low, high in pairwise((0, *self.levels))) or self.levels[-1] != height:
            raise PlanError(f"levels must rise from at least 1 to {height}, got {list(self.levels)}")
        for view, level in zip(self.views, self.levels, strict=True):
            if view.cells != 1 << level:
                raise PlanError(f"level {level} has {1 << level} nodes, got {view.cells}")

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction) -> Self:
        """The levels and shares with the least mean variance of ranges and prefixes."""
        height = domain_size.bit_length() - 1
        if domain_size != 1 << height:
            near = 1 << height, 1 << (height + 1)
            raise ParameterError(
                f"an ordered plan needs a power of two of bins, got {domain_size}; take {near[0]} or {near[1]}: "
                "histograms of any wider bins are sums"
            )
        made = [View(1 << level, 1, _response(1 << level, epsilon)) for level in range(1, height + 1)]
        costs = np.array([view.variance * view.cells / domain_size for view in made])
        shares = dyadic.best_shares(costs, dyadic.workload_energies(height))
        kept = [place for place, share in enumerate(shares) if share >= _LEAST_SHARE or place == height - 1]
        rounded = integer_shares([float(shares[place] / shares[kept].sum()) for place in kept])
        views = [
            View(made[place].cells, share, made[place].response) for place, share in zip(kept, rounded, strict=True)
        ]
        return cls(domain_size, tuple(views), tuple(place + 1 for place in kept))

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the views from a plan."""
        only_parameters(parameters, ["views"])
        views, levels = [], []
        for level, share, response in _read_views(parameters, "level", epsilon):
            if type(level) is not int or not 1 <= level <= domain_size.bit_length():
                raise PlanError(f"a level must be a whole number from 1, got {shown(level)}")
            views.append(View(1 << level, share, response))
            levels.append(level)
        return cls(domain_size, tuple(views), tuple(levels))

    def _map(self, index: int) -> dict[str, Any]:
        return {"level": self.levels[index]}

    def points(self, selector: int, values: Integers) -> Integers:
        """The nodes of the level."""
        return values >> (self.levels[-1] - self.levels[selector])

    def tree(self, weights: Sequence[float]) -> dyadic.Dyadic:
        """The least-squares problem with these weights of the views."""
        found = np.zeros(self.levels[-1])
        found[np.array(self.levels) - 1] = weights
        return dyadic.Dyadic(found)

    def estimate(self, domain: Domain, tally: Tally) -> OrderedEstimate:
        """Weighted least squares for all levels at once."""
        check_reports(tally)
        if not tally.block_reports[-1]:
            raise EstimateError("no report was about single bins yet, so that they are unknown; wait for more reports")
        reports = tally.block_reports
        tree = self.tree(self.weights(reports))
        levels: list[Floats | None] = [None] * tree.levels
        for index, (view, level) in enumerate(zip(self.views, self.levels, strict=True)):
            levels[level - 1] = view.histogram(tally, index) if reports[index] else None
        frequencies = tree.combine(levels)
        uncertainty = self._uncertainty(reports, frequencies, tally.reports)
        return OrderedEstimate(domain, tally.reports, frequencies, uncertainty, weights="planned")

    def _uncertainty(self, reports: Sequence[float], frequencies: Floats, total: int) -> TreeUncertainty:
        """The errors with this many reports of every view."""
        light, heavy, inverse = np.zeros((3, self.levels[-1]))
        for view, level, number in zip(self.views, self.levels, reports, strict=True):
            if number:
                inverse[level - 1] = 1 / number
                light[level - 1], heavy[level - 1] = view.moments.light / number, view.moments.heavy / number
        return TreeUncertainty(self.tree(self.weights(reports)), light, heavy, inverse, frequencies, total)

    def range_variance(self, users: int) -> float:
        """The mean variance of ranges and prefixes at the flat histogram, about a population."""
        check_users(users)
        energies = dyadic.workload_energies(self.levels[-1])
        return float((energies / self.tree(self._planned).spectrum).sum()) / users

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """Of a single bin, at the flat histogram or the given one."""
        check_users(users)
        size = self.domain_size
        frequencies = np.full(size, 1 / size) if histogram is None else check_histogram(histogram, size)
        shares = [view.share / (1 << SHARE_BITS) for view in self.views]
        return float(self._uncertainty(shares, frequencies, 1).variances("reporters").mean()) / users

    def planned_errors(self, domain: Domain, users: int) -> list[PlannedError]:  # noqa: ARG002 - levels need no names
        """Of a range and of a bin, beside those of a flat histogram."""
        flat = subset_error(self.domain_size, self.epsilon) / users
        return [
            PlannedError("a range, on average", self.range_variance(users), flat * self.domain_size / 6),
            PlannedError(self.question, self.expected_mse(users), flat),
        ]

    def worst_mse(self, users: int) -> float:
        """Of a single bin; at a histogram with one value, which every level's heaviest node has."""
        one = np.zeros(self.domain_size)
        one[0] = 1.0
        return max(self.expected_mse(users), self.expected_mse(users, one))


@dataclass(frozen=True)
class TableViews(ViewsProtocol):
    """Tables of some attributes of a record."""

    name = "tables"
    question = "a cell of a table"

    sizes: tuple[int, ...]
    tables: tuple[Attributes, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if prod(self.sizes) != self.domain_size or min(self.sizes, default=0) < 2:
            raise PlanError(
                f"the sizes of the attributes are {list(self.sizes)}, but there are {self.domain_size} records"
            )
        if len(set(self.tables)) != len(self.tables):
            raise PlanError("a table occurs twice among the views")
        for view, table in zip(self.views, self.tables, strict=True):
            if (
                not table
                or any(low >= high for low, high in pairwise(table))
                or not 0 <= table[0] <= table[-1] < len(self.sizes)
            ):
                raise PlanError(
                    f"the attributes of a view must rise from 0 to {len(self.sizes) - 1}, got {list(table)}"
                )
            if view.cells != self._cells(table):
                raise PlanError(f"the table {list(table)} has {self._cells(table)} cells, got {view.cells}")

    def _cells(self, table: Attributes) -> int:
        return prod(self.sizes[attribute] for attribute in table)

    @classmethod
    def choose(cls, domain_size: int, epsilon: Fraction, sizes: Sequence[int], wanted: Sequence[Attributes]) -> Self:
        """The views and shares with the least mean variance of the cells of all wanted tables."""
        candidates = sorted(
            {part for table in wanted for part in effects.subsets(table)}, key=lambda part: (len(part), part)
        )
        cells = {part: prod(sizes[attribute] for attribute in part) for part in candidates}
        responses = {number: _response(number, epsilon) for number in set(cells.values())}
        made = {part: View(cells[part], 1, responses[cells[part]]) for part in candidates}
        shares = effects.best_shares(sizes, wanted, {part: view.variance for part, view in made.items()})
        rounded = zip(shares, integer_shares(list(shares.values())), strict=True)
        views = [replace(made[part], share=share) for part, share in rounded]
        return cls(domain_size, tuple(views), tuple(sizes), tuple(shares))

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the views from a plan."""
        only_parameters(parameters, ["sizes", "views"])
        sizes = parameters["sizes"]
        if not isinstance(sizes, list) or any(type(size) is not int or size < 2 for size in sizes):
            raise PlanError(f"sizes must be a list of whole numbers from 2, got {shown(sizes)}")
        views, tables = [], []
        for table, share, response in _read_views(parameters, "attributes", epsilon):
            if not isinstance(table, list) or any(
                type(each) is not int or not 0 <= each < len(sizes) for each in table
            ):
                raise PlanError(f"the attributes of a view must be numbers below {len(sizes)}, got {shown(table)}")
            views.append(View(prod(sizes[attribute] for attribute in table), share, response))
            tables.append(tuple(table))
        return cls(domain_size, tuple(views), tuple(sizes), tuple(tables))

    def parameters(self) -> dict[str, Any]:
        """The sizes of the attributes, and the views in order."""
        return {"sizes": list(self.sizes), **super().parameters()}

    def _map(self, index: int) -> dict[str, Any]:
        return {"attributes": list(self.tables[index])}

    @classmethod
    def check_domain(cls, domain: Domain) -> None:
        """Tables are about records."""
        if not isinstance(domain, RecordDomain):
            raise PlanError(f"a plan of tables needs a domain of records, got {domain!r}")

    def check_attributes(self, domain: Domain) -> None:
        """The sizes are those of the attributes."""
        if domain.sizes != self.sizes:
            raise PlanError(f"sizes are {list(self.sizes)}, but the attributes have {list(domain.sizes)} values")

    def points(self, selector: int, values: Integers) -> Integers:
        """The cells of the view's table."""
        cells = np.zeros(values.shape, dtype=np.int64)
        for attribute in self.tables[selector]:
            size = self.sizes[attribute]
            cells = cells * size + values // prod(self.sizes[attribute + 1 :]) % size
        return cells

    def effects(self, weights: Sequence[float]) -> Effects:
        """The least-squares problem with these weights of the views; those of weight 0 are left out."""
        used = zip(self.tables, weights, strict=True)
        return Effects(self.sizes, {table: weight for table, weight in used if weight})

    def estimate(self, domain: Domain, tally: Tally, table: Sequence[str] | None = None) -> TableEstimate:
        """The table of some attributes, from all views at once.

        ``table`` names the attributes; by default all, or the table that is asked about most often where these were not
        asked about together.
        """
        check_reports(tally)
        assert isinstance(domain, RecordDomain), "the plan has checked it"
        solved = self.effects(self.weights(tally.block_reports))
        wanted = self._usual_table if table is None else domain.numbers(table)
        self._check_known(domain, solved, wanted)
        found, moments = {}, {}
        for index, (view, part, reports) in enumerate(zip(self.views, self.tables, tally.block_reports, strict=True)):
            if reports:
                found[part] = view.histogram(tally, index).reshape([self.sizes[attribute] for attribute in part])
                moments[part] = view.moments, reports
        parts = solved.combine(found)
        plausible = {part: solved.table(parts, part).reshape(-1) for part in moments}
        frequencies = solved.table(parts, wanted).reshape(-1)
        uncertainty = TableUncertainty(solved, wanted, moments, plausible, frequencies, tally.reports)
        return TableEstimate(domain.part(wanted), tally.reports, frequencies, uncertainty, weights="planned")

    @property
    def _usual_table(self) -> Attributes:
        every = tuple(range(len(self.sizes)))
        shares = {table: view.share for table, view in zip(self.tables, self.views, strict=True)}
        return every if every in shares else max(shares, key=lambda table: shares[table])

    def _check_known(self, domain: RecordDomain, solved: Effects, wanted: Attributes) -> None:
        names = list(domain.attributes)
        missing = next((part for part in effects.subsets(wanted) if part not in solved.information), None)
        if missing is not None:
            asked = ", ".join("×".join(names[attribute] for attribute in table) for table in self.tables)
            raise EstimateError(
                f"no report tells about {' × '.join(names[attribute] for attribute in missing)}; this plan has the "
                f"tables {asked}. Name one of them, or part of one"
            )

    def table_variance(self, wanted: Attributes, users: int) -> float:
        """The mean variance of a cell of a table at the flat histogram, about a population."""
        check_users(users)
        return effects.cell_variance(self.effects(self._planned), wanted) / users

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """Of a cell, in the mean over the tables of all views, at the flat histogram."""
        if histogram is not None:
            raise ParameterError("a plan of tables tells its error at the flat histogram only; leave histogram out")
        return float(np.mean([self.table_variance(table, users) for table in self.tables]))

    def planned_errors(self, domain: Domain, users: int) -> list[PlannedError]:
        """Of a cell of the table of every view, beside the margin of one histogram of all records."""
        assert isinstance(domain, RecordDomain), "the plan has checked it"
        names, joint = list(domain.attributes), subset_error(self.domain_size, self.epsilon) / users
        return [
            PlannedError(
                " × ".join(names[attribute] for attribute in table),
                self.table_variance(table, users),
                joint * self.domain_size / self._cells(table),
            )
            for table in self.tables
        ]

    def worst_mse(self, users: int) -> float:
        """At least the error at every histogram: what is heavy adds at most its whole to every view."""
        check_users(users)
        worst = max((view.moments.light + abs(view.moments.heavy)) / view.variance for view in self.views)
        return worst * self.expected_mse(users)


def _response(cells: int, epsilon: Fraction) -> BlockResponse:
    return BlockResponse(choose_compact(cells, epsilon), epsilon)
