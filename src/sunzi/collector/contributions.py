"""What each upload key, and each public group of it, has contributed to the tallies of epochs.

A contribution is stored in *pages* of ``page_cells`` counters, so that a commit writes only the pages it changed. No
report is stored: a page holds the sum of a group of deposits. The epoch's tally is the sum of its contributions; a
deposit that names public groups is added to the contributions of these groups as well.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from sunzi._typing import Integers
from sunzi.collector.database import Database
from sunzi.collector.epochs import Contribution, Deposit
from sunzi.numerics.counters import Counters

_MINUTE = 60


class Contributions(Database):
    """The part of a store that keeps counts."""

    def contributions(self, key: int, group: str | None = "") -> list[Contribution]:
        """What each upload key has contributed to an epoch, with those that were subtracted, oldest first.

        Parameters
        ----------
        key: the epoch's key.
        group: a public group such as ``country=DE``; "" is all reports, and None all of these and all groups.
        """
        query = "SELECT key, uploader, reports, subtracted_at, public_group FROM contributions WHERE epoch = ?"
        chosen, parameters = ("", (key,)) if group is None else (" AND public_group = ?", (key, group))
        return [self._rows.contribution(row) for row in self._execute(f"{query}{chosen} ORDER BY key", parameters)]

    def group_reports(self, key: int) -> dict[str, int]:
        """The number of reports of every public group of an epoch that has any."""
        rows = self._execute(
            "SELECT public_group, CAST(sum(reports) AS bigint) FROM contributions WHERE epoch = ?"
            " AND public_group <> '' AND subtracted_at IS NULL GROUP BY public_group",
            (key,),
        )
        return {self._rows.group(name): self._rows.whole("the reports of a group", reports) for name, reports in rows}

    def _counters(self, contribution: int, page_cells: int, length: int) -> Counters:
        """The counters of one contribution."""
        pages = self.pages(contribution)
        values = self._rows.pages(pages, page_cells)
        numbers = np.fromiter(pages, dtype=np.int64, count=len(pages))
        order = np.argsort(numbers)
        cells = (numbers[order, np.newaxis] * page_cells + np.arange(page_cells)).reshape(-1)
        counts = values[order].reshape(-1)
        filled = np.flatnonzero(counts)
        if filled.size and cells[filled[-1]] >= length:
            raise self._rows.damage(f"it has a counter {cells[filled[-1]]}, and its plan has {length} counters")
        return Counters(length, cells[filled], counts[filled])

    def progress(self, key: int) -> list[tuple[int, int]]:
        """Reports per minute, as (start of the minute in seconds since 1970, reports)."""
        rows = self._execute(
            "SELECT minute, CAST(sum(progress.reports) AS bigint) FROM progress JOIN contributions"
            " ON contributions.key = contribution WHERE epoch = ? AND public_group = '' AND subtracted_at IS NULL"
            " GROUP BY minute ORDER BY minute",
            (key,),
        )
        return [self._rows.minute(row) for row in rows]

    def _contribution(self, epoch: int, uploader: str, group: str) -> int:
        """The key of the contribution that an uploader's reports are added to now."""
        query = (
            "SELECT key FROM contributions WHERE epoch = ? AND public_group = ? AND uploader = ?"
            " AND subtracted_at IS NULL"
        )
        rows = self._execute(query, (epoch, group, uploader))
        return int(rows[0][0]) if rows else self._insert_contribution(epoch, uploader, group)

    def _insert_contribution(self, epoch: int, uploader: str, group: str) -> int:
        query = "INSERT INTO contributions (epoch, uploader, public_group) VALUES (?, ?, ?) RETURNING key"
        return int(self._execute(query, (epoch, uploader, group))[0][0])

    def _add_reports(self, contribution: int, reports: int) -> None:
        self._execute("UPDATE contributions SET reports = reports + ? WHERE key = ?", (reports, contribution))

    def _add_minute(self, contribution: int, reports: int, minute: int) -> None:
        self._execute(
            "INSERT INTO progress VALUES (?, ?, ?)"
            " ON CONFLICT (contribution, minute) DO UPDATE SET reports = progress.reports + excluded.reports",
            (contribution, minute, reports),
        )

    def _fold(self, key: int, page_cells: int, deposits: Sequence[Deposit]) -> None:
        """Add deposits to the pages of their uploaders' contributions, and of these to their groups."""
        found = defaultdict(list)
        for deposit in deposits:
            for group in ("", *deposit.groups):
                found[deposit.uploader, group].append(deposit)
        minute = int(time.time()) // _MINUTE * _MINUTE
        for (uploader, group), mine in found.items():
            contribution, reports = self._contribution(key, uploader, group), sum(each.reports for each in mine)
            self._add(contribution, page_cells, mine)
            self._add_reports(contribution, reports)
            if not group:  # minutes of a small group would say too much about when its users report
                self._add_minute(contribution, reports, minute)

    def _add(self, contribution: int, page_cells: int, deposits: Sequence[Deposit]) -> None:
        """Add deposits to the pages of one contribution."""
        cells = np.concatenate([deposit.cells for deposit in deposits])
        pages, rows = _distinct(cells // page_cells)
        stored = self._read_pages(contribution, pages.tolist())
        counts = np.zeros((pages.size, page_cells), dtype=np.int64)
        counts[np.searchsorted(pages, list(stored))] = self._rows.pages(stored, page_cells)
        added = np.concatenate([deposit.counts for deposit in deposits])
        np.add.at(counts.reshape(-1), rows * page_cells + cells % page_cells, added)
        written = self._rows.counts(counts).astype("<i8", copy=False)
        self._write_pages(contribution, {page: written[row].tobytes() for row, page in enumerate(pages.tolist())})


def _distinct(numbers: Integers) -> tuple[Integers, Integers]:
    """The distinct numbers in order, and the place of each number among them; without sorting where they are dense."""
    if not numbers.size or int(numbers.max()) >= numbers.size:
        return np.unique(numbers, return_inverse=True)
    is_present = np.bincount(numbers) > 0
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[numbers]
