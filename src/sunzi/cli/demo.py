"""``sunzi demo``: a complete collection, from plan to picture, with simulated users.

Only the population is simulated. The users' reports are bytes, made by the shipped client, and the estimate is computed
from those bytes and the public plan alone. ``--seed`` fixes the population only: the client uses the operating system's
randomness, so the numbers differ from run to run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import TYPE_CHECKING

from sunzi.cli.files import PICTURES, add_force, check_new, check_suffix
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.errors import MissingExtraError
from sunzi.formatting import counted, percent, privacy_bound

if TYPE_CHECKING:
    from sunzi._typing import Floats, Integers
    from sunzi.plan import Plan
    from sunzi.results.estimate import Estimate

_SHOWN = 10
_PICTURED = 20
_PICTURE = "sunzi-demo.png"
_CONFIDENCE = 0.95
_SERVED = 5
_BATCH = 500
_WORDS = """
    the be to of and a in that have it for not on with he as you do at this but his by from they we say her she or an
    will my one all would there their what so up out if about who get which go me when make can like time no just him
    know take people into year your good some could them see other than then now look only come its over think also
    back after use two how our work first well way even new want because any these give day most us is
""".split()  # noqa: SIM905 - a hundred quoted words would fill a screen


@dataclass
class _Clock:
    """Times the steps of the demo, and shows on a terminal which one is running."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block under this name."""
        is_visible = sys.stderr.isatty()
        if is_visible:
            print(f"{name} ...", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            yield
        finally:
            if is_visible:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self.seconds[name] = time.perf_counter() - start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``demo``, and add its arguments."""
    parser.description = (
        "Run a collection with simulated users, print the estimate and the truth, and draw a picture. With --serve, "
        "run it again over HTTP with a collector and its live page."
    )
    parser.add_argument(
        "--users", metavar="N", type=int, default=100_000, help="number of simulated users (default: %(default)s)"
    )
    parser.add_argument(
        "--size", metavar="K", type=int, default=1_000, help="number of words in the domain (default: %(default)s)"
    )
    parser.add_argument(
        "--epsilon", metavar="E", default="2", help="privacy of one report: 2, 0.5 or 1/2 (default: %(default)s)"
    )
    parser.add_argument(
        "--protocol", metavar="NAME", default="mss-compact", help="name of the protocol (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default=_PICTURE, help="picture file (default: %(default)s)")
    add_force(parser)
    parser.add_argument(
        "--seed", metavar="S", type=int, default=1, help="seed of the population (default: %(default)s)"
    )
    parser.add_argument("--serve", action="store_true", help="run the collection again over HTTP, with the live page")
    parser.add_argument("--port", type=int, default=0, help="port of the collector, with --serve (default: a free one)")
    parser.add_argument("--once", action="store_true", help="with --serve: exit at once instead of waiting for Ctrl+C")


def run(arguments: argparse.Namespace) -> int:
    """Plan, simulate a population, report, tally, estimate; print and draw the result."""
    from sunzi.plan import make_plan

    if arguments.users < 1:
        raise ParameterError(f"--users must be at least 1, got {arguments.users}")
    check_suffix(arguments.output, PICTURES)
    check_new(arguments.output, force=arguments.force or arguments.output == _PICTURE)
    clock = _Clock()
    labels = demo_labels(arguments.size)
    with clock.step("plan"):
        plan = make_plan(arguments.protocol, domain=labels, epsilon=arguments.epsilon)
    with clock.step("simulate the population"):
        truth, values = simulate_population(labels, arguments.users, arguments.seed)
    with clock.step("randomise and encode"):
        batch = plan.client().report_batch(values)
    with clock.step("decode and tally"):
        tally = plan.tally(batch)
    with clock.step("estimate"):
        estimate = plan.estimate(tally)
    say_wrapped(
        f"{tally.reports:,} simulated users each sent one {plan.protocol.name} report of one of {len(labels):,} words."
    )
    say_wrapped(f"{privacy_bound(plan.epsilon)}.")
    say_wrapped(f"A report takes {plan.report_bits:.4g} bits; all reports together take {counted(len(batch), 'byte')}.")
    say()
    _print_table(estimate, dict(zip(labels, truth.tolist(), strict=True)))
    say()
    _print_coverage(estimate, truth)
    with clock.step("draw"):
        drawn = _draw(estimate, truth, arguments.output)
    say()
    say_wrapped("Seconds: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in clock.seconds.items()))
    say(drawn)
    if arguments.serve:
        _serve(plan, plan.domain.indices(values), arguments.port, once=arguments.once)
    return 0


def demo_labels(size: int) -> list[str]:
    """Return common English words, most frequent first, followed by phrases of two and of three words."""
    most = sum(len(_WORDS) ** length for length in (1, 2, 3))
    if not 2 <= size <= most:
        raise ParameterError(f"--size must be between 2 and {most}, got {size}")
    phrases = chain.from_iterable(product(_WORDS, repeat=length) for length in (1, 2, 3))
    return [" ".join(phrase) for phrase in islice(phrases, size)]


def simulate_population(labels: list[str], users: int, seed: int) -> tuple[Floats, list[str]]:
    """Draw one word per user by Zipf's law: the i-th label has probability proportional to 1/i.

    Returns the frequencies among these users, which the collection estimates, and each user's word.
    """
    import numpy as np

    if seed < 0:
        raise ParameterError(f"--seed must not be negative, got {seed}")
    weights = 1 / np.arange(1, len(labels) + 1)
    indices = np.random.default_rng(seed).choice(len(labels), size=users, p=weights / weights.sum())
    truth = np.bincount(indices, minlength=len(labels)) / users
    return truth, [labels[index] for index in indices]


def _print_table(estimate: Estimate, truth: dict[str, float]) -> None:
    """Print the most frequent words with their intervals and the truth; misses are red."""
    rows = estimate.top(_SHOWN)
    is_covered = [row.low <= truth[row.label] <= row.high for row in rows]
    cells = [
        [
            row.label,
            percent(row.frequency, 2),
            f"{percent(row.low, 2)} to {percent(row.high, 2)}",
            percent(truth[row.label], 2),
            "yes" if covered else "no",
        ]
        for row, covered in zip(rows, is_covered, strict=True)
    ]
    header = ["word", "estimate", f"{100 * _CONFIDENCE:g} % interval", "truth", "covered"]
    print_table(header, cells, styles=[None if covered else "red" for covered in is_covered])


def _print_coverage(estimate: Estimate, truth: Floats) -> None:
    """Print how many of all intervals cover the truth, and why those in the table may do worse."""
    low, high = estimate.interval(_CONFIDENCE)
    covered = ((low <= truth) & (truth <= high)).mean()
    say_wrapped(
        f"{percent(covered, 1)} of all {len(truth):,} intervals cover the truth. The intervals above may cover it less "
        "often, because the words were selected for their large estimates, which favours upward noise."
    )


def _draw(estimate: Estimate, truth: Floats, path: str) -> str:
    """Draw the picture if matplotlib is installed; return a line that names the file or the missing extra."""
    try:
        estimate.plot(path, top=_PICTURED, truth=truth)
    except MissingExtraError as error:
        return f"No picture: {error}"
    return f"Wrote the picture to {path}."


def _serve(plan: Plan, values: Integers, port: int, *, once: bool) -> None:
    """Run the collection again over HTTP, and keep the live page open until Ctrl+C.

    Returns at once with ``once`` or without a terminal to press Ctrl+C on.
    """
    from sunzi.cli.simulate import send_reports
    from sunzi.collector import RemoteCollector, serve

    with serve(plan, port=port) as collector, closing(RemoteCollector(collector.url, max_epsilon=None)) as remote:
        say()
        say(f"The same over HTTP: a collector listens at {collector.url}")
        send_reports(remote, remote.current(), values, _BATCH)
        plan, tally = remote.tally()
        top = plan.estimate(tally).top(_SERVED)
        found = ", ".join(f"{row.label} {percent(row.low, 1)} to {percent(row.high, 1)}" for row in top)
        say_wrapped(f"It counted {counted(tally.reports, 'report')}, each exactly once. Most frequent: {found}.")
        if not once and sys.stdout.isatty():
            say(f"Open the live page: {collector.url}/ (press Ctrl+C to stop)")
            collector.wait()
