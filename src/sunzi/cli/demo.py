"""``sunzi demo``: one whole collection, from plan to picture, with simulated users.

Everything goes the way it would in the field: the users' reports are bytes, and the estimate is made from those bytes
and the public plan alone. Only the population is simulated. ``--seed`` fixes the population and nothing else: the
reports are randomised by the operating system, as a real client's are, so no two runs print quite the same numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, islice, product
from typing import TYPE_CHECKING, TextIO

import sunzi
from sunzi.cli.plan_figures import privacy_bound
from sunzi.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SUMMARY = "run one collection with simulated users, and show how close the estimate comes"
_SHOWN = 10
_PICTURED = 20
_CONFIDENCE = 0.95
_WORDS = """
    the be to of and a in that have it for not on with he as you do at this but his by from they we say her she or an
    will my one all would there their what so up out if about who get which go me when make can like time no just him
    know take people into year your good some could them see other than then now look only come its over think also
    back after use two how our work first well way even new want because any these give day most us is
""".split()  # noqa: SIM905 - a hundred quoted words would fill a screen


@dataclass
class _Clock:
    """How long each step took, and a line that says which one is running, for those who watch a terminal."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block under this name."""
        watched = sys.stderr.isatty()
        if watched:
            print(f"{name} ...", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            yield
        finally:
            if watched:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self.seconds[name] = time.perf_counter() - start


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``demo`` to the command line."""
    parser = commands.add_parser("demo", help=_SUMMARY, description=f"{_SUMMARY.capitalize()}.")
    parser.add_argument("--users", type=int, default=100_000, help="simulated users (default: %(default)s)")
    parser.add_argument("--size", type=int, default=1_000, help="words in the domain (default: %(default)s)")
    parser.add_argument("--epsilon", default="2", help="privacy of one report: 2, 0.5 or 1/2 (default: %(default)s)")
    parser.add_argument("--protocol", default="mss-compact", help="a name of the catalogue (default: %(default)s)")
    parser.add_argument("--output", default="sunzi-demo.png", help="where to draw the picture (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulated population (default: %(default)s)")
    parser.add_argument("--serve", action="store_true", help="then run it once more over HTTP, with the live page")
    parser.add_argument("--port", type=int, default=0, help="of the live page, with --serve (default: any free one)")
    parser.add_argument("--once", action="store_true", help="with --serve: do not wait for anybody to look")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, simulate a population, report, tally, estimate; print what came of it, and draw it."""
    if arguments.users < 1:
        raise ParameterError(f"--users must be at least 1, got {arguments.users}")
    clock = _Clock()
    labels = demo_labels(arguments.size)
    with clock.step("plan"):
        plan = sunzi.make_plan(arguments.protocol, domain=labels, epsilon=arguments.epsilon)
    with clock.step("simulate the population"):
        truth, values = simulate_population(labels, arguments.users, arguments.seed)
    with clock.step("randomise and encode"):
        batch = plan.client().report_batch(values)
    with clock.step("decode and tally"):
        tally = plan.tally(batch)
    with clock.step("estimate"):
        estimate = plan.estimate(tally)
    _describe(arguments, plan.report_bits, tally.reports, len(batch))
    _print_table(estimate, dict(zip(labels, truth.tolist(), strict=True)))
    _print_coverage(estimate, truth)
    with clock.step("draw"):
        drawn = _draw(estimate, truth, arguments.output)
    print("\nSeconds: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in clock.seconds.items()))
    print(drawn)
    if arguments.serve:
        from sunzi.cli.demo_service import serve_demo

        serve_demo(plan, plan.domain.indices(values), arguments.port, once=arguments.once)
    return 0


def demo_labels(size: int) -> list[str]:
    """Common English words, most frequent first; when they run out, phrases of two words, then of three."""
    most = sum(len(_WORDS) ** length for length in (1, 2, 3))
    if not 2 <= size <= most:
        raise ParameterError(f"--size must be between 2 and {most}, got {size}")
    phrases = chain.from_iterable(product(_WORDS, repeat=length) for length in (1, 2, 3))
    return [" ".join(phrase) for phrase in islice(phrases, size)]


def simulate_population(labels: list[str], users: int, seed: int) -> tuple[NDArray[np.float64], list[str]]:
    """Draw one word a user by Zipf's law: the i-th label has a chance proportional to 1/i.

    Returns the frequencies among these very users, which is what the estimate is of, and each user's word.
    """
    import numpy as np

    if seed < 0:
        raise ParameterError(f"--seed must not be negative, got {seed}")
    chances = 1 / np.arange(1, len(labels) + 1)
    indices = np.random.default_rng(seed).choice(len(labels), size=users, p=chances / chances.sum())
    truth = np.bincount(indices, minlength=len(labels)) / users
    return truth, [labels[index] for index in indices]


def _describe(arguments: argparse.Namespace, report_bits: float, reports: int, size_in_bytes: int) -> None:
    """Say what was collected, and what ε promises, in words."""
    print(
        f"{reports:,} simulated users, each with one of {arguments.size:,} words, sent one {arguments.protocol} report."
    )
    print(f"{privacy_bound(Fraction(arguments.epsilon))}.")
    print(f"A report takes {report_bits:.4g} bits; all of them together took {size_in_bytes:,} bytes.")


def _print_table(estimate: sunzi.Estimate, truth: dict[str, float]) -> None:
    """The most frequent words by the estimate, with their intervals, against the truth."""
    rows = estimate.top(_SHOWN)
    width = max(len("word"), *(len(row.label) for row in rows))
    hit, miss = _marks(sys.stdout)
    print(f"\n{'word':{width}}  {'estimate':>8}  {f'{_CONFIDENCE:.0%} interval':>17}  {'truth':>7}")
    for row in rows:
        mark = hit if row.low <= truth[row.label] <= row.high else miss
        interval = f"{row.low:.2%} to {row.high:.2%}"
        print(f"{row.label:{width}}  {row.frequency:8.2%}  {interval:>17}  {truth[row.label]:7.2%}  {mark}")


def _print_coverage(estimate: sunzi.Estimate, truth: NDArray[np.float64]) -> None:
    """How many of all intervals hold the truth, and why those of the table may do worse."""
    low, high = estimate.interval(_CONFIDENCE)
    covered = ((low <= truth) & (truth <= high)).mean()
    print(f"\nOf all {len(truth):,} intervals, {covered:.1%} hold the truth. Those above were picked for their large")
    print("estimates, which favours noise that points upwards, so they may miss a little more often.")


def _marks(stream: TextIO) -> tuple[str, str]:
    """What marks an interval that holds the truth, and one that does not, as far as the stream can show it."""
    try:
        "✓✗".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return "yes", "no"
    if stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        return "\x1b[32m✓\x1b[0m", "\x1b[31m✗\x1b[0m"
    return "✓", "✗"


def _draw(estimate: sunzi.Estimate, truth: NDArray[np.float64], path: str) -> str:
    """Draw the picture if matplotlib is there. Returns the line that says so, or says what is missing."""
    try:
        estimate.plot(path, top=_PICTURED, truth=truth)
    except MissingExtraError as error:
        return f"No picture: {error}"
    return f"The picture is in {path}."
