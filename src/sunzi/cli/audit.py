"""``sunzi audit``: run the shipped client, compute a lower bound on its ε, and run all exact checks."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from sunzi.cli.files import add_client_seed, add_confidence, add_format, add_labels, add_plan, show
from sunzi.cli.numbers import parse_integer
from sunzi.cli.terminal import ProgressBar, say, styled
from sunzi.errors import ParameterError
from sunzi.formatting import counted, percent

if TYPE_CHECKING:
    from sunzi.analysis import Audit
    from sunzi.plan import Plan

FAULT_FOUND = 3
"""Exit code if the client reveals more than ε allows or departs from its plan."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``audit`` to the command line."""
    description = (
        "Run the shipped client and compute a statistical lower bound on epsilon from its reports. Also compare the "
        "client with its plan: on chosen random words, on all random words of a few bits, and by the frequencies of "
        f"its reports. The exit code is 0 if everything is consistent with the plan and {FAULT_FOUND} if not. An audit "
        "can find faults but cannot prove their absence. Prints a table on a terminal, JSON in a pipe."
    )
    parser = commands.add_parser("audit", description=description, allow_abbrev=False)
    add_plan(parser)
    add_labels(parser)
    parser.add_argument(
        "--trials", metavar="N", help="number of reports (default: 1,000,000, fewer if reports are long)"
    )
    add_confidence(
        parser, 0.9999, "confidence of the lower bound; a correct client fails with probability 1 - C at most"
    )
    parser.add_argument(
        "--pair",
        metavar="VALUE",
        nargs=2,
        help="the two values to distinguish (default: a random pair; for randomised response all pairs at once)",
    )
    add_client_seed(parser)
    parser.add_argument("--no-exact", action="store_true", help="skip the checks on chosen and on all random words")
    add_format(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Audit, then print the findings."""
    from sunzi.analysis import audit
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
        raise ParameterError(f"--pair must be two values from 0 to {plan.domain.size - 1}, got {' '.join(words)}")
    return first, second


def _print_table(found: Audit) -> None:
    """Print the bound, the findings and the verdict."""
    from sunzi.analysis.privacy_audit import SHORTFALL

    say(
        f"{found.protocol}, {counted(found.domain_size, 'value')}, epsilon {float(found.epsilon):.4g} "
        f"(by formula {found.exact_epsilon:.6g})"
    )
    say(f"event: {found.event}; probability {percent(found.event_probability)} according to the plan")
    say(
        f"{counted(found.trials, 'report')}: the event occurred {counted(found.hits, 'time')}, its mirror image "
        f"{counted(found.misses, 'time')}"
    )
    say(f"epsilon is at least {found.lower_bound:.4g} with confidence {found.confidence:g}")
    if found.lower_bound < (1 - SHORTFALL) * float(found.epsilon):
        say(f"a lower bound within {SHORTFALL:.0%} of epsilon needs about {counted(found.trials_needed, 'report')}")
    if not found.is_private:
        say("the audited client was seeded to be reproducible; the operating system's random words were not examined")
    say()
    for finding in found.findings:
        mark = styled("ok   ", "green") if finding.passed else styled("FAULT", "red")
        say(f"{mark}  {finding.check:15} {finding.detail}")
    say()
    say(_verdict(found))


def _verdict(found: Audit) -> str:
    epsilon = f"epsilon {float(found.epsilon):.4g}"
    if found.verdict == "consistent":
        return styled(f"consistent with {epsilon}", "green")
    if found.verdict == "deviation":
        return styled("DEVIATION: the client departs from its plan", "red")
    if found.lower_bound > float(found.epsilon):
        return styled(f"VIOLATION: the lower bound exceeds {epsilon}", "red")
    return styled(f"VIOLATION: an exact check shows that the client reveals more than {epsilon} allows", "red")
