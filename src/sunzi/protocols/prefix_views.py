"""Open domains: views of prefixes and of whole texts, modulo primes (docs/mathematics.md §18).

Search views propose texts, count views estimate them. No report serves both, so any search is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, shown, whole_number
from sunzi.client.protocols import prefixes as client
from sunzi.client.protocols.views import SHARE_BITS
from sunzi.designs.response import BlockResponse
from sunzi.domains.labels import Domain
from sunzi.domains.texts import Digits, OpenDomain, distinct, read_texts
from sunzi.errors import EstimateError
from sunzi.numerics.checks import real_number
from sunzi.numerics.polynomial_hash import residues
from sunzi.protocols.base import check_users
from sunzi.protocols.channel import Channel
from sunzi.protocols.joint_fit import JointFit, Solver
from sunzi.protocols.views import View, ViewsProtocol, integer_shares

if TYPE_CHECKING:
    from sunzi.results.discovery import Discovery, TextEstimate, Threshold
    from sunzi.tally import Tally

LEAST_REPORTS = 30
"""The reports that each view needs before a search; with fewer, no text could be found."""

CELLS = 1 << 19
"""The default minimum number of cells of a view."""


@dataclass(frozen=True)
class PrefixView(client.PrefixView, View):
    """The first ``digits`` digits of a text as a number in base ``base`` modulo ``cells``."""

    response: BlockResponse

    def points(self, texts: Integers) -> Integers:
        """The cells of rows of digits."""
        return residues(texts[:, : self.digits], self.base, self.cells)

    @property
    def null_variance(self) -> float:
        """The variance of an empty cell, for one report."""
        rates = self.response.probabilities
        return rates.false * (1 - rates.false) / rates.gap**2


@dataclass(frozen=True)
class PrefixViews(client.PrefixViews, ViewsProtocol):
    """Prefixes and whole texts, modulo primes."""

    error_of = "the frequency of a text"
    view_kind = PrefixView

    views: tuple[PrefixView, ...]

    def with_role(self, role: str) -> dict[int, PrefixView]:
        """The views with a role, by their number."""
        return {number: view for number, view in enumerate(self.views) if view.role == role}

    @classmethod
    def domain_options(cls, domain: Domain) -> dict[str, Any]:
        """The alphabet and the length of texts."""
        return {"domain": domain}

    @classmethod
    def choose(
        cls, domain_size: int, epsilon: Fraction, domain: OpenDomain, *, list_only: bool = False, cells: int = CELLS
    ) -> Self:
        """Views for an open domain.

        ``list_only`` plans no search, so that only texts that you list later can be estimated; ``cells`` is the minimum
        number of cells of a view: with more cells fewer texts collide, but tallies take more memory.
        """
        from sunzi.protocols.prefix_planning import planned_views

        return cls(domain_size, planned_views(domain, epsilon, list_only=list_only, cells=cells))

    def points_of(self, selector: int, values: Integers) -> Integers:
        """The cells of the view."""
        return self.views[selector].points(values)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """None: analyses of single reports enumerate all values, and there is no list of them."""
        return ()

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self | None:  # noqa: ARG002 - not possible
        """None: exhaustive checks enumerate all values."""
        return None

    def joint_fit(self, tally: Tally) -> JointFit | None:  # noqa: ARG002 - there is none
        """None: texts are estimated one by one."""
        return None

    def targets(self, number: int) -> list[int]:  # noqa: ARG002 - refused
        """There is no list of values to choose from."""
        raise ParameterError(f"{self.name} has no list of values to choose targets for fake clients from")

    def _smallest(self, views: tuple[View, ...]) -> Self:  # noqa: ARG002 - refused
        raise ParameterError(f"{self.name} has no list of values to go through")

    def _solver(self, weights: Sequence[float]) -> Solver:  # noqa: ARG002 - refused
        raise ParameterError(f"{self.name} has no list of values to solve for")

    def _rows_of(self, row: Floats) -> list[Floats]:  # noqa: ARG002 - refused
        raise ParameterError(f"{self.name} has no list of values, so none can be pushed")

    @property
    def compared_values(self) -> Integers:
        """Three texts of one token each, which differ in every view."""
        return np.array([[1], [2], [3]])

    @property
    def counting_share(self) -> float:
        """The share of reports that count whole texts."""
        return float(sum(view.share for view in self.with_role("count").values()) / (1 << SHARE_BITS))

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """The MSE for a text that no user holds; any rare text has the same."""
        check_users(users)
        if histogram is not None:
            raise ParameterError("an open domain has no list of values, so there is no histogram; omit histogram=")
        counts = list(self.with_role("count").values())
        return float(np.mean([view.null_variance for view in counts])) / (users * self.counting_share)

    def worst_mse(self, users: int) -> float:
        """An upper bound: the MSE for a text held by half of all users, or by all."""
        rates = [view.response.probabilities for view in self.with_role("count").values()]
        noise = max(max(rate * (1 - rate) for rate in (each.true, each.false)) / each.gap**2 for each in rates)
        check_users(users)
        return (noise + 0.25) / (users * self.counting_share)

    def estimate(self, domain: Domain, tally: Tally, labels: Any = None) -> TextEstimate:
        """The frequencies of some texts, from the count views alone."""
        from sunzi.protocols.prefix_counts import text_estimate

        assert isinstance(domain, OpenDomain), "the plan has checked it"
        if labels is None:
            raise EstimateError(
                "this plan has no list of values: plan.discover(tally) or 'sunzi discover' finds the frequent texts, "
                "and plan.estimate(tally, labels=[...]) estimates texts that you name"
            )
        return text_estimate(self, domain, tally, distinct(_read(domain, labels)))

    def discover(
        self,
        domain: Domain,
        tally: Tally,
        *,
        prior: Any = None,
        candidates: Any = None,
        false_share: float = 0.05,
        beam: int | None = None,
    ) -> Discovery:
        """Search, then count the texts found in the other reports."""
        from sunzi.protocols.prefix_counts import accepted, text_estimate
        from sunzi.protocols.prefix_search import BEAM, PrefixSearch
        from sunzi.protocols.text_prior import TextPrior

        assert isinstance(domain, OpenDomain), "the plan has checked it"
        if not 0 < real_number("false_share", false_share) < 1:
            raise ParameterError(f"false_share must lie between 0 and 1, got {shown(false_share)}")
        beam = BEAM if beam is None else whole_number("beam", beam, 1)
        self.check_enough(tally)
        search = PrefixSearch.of(self, domain, tally, beam)
        if candidates is not None:
            if prior is not None:
                raise ParameterError("a list of candidates needs no prior; omit one of them")
            proposed = search.among(_read(domain, candidates))
        else:
            proposed = search.best(None if prior is None else TextPrior.of(_read(domain, prior), domain.end))
        return accepted(text_estimate(self, domain, tally, proposed), false_share)

    def check_enough(self, tally: Tally) -> None:
        """Raise EstimateError unless every view has enough reports for any discovery."""
        if min(tally.block_reports) < LEAST_REPORTS:
            smallest = min(view.share for view in self.views) / (1 << SHARE_BITS)
            needed = round(2 * LEAST_REPORTS / smallest, -2)
            raise EstimateError(
                f"too few reports to find any text: {tally.reports:,}, and one of the {len(self.views)} views has only "
                f"{min(tally.block_reports):,}; each needs {LEAST_REPORTS}, so collect about {needed:,.0f} reports"
            )

    def detection(
        self, domain: Domain, users: int, *, false_share: float = 0.05, recall: float = 0.8
    ) -> list[Threshold]:
        """How frequent a text must be to be found, by its length."""
        from sunzi.protocols.prefix_planning import thresholds

        assert isinstance(domain, OpenDomain), "the plan has checked it"
        check_users(users)
        return thresholds(self, domain, users, false_share, recall)


def _read(domain: OpenDomain, source: Any) -> Digits:
    """The digits of texts, given or in a file."""
    if isinstance(source, (bytes, Mapping)) or not isinstance(source, (Iterable, Path)):
        raise ParameterError(f"texts must be a list, or the name of a file with one per line, got {shown(source)}")
    if isinstance(source, str) and not Path(source).exists():
        raise ParameterError(f"there is no file {shown(source)}; to pass a single text, put it in a list")
    parts = [domain.digits(piece) for piece in read_texts(source)]
    return np.concatenate([np.empty((0, domain.width), dtype=np.uint16), *parts])


def with_shares(views: Iterable[PrefixView]) -> tuple[PrefixView, ...]:
    """The views with equal shares."""
    listed = list(views)
    shares = integer_shares([1 / len(listed)] * len(listed))
    return tuple(replace(view, share=share) for view, share in zip(listed, shares, strict=True))
