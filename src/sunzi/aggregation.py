"""Secure aggregation: the servers learn only the sum of the reports (docs/aggregation.md).

The tally of one report is a vector of 0s and 1s, and a tally is the sum of these vectors. A DAP task sums them with
Prio3 between two servers, neither of which sees a report. The result is the same tally as from direct counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from sunzi._typing import Integers
from sunzi.batch import batch_size, check_honest
from sunzi.client.errors import shown, whole_number
from sunzi.errors import TallyError
from sunzi.formatting import byte_size, counted
from sunzi.numerics.counters import Counters
from sunzi.plan import Plan
from sunzi.tally import Tally, TallyLayout

CounterKind = Literal["messages", "points", "bits"]

_LARGEST_COUNT = (1 << 63) - 1
# Prio3 works in a field of 128 bits, with seeds of 32 bytes and two aggregators.
_ELEMENT_BYTES, _SEED_BYTES, _AGGREGATORS = 16, 32, 2
# A report has an id, a time and empty extensions, and the public share with its length.
_METADATA_BYTES, _LENGTH_BYTES = 16 + 8 + 2, 4
# Each input share is sealed to X25519 and AES-128-GCM: key id, encapsulated key, length and tag, and inside it, before
# the share, empty extensions and the length.
_SEAL_BYTES = (1 + 2 + 32 + _LENGTH_BYTES + 16) + (2 + _LENGTH_BYTES)


@dataclass(frozen=True)
class AggregationTask:
    """The parameters of the DAP task that sums a plan's reports, and the size of a report.

    >>> import sunzi
    >>> task = sunzi.aggregation_task(sunzi.make_plan("grr", ["no", "yes"], epsilon=1), min_batch=1000)
    >>> task.vdaf
    'Prio3Histogram'
    """

    vdaf: str
    """The function, as the VDAF draft names it: ``Prio3Histogram``, whose reports have exactly one 1, or
    ``Prio3MultihotCountVec``, whose reports have at most ``max_weight``.
    """
    counts: CounterKind
    """What each counter counts: a message, a point of a block, or a bit of a unary encoding."""
    length: int
    """The number of counters."""
    max_weight: int | None
    """The largest number of 1s in a report; None for ``Prio3Histogram``."""
    chunk_length: int
    """How many entries one step of the proof checks, chosen to make reports smallest."""
    min_batch_size: int
    """The minimum number of reports in a batch that the servers release."""
    leader_share_bytes: int
    """The leader's input share: shares of all entries and of the proof."""
    report_bytes: int
    """A whole DAP report, as a client uploads it."""

    def to_dict(self) -> dict[str, Any]:
        """The parameters by name."""
        return asdict(self)

    def facts(self) -> list[tuple[str, str]]:
        """The parameters as pairs of a name and a text."""
        weight = "exactly 1" if self.max_weight is None else f"at most {self.max_weight:,}"
        return [
            ("VDAF", self.vdaf),
            ("length", f"{self.length:,} counters, one per {self.counts.removesuffix('s')}"),
            ("ones", f"{weight} in a report"),
            ("chunk length", f"{self.chunk_length:,}"),
            ("minimum batch", counted(self.min_batch_size, "report")),
            ("report", byte_size(self.report_bytes)),
        ]


def aggregation_task(plan: Plan, min_batch: int, honest: float = 1.0) -> AggregationTask:
    """The parameters of a DAP task whose result :func:`tally_from_counts` turns into a tally of the plan.

    Parameters
    ----------
    plan: the plan of the reports.
    min_batch: the number of honest reports that the guarantee for the batch assumes.
    honest: the share of reports that come from clients that follow the plan; a batch must then hold
        ``min_batch / honest`` reports. DAP does not check it.

    >>> import sunzi
    >>> task = aggregation_task(sunzi.make_plan("grr", 1024, epsilon=4), min_batch=10_000, honest=0.9)
    >>> task.vdaf, task.length, task.chunk_length, task.min_batch_size
    ('Prio3Histogram', 1024, 34, 11112)
    """
    least = whole_number("min_batch", min_batch, least=1)
    share = check_honest(honest)
    layout = plan.protocol.tally_layout
    counts, weight = _counter_kind(layout), _largest_weight(layout)
    entries = layout.length + (0 if weight is None else weight.bit_length())  # the weight, in bits, is proven too
    chunk = _best_chunk_length(entries)
    leader = _leader_share_bytes(entries, chunk)
    helper, public = 2 * _SEED_BYTES, _AGGREGATORS * _SEED_BYTES
    return AggregationTask(
        vdaf="Prio3Histogram" if weight is None else "Prio3MultihotCountVec",
        counts=counts,
        length=layout.length,
        max_weight=weight,
        chunk_length=chunk,
        min_batch_size=batch_size(least, share),
        leader_share_bytes=leader,
        report_bytes=_METADATA_BYTES + _LENGTH_BYTES + public + leader + helper + _AGGREGATORS * _SEAL_BYTES,
    )


def tally_from_counts(plan: Plan, counts: Sequence[Any] | Integers, reports: int) -> Tally:
    """The tally of reports that were summed elsewhere, for example by DAP: the same as counting them here.

    Raises TallyError if no reports of the plan can have these counts.

    Parameters
    ----------
    plan: the plan of the reports.
    counts: the sums of the reports' tallies, in the order of the plan's counters. One count per message for ``grr``,
        ``ss-compact``, ``pgr``, ``mss-compact`` and plans of numbers, ordered values and tables; one per point for
        ``ss`` and ``mss``; one per bit for ``oue`` and ``rappor``. Where reports choose one of several moduli or views,
        their counts are concatenated; a list with one list per modulus or view works too.
    reports: how many reports were summed.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> sunzi.tally_from_counts(plan, [30, 12], reports=42) == plan.tally([b"\\0"] * 30 + [b"\\1"] * 12)
    True
    """
    number = whole_number("reports", reports, 0, _LARGEST_COUNT)
    layout = plan.protocol.tally_layout
    values = _flat(counts, layout)
    if len(values) != layout.length:
        raise TallyError(_wrong_length(plan, len(values)))
    vector = np.array([_count(index, value) for index, value in enumerate(values)], dtype=np.int64)
    return Tally(plan.digest, layout, number, Counters(layout.length, None, vector))


def _counter_kind(layout: TallyLayout) -> CounterKind:
    """What each counter counts, inferred from the block weights."""
    weights = {weight for _, weight in layout.blocks}
    if weights == {1}:
        return "messages"
    return "bits" if 0 in weights else "points"


def _largest_weight(layout: TallyLayout) -> int | None:
    """The largest number of counters that a report increments; None if it is always one."""
    counts = _counter_kind(layout)
    if counts == "messages":
        return None
    return layout.length if counts == "bits" else max(weight for _, weight in layout.blocks)


def _leader_share_bytes(entries: int, chunk: int) -> int:
    """Shares of all entries and of a proof of 2c + 2P − 1 elements, and a seed. The proof makes ⌈entries/c⌉ checks and
    a random one, padded to P, a power of 2.
    """
    power = 1 << ceil(entries / chunk).bit_length()
    return _ELEMENT_BYTES * (entries + 2 * chunk + 2 * power - 1) + _SEED_BYTES


def _best_chunk_length(entries: int) -> int:
    """The chunk length with the shortest proof. Candidates are the smallest lengths whose checks fill a power of 2."""
    candidates = [ceil(entries / ((1 << exponent) - 1)) for exponent in range(1, entries.bit_length() + 1)]
    return min(candidates, key=lambda chunk: (_leader_share_bytes(entries, chunk), chunk))


def _flat(counts: object, layout: TallyLayout) -> list[Any]:
    """All counts in one list, from one list or one per block."""
    listed = counts.tolist() if isinstance(counts, np.ndarray) else counts
    if not isinstance(listed, Sequence) or isinstance(listed, (str, bytes)):
        raise TallyError(f"counts must be a list of whole numbers, got {shown(counts)}")
    blocks = [each.tolist() if isinstance(each, np.ndarray) else each for each in listed]
    if not any(isinstance(each, Sequence) and not isinstance(each, (str, bytes)) for each in blocks):
        return blocks
    sizes = [size for size, _ in layout.blocks]
    found = [len(each) if isinstance(each, Sequence) else None for each in blocks]
    if found != sizes:
        raise TallyError(
            f"lists of counts must have the lengths {shown(sizes)}, one list per modulus or view, got {shown(found)}"
        )
    return [value for block in blocks for value in block]


def _wrong_length(plan: Plan, found: int) -> str:
    """Which counts this plan needs, with the fix if the caller gave counts of points instead of messages."""
    layout, name = plan.protocol.tally_layout, plan.protocol.name
    counts = _counter_kind(layout)
    text = f"a tally of {name} counts {counts}: this plan has {layout.length:,} counters, got {found:,}"
    points = {plan.domain.size, sum(response.design.points for response in plan.protocol.responses)}
    if counts == "messages" and found in points:
        text += (
            "; counts of points do not determine which messages were sent: sum messages, or plan with "
            f"{'mss' if len(layout.blocks) > 1 else 'ss'}, whose tally counts points"
        )
    return text


def _count(index: int, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TallyError(f"a count must be a whole number, got {shown(value)} at index {index}")
    if not 0 <= value <= _LARGEST_COUNT:
        raise TallyError(f"a count must lie between 0 and 2^63 - 1, got {shown(value)} at index {index}")
    return int(value)
