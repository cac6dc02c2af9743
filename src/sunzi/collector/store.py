"""The store interface, and the transaction that counts every report exactly once.

Guarantees of every store, even if the process is killed at any moment:

- One transaction makes a deposit's id and its counts durable before :meth:`Store.commit` returns.
- A known id adds nothing.
- A closed epoch adds nothing, and its ids are deleted for good.

They also hold for several processes on one store; for SQLite, docs/durability.md names the required version.

Each upload key of an epoch has its own counters, its *contribution*, so that it can be subtracted; so has each
public group that its deposits name (:mod:`sunzi.collector.contributions`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sunzi.client.device.addresses import check_name
from sunzi.client.device.uploads import ID_BYTES, TOKEN_BYTES
from sunzi.client.errors import StoreError
from sunzi.collector.contributions import Contributions
from sunzi.collector.database import identity_table
from sunzi.collector.epochs import Contribution, Deposit, Epoch, Outcome, check_identities
from sunzi.errors import TallyError
from sunzi.numerics.counters import Counters

_FULL_PAGE = 500
_SMALL_PAGE = 8
_MAX_FULL_PAGES = 1 << 14
_MINUTE = 60
_CHUNK = 10_000


class Store(Contributions):
    """Collections, their epochs and tallies, and the ids counted in open epochs."""

    def epochs(self, collection: str | None = None) -> list[Epoch]:
        """All epochs, or those of one collection, sorted by collection and number; without their plans."""
        found = self._select_epochs() if collection is None else self._select_epochs("collection = ?", collection)
        return sorted(found, key=lambda epoch: (epoch.collection, epoch.number))

    def find_epoch(self, collection: str, number: int | None = None) -> Epoch | None:
        """An epoch by number; without a number, the newest open one, or the newest if all are closed."""
        if number is not None:
            found = self._select_epochs("collection = ? AND number = ?", collection, number)
        else:
            newest = "SELECT key FROM epochs WHERE collection = ? ORDER BY closed_at IS NOT NULL, number DESC LIMIT 1"
            found = self._select_epochs(f"key = ({newest})", collection)
        return found[0] if found else None

    def plan(self, key: int) -> bytes:
        """The plan of an epoch, as canonical JSON."""
        rows = self._execute("SELECT plan FROM epochs WHERE key = ?", (key,))
        if not rows:
            raise StoreError(f"there is no epoch with the key {key}")
        return self._rows.blob("the plan of an epoch", rows[0][0])

    def _select_epochs(self, condition: str = "1 = 1", *parameters: object) -> list[Epoch]:
        rows = self._execute(
            "SELECT key, collection, number, page_cells, CAST((SELECT coalesce(sum(reports), 0) FROM"
            " contributions WHERE epoch = epochs.key AND public_group = '' AND subtracted_at IS NULL) AS bigint),"
            f" opened_at, closed_at FROM epochs WHERE {condition}",
            parameters,
        )
        return [self._rows.epoch(row) for row in rows]

    def open_epoch(self, collection: str, plan: bytes, counters: int) -> Epoch:
        """Open a new epoch, numbered after the collection's last.

        Parameters
        ----------
        collection: the collection's name.
        plan: the plan's canonical JSON.
        counters: the number of counters of the tally and of those of all groups. Above 8,192,000, pages are small, so
            that a report rewrites few of them.
        """
        check_name(collection)
        with self.transaction():
            self.lock_epochs()
            number = 1 + max((epoch.number for epoch in self.epochs(collection)), default=0)
            page_cells = _SMALL_PAGE if counters > _FULL_PAGE * _MAX_FULL_PAGES else _FULL_PAGE
            key = self._insert_epoch(collection, number, plan, page_cells, time.time())
            return self._select_epochs("key = ?", key)[0]

    def open_next_epoch(self, collection: str, due: float, now: float) -> Epoch | None:
        """Open an epoch with the plan of the newest one, if that is open and was opened before a time; else None.

        Concurrent callers open one epoch.

        Parameters
        ----------
        collection: the collection's name.
        due: the time, in seconds since 1970.
        now: when the new epoch is opened, at least ``due``.
        """
        with self.transaction():
            self.lock_epochs()
            newest = max(self.epochs(collection), key=lambda epoch: epoch.number, default=None)
            if newest is None or not newest.is_open or newest.opened_at >= due:
                return None
            key = self._insert_epoch(collection, newest.number + 1, self.plan(newest.key), newest.page_cells, now)
            return self._select_epochs("key = ?", key)[0]

    def ensure_epoch(self, collection: str, plan: bytes, counters: int) -> Epoch:
        """Return the newest open epoch with this plan, or open one. Concurrent callers get the same epoch."""
        with self.transaction():
            self.lock_epochs()
            same = self._select_epochs("collection = ? AND closed_at IS NULL AND plan = ?", collection, plan)
            newest = max(same, key=lambda epoch: epoch.number, default=None)
            return newest or self.open_epoch(collection, plan, counters)

    def require_empty(self) -> None:
        """Raise StoreError if there is any epoch. Within a transaction, no other process can open one until it ends."""
        with self.transaction():
            self.lock_epochs()
            if self.epochs():
                raise StoreError(f"{self.label} has epochs already; copy into an empty store")

    def close_epoch(self, key: int) -> bool:
        """Close an epoch: refuse further reports, and delete its ids and unspent tokens. Closing twice is not an error.

        Returns False if some deleted data cannot be wiped yet; :meth:`settle` wipes it later.
        """
        with self.transaction():
            if self._lock_if_open(key):
                self._mark_closed(key, time.time())
                self._forget(key)
        try:
            return self.settle()
        except StoreError:  # the epoch is durably closed
            return False

    def commit(self, deposits: Sequence[Deposit]) -> list[Outcome]:
        """Count deposits in one durable transaction and return their outcomes, in order.

        If this raises, nothing was counted or the outcome is unknown; it is safe to send the same ids again.
        """
        self.check_identities([deposit.identity for deposit in deposits])
        outcomes = [Outcome.CLOSED] * len(deposits)
        positions = defaultdict(list)
        for position, deposit in enumerate(deposits):
            positions[deposit.epoch].append(position)
        with self.transaction():  # every writer locks in the same order, which prevents deadlocks
            quotas = self._lock_quotas(deposits)
            for key in sorted(positions):
                page_cells = self._lock_if_open(key)
                if page_cells:
                    mine = [deposits[position] for position in positions[key]]
                    for position, outcome in zip(positions[key], self._admit(key, mine, quotas), strict=True):
                        outcomes[position] = outcome
                    counted = [deposits[at] for at in positions[key] if outcomes[at] is Outcome.COUNTED]
                    self._fold(key, page_cells, counted)
            for uploader, left in quotas.items():
                self._execute("UPDATE quotas SET reports_left = ? WHERE uploader = ?", (left, uploader))
        return outcomes

    def subtract(self, key: int, uploader: str) -> int:
        """Take the reports of one upload key out of an epoch, open or closed; return how many these were.

        Parameters
        ----------
        key: the epoch's key.
        uploader: the name of the upload key. StoreError is raised if it has counted nothing in this epoch.
        """
        with self.transaction():
            self._execute("SELECT 1 FROM epochs WHERE key = ?" + self._ROW_LOCK, (key,))
            known = self.contributions(key)
            mine = [each for each in known if each.uploader == uploader]
            if not mine:
                names = ", ".join(sorted({repr(each.uploader) if each.uploader else "none" for each in known}))
                raise StoreError(
                    f"no report of this epoch was uploaded with the key {uploader!r}; reports have the keys {names}"
                )
            self._execute(
                "UPDATE contributions SET subtracted_at = ? WHERE epoch = ? AND uploader = ? AND subtracted_at IS NULL",
                (time.time(), key, uploader),
            )
        return sum(each.reports for each in mine if each.subtracted_at is None)

    def check_identities(self, identities: Sequence[bytes]) -> None:
        """Raise unless every id has 16 bytes and belongs to this store's shard.

        Adding up the tallies of shards is correct only if no id is in two of them.
        """
        check_identities(identities)
        foreign = next((identity for identity in identities if not self.shard.takes(identity)), None)
        if foreign is not None:
            raise StoreError(f"the id {foreign.hex()} does not belong to shard {self.shard}; send it to its own shard")

    def tally(self, key: int, length: int, group: str = "") -> tuple[int, Counters]:
        """The number of reports and the counters of an epoch, or of a public group of it, read in one transaction."""
        with self.transaction(reading=True):
            found = self._select_epochs("key = ?", key)
            if not found:
                raise StoreError(f"there is no epoch with the key {key}")
            reports, counters = 0, Counters.zeros(length)
            try:
                for contribution in self.contributions(key, group):
                    if contribution.subtracted_at is None:
                        reports += contribution.reports
                        counters += self._counters(contribution.key, found[0].page_cells, length)
            except TallyError as error:
                raise self._rows.damage(str(error)) from None
        return reports, counters

    def add_tokens(self, key: int, hashes: Iterable[bytes]) -> None:
        """Add single-use tokens, as SHA-256 hashes, to an open epoch."""
        with self.transaction():
            if not self._lock_if_open(key):
                raise StoreError("this epoch is closed, so its tokens could never be spent")
            self._insert_tokens(key, hashes)

    def revoke_tokens(self, key: int) -> int:
        """Delete all unspent tokens of an epoch; return how many these were."""
        with self.transaction():
            self._execute("SELECT 1 FROM epochs WHERE key = ?" + self._ROW_LOCK, (key,))
            revoked = self._execute("SELECT count(*) FROM tokens WHERE epoch = ?", (key,))[0][0]
            self._execute("DELETE FROM tokens WHERE epoch = ?", (key,))
        return int(revoked)

    def identity_count(self, key: int) -> int:
        """The number of ids stored for an epoch; 0 once it is closed."""
        with self.transaction(reading=True):
            if not self._has_identities(key):
                return 0
            return int(self._execute(f"SELECT count(*) FROM {identity_table(key)}")[0][0])

    def identities(self, key: int) -> Iterator[bytes]:
        """All ids stored for an epoch."""
        with self.transaction(reading=True):
            if self._has_identities(key):
                for identity in self._stream(f"SELECT id FROM {identity_table(key)}"):
                    yield self._rows.blob("an id", identity, ID_BYTES)

    def tokens(self, key: int) -> Iterator[bytes]:
        """The hashes of an epoch's unspent tokens."""
        with self.transaction(reading=True):
            for token in self._stream(f"SELECT hash FROM tokens WHERE epoch = {key:d}"):
                yield self._rows.blob("the hash of a token", token, TOKEN_BYTES)

    def restore_epoch(self, epoch: Epoch, source: Store) -> None:
        """Copy an epoch with its ids from another store. The caller holds a transaction on both stores."""
        with self.transaction():
            key = self._insert_epoch(
                epoch.collection, epoch.number, source.plan(epoch.key), epoch.page_cells, epoch.opened_at
            )
            for theirs in source.contributions(epoch.key, None):
                mine = self._insert_contribution(key, theirs.uploader, theirs.group)
                pages = source.pages(theirs.key)
                source._rows.pages(pages, epoch.page_cells)
                self._write_pages(mine, pages)
                self._add_reports(mine, theirs.reports)
                if not theirs.group:
                    self._restore_minutes(mine, theirs, source)
                self._execute("UPDATE contributions SET subtracted_at = ? WHERE key = ?", (theirs.subtracted_at, mine))
            self._restore_identities(key, source.identities(epoch.key))
            self._insert_tokens(key, source.tokens(epoch.key))
            if epoch.closed_at is not None:
                self._mark_closed(key, epoch.closed_at)
                self._forget(key)

    def _restore_minutes(self, mine: int, theirs: Contribution, source: Store) -> None:
        """Copy the reports per minute of a contribution."""
        query = "SELECT minute, reports FROM progress WHERE contribution = ?"
        minutes = [source._rows.minute(row) for row in source._execute(query, (theirs.key,))]
        if sum(reports for _, reports in minutes) != theirs.reports:
            raise source._rows.damage(f"the minutes of a contribution do not add up to {theirs.reports} reports")
        for minute, reports in minutes:
            self._add_minute(mine, reports, minute)

    def restore_quotas(self, source: Store) -> None:
        """Copy what is left of the upload keys' quotas. The caller holds a transaction on both stores."""
        with self.transaction():
            for row in source._execute("SELECT uploader, reports_left, filled_at FROM quotas"):
                self._execute("INSERT INTO quotas VALUES (?, ?, ?)", row)

    def _insert_epoch(self, collection: str, number: int, plan: bytes, page_cells: int, opened_at: float) -> int:
        self._execute(
            "INSERT INTO epochs (collection, number, plan, page_cells, opened_at) VALUES (?, ?, ?, ?, ?)",
            (collection, number, plan, page_cells, opened_at),
        )
        rows = self._execute("SELECT key FROM epochs WHERE collection = ? AND number = ?", (collection, number))
        key = int(rows[0][0])
        self._create_identities(key)
        return key

    def _lock_if_open(self, key: int) -> int:
        """Keep others from writing to this epoch until the transaction ends. Returns its page size, 0 if closed."""
        query = "SELECT page_cells FROM epochs WHERE key = ? AND closed_at IS NULL" + self._ROW_LOCK
        rows = self._execute(query, (key,))
        return self._rows.page_cells(rows[0][0]) if rows else 0

    def _mark_closed(self, key: int, closed_at: float) -> None:
        self._execute("UPDATE epochs SET closed_at = ? WHERE key = ?", (closed_at, key))

    def _restore_identities(self, key: int, identities: Iterator[bytes]) -> None:
        """Insert the ids of another store into an epoch that has none."""
        while chunk := list(islice(identities, _CHUNK)):
            self._insert_identities(key, chunk)

    def _lock_quotas(self, deposits: Sequence[Deposit]) -> dict[str, float]:
        """What is left of each uploader's quota. Keeps others from using it until the transaction ends.

        A quota fills steadily, in a minute from nothing to all of it, by the wall clock, so it survives a restart.
        """
        limits = {each.uploader: each.reports_per_minute for each in deposits if each.reports_per_minute is not None}
        now, quotas = time.time(), {}
        for uploader, limit in sorted(limits.items()):
            self._execute("INSERT INTO quotas VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (uploader, float(limit), now))
            query = "SELECT reports_left, filled_at FROM quotas WHERE uploader = ?" + self._ROW_LOCK
            row = self._execute(query, (uploader,))[0]
            left, filled_at = (self._rows.real("a quota", value) for value in row)
            quotas[uploader] = min(float(limit), left + max(0.0, now - filled_at) * limit / _MINUTE)
            self._execute("UPDATE quotas SET filled_at = ? WHERE uploader = ?", (now, uploader))
        return quotas

    def _admit(self, key: int, deposits: Sequence[Deposit], quotas: dict[str, float]) -> list[Outcome]:
        """Decide the outcomes in one open epoch, and take the counted reports from the quotas.

        The first of equal ids counts; the first user of a token spends it.
        """
        first: dict[bytes, Deposit] = {}
        for deposit in deposits:
            first.setdefault(deposit.identity, deposit)
        fresh = self._insert_identities(key, list(first))
        new = [first[identity] for identity in first if identity in fresh]
        refused = dict.fromkeys(self._refused_tokens(key, new), Outcome.TOKEN_REFUSED)
        excess = _take_from(quotas, [deposit for deposit in new if deposit.identity not in refused])
        if unspent := [deposit.token for deposit in excess if deposit.token is not None]:
            self._insert_tokens(key, unspent)
        refused |= {deposit.identity: Outcome.OVER_QUOTA for deposit in excess}
        if refused:
            self._remove_identities(key, sorted(refused))
        outcomes = []
        for deposit in deposits:
            if deposit.identity in refused:
                outcomes.append(refused[deposit.identity])
            else:
                outcomes.append(Outcome.COUNTED if deposit.identity in fresh else Outcome.REPEATED)
                fresh.discard(deposit.identity)
        return outcomes

    def _refused_tokens(self, key: int, deposits: Sequence[Deposit]) -> set[bytes]:
        """The ids of the deposits whose token is unknown or spent."""
        claims: dict[bytes, bytes] = {}
        for deposit in deposits:
            if deposit.token is not None:
                claims.setdefault(deposit.token, deposit.identity)
        if not claims:
            return set()
        spent = self._spend_tokens(key, list(claims))
        entitled = {claims[token] for token in spent}
        return {d.identity for d in deposits if d.token is not None and d.identity not in entitled}


def _take_from(quotas: dict[str, float], deposits: Sequence[Deposit]) -> list[Deposit]:
    """Take the deposits that fit from their uploaders' quotas; return the others."""
    excess = []
    for deposit in deposits:
        if deposit.reports_per_minute is not None:
            if deposit.reports > quotas[deposit.uploader]:
                excess.append(deposit)
            else:
                quotas[deposit.uploader] -= deposit.reports
    return excess
