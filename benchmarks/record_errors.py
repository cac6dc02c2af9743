"""Errors of ranges, means and tables: ours and those of the references, on the same data in the same run.

`python -m benchmarks.record_errors` measures everything in about five minutes and writes the tables of
docs/records.md; with the file of an earlier run (scripts/bench record-errors --json FILE) it writes them from there.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from time import process_time
from typing import cast

import numpy as np

from benchmarks import settings
from benchmarks.markdown import machine
from benchmarks.record_references import (
    HISTOGRAMS,
    MEANS,
    TABLES,
    Generator,
    Histogram,
    Mean,
    Pairs,
    Tables,
    pairs_of,
    simulated,
)
from benchmarks.results import Result, load, number
from sunzi._typing import Floats, Integers
from sunzi.plan import Plan
from sunzi.protocols.ordered_views import OrderedViews
from sunzi.record_plans import make_number, make_ordered, make_tables
from sunzi.results.cross_tables import TableEstimate
from sunzi.results.means import MeanEstimate
from sunzi.results.ordered import OrderedEstimate

PAGE = Path(__file__).resolve().parent.parent / "docs" / "records.md"
BEGIN = "<!-- measured: written by python -m benchmarks.record_errors, do not edit by hand -->"
END = "<!-- measured: end -->"

OURS = "ours"
BINS = 256
RANGES = ((1, 100_000, 300), (2, 100_000, 300), (1, 2_000_000, 25))
"""ε, users and runs."""
RANGE_BOUNDS = {"its formula": 1.05, "four-ary tree": 0.87}
ENOUGH_RUNS = 100
"""One run tells the error to about 25 to 35 %, so fewer runs cannot tell whether these bounds hold."""

MEAN_BOUNDS = {0.5: 1.10, 1.0: 1.10, 1.04: 1.13, 1.1: 1.13, 1.16: 1.13, 2.0: 1.00, 4.0: 1.00}
"""For every ε, of the ratio to the hybrid mechanism (docs/mathematics.md §15)."""
MEAN_USERS, MEAN_RUNS = 1000, 2500

TABLE_SIZES = (5,) * 6
TABLE_EPSILONS = (1.0, 2.0)
TABLE_USERS, TABLE_RUNS = 100_000, 100


@dataclass(frozen=True)
class Measured:
    """The mean squared error over some collections, and the time of one."""

    error: float
    seconds: float


def measured(collect: Callable[[Generator], float], runs: int) -> Measured:
    """Run collections that return their squared error."""
    generator, start = np.random.default_rng(settings.SEED), process_time()
    error = float(np.mean([collect(generator) for _ in range(runs)]))
    return Measured(error, (process_time() - start) / runs)


def _rows(setting: str, wording: str, found: Mapping[str, Measured], bounds: Mapping[str, float]) -> Iterator[Result]:
    """Ours against every other."""
    ours = found[OURS]
    for name, other in found.items():
        if name != OURS:
            yield Result(
                f"record-errors/{setting}/{name}",
                f"error of {wording}",
                ours.seconds,
                name,
                other.seconds or None,
                ours.error / other.error,
                bounds.get(name),
                "at most",
                {"setting": wording, "error": ours.error**0.5, "reference_error": other.error**0.5},
            )


@lru_cache
def _ordered(size: int, epsilon: float) -> Plan:
    return make_ordered(0, size, size, str(epsilon))


def halving_levels(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """The estimate of an ordered plan."""
    plan = _ordered(size, epsilon)
    return plan.estimate(simulated(plan, bins, generator)).frequencies


def smoothed(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """The same, smoothed."""
    plan = _ordered(size, epsilon)
    return cast(OrderedEstimate, plan.estimate(simulated(plan, bins, generator))).smooth().frequencies


def shapes() -> dict[str, Floats]:
    """Histograms: a smooth hump, two narrow ones, and one in which every 32nd bin is 26 times as frequent."""
    places = (np.arange(BINS) + 0.5) / BINS

    def hump(middle: float, width: float) -> Floats:
        return np.asarray(np.exp(-(((places - middle) / width) ** 2) / 2))

    found = {
        "smooth": hump(0.4, 0.15),
        "bimodal": hump(0.25, 0.03) + 0.7 * hump(0.7, 0.04),
        "spiky": 1 + 25.0 * (np.arange(BINS) % 32 == 16),
    }
    return {name: histogram / histogram.sum() for name, histogram in found.items()}


def range_error(errors: Floats) -> float:
    """The mean squared error of all ranges and all prefixes of bins, in equal parts."""
    sums, size = np.concatenate([[0.0], np.cumsum(errors)]), errors.size
    of_ranges = (sums.size * (sums @ sums) - sums.sum() ** 2) / (size * (size + 1) / 2)
    return float(of_ranges + sums @ sums / size) / 2


def _range_run(method: Histogram, histogram: Floats, epsilon: float, users: int, generator: Generator) -> float:
    """The error about the population, from which users are drawn anew."""
    bins = np.repeat(np.arange(BINS), generator.multinomial(users, histogram))
    return range_error(method(bins, BINS, epsilon, generator) - histogram)


def ranges(scale: float) -> Iterator[Result]:
    """Ranges and prefixes of 256 bins."""
    methods = {OURS: halving_levels, "our smooth()": smoothed, **HISTOGRAMS}
    for epsilon, full, runs in RANGES:
        users, bounds = settings.users(full, scale), RANGE_BOUNDS if runs >= ENOUGH_RUNS else {}
        formula = cast(OrderedViews, _ordered(BINS, epsilon).protocol).range_variance(users)
        for shape, histogram in shapes().items():
            found = {
                name: measured(partial(_range_run, method, histogram, epsilon, users), settings.rounds(runs, scale))
                for name, method in methods.items()
            }
            setting, wording = (
                f"range/{shape}/epsilon-{epsilon}/users-{users}",
                f"{shape}, ε = {epsilon}, {users:,} users",
            )
            yield from _rows(setting, f"a range, {wording}", {**found, "its formula": Measured(formula, 0)}, bounds)


def rounding(values: Floats, epsilon: float, generator: Generator) -> float:
    """The estimated mean of a plan of a number."""
    plan = _number(epsilon)
    return cast(MeanEstimate, plan.estimate(simulated(plan, values, generator))).mean().value


@lru_cache
def _number(epsilon: float) -> Plan:
    return make_number(-1, 1, str(epsilon))


def _mean_run(method: Mean | None, skewed: bool, epsilon: float, users: int, generator: Generator) -> float:
    values = 2 * generator.beta(1.5, 8, users) - 1 if skewed else 2 * generator.random(users) - 1
    found = rounding(values, epsilon, generator) if method is None else method(values, epsilon, generator).mean()
    return float(found - values.mean()) ** 2


def means(scale: float) -> Iterator[Result]:
    """Means of uniform numbers, and of skewed ones as load times are."""
    runs, users = settings.rounds(MEAN_RUNS, scale), settings.users(MEAN_USERS, scale)
    methods: dict[str, Mean | None] = {OURS: None, **MEANS}
    for epsilon, bound in MEAN_BOUNDS.items():
        for shape in ("uniform", "skewed"):
            found = {
                name: measured(partial(_mean_run, method, shape == "skewed", epsilon, users), runs)
                for name, method in methods.items()
            }
            wording = f"a mean, {shape}, ε = {epsilon:g}, {users:,} users"
            yield from _rows(
                f"mean/{shape}/epsilon-{epsilon:g}/users-{users}", wording, found, {"hybrid mechanism": bound}
            )


@lru_cache
def _tables(sizes: tuple[int, ...], epsilon: float) -> Plan:
    attributes = {f"q{place}": [str(value) for value in range(size)] for place, size in enumerate(sizes)}
    return make_tables(attributes, [(f"q{first}", f"q{second}") for first, second in pairs_of(sizes)], str(epsilon))


def joined_views(columns: Integers, sizes: tuple[int, ...], epsilon: float, generator: Generator) -> Pairs:
    """The tables of a plan of all pairs."""
    plan = _tables(sizes, epsilon)
    values = {f"q{place}": column.astype(str) for place, column in enumerate(columns)}
    tally = simulated(plan, values, generator)
    found = {pair: plan.estimate(tally, table=[f"q{place}" for place in pair]) for pair in pairs_of(sizes)}
    return {pair: cast(TableEstimate, estimate).table for pair, estimate in found.items()}


def _table_run(method: Tables, columns: Integers, epsilon: float, generator: Generator) -> float:
    found, errors = method(columns, TABLE_SIZES, epsilon, generator), []
    for (first, second), table in found.items():
        joint = columns[first] * TABLE_SIZES[second] + columns[second]
        errors.append(table.reshape(-1) - np.bincount(joint, minlength=table.size) / joint.size)
    return float(np.mean(np.square(errors)))


def survey(users: int) -> Integers:
    """Answers to six questions; each tends to be like the one before."""
    generator = np.random.default_rng(settings.SEED)
    answers = [generator.choice(5, users, p=[0.4, 0.25, 0.2, 0.1, 0.05])]
    for _ in TABLE_SIZES[1:]:
        new = generator.choice(5, users, p=[0.3, 0.3, 0.2, 0.1, 0.1])
        answers.append(np.where(generator.random(users) < 0.3, answers[-1], new))
    return np.array(answers)


def tables(scale: float) -> Iterator[Result]:
    """All tables of two of six questions with five answers."""
    columns, runs = survey(settings.users(TABLE_USERS, scale)), settings.rounds(TABLE_RUNS, scale)
    for epsilon in TABLE_EPSILONS:
        found = {
            name: measured(partial(_table_run, method, columns, epsilon), runs)
            for name, method in {OURS: joined_views, **TABLES}.items()
        }
        wording = f"a cell of a table, six questions, ε = {epsilon:g}, {columns.shape[1]:,} users"
        yield from _rows(f"table/epsilon-{epsilon:g}", wording, found, {})


def record_errors(scale: float) -> Iterator[Result]:
    """Mean squared errors of ranges, means and tables, relative to what users might take instead."""
    yield from ranges(scale)
    yield from means(scale)
    yield from tables(scale)


def page_table(results: list[Result]) -> str:
    """One row per setting: our standard error, and the ratio of mean squared errors to every reference."""
    settings_: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        settings_[result.details["setting"].partition(", ")[2]].append(result)
    names = list(dict.fromkeys(result.reference for result in results))
    lines = [f"| data | our error | {' | '.join(names)} |", f"|---|--:|{'--:|' * len(names)}"]
    for setting, rows in settings_.items():
        ratios = {row.reference: number(row.ratio) for row in rows}
        cells = [setting, f"{rows[0].details['error']:.4f}", *(ratios.get(name, "") for name in names)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Replace the text between the two marks of docs/records.md, with the results in the given file, if any."""
    results = load(Path(arguments[0])) if arguments else list(record_errors(1.0))
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} must contain the lines {BEGIN!r} and {END!r}")
    kinds = {"Ranges": "range", "Means": "mean", "Tables": "table"}
    parts = [machine()]
    for title, kind in kinds.items():
        parts += [f"**{title}**", page_table([result for result in results if result.name.split("/")[1] == kind])]
    joined = "\n\n".join(parts)
    PAGE.write_text(f"{before}{BEGIN}\n\n{joined}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
