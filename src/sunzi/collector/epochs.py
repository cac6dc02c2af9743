"""Epochs, shards and deposits: the values that a store keeps and receives."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sunzi._typing import Integers
from sunzi.client.device.uploads import ID_BYTES
from sunzi.client.errors import ParameterError


@dataclass(frozen=True)
class Shard:
    """One of ``of`` collectors that split a collection by id.

    A shard accepts the ids whose first two bytes, as a big-endian integer, equal ``index`` modulo ``of``. No id belongs
    to two shards, so the sum of their tallies counts every report once.

    >>> str(Shard(0, 4))
    '0/4'
    """

    index: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of <= 1024:
            raise ParameterError(f"a shard must be INDEX/OF with 0 ≤ INDEX < OF ≤ 1024, got {self}")

    def takes(self, identity: bytes) -> bool:
        """Whether a deposit with this id belongs to this shard."""
        return int.from_bytes(identity[:2], "big") % self.of == self.index

    def __str__(self) -> str:
        """``INDEX/OF``, as on the command line."""
        return f"{self.index}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``INDEX/OF``."""
        matched = re.fullmatch("([0-9]{1,4})/([0-9]{1,4})", text)
        if matched is None:
            raise ParameterError(f"a shard must be INDEX/OF, such as 0/4, got {text!r}")
        return cls(int(matched[1]), int(matched[2]))


@dataclass(frozen=True)
class Epoch:
    """A period of a collection with one plan, which never changes. A closed epoch accepts no more reports."""

    key: int
    collection: str
    number: int
    page_cells: int
    reports: int
    opened_at: float
    closed_at: float | None

    @property
    def is_open(self) -> bool:
        """Whether it still accepts reports."""
        return self.closed_at is None


@dataclass(frozen=True)
class Contribution:
    """The part of an epoch's tally that was uploaded with one key, by its name; "" without upload keys.

    ``group`` is "" for all reports, or a public group such as ``country=DE``, whose reports are counted once more.

    A contribution that was subtracted stays in the store, but is in no total. Reports that arrive later under the same
    name start another contribution.
    """

    key: int
    uploader: str
    reports: int
    subtracted_at: float | None
    group: str = ""


@dataclass(frozen=True)
class Deposit:
    """A report or a batch, counted as a whole under one id.

    ``cells`` are distinct counters of the epoch's tally and ``counts`` the amounts added to them. ``token`` is the
    SHA-256 of the single-use token that the deposit spends, or None if the collector requires none. ``uploader`` is the
    name of the upload key, empty if the collector requires none, and ``reports_per_minute`` its quota. ``groups`` are
    the public groups whose tallies count it, too, such as ``country=DE``.
    """

    epoch: int
    identity: bytes
    reports: int
    cells: Integers
    counts: Integers
    token: bytes | None = None
    uploader: str = ""
    reports_per_minute: int | None = None
    groups: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, apart from a small constant."""
        return self.cells.nbytes + self.counts.nbytes


class Outcome(enum.Enum):
    """The result of a deposit. Only COUNTED changes a tally."""

    COUNTED = "counted"
    REPEATED = "repeated"
    CLOSED = "closed"
    TOKEN_REFUSED = "token refused"
    OVER_QUOTA = "over quota"


def check_identities(identities: Sequence[bytes]) -> None:
    """Raise ParameterError unless every id has 16 bytes."""
    wrong = next((identity for identity in identities if len(identity) != ID_BYTES), None)
    if wrong is not None:
        raise ParameterError(f"an id must have {ID_BYTES} bytes, got {len(wrong)}")
