"""Counting texts in held-out reports, and selecting the texts that are present (docs/mathematics.md §18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom, norm

from sunzi._typing import Floats
from sunzi.domains.texts import TextList
from sunzi.errors import EstimateError
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.protocols.prefix_tables import ViewTable, normal_equations, view_tables
from sunzi.results.discovery import CountUncertainty, Discovery, FoundText, TextEstimate

if TYPE_CHECKING:
    from sunzi.domains.texts import Digits, OpenDomain
    from sunzi.protocols.prefix_views import PrefixViews
    from sunzi.tally import Tally

# Texts that stand out are solved jointly: about this many that no user holds do so by chance, and at most so many.
_BY_CHANCE = 5
_MOST_TOGETHER = 1000
_TEXTS_AT_ONCE = 1 << 18
_MISSED = 0.05


def text_estimate(protocol: PrefixViews, domain: OpenDomain, tally: Tally, digits: Digits) -> TextEstimate:
    """The estimate of these texts from the count views. Its errors account for random collisions."""
    views = protocol.with_role("count")
    if not all(tally.block_reports[number] for number in views):
        raise EstimateError(
            f"a view that counts texts has no report yet; this plan counts with {len(views)} of {len(protocol.views)} "
            "views, so collect more reports"
        )
    tables = view_tables(views, tally)
    frequencies, inflation, rest = _solved(tables, digits)
    weights = np.array([1 / table.standard_error**2 for table in tables])
    spread = np.array([max(table.spread, table.standard_error**2) for table in rest])
    variance = float((weights**2 * spread).sum() / weights.sum() ** 2)
    counting = sum(table.reports for table in tables)
    uncertainty = CountUncertainty(frequencies, variance, inflation, tally.reports, counting, _mean_rates(tables))
    return TextEstimate(TextList(domain, digits), tally.reports, frequencies, uncertainty)


def _solved(tables: list[ViewTable], digits: Digits) -> tuple[Floats, Floats, list[ViewTable]]:
    """The frequencies of all texts; the factors by which separating texts that collide inflates their variances; and
    the tables with the texts that stand out subtracted.
    """
    inflation = np.ones(len(digits))
    if not len(digits):
        return np.empty(0), inflation, tables
    precision = sum(1 / table.standard_error**2 for table in tables)
    found = _averages(tables, digits)
    together = np.argsort(-found, kind="stable")[:_MOST_TOGETHER]
    limit = norm.isf(min(0.5, _BY_CHANCE / len(digits))) / precision**0.5
    together = together[found[together] > limit]
    chosen = digits[together]
    normal, right = normal_equations(tables, chosen)
    inverse = np.linalg.inv(normal.toarray())
    solved = inverse @ right
    rest = [table.without(table.view.points(chosen.astype(np.int64)), solved) for table in tables]
    found = _averages(rest, digits)
    found[together] = solved
    inflation[together] = np.maximum(1.0, inverse.diagonal() * precision)
    return found, inflation, rest


def _averages(tables: list[ViewTable], digits: Digits) -> Floats:
    """The weighted mean of each text's cells."""
    weights = np.array([1 / table.standard_error**2 for table in tables])
    found = np.empty(len(digits))
    for start in range(0, len(digits), _TEXTS_AT_ONCE):
        part = digits[start : start + _TEXTS_AT_ONCE].astype(np.int64)
        values = [table.at(table.view.points(part)) for table in tables]
        found[start : start + _TEXTS_AT_ONCE] = weights @ np.array(values) / weights.sum()
    return found


def _mean_rates(tables: list[ViewTable]) -> SupportProbabilities:
    """How often a report supports the cell of its own text, and that of another text, which is its own by chance."""
    shares = np.array([table.reports for table in tables]) / sum(table.reports for table in tables)
    rates = [table.view.response.probabilities for table in tables]
    chances = 1 / np.array([table.view.cells for table in tables])
    columns = [
        (rate.true, rate.false + rate.gap * chance, rate.gap * (1 - chance))
        for rate, chance in zip(rates, chances.tolist(), strict=True)
    ]
    return SupportProbabilities(*(shares @ np.array(columns)).tolist())


def accepted(estimate: TextEstimate, false_share: float) -> Discovery:
    """The texts that are present, by Benjamini and Hochberg, with the intervals of Benjamini and Yekutieli."""
    uncertainty = estimate._known_uncertainty()
    assert isinstance(uncertainty, CountUncertainty), "text_estimate made it"
    p_values = _p_values(uncertainty)
    number, order = p_values.size, np.argsort(p_values, kind="stable")
    passing = np.flatnonzero(p_values[order] <= false_share * np.arange(1, number + 1) / max(number, 1))
    chosen = order[: passing[-1] + 1] if passing.size else order[:0]
    level = false_share * max(chosen.size, 1) / max(number, 1)
    threshold = float(norm.isf(level) * uncertainty.variance**0.5)
    if not chosen.size:
        return Discovery((), estimate.reports, number, false_share, threshold)
    low, high = estimate.interval(1 - _MISSED * chosen.size / number)
    ranked = chosen[np.argsort(-estimate.frequencies[chosen], kind="stable")]
    columns = (estimate.frequencies, low, high, p_values)
    rows = [
        FoundText(estimate.domain.label(place), *(float(column[place]) for column in columns))
        for place in ranked.tolist()
    ]
    return Discovery(tuple(rows), estimate.reports, number, false_share, threshold)


def _p_values(uncertainty: CountUncertainty) -> Floats:
    """The larger of the exact tail, for small counts, and the normal one, which accounts for collisions."""
    normal = norm.sf(uncertainty.frequencies / uncertainty.null_variances**0.5)
    exact = binom.sf(uncertainty.supports - 1, uncertainty.counting, uncertainty.probabilities.false)
    return np.asarray(np.maximum(normal, exact))
