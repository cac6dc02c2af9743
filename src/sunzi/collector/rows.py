"""Checks of what a store has read: a damaged or edited store is refused, and nothing in it is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sunzi._typing import Integers
from sunzi.client.device.addresses import check_name
from sunzi.client.errors import ParameterError, StoreError, shown
from sunzi.client.groups import parse_groups
from sunzi.collector.epochs import Contribution, Epoch

_COUNTER_BYTES = 8
_LARGEST = (1 << 63) - 1
_LARGEST_EPOCH = 1 << 31
_LARGEST_PAGE = 1 << 12
_LAST_PAGE = 1 << 40
_LATEST = 250_000_000_000  # in the year 9892; Python's dates end in 9999


@dataclass(frozen=True)
class RowReader:
    """Reads values from a store's rows; raises StoreError if one has the wrong type or is out of range."""

    label: str
    """The store's name in error messages."""

    def damage(self, what: str) -> StoreError:
        """The error that says what is damaged."""
        return StoreError(f"{self.label} is damaged: {what}; restore it from a backup")

    def whole(self, name: str, value: object, least: int = 0, most: int = _LARGEST) -> int:
        """A whole number in the given range."""
        if type(value) is not int or not least <= value <= most:
            raise self.damage(f"{name} is {shown(value)}")
        return value

    def real(self, name: str, value: object) -> float:
        """A time, in seconds since 1970, or another number of at least 0."""
        if not isinstance(value, (int, float)) or not 0 <= value <= _LATEST:
            raise self.damage(f"{name} is {shown(value)}")
        return value

    def blob(self, name: str, value: object, size: int | None = None) -> bytes:
        """Bytes, of the given number."""
        if type(value) is not bytes or size not in (None, len(value)):
            raise self.damage(f"{name} is not a blob of {'some' if size is None else size} bytes")
        return value

    def epoch(self, row: tuple[object, ...]) -> Epoch:
        """The epoch of a row, with its number of reports."""
        key, collection, number, page_cells, reports, opened_at, closed_at = row
        try:
            name = check_name(collection if type(collection) is str else "")
        except ParameterError:
            raise self.damage(f"the name of a collection is {shown(collection)}") from None
        return Epoch(
            self.whole("the key of an epoch", key, 1),
            name,
            self.whole("the number of an epoch", number, 1, _LARGEST_EPOCH),
            self.page_cells(page_cells),
            self.whole("the number of reports of an epoch", reports),
            self.real("the time when an epoch was opened", opened_at),
            None if closed_at is None else self.real("the time when an epoch was closed", closed_at),
        )

    def page_cells(self, value: object) -> int:
        """The number of counters per page."""
        return self.whole("the page size of an epoch", value, 1, _LARGEST_PAGE)

    def contribution(self, row: tuple[object, ...]) -> Contribution:
        """The contribution of a row."""
        key, uploader, reports, subtracted_at, group = row
        if type(uploader) is not str:
            raise self.damage(f"the upload key of a contribution is {shown(uploader)}")
        return Contribution(
            self.whole("the key of a contribution", key, 1),
            uploader,
            self.whole("the number of reports of a contribution", reports),
            None if subtracted_at is None else self.real("the time of a subtraction", subtracted_at),
            self.group(group),
        )

    def group(self, value: object) -> str:
        """The name of a public group, or "" for all reports."""
        try:
            if type(value) is not str or (value and len(parse_groups(value)) != 1):
                raise ParameterError
        except ParameterError:
            raise self.damage(f"the group of a contribution is {shown(value)}") from None
        return value

    def minute(self, row: tuple[object, ...]) -> tuple[int, int]:
        """The start of a minute and its number of reports."""
        minute, reports = row
        return self.whole("a minute of an epoch", minute), self.whole("the number of reports of a minute", reports)

    def pages(self, pages: Mapping[int, object], page_cells: int) -> Integers:
        """The counters of pages, one row per page."""
        size = _COUNTER_BYTES * page_cells
        for number, page in pages.items():
            self.whole("the number of a page", number, 0, _LAST_PAGE)
            self.blob("a page", page, size)
        joined = np.frombuffer(b"".join(pages.values()), dtype="<i8")  # type: ignore[arg-type]  # checked above
        return self.counts(joined.astype(np.int64)).reshape(-1, page_cells)

    def counts(self, counts: Integers) -> Integers:
        """Counters, none of them negative; a sum of two that exceeds 63 bits is negative too."""
        if counts.size and int(counts.min()) < 0:
            raise self.damage(f"a counter is {int(counts.min())}")
        return counts
