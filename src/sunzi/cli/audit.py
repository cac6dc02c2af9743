"""``sunzi audit``: run the shipped client, compute a lower bound on its ε, and run all exact checks."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import add_client_seed, add_confidence, add_labels, add_plan
from sunzi.cli.numbers import parse_integer
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import ProgressBar, say, say_wrapped, styled, wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, percent

if TYPE_CHECKING:
    from sunzi.analysis import Audit
    from sunzi.domains.labels import Domain
    from sunzi.plan import Plan

FAULT_FOUND = 3
"""Exit code if the client reveals more than ε allows or departs from its plan."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``audit``, and add its arguments."""
    parser.description = (
        "Run the shipped client and compute a statistical lower bound on epsilon from its reports. Also compare the "
        "client with its plan: on chosen random words, on all random words of a few bits, and by the frequencies of "
        f"its reports. The exit code is 0 if everything is consistent with the plan and {FAULT_FOUND} if not. An audit "
        "can find faults but cannot prove their absence. Prints a table on a terminal, CSV in a pipe."
    )
    add_plan(parser)
    add_labels(parser)
    parser.add_argument(
        "--trials", metavar="N", type=int, help="number of reports (default: 1,000,000, fewer if reports are long)"
    )
    add_confidence(
        parser, 0.9999, "confidence of the lower bound; a correct client fails with probability 1 - C at most"
    )
    parser.add_argument(
        "--pair",
        metavar="VALUE",
        nargs=2,
        help="the two values to distinguish, records as JSON (default: a random pair; for randomised response all "
        "pairs at once)",
    )
    add_client_seed(parser)
    parser.add_argument("--no-exact", action="store_true", help="skip the checks on chosen and on all random words")
    add_output(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Audit, then print the findings."""
    from sunzi.analysis import audit
    from sunzi.plan import load_plan

    check_output(arguments)
    plan = load_plan(arguments.plan, labels=arguments.labels)
    with ProgressBar() as bar:
        found = audit(
            plan,
            trials=arguments.trials,
            confidence=arguments.confidence,
            seed=arguments.seed,
            pair=_pair(plan, arguments.pair),
            exact=not arguments.no_exact,
            progress=bar.show,
        )
    deliver(arguments, Result(table=partial(_print_table, found), document=found.to_dict, rows=partial(_rows, found)))
    return 0 if found.passed else FAULT_FOUND


def _pair(plan: Plan, words: list[str] | None) -> tuple[int, int] | None:
    """The indices of two values. An unknown label is an error, not the domain's ``other``."""
    if words is None:
        return None
    try:
        first, second = (plan.domain.exact_index(_value(plan.domain, word)) for word in words)
    except ParameterError as error:
        raise ParameterError(f"--pair: {error}") from None
    if first == second:
        given = " and ".join(map(repr, words))
        raise ParameterError(f"--pair must be two different values; {given} are the same to this plan")
    return first, second


def _value(domain: Domain, word: str) -> object:
    """An index, a label, a record as JSON, or the text of a number or date."""
    from sunzi.results.queries import parse_value

    return parse_integer(word, "--pair") if domain.is_indices else parse_value(domain, word)


def _rows(found: Audit) -> list[dict[str, Any]]:
    """Return one record per finding, each with the verdict and the lower bound."""
    fixed = {
        "protocol": found.protocol,
        "domain_size": found.domain_size,
        "epsilon": str(found.epsilon),
        "lower_bound": found.lower_bound,
        "confidence": found.confidence,
        "verdict": found.verdict,
    }
    return [fixed | finding.to_dict() for finding in found.findings]


def _print_table(found: Audit) -> None:
    """Print the bound, the findings and the verdict."""
    from sunzi.analysis.privacy_audit import SHORTFALL

    say_wrapped(
        f"{found.protocol}, {counted(found.choices, 'value')}, epsilon {float(found.epsilon):.4g} "
        f"(by formula {found.exact_epsilon:.6g})"
    )
    say_wrapped(f"event: {found.event}; probability {percent(found.event_probability)} according to the plan")
    say_wrapped(
        f"{counted(found.trials, 'report')}: the event occurred {counted(found.hits, 'time')}, its mirror image "
        f"{counted(found.misses, 'time')}"
    )
    say(f"epsilon is at least {found.lower_bound:.4g} with confidence {found.confidence:g}")
    if found.lower_bound < (1 - SHORTFALL) * float(found.epsilon):
        say_wrapped(
            f"a lower bound within {SHORTFALL:.0%} of epsilon needs about {counted(found.trials_needed, 'report')}"
        )
    if not found.is_private:
        say_wrapped(
            "the audited client was seeded to be reproducible; the operating system's random words were not examined"
        )
    say()
    for finding in found.findings:
        mark = styled("ok   ", "green") if finding.passed else styled("FAULT", "red")
        first, *others = wrapped(f"{'':7}{finding.check:15} {finding.detail}", hanging=23)
        say(f"{mark}  {first[7:]}")
        for line in others:
            say(line)
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
