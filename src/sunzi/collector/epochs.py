"""Epochs, shards and deposits: the values that a store keeps and receives."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sunzi._typing import Integers
from sunzi.errors import ParameterError, ReportError
from sunzi.groups import parse_groups

ID_BYTES = 16
TOKEN_BYTES = 32

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
_FIRST_LINE = re.compile(rb"([0-9a-f]{32})(?: ([0-9a-f]{64}))?(?: ([a-z][a-z0-9_]{0,31}=[!-~]{1,1000}))?\n")


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


@dataclass(frozen=True)
class Upload:
    """The body of an upload: a first line, then a report or a batch.

    The first line has the id and, after a space each, the token if there is one, both in lower-case hexadecimal, and
    the public groups if there are any, as ``country=DE,release=124``.

    They travel in the body, because proxies log addresses, and because browsers send a body without headers
    of its own to another origin without asking first.

    >>> Upload(bytes(16), b"report").to_bytes()
    b'00000000000000000000000000000000\\nreport'
    """

    identity: bytes
    content: bytes
    token: bytes | None = None
    groups: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The body."""
        token = [] if self.token is None else [self.token.hex()]
        groups = [",".join(f"{name}={value}" for name, value in sorted(self.groups.items()))] if self.groups else []
        return f"{' '.join([self.identity.hex(), *token, *groups])}\n".encode() + self.content

    @classmethod
    def from_bytes(cls, body: bytes) -> Upload:
        """Read a body; raise ReportError if its first line is malformed."""
        matched = _FIRST_LINE.match(body)
        if matched is None:
            raise ReportError(
                "an upload starts with a line: its id in 32 lower-case hexadecimal digits; if the collector needs a "
                "token, a space and the token in 64 digits; if it names groups, a space and they as country=DE,…; the "
                "report follows"
            )
        token = None if matched[2] is None else bytes.fromhex(matched[2].decode())
        groups = {} if matched[3] is None else parse_groups(matched[3].decode())
        return cls(bytes.fromhex(matched[1].decode()), body[matched.end() :], token, groups)


def check_name(name: str) -> str:
    """Return the name of a collection; raise ParameterError if it cannot be part of a URL."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"a collection's name must be 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit, got {name!r}"
        )
    return name


def parse_token(text: str) -> bytes:
    """Read a single-use token; raise ParameterError unless it is 64 lower-case hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ParameterError("a single-use token is 64 lower-case hexadecimal digits")
    return bytes.fromhex(text)


def check_identities(identities: Sequence[bytes]) -> None:
    """Raise ParameterError unless every id has 16 bytes."""
    wrong = next((identity for identity in identities if len(identity) != ID_BYTES), None)
    if wrong is not None:
        raise ParameterError(f"an id must have {ID_BYTES} bytes, got {len(wrong)}")
