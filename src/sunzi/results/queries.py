"""Linear queries: values, weights or groups, as rows with one weight per value of the domain; and their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, shown
from sunzi.domains.labels import Domain
from sunzi.domains.records import RecordDomain
from sunzi.numerics.checks import real_number


@dataclass(frozen=True)
class QueryResult:
    """The answer to a linear query: a value with its standard error and interval.

    It uses that all frequencies add up to 1, so it may be more accurate than the frequencies themselves.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: float

    def record(self, reports: int) -> dict[str, float]:
        """For JSON and CSV, as a share of this number of reports."""
        return {
            "frequency": self.value,
            "low": self.low,
            "high": self.high,
            "standard_error": self.standard_error,
            "count": self.value * reports,
        }


def parse_value(domain: Domain, text: str) -> object:
    """An index where values are indices, or a record from JSON; else the text, which the domain reads as a label,
    number or date.

    >>> import sunzi
    >>> parse_value(sunzi.Domain(5), "3"), parse_value(sunzi.Domain(["1", "3"]), "3")
    (3, '3')
    >>> parse_value(sunzi.RecordDomain({"version": ["1", "3"]}), '{"version": "3"}')
    {'version': '3'}
    """
    if isinstance(domain, RecordDomain):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            example = json.dumps(domain.example(0), ensure_ascii=False)
            raise ParameterError(f"a record must be JSON, such as {example}; got {shown(text)}: {error}") from None
    return int(text) if domain.is_indices and re.fullmatch("[0-9]{1,19}", text) else text


def indicator(domain: Domain, values: Iterable[object]) -> Floats:
    """A row with 1 for these values and 0 for others.

    Parameters
    ----------
    domain: the values of the estimate.
    values: labels, or indices where there are no labels; each once.

    >>> import sunzi
    >>> indicator(sunzi.Domain(["Chrome", "Edge", "Safari"]), ["Chrome", "Edge"])
    array([1., 1., 0.])
    """
    if isinstance(values, str):
        raise ParameterError(f"give a list of values, such as [{values!r}]; got the text {values!r}")
    if not isinstance(values, Iterable):
        raise ParameterError(f"give a list of values, got {shown(values)}")
    row, indices = np.zeros(domain.size), domain.exact_indices(values)
    _check_once(domain, indices)
    row[indices] = 1.0
    return row


def _check_once(domain: Domain, indices: Integers) -> None:
    """Refuse values that are listed twice: two numbers may be in one bin."""
    found, counts = np.unique(indices, return_counts=True)
    if (counts > 1).any():
        raise ParameterError(f"{domain.shown(int(found[counts.argmax()]))!r} is listed twice")


def weights_row(domain: Domain, weights: Mapping[Any, float] | Sequence[float] | Floats) -> Floats:
    """A row with these weights.

    Parameters
    ----------
    domain: the values of the estimate.
    weights: a weight for some values, the others having 0; or one for every value in the domain's order.

    >>> import sunzi
    >>> weights_row(sunzi.Domain(["0", "1", "2"]), {"1": 1, "2": 2})
    array([0., 1., 2.])
    """
    if isinstance(weights, Mapping):
        row = np.zeros(domain.size)
        numbers = [real_number(f"the weight of {value!r}", weight) for value, weight in weights.items()]
        indices = domain.exact_indices(weights)
        _check_once(domain, indices)
        row[indices] = numbers
        return row
    try:
        row = np.asarray(weights, dtype=np.float64)
    except (ValueError, TypeError):
        raise ParameterError(f"weights must be numbers, got {shown(weights)}") from None
    if row.shape != (domain.size,) or not np.isfinite(row).all():
        raise ParameterError(
            f"weights must be a mapping, or {domain.size} finite numbers, one per value; got shape {row.shape}"
        )
    return row


def group_rows(domain: Domain, groups: Mapping[str, Any]) -> Floats:
    """One row of 0s and 1s per group; the groups partition the values.

    Parameters
    ----------
    domain: the values of the estimate.
    groups: for every group its values; ``...`` for one group takes all values that no other has.

    >>> import sunzi
    >>> group_rows(sunzi.Domain(["Chrome", "Edge", "Safari"]), {"Chromium": ["Chrome", "Edge"], "rest": ...})
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """
    if not isinstance(groups, Mapping):
        raise ParameterError(f"give a mapping of groups to their values, got {shown(groups)}")
    rest = [name for name, values in groups.items() if values is ...]
    if len(rest) > 1:
        raise ParameterError(f"only one group can be ..., the rest; got {rest}")
    rows = {name: indicator(domain, values) for name, values in groups.items() if values is not ...}
    taken = np.sum(list(rows.values()), axis=0) if rows else np.zeros(domain.size)
    if taken.max() > 1:
        value = domain.shown(int(taken.argmax()))
        raise ParameterError(f"{value!r} is in more than one group; every value belongs to exactly one")
    if rest:
        rows[rest[0]] = 1 - taken
    elif taken.min() < 1:
        value = domain.shown(int(taken.argmin()))
        raise ParameterError(f"{value!r} is in no group; add a group such as 'rest': ... for all other values")
    empty = [name for name in groups if not rows[name].any()]
    if empty:
        raise ParameterError(f"the group {empty[0]!r} has no values")
    return np.array([rows[name] for name in groups])
