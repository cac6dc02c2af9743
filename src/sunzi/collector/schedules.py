"""When epochs rotate: every day or week at an hour, or by the five fields of cron."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from sunzi.client.errors import ParameterError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# The name of each field, its least and largest number, and names for them.
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _WEEKDAYS),
)
_LONGEST_GAP_DAYS = 8 * 366 + 1  # 29 February is missing in 2100


@dataclass(frozen=True)
class Schedule:
    """Moments at which something happens; see :meth:`parse`.

    Where a clock is put forward, a skipped moment happens an hour later by the clock; where it is put back, a repeated
    one happens once.

    >>> schedule = Schedule.parse("0 4 * * mon-fri")
    >>> schedule.following(datetime(2026, 11, 14, tzinfo=UTC)).isoformat()
    '2026-11-16T04:00:00+00:00'
    """

    text: str
    """As it was given."""
    times: tuple[time, ...]
    days: frozenset[int]
    """Days of the month."""
    months: frozenset[int]
    weekdays: frozenset[int]
    """Days of the week from Monday, 0, on."""
    either_day: bool
    """Whether a day of the month or a day of the week suffices: in cron, if both are limited."""
    zone: tzinfo = UTC

    @classmethod
    def parse(cls, text: str, at: str | None = None, zone: str = "UTC") -> Schedule:
        """Read a schedule; raises ParameterError that names the wrong part.

        Parameters
        ----------
        text: ``daily``, ``weekly`` (on Mondays), or the five fields of cron: minute, hour, day of the month, month, day
            of the week.
        at: HH:MM, for ``daily`` and ``weekly``; by default 00:00.
        zone: the name of a time zone, such as Europe/Berlin.
        """
        if text in ("daily", "weekly"):
            moment = _time(at or "00:00")
            fields = f"{moment.minute} {moment.hour} * * {'*' if text == 'daily' else 'mon'}".split()
        elif at is not None:
            raise ParameterError(f"the schedule {text!r} says its hour itself; leave out the time {at}")
        else:
            fields = text.split()
        if len(fields) != len(_FIELDS):
            raise ParameterError(
                f"a schedule is daily, weekly, or five fields of cron, minute, hour, day of the month, month and day "
                f"of the week, such as '0 4 * * mon'; got {text!r}"
            )
        minutes, hours, days, months, weekdays = (
            frozenset(_numbers(field, text, *about)) for field, about in zip(fields, _FIELDS, strict=True)
        )
        made = cls(
            text,
            tuple(time(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)),
            days,
            months,
            frozenset((day - 1) % 7 for day in weekdays),
            not fields[2].startswith("*") and not fields[4].startswith("*"),
            _zone(zone),
        )
        if made._first(datetime(2000, 1, 1, tzinfo=UTC), 1) is None:
            raise ParameterError(f"the schedule {text!r} never happens: no month of it has such a day")
        return made

    def following(self, moment: datetime) -> datetime:
        """The first moment of the schedule after this one."""
        return self._found(self._first(moment, 1))

    def latest(self, moment: datetime) -> datetime:
        """The last moment of the schedule up to and including this one."""
        return self._found(self._first(moment, -1))

    def _found(self, moment: datetime | None) -> datetime:
        assert moment is not None, "a schedule that never happens is refused"
        return moment

    def _first(self, moment: datetime, step: int) -> datetime | None:
        local = moment.astimezone(self.zone).date() - timedelta(days=step)  # a skipped moment may belong to another day
        for number in range(_LONGEST_GAP_DAYS):
            found = sorted(self._moments(local + timedelta(days=step * number)), reverse=step < 0)
            for each in found:
                if each > moment if step > 0 else each <= moment:
                    return each
        return None

    def _moments(self, day: date) -> Iterator[datetime]:
        named, of_week = day.day in self.days, day.weekday() in self.weekdays
        if day.month in self.months and (named or of_week if self.either_day else named and of_week):
            for each in self.times:
                yield datetime.combine(day, each, self.zone).astimezone(UTC)


def _numbers(field: str, text: str, name: str, least: int, most: int, names: tuple[str, ...]) -> Iterator[int]:
    """The numbers of one field: ``*``, ``5``, ``1-5``, ``*/15``, ``0-30/10``, and lists of these."""
    for part in field.lower().split(","):
        found = _range(part, least, most, names)
        if not found or found[0] < least or found[-1] > most:
            words = f" or {names[0]} to {names[-1]}" if names else ""
            raise ParameterError(
                f"the {name} of the schedule {text!r} must be {least} to {most}{words}, as *, 5, 1-5, */2 or a list of "
                f"these; got {part!r}"
            )
        yield from found


def _range(part: str, least: int, most: int, names: tuple[str, ...]) -> range:
    """One part of a field; empty if it is malformed."""
    matched = re.fullmatch(r"(?:\*|([a-z]+|[0-9]{1,2})(?:-([a-z]+|[0-9]{1,2}))?)(?:/([1-9][0-9]{0,2}))?", part)
    if matched is None:
        return range(0)
    first, last, step = matched.groups()
    last = last or (None if step else first)  # 5/10 is 5-59/10
    known = {word: least + place for place, word in enumerate(names)} | {str(n): n for n in range(most + 1)}
    known |= {f"{n:02}": n for n in range(10)}
    bounds = [least if first is None else known.get(first, -1), most if last is None else known.get(last, -1)]
    return range(bounds[0], bounds[1] + 1, int(step or 1)) if min(bounds) >= 0 else range(0)


def _time(text: str) -> time:
    if not re.fullmatch("([01][0-9]|2[0-3]):[0-5][0-9]", text):
        raise ParameterError(f"a time of day must be HH:MM, from 00:00 to 23:59, got {text!r}")
    return time.fromisoformat(text)


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # known without a database of time zones
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, or not a name at all
        raise ParameterError(
            f"there is no time zone {name!r} here; give a name such as Europe/Berlin, or install the package tzdata"
        ) from None
