"""The tally: exact counts, the number of reports, and the plan they belong to.

All protocols share this class; ``+`` merges two tallies.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sunzi._typing import Integers
from sunzi.atomic_files import write_atomically
from sunzi.client.errors import SunziError
from sunzi.display.markup import facts_table, for_notebook
from sunzi.errors import TallyError
from sunzi.formatting import counted
from sunzi.numerics.counters import Counters

MAGIC = b"SUNZITL\x01"
_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32
_LARGEST_HEADER = 1 << 24


@dataclass(frozen=True)
class TallyLayout:
    """Blocks of counters, as (number of counters, weight): a report adds 1 to ``weight`` counters of exactly one block.

    Weight 0 is for unary protocols, whose reports set any number of bits: a counter is at most the number of reports.

    >>> layout = TallyLayout(blocks=((10, 1), (4, 2)))
    >>> layout.length, list(layout.slices())
    (14, [(0, 10, 1), (10, 14, 2)])
    """

    blocks: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        """The number of counters of all blocks."""
        return sum(size for size, _ in self.blocks)

    def slices(self) -> Iterator[tuple[int, int, int]]:
        """(start, stop, weight) of every block."""
        start = 0
        for size, weight in self.blocks:
            yield start, start + size, weight
            start += size


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tally:
    """Counts of the reports of one plan. Immutable; tallies of the same plan add up.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", 3, epsilon=1)
    >>> (plan.simulate([0, 1], seed=1) + plan.simulate([2], seed=2)).reports
    3
    """

    fingerprint: bytes
    layout: TallyLayout
    reports: int
    counters: Counters
    block_reports: tuple[int, ...] = field(init=False)
    """The number of reports of every block."""

    def __post_init__(self) -> None:
        """Check the invariants."""
        object.__setattr__(self, "block_reports", self._check())

    def _check(self) -> tuple[int, ...]:
        """Check the invariants and return the number of reports of every block."""
        if self.reports < 0 or self.counters.length != self.layout.length:
            raise TallyError(f"{self.counters.length} counters and {self.reports} reports do not fit this plan")
        reports = []
        for start, stop, weight in self.layout.slices():
            block = self.counters.part(start, stop)
            smallest, largest = block.extremes()
            if smallest < 0:
                raise TallyError(f"a count must not be negative, got {smallest}")
            total = block.total()
            if weight and total % weight:
                raise TallyError(f"the counts of a block must add up to a multiple of {weight}, got {total}")
            reports.append(total // weight if weight else self.reports)
            if largest > reports[-1]:
                raise TallyError(f"a count of {largest} exceeds the {counted(reports[-1], 'report')} of its block")
        if any(weight for _, weight in self.layout.blocks) and sum(reports) != self.reports:
            raise TallyError(f"the counts are those of {counted(sum(reports), 'report')}, not of {self.reports:,}")
        return tuple(reports)

    @property
    def counts(self) -> Integers:
        """All counts as one vector."""
        return self.counters.dense()

    def block(self, index: int) -> Counters:
        """The counters of one block."""
        start = sum(size for size, _ in self.layout.blocks[:index])
        return self.counters.part(start, start + self.layout.blocks[index][0])

    def __add__(self, other: Tally) -> Tally:
        """Merge; exact, associative and commutative."""
        if not isinstance(other, Tally):
            return NotImplemented
        if (self.fingerprint, self.layout) != (other.fingerprint, other.layout):
            raise TallyError(
                f"tallies of different plans cannot be added: {self.fingerprint.hex()[:16]}… and "
                f"{other.fingerprint.hex()[:16]}…"
            )
        return Tally(self.fingerprint, self.layout, self.reports + other.reports, self.counters + other.counters)

    def __radd__(self, other: object) -> Tally:
        """Accept the 0 that ``sum()`` starts with."""
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Equal counts of the same plan."""
        if not isinstance(other, Tally):
            return NotImplemented
        mine = (self.fingerprint, self.layout, self.reports)
        return mine == (other.fingerprint, other.layout, other.reports) and self.counters == other.counters

    __hash__ = None  # type: ignore[assignment]  # compared by content, never used as a key

    def __repr__(self) -> str:
        """A description with the size and the plan."""
        return f"Tally({self.reports} reports, {self.counters.length} counters, plan {self.fingerprint.hex()[:16]}…)"

    def facts(self) -> list[tuple[str, str]]:
        """The plan's fingerprint, the number of reports and the counters, as names and texts."""
        blocks = f" in {counted(len(self.layout.blocks), 'block')}" if len(self.layout.blocks) > 1 else ""
        return [
            ("plan", self.fingerprint.hex()),
            ("reports", f"{self.reports:,}"),
            ("counters", f"{self.counters.length:,}{blocks}, {self.counters.filled:,} of them nonzero"),
        ]

    def _repr_html_(self) -> str:
        """The facts as a table, for notebooks."""
        return for_notebook(facts_table(self.facts()))

    def to_bytes(self) -> bytes:
        """Magic, header, counts as little-endian int64, and the SHA-256 of all that."""
        sparse = self.counters.is_sparse
        stored = self.counters.stored if sparse else None
        encoded = _header(self.fingerprint, self.layout, self.reports, stored)
        arrays = self.counters.nonzero() if sparse else (self.counters.dense(),)
        parts = [MAGIC, _LENGTH.pack(len(encoded)), encoded, *(array.astype("<i8").tobytes() for array in arrays)]
        body = b"".join(parts)
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """The inverse of :meth:`to_bytes`; checks the digest and every invariant."""
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        start = len(MAGIC) + _LENGTH.size
        if data[: len(MAGIC)] != MAGIC or len(body) < start:
            raise TallyError("this is not a tally")
        if hashlib.sha256(body).digest() != digest:
            raise TallyError("the digest does not match: the tally is truncated or damaged")
        length = min(_LENGTH.unpack_from(body, len(MAGIC))[0], _LARGEST_HEADER)
        try:
            header = json.loads(body[start : start + length])
            layout = TallyLayout(tuple((int(size), int(weight)) for size, weight in header["blocks"]))
            fingerprint, reports, stored = (
                bytes.fromhex(header["fingerprint"]),
                int(header["reports"]),
                header["stored"],
            )
            # A header has one spelling only, so that no other program can read it differently.
            if body[start : start + length] != _header(fingerprint, layout, reports, stored):
                raise TallyError("the tally's header is not in canonical form")
            _check_header(fingerprint, layout, stored)
            return cls(fingerprint, layout, reports, _read_counters(body[start + length :], layout.length, stored))
        except SunziError:
            raise
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise TallyError(f"the tally's header is malformed: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the tally file atomically."""
        write_atomically(path, self.to_bytes())


def _header(fingerprint: bytes, layout: TallyLayout, reports: int, stored: int | None) -> bytes:
    """The header of a tally file; ``stored`` is the number of cells of a sparse tally, None for a dense one."""
    header = {
        "fingerprint": fingerprint.hex(),
        "reports": str(reports),
        "blocks": [list(block) for block in layout.blocks],
        "stored": stored,
    }
    return json.dumps(header, separators=(",", ":")).encode()


def _check_header(fingerprint: bytes, layout: TallyLayout, stored: object) -> None:
    if len(fingerprint) != _DIGEST_BYTES:
        raise TallyError(f"a fingerprint must have {_DIGEST_BYTES} bytes, got {len(fingerprint)}")
    if not layout.blocks or any(size < 1 or weight < 0 for size, weight in layout.blocks):
        raise TallyError(f"every block needs counters and a weight of at least 0, got {list(layout.blocks)[:3]}")
    if stored is not None and (type(stored) is not int or stored < 0):
        raise TallyError(f"stored must be a number of cells or null, got {stored!r}")


def _read_counters(data: bytes, length: int, stored: int | None) -> Counters:
    values = np.frombuffer(data, dtype="<i8").astype(np.int64)
    expected = length if stored is None else 2 * stored
    if values.size != expected:
        raise TallyError(f"the tally should hold {expected} numbers, it holds {values.size}")
    if stored is None:
        return Counters(length, None, values)
    indices = values[:stored]
    if stored and (indices[0] < 0 or indices[-1] >= length or np.any(np.diff(indices) <= 0)):
        raise TallyError("the tally's indices must ascend within its counters")
    if not np.all(values[stored:]):
        raise TallyError(
            "a sparse tally must not store counts of 0, which would be a second encoding of the same tally"
        )
    return Counters(length, indices, values[stored:])


def load_tally(path: str | Path) -> Tally:
    """Read a tally file and check its digest and its invariants.

    Parameters
    ----------
    path: a file written by :meth:`Tally.save`.

    >>> import sunzi, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "counts.tally"
    >>> sunzi.make_plan("grr", 3, epsilon=1).simulate([0, 1], seed=1).save(path)
    >>> sunzi.load_tally(path).reports
    2
    """
    try:
        return Tally.from_bytes(Path(path).read_bytes())
    except TallyError as error:
        raise TallyError(f"{path}: {error}") from None
