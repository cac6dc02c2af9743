"""Domains of numbers and dates."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

import sunzi
from sunzi import OrderedDomain
from sunzi.client.domains.labels import read_domain
from sunzi.client.errors import DomainError, PlanError
from sunzi.domains.ranges import shown_number


@pytest.fixture
def times():
    return OrderedDomain(0, 1000, 8, unit="ms")


def test_numbers_fall_into_bins_of_equal_width(times):
    assert times.indices([0, 124.999, 125, 999.9, 1000]).tolist() == [0, 0, 1, 7, 7]
    assert times.indices(np.array([0, 500])).tolist() == [0, 4]
    assert times.indices(["12.5", "1e2"]).tolist() == [0, 0]
    assert times.indices([Decimal("124.999"), Decimal(125)]).tolist() == [0, 1]
    assert times.shown(1) == "125 to 250 ms"
    assert times.width == 125
    np.testing.assert_allclose(times.centres[[0, -1]], [62.5, 937.5])


@pytest.mark.parametrize("value", [-0.001, 1000.001, float("inf"), float("-inf"), 10**400, Decimal("1e400")])
def test_numbers_outside_are_refused(times, value):
    with pytest.raises(
        DomainError, match="outside 0 to 1000; plan with a wider range or with clamp, or send a background report"
    ):
        times.index(value)


@pytest.mark.parametrize("value", [True, "many", [1], b"1", date(2026, 1, 1), Decimal("sNaN")])
def test_what_is_no_number_is_refused(times, value):
    with pytest.raises(DomainError, match="is not a number"):
        times.indices([value])


@pytest.mark.parametrize(
    "values",
    [[timedelta(seconds=1)], [np.timedelta64(3, "ns")], np.array([3], "m8[ns]"), np.array([3], "m8[ms]")],
    ids=["timedelta", "timedelta64", "nanoseconds", "milliseconds"],
)
def test_durations_need_a_unit(times, values):
    """As plain numbers they would count in a unit of their own: pandas' are nanoseconds."""
    with pytest.raises(DomainError, match="is not a number; divide it by the unit"):
        times.indices(values)


@pytest.mark.parametrize("value", [None, float("nan"), "", np.float64("nan")])
def test_missing_numbers_are_refused(times, value):
    with pytest.raises(DomainError, match="a value is missing"):
        times.indices([3, value])


def test_clamping_is_on_request_and_counted():
    domain = OrderedDomain(0, 10, 4, clamp=True)
    values = [-5, 3, 11, float("inf")]
    assert domain.indices(values).tolist() == [0, 1, 3, 3]
    assert domain.count_outside(values) == 3
    with pytest.raises(DomainError, match="missing"):
        domain.index(float("nan"))


def test_dates_are_days():
    domain = OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8)
    assert domain.indices([date(2026, 1, 1), "2026-01-03", datetime(2026, 1, 8, 23, tzinfo=UTC)]).tolist() == [0, 2, 7]
    assert domain.shown(1) == "2026-01-02 to 2026-01-03"
    assert read_domain(domain.to_json(), sunzi.Plan.domain_kind) == domain
    with pytest.raises(DomainError, match="is not a date"):
        domain.index("yesterday")


def test_columns_of_dates_are_read_whatever_their_resolution(times):
    domain = OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8)
    for resolution in ("D", "s", "ns"):
        column = np.array(["2026-01-01", "2026-01-08"], dtype=f"datetime64[{resolution}]")
        assert domain.indices(column).tolist() == [0, 7]
        with pytest.raises(DomainError, match="is not a number"):
            times.indices(column)
    with pytest.raises(DomainError, match="outside 2026-01-01 to 2026-01-08"):
        domain.indices(np.array(["2026-02-01"], dtype="datetime64[ns]"))
    with pytest.raises(DomainError):
        domain.indices(np.array(["NaT"], dtype="datetime64[ns]"))


@pytest.mark.parametrize("after", [date(2026, 1, 9), "2026-01-09", 20462, np.datetime64("2026-01-09"), "2026-01-10"])
def test_the_end_of_a_range_of_dates_is_the_day_after_the_last(after):
    domain = OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8)
    for refused in (domain.index, lambda value: domain.indices([value])):
        with pytest.raises(DomainError, match="is outside 2026-01-01 to 2026-01-08; plan with a wider range"):
            refused(after)
    assert domain.count_outside([after, "2026-01-08", "2026-01-01"]) == 1
    fine = OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 1 << 20, clamp=True)
    assert fine.index(after) == fine.index("2026-01-08") == fine.size * 7 // 8
    assert fine.count_outside([after]) == 1
    assert OrderedDomain(0, 1000, 8).index(1000) == 7  # the end of a range of numbers is in it


def test_the_middle_of_a_bin_of_dates_is_the_mean_of_its_days():
    first = (date(2026, 1, 1) - date(1970, 1, 1)).days
    ends = date(2026, 1, 1), date(2026, 1, 9)
    for bins, middles in ((8, range(8)), (2, (1.5, 5.5)), (3, (1, 4, 6.5))):
        assert (OrderedDomain(*ends, bins).centres - first).tolist() == list(middles)
    assert (OrderedDomain(*ends, 16).centres[:4] - first).tolist() == [0, 0.75, 1, 1.75]  # no day is in the second


def test_numbers_in_plans_have_one_text():
    """Doubles keep 15 digits, so that text, number and text again are the same, in all clients."""
    for ends in ((0.1, 0.3), (1e-15, 5e14), (-0.000000123456789, 123456789012345), (-12345678.9012345, 0)):
        domain = OrderedDomain(*ends, 2)
        assert read_domain(domain.to_json(), sunzi.Plan.domain_kind).to_json() == domain.to_json()
    for number in (1 / 3, 1e15, 1e-16, 12345678.12345678):
        with pytest.raises(DomainError, match="15 significant digits and 15 decimals"):
            OrderedDomain(-1, number, 2)


def test_columns_of_dates_of_any_library_are_days():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    domain = OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8)
    days = [date(2026, 1, 2), date(2026, 1, 8)]
    moments = np.array(["2026-01-02T23:59:59", "2026-01-08"], dtype="datetime64[ns]")
    for column in (days, moments, pandas.Series(moments), arrow.array(days), arrow.array(moments)):
        assert domain.indices(column).tolist() == [1, 7]
    with pytest.raises(DomainError, match="missing"):
        domain.indices(np.array(["2026-01-02", "NaT"], dtype="datetime64[D]"))
    with pytest.raises(DomainError, match="is not a number"):
        OrderedDomain(0, 10**6, 8).indices(moments)


def test_digits_tell_the_numbers_of_a_range_apart():
    day = OrderedDomain(1767225600000, 1767312000000, 256, unit="ms")  # in milliseconds since 1970
    assert day.shown(1) == "1767225937500 to 1767226275000 ms"
    assert day.shown_number(1767265724170.4) == "1767265724170 ms"
    assert OrderedDomain(10**10, 10**10 + 8, 16).shown(1) == "10000000000.5 to 10000000001"
    assert OrderedDomain(-0.1, 0.7, 8).shown(1) == "0 to 0.1"
    assert OrderedDomain(0, 1_000_000, 4, unit="B").shown_number(391586.2) == "391586 B"
    assert [shown_number(12.3456789, "", span) for span in (10, 1e-3, 1e-9, 0)] == [
        "12.346",
        "12.345679",
        "12.3456789",
        "12.346",
    ]


def test_edges_are_found_and_others_refused(times):
    assert [times.position(edge) for edge in (0, 125, 1000)] == [0, 1, 8]
    with pytest.raises(DomainError, match="130 is not the edge of a bin; the nearest are 125 and 250"):
        times.position(130)
    with pytest.raises(DomainError, match="2000 is outside 0 to 1000 ms; give an end within it"):
        times.position(2000)
    assert times.is_edge(250)
    assert not times.is_edge(251)
    assert times.enclosing(130, 250) == (1, 2)
    assert times.enclosing(0, 999) == (0, 8)
    with pytest.raises(DomainError, match="low must be below high, got 130 and 130"):
        times.enclosing(130, 130)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1, 4), "low must be below high"),
        ((0, float("nan"), 4), "high must"),
        ((0, 1e20, 4), "high must be a number of at most 15 significant digits"),
        (("0", 1, 4), "low must be a number or a date"),
        ((0, 1, 1), "bins"),
        ((0, 10**400, 4), "high must be a number"),
        ((datetime(2026, 1, 1), datetime(2026, 2, 1), 4), "dates without a time"),
    ],
)
def test_wrong_ranges_are_refused(arguments, message):
    with pytest.raises(sunzi.SunziError, match=message):
        OrderedDomain(*arguments)


@pytest.mark.parametrize(
    "bounds",
    [
        {"low": "0"},
        {"low": 0, "high": "1"},
        {"low": "0", "high": "1e3"},
        {"low": "00", "high": "1"},
        {"low": "-0", "high": "1"},
        {"low": "0", "high": "1.50"},
        {"low": "0", "high": "1234567.123456789"},
        {"low": "0", "high": "1", "clamp": False},
        {"low": "0", "high": "1", "clamp": 1},
        {"low": "0", "high": "1", "unit": ""},
        {"low": "0", "high": "1", "unit": 3},
        {"low": "0", "high": "1", "unit": "m\n"},
        {"low": "0", "high": "1", "scale": "log"},
        "0:1",
    ],
)
def test_ranges_of_plans_have_one_form(bounds):
    with pytest.raises(PlanError):
        read_domain({"size": 4, "range": bounds}, sunzi.Plan.domain_kind)
