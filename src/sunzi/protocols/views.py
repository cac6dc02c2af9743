"""Several questions about one record: a report answers one of them, with the whole ε (docs/mathematics.md §13, §14).

A *view* is a public map of the record to the cells of a small table: the node of an ordered value at one level, or the
values of some attributes. A client draws a view with public probabilities, independent of its record, and reports the
cell through a block response. The server combines all views by weighted least squares.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats
from sunzi.client.protocols import views as client
from sunzi.client.protocols.views import SHARE_BITS
from sunzi.client.randomness import WordSource
from sunzi.designs.base import DecodingCost
from sunzi.designs.choice import choose_compact
from sunzi.designs.response import BlockResponse
from sunzi.numerics.randomness import word_array
from sunzi.protocols.base import check_reports, padded
from sunzi.protocols.channel import FirstWord
from sunzi.protocols.joint_fit import JointFit, Solver, SymmetricFit
from sunzi.protocols.modular_variance import BlockMoments
from sunzi.protocols.selection import JointMessages
from sunzi.tally import Tally


@dataclass(frozen=True)
class View(client.View):
    """One question: how often it is asked, and how it is answered."""

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
class ViewsProtocol(client.ViewsProtocol, JointMessages):
    """Views of a record, each with the whole ε; a report answers one of them.

    The selector of a report is the number of views j with share_0 + … + share_j ≤ u, u the upper 32 bits of its word.
    """

    views: tuple[View, ...]

    @cached_property
    def responses(self) -> tuple[BlockResponse, ...]:
        """The block responses of the views."""
        return tuple(view.response for view in self.views)

    @cached_property
    def shares(self) -> Floats:
        """How often each view is drawn."""
        return np.array([view.share for view in self.views]) / (1 << SHARE_BITS)

    @cached_property
    def first_word(self) -> FirstWord:
        """A view."""
        return FirstWord(len(self.views), tuple(view.share for view in self.views))

    @property
    def different_values(self) -> tuple[int, int]:
        """The first and the last record, which differ in every attribute and at every level."""
        return 0, self.domain_size - 1

    @cached_property
    def _bounds(self) -> NDArray[np.uint64]:
        return np.cumsum([view.share for view in self.views[:-1]], dtype=np.uint64)

    def draw_selectors(self, count: int, source: WordSource) -> NDArray[np.uint16]:
        """Each view with its share. For exhaustive checks, words of fewer bits give shares rounded to these bits."""
        words = word_array(source, count)
        shift = source.word_bits - SHARE_BITS
        upper = words >> np.uint64(shift) if shift >= 0 else words << np.uint64(-shift)
        return np.searchsorted(self._bounds, upper, side="right").astype(np.uint16)

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self | None:
        """If ``smallest``, two views of four values, with one small design of every kind in use, or two if there is
        only one kind.
        """
        responses = self._narrowed_responses(epsilon, word_bits, smallest)
        if not smallest:
            views = zip(self.views, responses, strict=True)
            return replace(self, views=tuple(replace(view, response=response) for view, response in views))
        if len(responses) != 2:
            return None
        few, many = sorted(responses, key=lambda response: response.points)
        share = 1 << (SHARE_BITS - 1)
        return self._smallest((View(2, share, few), View(4, share, many)))

    @abstractmethod
    def _smallest(self, views: tuple[View, ...]) -> Self:
        """A protocol of four values, with these views of 2 and of 4 cells."""

    @property
    def words_per_report(self) -> float:
        """The selector and a block response."""
        return 1 + float(self.shares @ [view.response.words_per_report for view in self.views])

    @property
    def attackability(self) -> float:
        """The attacker picks the most likely cell of the view, and guesses the rest of the record."""
        return float(self.shares @ [view.response.best_guess_sum(view.cells) for view in self.views]) / self.domain_size

    @property
    def reading_work(self) -> float:
        """The mean over the views."""
        return float(self.shares @ [view.response.design.reading_work for view in self.views])

    def decoding_cost(self, reports: int) -> DecodingCost | None:
        """Every view by its own route; the route stated is that of the first."""
        costs = [view.response.design.point_counts_cost(reports, view.cells) for view in self.views]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        return DecodingCost(sum(cost.operations for cost in known), known[0].route)

    def flat_points(self, channel: int) -> Floats:
        """All cells are equally frequent."""
        view = self.views[channel]
        return padded(np.full(view.cells, 1 / view.cells), view.response.points)

    def weights(self, reports: Sequence[float]) -> list[float]:
        """The weight of each view's estimate: its reports divided by their variance at the flat histogram."""
        return [number / view.variance for view, number in zip(self.views, reports, strict=True)]

    @property
    def _planned(self) -> list[float]:
        return self.weights(self.shares.tolist())

    def histograms(self, tally: Tally) -> list[Floats | None]:
        """The estimated cells of every view; None without reports."""
        reports = zip(self.views, tally.block_reports, strict=True)
        return [view.histogram(tally, index) if number else None for index, (view, number) in enumerate(reports)]

    def joint_fit(self, tally: Tally) -> JointFit | None:
        """The fit of all views that have reports, weighted by their number."""
        check_reports(tally)
        total, used = tally.reports, np.array(tally.block_reports) > 0
        weights = self.weights([number / total for number in tally.block_reports])
        views = [view for view, is_used in zip(self.views, used, strict=True) if is_used]
        return SymmetricFit(
            used,
            [number for number in tally.block_reports if number],
            np.array([weight for weight in weights if weight]),
            [view.moments for view in views],
            [view.response for view in views],
            [found for found in self.histograms(tally) if found is not None],
            self._solver(weights),
        )

    @abstractmethod
    def _solver(self, weights: Sequence[float]) -> Solver:
        """Least squares with these weights of the views; raises EstimateError if they do not determine the rest."""

    def target_parts(self, targets: Sequence[int]) -> tuple[Floats, ...]:
        """The rows of the linear map with planned weights."""
        rows = self._rows_of(self.target_row(targets))
        return tuple(padded(row, view.response.points) for row, view in zip(rows, self.views, strict=True))

    @abstractmethod
    def _rows_of(self, row: Floats) -> list[Floats]:
        """The coefficients of every view's cells in the estimate of a sum with these weights, with planned weights."""

    def _used(self, weights: Sequence[float], tally: Tally) -> list[float]:
        """Weights, 0 for views without reports."""
        pairs = zip(weights, tally.block_reports, strict=True)
        return [weight if number else 0.0 for weight, number in pairs]


def integer_shares(shares: Sequence[float]) -> list[int]:
    """Shares out of 2^32 as positive integers; the largest one absorbs the rounding."""
    total = 1 << SHARE_BITS
    rounded = [max(1, round(share * total)) for share in shares]
    rounded[rounded.index(max(rounded))] += total - sum(rounded)
    return rounded


def best_response(cells: int, epsilon: Fraction) -> BlockResponse:
    """The response with the least error on this many cells and a short message."""
    return BlockResponse(choose_compact(cells, epsilon), epsilon)
