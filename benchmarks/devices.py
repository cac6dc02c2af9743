"""The trusted client: what starting it costs a program, and single reports against the vectorised side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks import settings
from benchmarks.children import ROOT
from benchmarks.measure import compare
from benchmarks.records import BINS, EPSILON, ordered_plan, tables_plan
from benchmarks.results import Result
from sunzi import client, wire
from sunzi._typing import Integers
from sunzi.client.randomness import SystemSource
from sunzi.plan import Plan, make_plan

SINGLE = ("grr", "ss-compact", "pgr", "mss-compact")
MOST_WHEEL_BYTES = 150_000
MOST_SECONDS = {100: 0.04, 22_000: 0.18}
"""What a start may cost more than an empty Python, by the number of labels."""
MOST_BYTES = 12_000_000
MOST_SECONDS_OF_MSS = 0.01
MOST_OF_VECTORISED = {"grr": 0.2, "ss-compact": 0.2, "pgr": 0.67, "mss-compact": 0.67, "ordered": 0.67, "tables": 0.67}
"""The most that a report of the trusted client may take, as a share of one by the vectorised side."""

_EMPTY = "import sys"
_REPORT = (
    "import sys\nfrom sunzi.client import load_plan\nload_plan(sys.argv[1]).client(max_epsilon=1).report('value 7')"
)
# The peak of this program alone: ru_maxrss counts its parent's, too, until it starts.
_COST = """
from time import process_time
used = process_time()
try:
    status = open("/proc/self/status").read()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
except OSError:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(used, peak)
"""


def starting(scale: float) -> Iterator[Result]:
    """A fresh Python that loads a plan and makes one report, against one that does nothing; and the wheel's size."""
    rounds = settings.rounds(15, scale)
    with TemporaryDirectory() as directory:
        for count, most in MOST_SECONDS.items():
            path = Path(directory) / f"{count}.json"
            make_plan("ss-compact", [f"value {number}" for number in range(count)], EPSILON).save(path)
            _cost(_REPORT, path)  # compiles the modules
            found = [(_cost(_REPORT, path), _cost(_EMPTY, path)) for _ in range(rounds)]
            taken = median(mine[0] - empty[0] for mine, empty in found)
            more = median(mine[1] - empty[1] for mine, empty in found)
            what = f"load a plan of {count:,} labels and make a report, beyond an empty Python"
            details = {"labels": count, "empty_seconds": median(empty[0] for _, empty in found), "bytes": more}
            yield _limited(f"client-start/{count}", what, taken, f"{1000 * most:.0f} ms", most, details)
            if count == min(MOST_SECONDS):
                memory = f"{what}; the ratio is peak memory, not time"
                ratio = more / MOST_BYTES
                yield Result(f"client-start/{count}-memory", memory, taken, "12 MB", None, ratio, 1, "at most", details)
    yield _wheel()


def _limited(name: str, what: str, taken: float, limit: str, most: float, details: dict[str, float]) -> Result:
    return Result(name, what, taken, limit, most, taken / most, 1, "at most", details)


def _cost(program: str, path: Path) -> tuple[float, int]:
    """Processor time and peak memory of a fresh Python."""
    command = [sys.executable, "-c", program + _COST, str(path)]
    used, peak = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout.split()
    return float(used), int(peak)


def _wheel() -> Result:
    """The size of the wheel of sunzi-client."""
    with TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", directory]
        start = perf_counter()  # another process does it
        subprocess.run([*command, str(ROOT / "clients" / "python")], check=True, capture_output=True)
        taken = perf_counter() - start
        (wheel,) = Path(directory).glob("*.whl")
        size = wheel.stat().st_size
    what = "build the wheel of sunzi-client; the ratio is its size, not time"
    ratio, details = size / MOST_WHEEL_BYTES, {"bytes": size}
    return Result("client-start/wheel", what, taken, "150 kB", None, ratio, 1, "at most", details)


def reporting(scale: float) -> Iterator[Result]:
    """One report by the trusted client, against the vectorised side for one value, and for `mss` against a limit."""
    size, rounds = settings.domain_size(settings.DOMAIN_SIZE, scale), settings.rounds(7, scale)
    plans = {name: make_plan(name, size, EPSILON) for name in (*SINGLE, "mss")}
    plans |= {"ordered": ordered_plan(BINS), "tables": tables_plan()}
    for name, plan in plans.items():
        device = client.Plan.from_json(json.dumps(plan.to_json())).client(max_epsilon=EPSILON)
        index = plan.domain.size // 3
        times = compare(partial(device.report_index, index), partial(_vectorised, plan, np.array([index])), rounds)
        details = {"domain_size": plan.domain.size, "epsilon": EPSILON}
        yield Result(
            f"client-reports/{name}",
            f"one report of {name} by the trusted client",
            times.measured,
            "the vectorised side, for one value",
            times.reference,
            times.slowdown,
            MOST_OF_VECTORISED.get(name),
            "at most",
            details,
        )
        if name == "mss":
            what = f"one report of mss, {plan.domain.size:,} values, by the trusted client"
            yield _limited(
                "client-reports/mss-limit", what, times.measured, "10 ms", MOST_SECONDS_OF_MSS, dict(details)
            )


def _vectorised(plan: Plan, indices: Integers) -> bytes:
    """One report as arrays make it, words of the operating system and bytes included."""
    encoded = plan.protocol.randomize_reports(indices, SystemSource())
    return wire.encode_each(plan.protocol.report_layout, encoded)[0]
