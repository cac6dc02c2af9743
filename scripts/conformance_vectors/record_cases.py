"""Plans of the accepted vectors that are about numbers, dates and records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from conformance_vectors.cases import Case
from conformance_vectors.plans import SURVEY, View
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.singletons import Singletons
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain

ALL = 1 << 32
"""The sum of the shares of all views."""


def record_cases() -> Iterator[Case]:
    """Plans of ordered values, tables and numbers."""
    yield from ordered_cases()
    yield from table_cases()
    yield from number_cases()


def ordered_cases() -> Iterator[Case]:
    """Numbers at the edges of bins, outside the range, and whose bins depend on rounding; dates, labels, bare sizes."""
    halves: list[View] = [(1, 1 << 31), (2, (1 << 30) + 1), (3, (1 << 30) - 1)]
    designs = [Singletons(2), Cyclotomic(5, 2), Cyclotomic(11, 5)]
    plain = OrderedDomain(0, 5000, 8, unit="ms")
    values: list[float | str] = [624.9999999999999, 0, 625, 1250, 5000, 4999.999, 2500, -0.0, 0.1]
    yield Case("ordered_8_bins", "ordered", plain, "1", designs, values, views=halves)
    # The ends have no exact doubles, and these numbers are at edges of bins or one step beside them.
    clamped = OrderedDomain(-0.1, 0.7, 16, clamp=True, unit="µs")
    values = [0.1, -5, 0.7, 1e300, -1e300, -0.1, 0.2, 0.3, 0.6, 0.15, 0.25, 0.35, 0.65, 0.05, 0.45, 0.55, 0.5]
    levels: list[View] = [(2, 12_345), (4, ALL - 12_345)]
    designs = [Cyclotomic(5, 2), Cyclotomic(17, 4)]
    yield Case("ordered_clamp", "ordered", clamped, "3/2", designs, values, views=levels)
    thirds = OrderedDomain(-1_000_000.125, 3, 4, clamp=True)
    values = [-1_000_000.125, -750_000.0937500001, -500_000.0625, 3, 2.9999999999, -1_000_001, 0]
    designs = [Singletons(2), Singletons(4)]
    yield Case("ordered_negative", "ordered", thirds, "2", designs, values, views=[(1, 1), (2, ALL - 1)])
    days = OrderedDomain(date(2024, 1, 1), date(2024, 3, 5), 64)
    values = ["2024-02-29", "2024-01-01", "2024-03-04", 19723.5, 19786.999, 19786]
    designs = [Singletons(2), Cyclotomic(67, 6)]
    yield Case("ordered_dates", "ordered", days, "1/2", designs, values, views=[(1, ALL - 1), (6, 1)])
    early = OrderedDomain(date(1900, 1, 1), date(2100, 1, 1), 2, clamp=True)
    values = ["1969-12-31", "0001-01-01", "9999-12-31", "2000-01-01", "1999-12-31", "1970-01-01"]
    yield Case("ordered_dates_clamp", "ordered", early, "1/3", [Singletons(2)], values, views=[(1, ALL)])
    labels = Domain(["low", "medium", "high", "?"], other="?")
    values = ["medium", "low", "high", "?", "unheard of"]
    designs = [Singletons(2), Cyclotomic(5, 4)]
    yield Case("ordered_labels_other", "ordered", labels, "1", designs, values, views=[(1, 1 << 31), (2, 1 << 31)])
    one: list[View] = [(4, ALL)]
    yield Case("ordered_one_level", "ordered", Domain(16), "1", [Cyclotomic(17, 4)], views=one)
    largest = OrderedDomain(0, 999_999_999_999_999, 1 << 30)
    values = [999_999_999_999_998, 999_999_999_999_999, 0, 931_322.5746154776, 931_322.5746154777, 123_456_789_012_345]
    designs = [Singletons(1 << 20), Singletons(1 << 31)]
    yield Case("ordered_largest", "ordered", largest, "20", designs, values, views=[(20, 1 << 31), (30, 1 << 31)])


def table_cases() -> Iterator[Case]:
    """Missing attributes, attributes of every kind, names that objects have already, and as many records as fit."""
    views: list[View] = [([0], 1 << 30), ([0, 1], 1), ([0, 1, 2], 3 * (1 << 30) - 1)]
    designs = [Singletons(3), Cyclotomic(7, 3), Cyclotomic(43, 6)]
    records = [
        {"version": "2", "crashed": "yes", "day": 6},
        {"version": "1", "crashed": "no", "day": 0},
        {"day": 3, "version": "3"},
        {"day": 3, "version": "3", "crashed": None},
        {"day": 3, "version": "3", "crashed": "maybe"},
    ]
    yield Case("tables_survey", "tables", SURVEY, "2", designs, records, views=views)
    awkward = RecordDomain(
        {
            "__proto__": Domain(["a", "b", "?"], other="?"),
            "länge, 長さ": OrderedDomain(0, 1, 4, clamp=True),
            "constructor": Domain(2),
            "since": OrderedDomain(date(2020, 1, 1), date(2030, 1, 1), 5),
        }
    )
    views = [([3], 5), ([0, 2], 1 << 20), ([1], 1 << 31), ([0, 1, 2, 3], (1 << 31) - (1 << 20) - 5)]
    designs = [Cyclotomic(5, 2), Singletons(6), Cyclotomic(5, 2), Cyclotomic(127, 6)]
    records = [
        {"__proto__": "b", "länge, 長さ": 0.75, "constructor": 1, "since": "2026-11-16"},
        {"länge, 長さ": 0.7499999999999999, "constructor": 0, "since": "2020-01-01"},
        {"__proto__": "a", "länge, 長さ": -7, "constructor": 0, "since": "2029-12-31"},
        {"__proto__": "", "länge, 長さ": 7.5, "constructor": 1, "since": 20089},
    ]
    yield Case("tables_awkward", "tables", awkward, "1", designs, records, views=views)
    # 2^53 - 1, the largest integer that all JSON libraries keep, is the product of these three primes.
    large = RecordDomain({"a": Domain(6361), "b": Domain(69431), "c": Domain(20394401)})
    views = [([0], 1 << 30), ([1], 1 << 30), ([2], 1 << 30), ([0, 1], 1 << 30)]
    designs = [Cyclotomic(6361, 6), Singletons(69431), Singletons(20394401), Singletons(6361 * 69431)]
    records = [
        {"a": 6360, "b": 69430, "c": 20394400},
        {"a": 0, "b": 0, "c": 0},
        {"a": 6360, "b": 69430, "c": 20394399},
        {"a": 6360, "b": 0, "c": 20394400},
        {"a": 3180, "b": 34716, "c": 10197201},
    ]
    yield Case("tables_largest", "tables", large, "20", designs, records, views=views)
    one = RecordDomain({"answer": ["yes", "no"]})
    views = [([0], ALL)]
    records = [{"answer": "no"}, {"answer": "yes"}]
    yield Case("tables_one_attribute", "tables", one, "1", [Singletons(2)], records, views=views)
    binary = RecordDomain({f"q{number}": Domain(2) for number in range(30)})
    views = [([0, 29], 1 << 30), ([28, 29], 1 << 30), ([7], 1 << 31)]
    records = [
        {f"q{number}": number * number % 7 % 2 for number in range(30)},
        {f"q{number}": 1 for number in range(30)},
        {f"q{number}": int(number > 28) for number in range(30)},
    ]
    designs = [Singletons(4), Cyclotomic(5, 2), Singletons(2)]
    yield Case("tables_30_attributes", "tables", binary, "1", designs, records, views=views)


def number_cases() -> Iterator[Case]:
    """Few and many points to round to, numbers that are points already, and a range of two steps."""
    million = OrderedDomain(0, 5000, 1 << 20, unit="ms")
    values: list[float | str] = [1234.5, 0, 5000, 2500, 1250, 4999.99]
    yield Case("number_2_points", "number", million, "1", [Singletons(2)], values)
    yield Case("number_5_points", "number", million, "4", [Singletons(5)], values)
    clamped = OrderedDomain(-1, 1, 1 << 20, clamp=True)
    yield Case("number_clamp", "number", clamped, "6", [Singletons(9)], [0.3, -2, 2, -1, 1, 0, 1e-9])
    two = OrderedDomain(0, 1, 2)
    yield Case("number_2_steps", "number", two, "1/2", [Singletons(2)], [0.5, 0.25, 1, 0])
    exact = OrderedDomain(0, 256, 256)
    yield Case("number_256_points", "number", exact, "8", [Singletons(256)], [100, 0, 256, 255.5, 1])
    fine = OrderedDomain(date(2000, 1, 1), date(2030, 1, 1), 1 << 30)
    values = ["2024-02-29", "2000-01-01", "2029-12-31", 15000.25]
    yield Case("number_dates", "number", fine, "2", [Singletons(3)], values)
    # Days outside count as the first and the last day, which is one before the end of the range.
    week = OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 1 << 20, clamp=True)
    values = ["2026-01-08", "2026-01-09", "9999-12-31", "2025-12-31", 20461, 20460.5]
    yield Case("number_dates_clamp", "number", week, "2", [Singletons(3)], values)
