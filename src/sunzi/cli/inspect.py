"""``sunzi inspect``: describe plans, reports and tallies, and check their integrity.

A batch does not contain its length, which follows from its plan. But each batch ends with a checksum of all its bytes,
and the next one begins with eight known bytes, so batches are separated and checked without their plan (docs/format.md,
section 9). With the plan, each value is checked as well.
"""

from __future__ import annotations

import argparse
import mmap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import say, styled, wrapped
from sunzi.client.errors import PlanError, ReportError, SunziError, UnknownProtocolError
from sunzi.client.reports import BATCH_CHECKSUM, BATCH_HEADER, BATCH_MAGIC
from sunzi.errors import TallyError
from sunzi.formatting import byte_size, counted, printable

if TYPE_CHECKING:
    from sunzi.plan import Plan

Facts = list[tuple[str, str]]
Plans = dict[str, tuple[str, "Plan"]]

_CHUNK_BYTES = 1 << 20
_FAILURES = {"damaged": 2, "unknown": 2, "unreadable": 1}
"""The exit code of each failure."""


@dataclass(frozen=True)
class Description:
    """What is known about a file, in words and as named data."""

    facts: Facts
    data: dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``inspect``, and add its arguments."""
    parser.description = (
        "Describe files that Sunzi wrote: plans, reports and tallies. For a damaged file, prints the reason and exits "
        "with code 2. Give a plan together with its reports and tallies to check each value in them. Prints a table on "
        "a terminal, CSV in a pipe."
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="plans, files of reports and tallies")
    add_output(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Describe each file; continue after a damaged one."""
    check_output(arguments)
    plans = dict(_plans(arguments.files))
    found = {path: _description(path, plans) for path in arguments.files}
    result = Result(
        table=partial(_print_facts, found),
        document=lambda: [{"file": path, **description.data} for path, description in found.items()],
        rows=lambda: [
            {"file": path, "name": name, "value": "" if value is None else str(value)}
            for path, description in found.items()
            for name, value in description.data.items()
        ],
    )
    deliver(arguments, result)
    return max(_FAILURES.get(description.data["state"], 0) for description in found.values())


def _description(path: str, plans: Plans) -> Description:
    """Describe a file, or say why that is impossible."""
    try:
        return describe(path, plans)
    except UnknownProtocolError as error:
        return _failure("unknown", str(error).removeprefix(f"{path}: "), kind="plan")
    except SunziError as error:
        return _failure("damaged", str(error).removeprefix(f"{path}: "))
    except OSError as error:
        return _failure("unreadable", error.strerror or str(error))


def _failure(state: str, reason: str, kind: str | None = None) -> Description:
    text = " ".join(reason.split())
    facts = [("kind", kind)] if kind else []
    return Description([*facts, (state, text)], {"kind": kind, "state": state, "reason": text})


def _print_facts(found: dict[str, Description]) -> None:
    for number, (path, description) in enumerate(found.items()):
        if number:
            say()
        say(styled(printable(path), "bold"))
        for name, value in description.facts:
            first, *others = wrapped(f"  {name:12}  {printable(value)}", hanging=16)
            say(first.replace(name, styled(name, "red"), 1) if name in _FAILURES else first)
            for line in others:
                say(line)


def _plans(paths: list[str]) -> Iterator[tuple[str, tuple[str, Plan]]]:
    """Yield the plans among the files with their fingerprints; errors are reported later, file by file."""
    from sunzi.plan import load_plan

    for path in paths:
        try:
            if _opening(path).lstrip()[:1] == b"{":
                plan = load_plan(path)
                yield plan.fingerprint, (path, plan)
        except (SunziError, OSError):
            continue


def _opening(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(64)


def describe(path: str, plans: Plans) -> Description:
    """Describe a file, its kind first; raise an error if it is damaged."""
    from sunzi.tally import MAGIC

    opening = _opening(path)
    if not opening:
        raise PlanError("the file is empty")
    if opening.startswith(BATCH_MAGIC):
        return _framed("reports", path, _describe_reports(path, plans))
    if opening.startswith(MAGIC):
        return _framed("tally", path, _describe_tally(path, plans))
    if opening.lstrip().startswith(b"{"):
        return _framed("plan", path, _describe_plan(path))
    if any(magic.startswith(opening) for magic in (BATCH_MAGIC, MAGIC)):
        raise PlanError(f"the file is truncated after {counted(len(opening), 'byte')}")
    raise PlanError(f"this is not a plan, reports or a tally of format version 1: it begins with {opening[:16]!r}")


def _framed(kind: str, path: str, inner: Description) -> Description:
    """Add the kind before and the size after a description."""
    size = Path(path).stat().st_size
    return Description(
        [("kind", kind), *inner.facts, ("size", byte_size(size))],
        {"kind": kind, "state": "intact", **inner.data, "bytes": size},
    )


def _describe_plan(path: str) -> Description:
    from sunzi.plan import load_plan

    plan = load_plan(path)
    data = {
        "fingerprint": plan.fingerprint,
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "domain_size": plan.domain.size,
        "other": plan.domain.other,
        "report_bits": plan.report_bits,
        "max_report_bits": plan.max_report_bits,
        "attackability": plan.attackability,
    }
    return Description(plan.facts(), data)


def _plan_named(fingerprint: str, plans: Plans) -> str:
    return f"{fingerprint} ({plans[fingerprint][0]})" if fingerprint in plans else fingerprint


def _describe_tally(path: str, plans: Plans) -> Description:
    from sunzi.tally import load_tally

    tally = load_tally(path)
    fingerprint = tally.fingerprint.hex()
    if fingerprint in plans and plans[fingerprint][1].protocol.tally_layout != tally.layout:
        raise TallyError("the layout of its counters does not match its plan")
    facts = [
        ("plan", _plan_named(fingerprint, plans)),
        *tally.facts()[1:],
        ("state", "intact: the digest matches"),
    ]
    data = {"plan": fingerprint, "reports": tally.reports, "counters": tally.counters.length}
    return Description(facts, data)


@dataclass(frozen=True)
class Batch:
    """The header of one batch in a file."""

    fingerprint: str
    reports: int


def _describe_reports(path: str, plans: Plans) -> Description:
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        batches = list(scan_batches(data))
    facts: Facts = []
    for fingerprint in dict.fromkeys(batch.fingerprint for batch in batches):
        own = [batch for batch in batches if batch.fingerprint == fingerprint]
        reports = sum(batch.reports for batch in own)
        facts.append(("plan", _plan_named(fingerprint, plans)))
        number = f"{len(own):,} {'batch' if len(own) == 1 else 'batches'}"
        facts.append(("reports", f"{reports:,} in {number}"))
    facts.append(("state", _check_values(path, batches, plans)))
    summary = {
        "plan": " ".join(dict.fromkeys(batch.fingerprint for batch in batches)),
        "reports": sum(batch.reports for batch in batches),
        "batches": len(batches),
    }
    return Description(facts, summary)


def _check_values(path: str, batches: list[Batch], plans: Plans) -> str:
    fingerprints = {batch.fingerprint for batch in batches}
    if len(fingerprints) > 1:
        return "intact: all checksums match; split the file before tallying, since it mixes reports of several plans"
    if not fingerprints <= plans.keys():
        return "intact: all checksums match; give its plan as well to check each value"
    _, plan = plans[fingerprints.pop()]
    with open(path, "rb") as stream:
        plan.tally(stream)
    return "intact: all checksums match, and each value is valid under its plan"


def scan_batches(data: mmap.mmap) -> Iterator[Batch]:
    """Yield the batches of a file; raise ReportError at the first damaged one."""
    start = 0
    while start < len(data):
        if data[start : start + len(BATCH_MAGIC)] != BATCH_MAGIC or start + BATCH_HEADER.size > len(data):
            raise ReportError(f"no complete batch header at byte {start:,}: the file is truncated or damaged")
        _, fingerprint, reports = BATCH_HEADER.unpack_from(data, start)
        stop = _end_of_batch(data, start, BATCH_MAGIC)
        yield Batch(fingerprint.hex(), reports)
        start = stop


def _end_of_batch(data: mmap.mmap, start: int, magic: bytes) -> int:
    """Return where the batch ends: before the next batch or the end of the file, after a checksum that matches.

    The eight bytes that begin a batch may also occur inside one. The checksum does not match there, so the search
    continues.
    """
    checksum, summed = 0, start
    stop = start
    while stop < len(data):
        found = data.find(magic, max(stop + 1, start + BATCH_HEADER.size + BATCH_CHECKSUM.size))
        stop = len(data) if found < 0 else found
        end = max(stop - BATCH_CHECKSUM.size, summed)
        checksum = _checksum(data, summed, end, checksum)
        summed = end
        if (
            stop - start >= BATCH_HEADER.size + BATCH_CHECKSUM.size
            and checksum == BATCH_CHECKSUM.unpack_from(data, end)[0]
        ):
            return stop
    raise ReportError(f"the batch at byte {start:,} is truncated or altered: its checksum does not match")


def _checksum(data: mmap.mmap, start: int, stop: int, before: int) -> int:
    for first in range(start, stop, _CHUNK_BYTES):
        before = zlib.crc32(data[first : min(first + _CHUNK_BYTES, stop)], before)
    return before
