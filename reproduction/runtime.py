"""Server time: MSS against PGR, each with the paper's decoder and with the library's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

import sunzi
from sunzi._typing import Floats, Integers
from sunzi.processes import pool_of_processes
from sunzi.testing import ReproducibleSource

from . import claims
from .claims import Finding
from .decoders import TOLERANCE, LeastSquares, dynamic_frequencies
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding_of
from .figures import common_legend, curve, head, name_of, panels, style
from .moduli_search import paper_search
from .table import Table, number_in, summary
from .threads import single_threaded
from .trials import USERS, linear_decoder, paper_plan, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = {
    2.0: (0.160, 2.897),
    2.5: (0.275, 4.019),
    3.0: (0.272, 9.618),
    3.5: (0.162, 1.908),
    4.0: (0.168, 11.461),
    4.5: (0.127, 56.906),
    5.0: (0.152, 3.208),
}
"""Seconds of MSS and PGR in the paper's table."""
WAYS = ("mss", "mss by lsmr", "pgr", "pgr by programme", "ss-compact", "mss-compact")
_LOOKS = {"mss by lsmr": "ss", "pgr by programme": "oue"}
FROM_BYTES = ("mss", "ss", "pgr", "ss-compact", "mss-compact")
PHASES = ("making", "reading", "decoding")
PAPER_TRIALS = 300


class Runtime(Experiment):
    """All decoders on the same users, alternately, in one process."""

    name = "runtime"
    title = "Server time of MSS and PGR"
    reproduces = "the table of server-side run times, k = 22,000, n = 10,000, Zipf"
    alone = True

    def cells(self, scale: Scale) -> list[Cell]:
        """ε = 2 … 5, with several collections, each decoded several times."""
        epsilons = {"tiny": (2.0, 4.5), "quick": (2.0, 3.0, 4.0, 4.5, 5.0), "full": tuple(PAPER)}[scale]
        size, users = (300, 500) if scale == "tiny" else (22_000, USERS)
        collections, rounds = {"tiny": (1, 2), "quick": (1, 5), "full": (10, 10)}[scale]
        timed = [
            Cell.of(collections * rounds / 3, k=size, epsilon=each, users=users, collections=collections, rounds=rounds)
            for each in epsilons
        ]
        timed += [
            Cell.of(0.001 * users, part="bytes", k=size, epsilon=each, users=users, rounds=5) for each in epsilons
        ]
        return timed + [
            Cell.of(searches * 2e-4 * size, part="iterations", k=size, epsilon=epsilon, users=users, searches=searches)
            for size, searches, epsilons in _counted(scale)
            for epsilon in epsilons
        ]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """Times in a subprocess, because numerical libraries read their number of threads when they are loaded;
        iterations in this process.
        """
        part = dict(cell.parameters).get("part")
        if part == "iterations":
            return count_iterations(cell, seed)
        timing = measure_bytes if part == "bytes" else measure_times
        with single_threaded(), pool_of_processes(1) as pool:
            return pool.submit(timing, cell, seed).result()

    def draw(self, table: Table) -> Figure:
        """Seconds from messages, how many times MSS is faster, and seconds from bytes."""
        figure, axes = panels(1, 3, "Processor seconds for 10,000 users, one thread; medians", width=4.6, height=3.4)
        left, right, last = axes[0]
        _draw_bytes(last, table.where(part="bytes"))
        table = _timings(table)
        for way in table.distinct("way"):
            part = table.where(way=way)
            curve(left, part.column("epsilon"), part.column("median"), _label(way), **style(_LOOKS.get(way, way)))
        across = [epsilon for epsilon in table.distinct("epsilon") if epsilon in PAPER]
        for place, name in enumerate(("mss", "pgr")):
            look: dict[str, Any] = {"color": "#999999", "linestyle": "-" if place == 0 else "--", "linewidth": 1.2}
            left.plot(
                across, [PAPER[epsilon][place] for epsilon in across], label=f"{name_of(name)}, as in the paper", **look
            )
        head(left, f"k = {table.distinct('k')[-1]:,}: from messages to frequencies", "ε", "seconds", logarithmic=True)
        pairs = (("pgr", "mss"), ("pgr by programme", "mss by lsmr"))
        for (slow, fast), name in zip(pairs, ("pgr", "oue"), strict=True):
            curve(
                right,
                table.distinct("epsilon"),
                speedups(table, slow, fast),
                f"{_label(slow)} / {_label(fast)}",
                **style(name),
            )
        right.plot(
            across,
            [PAPER[epsilon][1] / PAPER[epsilon][0] for epsilon in across],
            color="#999999",
            label="PGR / MSS, as in the paper",
        )
        right.axhline(1, color="#333333", linewidth=0.8)
        head(right, "how many times faster MSS is", "ε", "PGR / MSS", logarithmic=True)
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """The speed-up, the spike, the iterations."""
        return [
            self._speedup(_timings(table), table.where(part="bytes")),
            self._spike(_timings(table)),
            self._iterations(table.where(part="iterations")),
        ]

    def _speedup(self, table: Table, sent: Table) -> Evidence:
        """By the paper's algorithms first, then by the library's."""
        ours, papers = speedups(table, "pgr", "mss"), speedups(table, "pgr by programme", "mss by lsmr")
        solving = [
            table.number("median", way="pgr", epsilon=each)
            / (table.number("median", way="mss", epsilon=each) - table.number("counting", way="mss", epsilon=each))
            for each in table.distinct("epsilon")
        ]
        return Evidence(
            claim=claims.SPEED_UP,
            measured=f"PGR by dynamic programme takes {min(papers):.2f} to {max(papers):.2f} times as long as MSS by "
            "LSMR",
            finding=speed_finding(papers),
            beyond=(
                f"both at their best {min(ours):.2f} to {max(ours):.2f} times; compared with the solve of MSS alone, "
                f"without its counting, {min(solving):.1f} to {max(solving):.1f} times{_from_bytes(sent)}"
            ),
            beyond_finding=speed_finding(ours),
            why=(
                f"{_seconds(table)} The paper's times for PGR are those of one implementation: the same dynamic "
                "programme, vectorised, takes milliseconds here, and a Fourier transform or adding up the hyperplanes "
                "often less. MSS gains time by its fast solve but loses it by reading reports: each is a subset of "
                "hundreds of residues, all of which must be counted. See errata 10 and 13 of docs/paper-notes.md."
            ),
        )

    def _spike(self, table: Table) -> Evidence:
        part = table.where(way="pgr by programme")
        largest = max(part, key=lambda row: number_in(row, "median"))
        slowest = number_in(largest, "median")
        others = [number_in(row, "median") for row in part if row is not largest]
        points = {row["epsilon"]: int(number_in(row, "points")) for row in part}
        points_at_spike = max(points.values()) == points[largest["epsilon"]]
        return Evidence(
            claim=claims.SLOW_GEOMETRY,
            measured=(
                f"by dynamic programme the slowest is ε = {largest['epsilon']:g} with "
                f"{1e3 * slowest:.0f} ms, {slowest / max(others):.1f} times the next; K = "
                + ", ".join(f"{count:,} (ε = {epsilon:g})" for epsilon, count in points.items())
            ),
            finding=finding_of(largest["epsilon"] == 4.5, points_at_spike),
            why=(
                "At ε = 4.5 the field next to e^ε+1 has 89 elements, three coordinates give 8,011 points, too few, and "
                "four give 712,980. The explanation is right. The height of the spike is due to the implementation, "
                "and another field (the option `order`) avoids it."
            ),
        )

    def _iterations(self, table: Table) -> Evidence:
        """Constant: no more than κ ≤ 10 allows, and no more on a large domain than on a small one."""
        iterations, kappa = table.column("iterations"), table.column("kappa")
        counts = {size: table.where(k=size).column("iterations") for size in table.distinct("k")}
        means = [float(part.mean()) for part in counts.values()]
        text = "; ".join(
            f"{part.min():.0f} to {part.max():.0f} iterations at k = {size:,} ({part.size} × a set of moduli and an ε, "
            f"{part.mean():.1f} on average)"
            for size, part in counts.items()
        )
        limit = log(TOLERANCE) / log((10 - 1) / (10 + 1))
        return Evidence(
            claim=claims.FEW_ITERATIONS,
            measured=f"{text}, at scipy's default tolerances, for κ from {kappa.min():.2f} to {kappa.max():.2f} and "
            f"ε from {min(table.distinct('epsilon')):g} to {max(table.distinct('epsilon')):g}",
            finding=finding_of(bool(iterations.max() <= limit), max(means) <= 1.5 * min(means)),
            why=f"The error falls by (κ−1)/(κ+1) per iteration, so κ ≤ 10 bounds r by {limit:.0f} for the tolerance "
            f"{TOLERANCE:g}, for every k. The library needs no iterations, because T is Toeplitz.",
        )

    def notes(self, table: Table) -> Sequence[str]:
        """The table, and how it was timed."""
        sent, table = table.where(part="bytes"), _timings(table)
        lines = [
            f"ε = {epsilon:g}: "
            + ", ".join(f"{way} {1e3 * table.number('median', way=way, epsilon=epsilon):.1f}" for way in WAYS)
            for epsilon in table.distinct("epsilon")
        ]
        return (
            "All methods decode the same users' messages in turn, in one process and one thread; a trial is one "
            f"decoding, {_trials(table)}. Time is processor time from messages, as a server has them after reading the "
            "wire, to frequencies: counting, then decoding; the plan has decoded before. `mss` has moduli of the "
            "paper's search and the library's linear decoder. `mss by lsmr` is scipy's LSMR on the explicit sparse "
            "matrix with the paper's weights and ridge; the matrix is built beforehand. `pgr by programme` is the PGR "
            "paper's dynamic programme. From bytes means: make a report as bytes for every user, read the bytes into a "
            "tally, and decode it. Iterations are counted separately, over many sets of moduli.",
            "Median milliseconds from messages. " + "; ".join(lines) + ".",
            "Median milliseconds from bytes, to make + read + decode 10,000 reports. "
            + "; ".join(
                f"ε = {epsilon:g}: " + ", ".join(_phases(sent, name, epsilon) for name in FROM_BYTES)
                for epsilon in sent.distinct("epsilon")
            )
            + ".",
        )


def _counted(scale: Scale) -> list[tuple[int, int, tuple[float, ...]]]:
    """k, how many searches, and the ε for which iterations are counted."""
    if scale == "tiny":
        return [(300, 2, (2.0,))]
    if scale == "quick":
        return [(1024, 5, (2.0, 5.0)), (22_000, 1, (2.0,))]
    return [(1024, 30, (0.5, 2.0, 3.5, 5.0)), (22_000, 10, (0.5, 2.0, 3.5, 5.0))]


def count_iterations(cell: Cell, seed: int) -> list[Row]:
    """One row per search: κ of the set it finds, and the iterations of LSMR on one collection."""
    size, epsilon = cell["k"], cell["epsilon"]
    rows: list[Row] = []
    for search, words in enumerate(cell.seeds(seed, cell["searches"])):
        plan = paper_plan(size, epsilon, search)
        tally = plan.simulate(values_of("zipf:3", size, cell["users"], words), seed=[*words, 1])
        _, iterations = LeastSquares(plan, tally).solve()
        found = paper_search(size, epsilon, search)
        rows.append({"search": search, "kappa": found.kappa, "moduli": len(found.moduli), "iterations": iterations})
    return rows


def measure_bytes(cell: Cell, seed: int) -> list[Row]:
    """Median processor seconds to make reports as bytes, to read them into a tally, and to decode it."""
    (words,) = cell.seeds(seed, 1)
    values = values_of("zipf:3", cell["k"], cell["users"], words)
    rows: list[Row] = []
    for name in FROM_BYTES:
        plan = paper_plan(cell["k"], cell["epsilon"]) if name == "mss" else sunzi.make_plan(name, *_setting(cell))
        times = [_phases_of(plan, values, [*words, turn]) for turn in range(cell["rounds"] + 1)]
        making, reading, decoding = np.median(times[1:], axis=0).tolist()  # the first turn warms up
        rows.append({"protocol": name, "making": making, "reading": reading, "decoding": decoding})
    return rows


def _setting(cell: Cell) -> tuple[int, float]:
    return cell["k"], cell["epsilon"]


def _phases_of(plan: sunzi.Plan, values: Integers, seed: list[int]) -> tuple[float, float, float]:
    making, reports = _timed(lambda: plan.client(seed=seed[-1]).reports(values))
    reading, tally = _timed(lambda: plan.tally(reports))
    decoding, _ = _timed(lambda: plan.estimate(tally, **linear_decoder(plan)).frequencies)
    return making, reading, decoding


def _phases(sent: Table, name: str, epsilon: float) -> str:
    (row,) = sent.where(protocol=name, epsilon=epsilon).rows
    times = (f"{1e3 * number_in(row, phase):.1f}" for phase in PHASES)
    return f"{name} {' + '.join(times)}"


def _from_bytes(sent: Table) -> str:
    """The server's part, reading and decoding, and the whole way from values to frequencies."""
    server, whole = (_totals(sent, phases) for phases in (PHASES[1:], PHASES))
    texts = [
        f"{label} {min(ratios):.2f} to {max(ratios):.2f} times"
        for label, ratios in (
            ("from bytes to frequencies", server["pgr"] / server["mss"]),
            ("with making the reports", whole["pgr"] / whole["mss"]),
        )
    ]
    return "; " + ", ".join(texts)


def _totals(sent: Table, phases: Sequence[str]) -> dict[str, Floats]:
    """Seconds of some phases at every ε, by protocol."""
    return {
        name: np.sum([sent.where(protocol=name).column(phase) for phase in phases], axis=0)
        for name in sent.distinct("protocol")
    }


def _draw_bytes(axes: Axes, sent: Table) -> None:
    for name, seconds in _totals(sent, PHASES).items():
        curve(axes, sent.where(protocol=name).column("epsilon"), seconds, name_of(name), **style(name))
    head(axes, "from values to reports as bytes to frequencies", "ε", "seconds", logarithmic=True)


def _label(way: str) -> str:
    """A way with its protocol as in other pictures."""
    protocol, _, rest = way.partition(" ")
    return " ".join([name_of(protocol), *rest.replace("lsmr", "LSMR").split()])


def _trials(table: Table) -> str:
    trials = min(table.distinct("trials"))
    return f"{trials} per point" + (f" (the paper has {PAPER_TRIALS})" if trials < PAPER_TRIALS else "")


def speed_finding(ratios: Sequence[float]) -> Finding:
    """Of how many times faster MSS is: always as much as the paper says, at least somewhere faster, or never."""
    return "for" if min(ratios) >= 11 else "in part" if max(ratios) > 1 else "against"


def _timings(table: Table) -> Table:
    return table.where(part=None)


def measure_times(cell: Cell, seed: int) -> list[Row]:
    """Processor time from messages, as a server reads them, to frequencies; plans are warm."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    counting: dict[str, list[float]] = {way: [] for way in WAYS}
    steps: list[int] = []
    plans = _plans(cell["k"], cell["epsilon"])
    for each in cell.seeds(seed, cell["collections"]):
        values = values_of("zipf:3", cell["k"], cell["users"], each)
        source = ReproducibleSource([*each, 1])
        sent = {name: plan.protocol.randomize(values, source) for name, plan in plans.items()}
        for turn in range(cell["rounds"] + 1):
            for way in WAYS:
                plan = plans[way.split()[0]]
                counted, decoded, iterations = _decode(way, plan, sent[way.split()[0]], cell["users"])
                if turn:  # the first turn warms up
                    times[way].append(counted + decoded)
                    counting[way].append(counted)
                    steps += iterations
    rows: list[Row] = []
    for way in WAYS:
        row = {"way": way, **summary(times[way]), "deviation": float(np.std(times[way]))}
        row |= {"median": float(np.median(times[way])), "counting": float(np.median(counting[way]))}
        if way == "mss by lsmr":
            row["iterations"] = float(np.mean(steps))
        rows.append(row | _size(plans[way.split()[0]]))
    return rows


def speedups(table: Table, slow: str, fast: str) -> list[float]:
    """The ratio of two ways' medians at every ε."""
    return [
        table.number("median", way=slow, epsilon=each) / table.number("median", way=fast, epsilon=each)
        for each in table.distinct("epsilon")
    ]


def _seconds(table: Table) -> str:
    found = [number_in(row, "median") for row in table.where(way="pgr")]
    low, high = min(found), max(found)
    return f"PGR takes {1e3 * low:.0f} to {1e3 * high:.0f} ms here, 1.9 to 56.9 s in the paper."


def _plans(size: int, epsilon: float) -> dict[str, sunzi.Plan]:
    others = {name: sunzi.make_plan(name, size, epsilon) for name in ("pgr", "ss-compact", "mss-compact")}
    return {"mss": paper_plan(size, epsilon), **others}


def _size(plan: sunzi.Plan) -> Row:
    design = getattr(plan.protocol, "design", None)
    return {"points": None if design is None else int(design.points)}


def _decode(way: str, plan: sunzi.Plan, messages: Any, users: int) -> tuple[float, float, list[int]]:
    """Seconds of counting and of decoding, and the iterations if there were any."""
    protocol, iterations = plan.protocol, []
    counted, counters = _timed(lambda: protocol.count(messages))
    tally = sunzi.Tally(plan.digest, protocol.tally_layout, users, counters)
    if way == "mss by lsmr":
        solver = LeastSquares(plan, tally)
        decoded, (_, number) = _timed(solver.solve)
        iterations = [number]
    elif way == "pgr by programme" and hasattr(protocol.design, "space"):  # type: ignore[attr-defined]
        decoded, _ = _timed(lambda: dynamic_frequencies(plan, tally))
    else:
        decoded, _ = _timed(lambda: plan.estimate(tally, **linear_decoder(plan)).frequencies)
    return counted, decoded, iterations


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


EXPERIMENT = Runtime()
