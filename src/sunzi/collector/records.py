"""What a store keeps and what it is given: epochs, deposits and their outcomes."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import ParameterError

ID_BYTES = 16
TOKEN_BYTES = 32

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Shard:
    """One of ``of`` collectors that share a collection: it takes the ids whose first two bytes, read as a number, leave
    the remainder ``index``.

    Two different shards of the same number never take the same id, so their tallies count no report twice.
    """

    index: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of <= 1024:
            raise ParameterError(f"a shard is INDEX/OF with 0 ≤ INDEX < OF ≤ 1024, got {self}")

    def takes(self, identity: bytes) -> bool:
        """Whether a deposit with this id belongs here."""
        return int.from_bytes(identity[:2], "big") % self.of == self.index

    def __str__(self) -> str:
        """As the command line writes it."""
        return f"{self.index}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From ``INDEX/OF``."""
        matched = re.fullmatch("([0-9]{1,4})/([0-9]{1,4})", text)
        if matched is None:
            raise ParameterError(f"a shard is INDEX/OF, such as 0/4, got {text!r}")
        return cls(int(matched[1]), int(matched[2]))


@dataclass(frozen=True)
class Epoch:
    """One stretch of a collection under one plan, which never changes. Once closed it takes no report any more."""

    key: int
    collection: str
    number: int
    plan: bytes
    page_cells: int
    reports: int
    opened_at: float
    closed_at: float | None

    @property
    def is_open(self) -> bool:
        """Whether it still takes reports."""
        return self.closed_at is None


@dataclass(frozen=True)
class Deposit:
    """Reports that are counted together or not at all, under one id: a single report or a batch.

    ``cells`` are distinct counters of the epoch's tally and ``counts`` what is added to them. ``token`` is the SHA-256
    of a single-use token that must be spent along with it, or None where none is asked for.
    """

    epoch: int
    identity: bytes
    reports: int
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    token: bytes | None = None


class Outcome(enum.Enum):
    """What became of a deposit. Only in the first case is anything added to a tally."""

    COUNTED = "counted"
    REPEATED = "repeated"
    CLOSED = "closed"
    TOKEN_REFUSED = "token refused"


def check_name(name: str) -> str:
    """The name of a collection, which stands in addresses."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"a collection's name has 1 to 64 of a-z, 0-9, - and _, and begins with a letter or digit, got {name!r}"
        )
    return name


def check_identities(identities: Sequence[bytes]) -> None:
    """Every id has 16 bytes."""
    wrong = next((identity for identity in identities if len(identity) != ID_BYTES), None)
    if wrong is not None:
        raise ParameterError(f"an id has {ID_BYTES} bytes, got {len(wrong)}")
