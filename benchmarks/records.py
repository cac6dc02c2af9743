"""Plans of numbers and records: planning, reports, decoding and ranges, mostly against plans of single values."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from shutil import which
from typing import cast

from benchmarks import children, settings
from benchmarks.measure import compare, paired, seconds
from benchmarks.record_references import pairs_of
from benchmarks.results import Result
from sunzi.domains.ranges import OrderedDomain
from sunzi.plan import Plan, make_plan
from sunzi.record_plans import make_number, make_ordered, make_tables
from sunzi.results.ordered import OrderedEstimate

BINS, FEW_BINS = 4096, 64
ATTRIBUTES, LABELS = 10, 4
EPSILON = 1

_PLAIN = "ss-compact"
_JAVASCRIPT = children.ROOT / "clients" / "javascript"
_JAVASCRIPT_REPORTS = 30_000


def records(scale: float) -> Iterator[Result]:
    """4,096 bins, and ten attributes of four values with all pairs."""
    rounds = settings.rounds(5, scale)
    yield from _planning(rounds)
    yield from _reports(rounds)
    yield from _javascript_reports(settings.users(_JAVASCRIPT_REPORTS, scale), rounds)
    yield from _decoding(settings.users(settings.USERS, scale), rounds)


def ordered_plan(bins: int) -> Plan:
    """A plan of numbers from 0 to the number of bins."""
    return make_ordered(0, bins, bins, EPSILON)


def tables_plan() -> Plan:
    """A plan of all pairs of attributes."""
    labels = [str(value) for value in range(LABELS)]
    pairs = [(f"q{first}", f"q{second}") for first, second in pairs_of(range(ATTRIBUTES))]
    return make_tables({f"q{place}": labels for place in range(ATTRIBUTES)}, pairs, EPSILON)


def _planning(rounds: int) -> Iterator[Result]:
    wordings: dict[str, Callable[[], object]] = {
        f"{BINS:,} ordered bins": partial(ordered_plan, BINS),
        f"{ATTRIBUTES} attributes with all pairs": tables_plan,
    }
    for wording, make in wordings.items():
        taken = seconds(make, rounds)
        yield Result(f"records/plan/{wording}", f"plan {wording}", taken, "one second", 1.0, taken, 1.0)


def _reports(rounds: int) -> Iterator[Result]:
    flat = make_plan(_PLAIN, OrderedDomain(0, BINS, BINS), EPSILON).client()
    ordered, number = ordered_plan(BINS).client(), make_number(0, BINS, EPSILON).client()
    labels = [f"value {place}" for place in range(LABELS**2)]
    tables, plain = tables_plan().client(), make_plan(_PLAIN, labels, EPSILON).client()
    record = {f"q{place}": "1" for place in range(ATTRIBUTES)}
    report = partial(flat.report, 1234.5)
    wording = f"one report of a number by {_PLAIN}, {BINS:,} bins"
    yield _row(
        f"one report of a number, {BINS:,} ordered bins", partial(ordered.report, 1234.5), wording, report, 2.0, rounds
    )
    yield _row("one report of a number for its mean", partial(number.report, 1234.5), wording, report, 2.0, rounds)
    yield _row(
        f"one report of a record, {ATTRIBUTES} attributes with all pairs, from its labels",
        partial(tables.report, record),
        f"one report of a value by {_PLAIN}, from its label",
        partial(plain.report, labels[5]),
        2.0,
        rounds,
    )


def _javascript_reports(reports: int, rounds: int) -> Iterator[Result]:
    """The same by the JavaScript client, where Node.js and the built client are there."""
    node = which("node")
    if node is None or not (_JAVASCRIPT / "dist" / "records.js").exists():
        return
    flat = make_plan(_PLAIN, OrderedDomain(0, BINS, BINS), EPSILON)
    labels = [f"value {place}" for place in range(LABELS**2)]
    of_number = flat, 1234.5, f"one report of a number by {_PLAIN}, {BINS:,} bins"
    of_label = make_plan(_PLAIN, labels, EPSILON), labels[5], f"one report of a value by {_PLAIN}, from its label"
    record = {f"q{place}": "1" for place in range(ATTRIBUTES)}
    for wording, plan, value, (plain, plain_value, against) in (
        (f"one report of a number, {BINS:,} ordered bins", ordered_plan(BINS), 1234.5, of_number),
        ("one report of a number for its mean", make_number(0, BINS, EPSILON), 1234.5, of_number),
        (f"one report of a record, {ATTRIBUTES} attributes with all pairs", tables_plan(), record, of_label),
    ):
        pairs = [[json.loads(each.canonical), asked] for each, asked in ((plan, value), (plain, plain_value))]
        command = [node, "benchmark/two_plans.js", str(reports), str(rounds)]
        done = subprocess.run(
            command, cwd=_JAVASCRIPT, input=json.dumps(pairs).encode(), check=True, stdout=subprocess.PIPE
        )
        times = paired([(mine, theirs) for mine, theirs in json.loads(done.stdout)])
        measured = f"{wording}, in JavaScript"
        yield Result(
            f"records/{measured}/{against}", measured, times.measured, against, times.reference, times.slowdown, 2.0
        )


def _decoding(users: int, rounds: int) -> Iterator[Result]:
    plans = ordered_plan(BINS), make_plan(_PLAIN, BINS, EPSILON)
    values = settings.values(users, BINS)
    tallies = [plan.simulate(values, seed=settings.SEED) for plan in plans]
    ordered, flat = (partial(plan.estimate, tally) for plan, tally in zip(plans, tallies, strict=True))
    yield _row(f"decode {BINS:,} ordered bins, {users:,} reports", ordered, f"decoding {_PLAIN}", flat, 3.0, rounds)
    yield _row(f"one range of {BINS:,} bins", _range(ordered()), "decoding the same plan", ordered, 1.0, rounds)
    few = ordered_plan(FEW_BINS)
    small = few.estimate(few.simulate(values % FEW_BINS, seed=settings.SEED))
    yield _row(f"one range of {BINS:,} bins", _range(ordered()), f"one of {FEW_BINS} bins", _range(small), 3.0, rounds)


def _range(estimate: object) -> Callable[[], object]:
    found = cast(OrderedEstimate, estimate)
    return partial(found.range, found.domain.size // 4, found.domain.size - 3)


def _row(
    measured: str,
    action: Callable[[], object],
    against: str,
    reference: Callable[[], object],
    bound: float,
    rounds: int,
) -> Result:
    times = compare(action, reference, rounds)
    return Result(
        f"records/{measured}/{against}", measured, times.measured, against, times.reference, times.slowdown, bound
    )
