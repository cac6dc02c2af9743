"""``sunzi audit``: run the shipped client, bound ε from below, and check all that can be checked exactly."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from sunzi.cli.numbers import counted, parse_integer, percent
from sunzi.cli.outputs import add_format, show
from sunzi.cli.terminal import ProgressBar, say, styled
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.analysis.audit import Audit
    from sunzi.plan import Plan

FAULT_FOUND = 3
"""The exit code if the client gives away more than ε, or departs from its plan."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``audit`` to the command line."""
    description = (
        "Run the client that ships, and bound epsilon from below by what it sends. Also checks by chosen words, by all "
        "words of a few bits, and by all rates that the plan states. The exit code is 0 if all is consistent with the "
        f"plan and {FAULT_FOUND} if not. On a terminal this prints a table, in a pipe JSON. An audit finds faults; it "
        "cannot prove that there are none."
    )
    parser = commands.add_parser("audit", description=description, allow_abbrev=False)
    parser.add_argument("plan", metavar="PLAN", help="the plan file")
    parser.add_argument("--labels", metavar="FILE", help="the label file, if the plan names it by its hash")
    parser.add_argument("--trials", metavar="N", help="reports (default: 1,000,000, fewer if reports are long)")
    parser.add_argument(
        "--confidence",
        metavar="C",
        type=float,
        default=0.9999,
        help="confidence of the lower bound; a right client is called wrong with the rest (default: %(default)s)",
    )
    parser.add_argument(
        "--pair",
        metavar="VALUE",
        nargs=2,
        help="the two values to tell apart (default: drawn at random, all pairs at once for randomised response)",
    )
    parser.add_argument("--seed", type=int, help="make it reproducible; the client is then not the private one")
    parser.add_argument("--no-exact", action="store_true", help="leave out the checks by chosen and by all words")
    add_format(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Audit, and tell."""
    from sunzi.analysis.audit import audit
    from sunzi.plan import load_plan

    trials = None if arguments.trials is None else parse_integer(arguments.trials, "--trials")
    plan = load_plan(arguments.plan, labels=arguments.labels)
    with ProgressBar() as bar:
        found = audit(
            plan,
            trials=trials,
            confidence=arguments.confidence,
            seed=arguments.seed,
            pair=_pair(plan, arguments.pair),
            exact=not arguments.no_exact,
            progress=bar.show,
        )
    show(
        arguments.format,
        table=partial(_print_table, found),
        document=found.to_dict,
        rows=lambda: [finding.to_dict() for finding in found.findings],
    )
    return 0 if found.passed else FAULT_FOUND


def _pair(plan: Plan, words: list[str] | None) -> tuple[int, int] | None:
    if words is None:
        return None
    if plan.domain.has_labels:
        first, second = (plan.domain.index(word) for word in words)
        return first, second
    first, second = (parse_integer(word, "--pair") for word in words)
    if not all(0 <= value < plan.domain.size for value in (first, second)):
        raise ParameterError(f"--pair must be values from 0 to {plan.domain.size - 1}, got {' '.join(words)}")
    return first, second


def _print_table(found: Audit) -> None:
    """For a person: the verdict last."""
    from sunzi.analysis.audit import SHORTFALL

    say(
        f"{found.protocol}, {counted(found.domain_size, 'value')}, epsilon {float(found.epsilon):.4g} "
        f"(by formula {found.exact_epsilon:.6g})"
    )
    say(f"event: {found.event}; {percent(found.event_probability)} of reports, stated")
    say(
        f"{counted(found.trials, 'report')}: {counted(found.hits, 'time')} the event, "
        f"{counted(found.misses, 'time')} its mirror image"
    )
    say(f"epsilon is at least {found.lower_bound:.4g}, with confidence {found.confidence:g}")
    if found.lower_bound < (1 - SHORTFALL) * float(found.epsilon):
        say(f"to come within {SHORTFALL:.0%} of epsilon takes about {counted(found.trials_needed, 'report')}")
    if not found.is_private:
        say(
            "the audited client is a seeded one, for reproduction; the words of the operating system were not looked at"
        )
    say()
    for finding in found.findings:
        mark = styled("ok   ", "green", sys.stdout) if finding.passed else styled("FAULT", "red", sys.stdout)
        say(f"{mark}  {finding.check:15} {finding.detail}")
    say()
    say(_verdict(found))


def _verdict(found: Audit) -> str:
    epsilon = f"epsilon {float(found.epsilon):.4g}"
    if found.verdict == "consistent":
        return styled(f"consistent with {epsilon}", "green", sys.stdout)
    if found.verdict == "deviation":
        return styled("DEVIATION: the client does not do what its plan says", "red", sys.stdout)
    if found.lower_bound > float(found.epsilon):
        return styled(f"VIOLATION: the lower bound exceeds {epsilon}", "red", sys.stdout)
    return styled(f"VIOLATION: an exact check shows that more than {epsilon} is given away", "red", sys.stdout)
