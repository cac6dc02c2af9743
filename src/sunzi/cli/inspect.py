"""``sunzi inspect``: what a file of Sunzi's is, what it holds, and whether it is whole.

A batch does not say how long it is, since its plan does; but every batch ends with a checksum of all its bytes, and the
next one begins with eight known bytes. So batches are told apart, and checked, without their plan (docs/format.md,
section 9). Given the plan as well, every value is checked.
"""

from __future__ import annotations

import argparse
import mmap
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sunzi.cli.numbers import byte_size, counted, percent
from sunzi.cli.plan_figures import privacy_bound
from sunzi.cli.terminal import printable, say, shortened, styled
from sunzi.errors import PlanError, ReportError, SunziError, TallyError

if TYPE_CHECKING:
    from sunzi.plan import Plan

Facts = list[tuple[str, str]]
Plans = dict[str, tuple[str, "Plan"]]

_HEADER = struct.Struct("<8s32sQ")
_CHECKSUM = struct.Struct("<I")
_CHUNK_BYTES = 1 << 20
_LABELS_SHOWN = 5
_USERS = (10_000, 1_000_000)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``inspect`` to the command line."""
    description = (
        "Say what files hold: plans, reports and tallies. A damaged file is told with the reason, and the exit code is "
        "2. Name a plan along with its reports and tallies to have every value in them checked."
    )
    parser = commands.add_parser("inspect", description=description, allow_abbrev=False)
    parser.add_argument("files", metavar="FILE", nargs="+", help="files that Sunzi wrote")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Describe every file; go on after a damaged one."""
    plans = dict(_plans(arguments.files))
    code = 0
    for number, path in enumerate(arguments.files):
        if number:
            say()
        say(styled(printable(path), "bold", sys.stdout))
        try:
            facts = describe(path, plans)
        except SunziError as error:
            reason = str(error).removeprefix(f"{path}: ")
            facts, code = [("damaged", printable(" ".join(reason.split())))], 2
        except OSError as error:
            facts, code = [("unreadable", error.strerror or str(error))], code or 1
        for name, value in facts:
            shown = styled(f"{name:12}", "red", sys.stdout) if name in ("damaged", "unreadable") else f"{name:12}"
            say(f"  {shown}  {value}")
    return code


def _plans(paths: list[str]) -> Iterator[tuple[str, tuple[str, Plan]]]:
    """The plans among the files, by fingerprint; what is wrong with others is told in their turn."""
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


def describe(path: str, plans: Plans) -> Facts:
    """Names and values, kind first; raises what is wrong with the file."""
    from sunzi.tally import MAGIC
    from sunzi.wire import BATCH_MAGIC

    opening = _opening(path)
    size = ("size", byte_size(Path(path).stat().st_size))
    if not opening:
        raise PlanError("the file is empty")
    if opening.startswith(BATCH_MAGIC):
        return [("kind", "reports"), *_describe_reports(path, plans), size]
    if opening.startswith(MAGIC):
        return [("kind", "tally"), *_describe_tally(path, plans), size]
    if opening.lstrip().startswith(b"{"):
        return [("kind", "plan"), *_describe_plan(path), size]
    if any(magic.startswith(opening) for magic in (BATCH_MAGIC, MAGIC)):
        raise PlanError(f"the file is cut after {counted(len(opening), 'byte')}")
    raise PlanError(f"this is neither a plan nor reports nor a tally of version 1: it begins with {opening[:16]!r}")


def _describe_plan(path: str) -> Facts:
    from sunzi.plan import load_plan

    plan = load_plan(path)
    bits = f"{plan.report_bits:g} bits"
    if plan.max_report_bits != plan.report_bits:
        bits += f" on average, {plan.max_report_bits:,} at most"
    errors = [f"± {percent(plan.expected_mse(users) ** 0.5)} with {users:,} users" for users in _USERS]
    guess = f"{percent(plan.attackability)} with one report, {percent(1 / plan.domain.size)} without"
    return [
        ("fingerprint", plan.fingerprint),
        ("protocol", plan.protocol.name),
        ("privacy", privacy_bound(plan.epsilon)),
        ("values", _values(plan)),
        ("report", bits),
        ("error", f"{', '.join(errors)} (standard error of a rare value's frequency)"),
        ("attacker", f"guesses a value right in {guess}, all values being equally likely"),
    ]


def _values(plan: Plan) -> str:
    domain = plan.domain
    if domain.labels is not None:
        first = ", ".join(shortened(printable(label), 30) for label in domain.labels[:_LABELS_SHOWN])
        kind = f"labels {first}{', …' if domain.size > _LABELS_SHOWN else ''}"
    elif domain.labels_sha256 is not None:
        kind = f"labels in a file of their own, SHA-256 {domain.labels_sha256}"
    else:
        kind = f"the integers 0 … {domain.size - 1}"
    other = "" if domain.other is None else f"; all others are {printable(domain.other)!r}"
    return f"{domain.size:,}: {kind}{other}"


def _plan_named(fingerprint: str, plans: Plans) -> str:
    return f"{fingerprint} ({plans[fingerprint][0]})" if fingerprint in plans else fingerprint


def _describe_tally(path: str, plans: Plans) -> Facts:
    from sunzi.tally import load_tally

    tally = load_tally(path)
    fingerprint = tally.fingerprint.hex()
    if fingerprint in plans and plans[fingerprint][1].protocol.tally_layout != tally.layout:
        raise TallyError("its counters are not laid out as its plan says")
    blocks = f" in {counted(len(tally.layout.blocks), 'block')}" if len(tally.layout.blocks) > 1 else ""
    return [
        ("plan", _plan_named(fingerprint, plans)),
        ("reports", f"{tally.reports:,}"),
        ("counters", f"{tally.counters.length:,}{blocks}, {tally.counters.filled:,} of them not zero"),
        ("state", "whole: its digest matches"),
    ]


@dataclass(frozen=True)
class Batch:
    """One batch as it stands in a file."""

    fingerprint: str
    reports: int


def _describe_reports(path: str, plans: Plans) -> Facts:
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
    return facts


def _check_values(path: str, batches: list[Batch], plans: Plans) -> str:
    fingerprints = {batch.fingerprint for batch in batches}
    if len(fingerprints) > 1:
        return "whole: all checksums match; but a tally takes the reports of one plan only, so split the file"
    if not fingerprints <= plans.keys():
        return "whole: all checksums match; name its plan as well to have every value checked"
    _, plan = plans[fingerprints.pop()]
    with open(path, "rb") as stream:
        plan.tally(stream)
    return "whole: all checksums match, and every value is one that its plan allows"


def scan_batches(data: mmap.mmap) -> Iterator[Batch]:
    """All batches of a file, back to back; raises ReportError at the first that does not end as it should."""
    from sunzi.wire import BATCH_MAGIC

    start = 0
    while start < len(data):
        if data[start : start + len(BATCH_MAGIC)] != BATCH_MAGIC or start + _HEADER.size > len(data):
            raise ReportError(f"the batch that should begin at byte {start:,} is cut or is none")
        _, fingerprint, reports = _HEADER.unpack_from(data, start)
        stop = _end_of_batch(data, start, BATCH_MAGIC)
        yield Batch(fingerprint.hex(), reports)
        start = stop


def _end_of_batch(data: mmap.mmap, start: int, magic: bytes) -> int:
    """Where the next batch or the end of the file follows a checksum that matches.

    The eight bytes may also occur within a batch, by chance or by design; the checksum then does not match there, and
    the search goes on.
    """
    checksum, summed = 0, start
    stop = start
    while stop < len(data):
        found = data.find(magic, max(stop + 1, start + _HEADER.size + _CHECKSUM.size))
        stop = len(data) if found < 0 else found
        end = max(stop - _CHECKSUM.size, summed)
        checksum = _checksum(data, summed, end, checksum)
        summed = end
        if stop - start >= _HEADER.size + _CHECKSUM.size and checksum == _CHECKSUM.unpack_from(data, end)[0]:
            return stop
    raise ReportError(f"the batch that begins at byte {start:,} is cut or altered: its checksum does not match")


def _checksum(data: mmap.mmap, start: int, stop: int, before: int) -> int:
    for first in range(start, stop, _CHUNK_BYTES):
        before = zlib.crc32(data[first : min(first + _CHUNK_BYTES, stop)], before)
    return before
