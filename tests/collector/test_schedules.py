"""Schedules: daily, weekly and cron, through daylight saving time, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from sunzi.client.errors import ParameterError
from sunzi.collector.schedules import Schedule

NOW = datetime(2026, 11, 16, 15, 30, tzinfo=UTC)  # a Monday


def moment(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "latest", "following"),
    [
        (("daily",), "2026-11-16T00:00", "2026-11-17T00:00"),
        (("daily", "15:30"), "2026-11-16T15:30", "2026-11-17T15:30"),
        (("daily", "15:31"), "2026-11-15T15:31", "2026-11-16T15:31"),
        (("daily", "04:00", "Europe/Berlin"), "2026-11-16T03:00", "2026-11-17T03:00"),
        (("weekly",), "2026-11-16T00:00", "2026-11-23T00:00"),
        (("weekly", "16:00"), "2026-11-09T16:00", "2026-11-16T16:00"),
        (("0 4 * * *",), "2026-11-16T04:00", "2026-11-17T04:00"),
        (("*/20 * * * *",), "2026-11-16T15:20", "2026-11-16T15:40"),
        (("05-59/20 * * * *",), "2026-11-16T15:25", "2026-11-16T15:45"),
        (("5/20 * * * *",), "2026-11-16T15:25", "2026-11-16T15:45"),
        (("0 0-12/6 * * *",), "2026-11-16T12:00", "2026-11-17T00:00"),
        (("30 4 1,15 * *",), "2026-11-15T04:30", "2026-12-01T04:30"),
        (("0 4 * * sun",), "2026-11-15T04:00", "2026-11-22T04:00"),
        (("0 4 * * 7",), "2026-11-15T04:00", "2026-11-22T04:00"),
        (("0 4 * * MON-FRI",), "2026-11-16T04:00", "2026-11-17T04:00"),
        (("0 0 1 jan *",), "2026-01-01T00:00", "2027-01-01T00:00"),
        (("0 0 29 2 *",), "2024-02-29T00:00", "2028-02-29T00:00"),
        (("0 0 13 * fri",), "2026-11-13T00:00", "2026-11-20T00:00"),  # either day suffices
        (("0 0 20 * fri",), "2026-11-13T00:00", "2026-11-20T00:00"),
        (("0 0 */2 * mon",), "2026-11-09T00:00", "2026-11-23T00:00"),  # a star with a step limits no day in cron
    ],
)
def test_moments_of_schedules(words, latest, following):
    schedule = Schedule.parse(*words)
    assert schedule.latest(NOW) == moment(latest)
    assert schedule.following(NOW) == moment(following)


def test_daylight_saving_time():
    night = Schedule.parse("daily", "02:30", "Europe/Berlin")
    assert night.following(moment("2026-03-28T12:00")) == moment("2026-03-29T01:30")  # 02:30 is skipped: 03:30
    assert night.following(moment("2026-03-29T01:30")) == moment("2026-03-30T00:30")
    assert night.following(moment("2026-10-24T12:00")) == moment("2026-10-25T00:30")  # 02:30 comes twice
    assert night.following(moment("2026-10-25T00:30")) == moment("2026-10-26T01:30")


def test_a_leap_day_that_is_missing_in_2100():
    assert Schedule.parse("0 0 29 2 *").following(moment("2096-03-01T00:00")) == moment("2104-02-29T00:00")


def test_latest_and_following_agree():
    schedule = Schedule.parse("7 */5 * 1-3,11 mon,thu", zone="America/New_York")
    at = NOW
    for _ in range(50):
        after = schedule.following(at)
        assert schedule.latest(after) == after
        assert schedule.latest(after - timedelta(microseconds=1)) <= at
        at = after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hourly", "a schedule is daily, weekly, or five fields of cron"),
        ("0 4 * *", "five fields of cron"),
        ("60 4 * * *", r"the minute of the schedule '60 4 \* \* \*' must be 0 to 59.* got '60'"),
        ("0 24 * * *", "the hour of .* must be 0 to 23, .* got '24'"),
        ("0 4 0 * *", "the day of the month of .* must be 1 to 31, .* got '0'"),
        ("0 4 * 13 *", "the month of .* must be 1 to 12 or jan to dec, .* got '13'"),
        ("0 4 * * 8", "the day of the week of .* must be 0 to 7 or sun to sat, .* got '8'"),
        ("0 4 * * funday", "got 'funday'"),
        ("0 9-5 * * *", "got '9-5'"),
        ("*/0 4 * * *", "got '\\*/0'"),
        ("0 4,, * * *", "got ''"),
        ("0 -1 * * *", "got '-1'"),
        ("٣ 4 * * *", "the minute of"),
        ("007 4 * * *", "got '007'"),
        ("mon 4 * * *", "got 'mon'"),
        ("0 0 31 2 *", "never happens"),
        ("0 0 30 feb *", "never happens"),
    ],
)
def test_malformed_schedules(text, message):
    with pytest.raises(ParameterError, match=message):
        Schedule.parse(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("daily", "24:00"), "HH:MM, from 00:00 to 23:59, got '24:00'"),
        (("weekly", "4"), "HH:MM"),
        (("0 4 * * *", "05:00"), "says its hour itself; leave out the time 05:00"),
        (("daily", None, "Mars/Olympus"), "no time zone 'Mars/Olympus' here"),
        (("daily", None, "../../etc/passwd"), "no time zone"),
        (("daily", None, ""), "no time zone"),
    ],
)
def test_malformed_times_and_zones(words, message):
    with pytest.raises(ParameterError, match=message):
        Schedule.parse(*words)
