"""Plans for numbers and records: ranges and quantiles, means, and cross tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ulp

from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.errors import ParameterError
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain
from sunzi.numerics.effects import subsets
from sunzi.plan import Plan
from sunzi.protocols.ordered_views import OrderedViews
from sunzi.protocols.rounding import RoundedNumbers
from sunzi.protocols.table_views import TableViews

_STEPS = 1 << 20
_MOST_TOGETHER, _MOST_PARTS, _MOST_CELLS = 8, 1000, 1 << 24


def make_ordered(
    low: object, high: object, bins: int, epsilon: Epsilon, *, clamp: bool = False, unit: str = ""
) -> Plan:
    """Plan a collection of numbers or dates, for ranges, quantiles and the cumulative distribution.

    Parameters
    ----------
    low, high: the range, as numbers, or as dates: the first day and the day after the last.
    bins: a power of two; histograms of wider bins are sums.
    epsilon: the privacy budget of one report.
    clamp: report numbers outside the range as the nearest end instead of refusing them.
    unit: shown after numbers, such as "ms".

    >>> import sunzi
    >>> plan = sunzi.make_ordered(0, 5000, 256, epsilon=1, clamp=True, unit="ms")
    >>> plan.domain.shown(3)
    '58.59375 to 78.125 ms'
    """
    domain = OrderedDomain(low, high, bins, clamp=clamp, unit=unit)
    apart = ulp(max(abs(domain.low), abs(domain.high)))
    if domain.width < apart:
        raise ParameterError(
            f"{domain.size:,} bins of {domain.width:.3g} are too narrow: floating-point numbers from "
            f"{domain.shown_edge(0)} to {domain.shown_edge(domain.size)} are {apart:.3g} apart; use fewer bins, or "
            "subtract the start of the range from all numbers"
        )
    return Plan(OrderedViews.choose(domain.size, parse_epsilon(epsilon)), domain)


def make_number(low: float, high: float, epsilon: Epsilon, *, clamp: bool = False, unit: str = "") -> Plan:
    """Plan a collection of numbers for their mean alone.

    Parameters
    ----------
    low, high: the range. Numbers are rounded to the nearest of a million equal steps.
    epsilon, clamp, unit: as for :func:`make_ordered`.

    >>> import sunzi
    >>> sunzi.make_number(0, 5000, epsilon=4).protocol.grid_points
    5
    """
    domain = OrderedDomain(low, high, _STEPS, clamp=clamp, unit=unit)
    return Plan(RoundedNumbers.choose(domain.size, parse_epsilon(epsilon)), domain)


def make_tables(
    attributes: Mapping[str, Domain | Iterable[str]], wanted: Sequence[Sequence[str]], epsilon: Epsilon
) -> Plan:
    """Plan a collection of records with several attributes, for tables of some of them.

    Parameters
    ----------
    attributes: the values of every attribute: labels, or a :class:`Domain` (with ``other=`` for missing values).
    wanted: the tables, each a list of attributes; every attribute must be in at least one table.
    epsilon: the privacy budget of one report, for the whole record.

    >>> import sunzi
    >>> survey = {"country": ["DE", "FR", "IT"], "crashed": ["no", "yes"], "version": ["1", "2"]}
    >>> plan = sunzi.make_tables(survey, [("country",), ("version", "crashed")], epsilon=2)
    >>> estimate = plan.estimate(plan.simulate([{"country": "FR", "crashed": "no", "version": "2"}] * 500, seed=1),
    ...                          table=("country",))
    >>> estimate.top(1)[0].label
    'country FR'
    """
    domain = RecordDomain(attributes)
    if not _is_list(wanted) or not wanted:
        raise ParameterError(f"wanted must be a list of tables, each a list of attributes, got {wanted!r}")
    tables = [domain.numbers(table) for table in wanted]
    largest = max(map(len, tables))
    if largest > _MOST_TOGETHER:
        raise ParameterError(f"a table has at most {_MOST_TOGETHER} attributes, got one of {largest}")
    widest = max(map(domain.part, tables), key=lambda part: part.size)
    if widest.size > _MOST_CELLS:
        raise ParameterError(
            f"the table {' × '.join(widest.attributes)} has {widest.size:,} cells, more than 2^24; merge rare values, "
            "or leave attributes out"
        )
    parts = len({part for table in tables for part in subsets(table)})
    if parts > _MOST_PARTS:
        raise ParameterError(f"a plan has at most {_MOST_PARTS:,} tables and margins, got {parts:,}; request fewer")
    if len(set(tables)) != len(tables):
        raise ParameterError("wanted lists a table twice")
    unused = [name for number, name in enumerate(domain.attributes) if not any(number in table for table in tables)]
    if unused:
        raise ParameterError(f"no table has the attribute {unused[0]!r}; add one, or remove the attribute")
    return Plan(TableViews.choose(domain.size, parse_epsilon(epsilon), domain.sizes, tables), domain)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))
