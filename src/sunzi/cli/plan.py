"""``sunzi plan``: all protocols on the same axes for a domain, ε and a number of users; one is chosen and written."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.inputs import STANDARD, check_paths
from sunzi.cli.numbers import counted, parse_integer, parse_number, percent_of_three_digits
from sunzi.cli.outputs import add_format, show
from sunzi.cli.plan_figures import AXES_HEADER, AXES_LEGEND, axes_cells, privacy_bound
from sunzi.cli.terminal import ProgressBar, say, styled, table
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.domain import Domain
    from sunzi.planning.recommendation import Option, Recommendation


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``plan`` to the command line."""
    description = (
        "Weigh all protocols for a domain, an epsilon and a number of users: error, bits, work, attackability. Mark "
        "the one to take, say why, and write its plan. With --target-error, leave out --users or --epsilon to learn "
        "how many users, or how large an epsilon, that error needs. In a pipe the table is JSON."
    )
    parser = commands.add_parser("plan", description=description, allow_abbrev=False)
    domain = parser.add_mutually_exclusive_group(required=True)
    domain.add_argument("--domain", metavar="FILE", help="the label file: UTF-8, one label a line")
    domain.add_argument("--size", metavar="K", help="the number of values, which are then 0 to K-1")
    parser.add_argument("--epsilon", metavar="E", help="privacy of one report: 2, 0.5 or 1/2")
    parser.add_argument("--users", metavar="N", help="how many users will report: 10000 or 1e6")
    parser.add_argument(
        "--target-error",
        metavar="E",
        help="the standard error to reach, as a share such as 0.001, for a value that nearly nobody holds",
    )
    parser.add_argument("--protocol", metavar="NAME", help="weigh and take this protocol only")
    parser.add_argument(
        "--objective",
        choices=("balanced", "error", "bits", "attack"),
        help="what to favour among protocols whose error is near the smallest (default: balanced)",
    )
    parser.add_argument("--max-bits", metavar="B", help="the most bits that a report may take, in the mean")
    parser.add_argument(
        "--max-attack", metavar="P", help="the most that the best attacker may succeed, seeing one report: 0 to 1"
    )
    parser.add_argument(
        "--search",
        action="store_true",
        help="look for the best moduli of mss and mss-compact, which takes seconds to minutes; limits that the quick "
        "choice misses do that by themselves",
    )
    parser.add_argument("--other", metavar="LABEL", help="the label that unknown values are reported as")
    parser.add_argument(
        "--separate-labels", action="store_true", help="leave the labels out of the plan, which then names their hash"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the plan (default: nowhere)")
    add_format(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Weigh, choose, write the plan, print the table."""
    _check(arguments)
    domain = _domain(arguments)
    recommendation = _recommend(arguments, domain)
    if arguments.output is not None:
        recommendation.plan.save(arguments.output)
    show(
        arguments.format,
        table=partial(_print_table, arguments, recommendation),
        document=partial(_document, arguments, recommendation),
        rows=partial(_records, recommendation),
    )
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Complaints that need no work."""
    given = sum(value is not None for value in (arguments.users, arguments.epsilon, arguments.target_error))
    if given < 2:
        missing = [name for name in ("users", "epsilon") if getattr(arguments, name) is None]
        raise ParameterError(f"give --{' and --'.join(missing)}; one of them may be replaced by --target-error")
    if given > 2:
        raise ParameterError("--target-error finds --users or --epsilon, so leave out the one to be found")
    if arguments.protocol is not None and arguments.objective is not None:
        raise ParameterError("--protocol makes the choice, so --objective has no use beside it")
    if arguments.size is not None and (arguments.other is not None or arguments.separate_labels):
        raise ParameterError("--other and --separate-labels are about labels: give --domain instead of --size")
    if arguments.output == STANDARD:
        raise ParameterError("-o needs the name of a file for the plan; standard output is for the table")
    check_paths([] if arguments.domain is None else [arguments.domain], arguments.output)


def _domain(arguments: argparse.Namespace) -> Domain:
    from sunzi.domain import Domain

    if arguments.size is not None:
        return Domain(parse_integer(arguments.size, "--size"))
    labels = Domain.from_file(arguments.domain).labels
    assert labels is not None, "a label file has labels"
    return Domain(labels, other=arguments.other, separate_labels=arguments.separate_labels)


def _recommend(arguments: argparse.Namespace, domain: Domain) -> Recommendation:
    from sunzi.planning import recommend
    from sunzi.planning.sample_size import recommend_epsilon, recommend_users

    users = None if arguments.users is None else parse_integer(arguments.users, "--users")
    bits, attack, target = (
        None if text is None else float(parse_number(text, name))
        for name, text in (
            ("--max-bits", arguments.max_bits),
            ("--max-attack", arguments.max_attack),
            ("--target-error", arguments.target_error),
        )
    )
    with ProgressBar() as bar:
        wishes: dict[str, Any] = {
            "objective": arguments.objective or "balanced",
            "max_bits": bits,
            "max_attack": attack,
            "protocols": None if arguments.protocol is None else [arguments.protocol],
            "search": arguments.search,
            "progress": bar.show,
        }
        if target is None:
            return recommend(domain, arguments.epsilon, users or 0, **wishes)
        if users is None:
            return recommend_users(domain, arguments.epsilon, target, **wishes)
        return recommend_epsilon(domain, users, target, **wishes)


def _print_table(arguments: argparse.Namespace, recommendation: Recommendation) -> None:
    """For a person: the table, the choice, the reason, and what ε promises."""
    found = recommendation.axes
    weighed = [option for option in recommendation.options if option.axes is not None]
    header, *lines = table(["", *AXES_HEADER], [_cells(option, recommendation) for option in weighed], left=2)
    say(f"{counted(found.domain_size, 'value')}, {counted(found.users, 'user')}, epsilon {float(found.epsilon):.4g}")
    say()
    say(styled(header, "bold", sys.stdout))
    for option, line in zip(weighed, lines, strict=True):
        say(_shaded(option, line, recommendation))
    say()
    for option in recommendation.options:
        if option.excluded is not None:
            say(styled(f"not {option.protocol}: {option.excluded}", "dim", sys.stdout))
    for line in AXES_LEGEND:
        say(styled(line, "dim", sys.stdout))
    say()
    say(recommendation.reason)
    if arguments.target_error is not None:
        say(_need(arguments, recommendation))
    say(f"{privacy_bound(found.epsilon)}.")
    if arguments.output is not None:
        say(f"The plan is in {arguments.output}, fingerprint {recommendation.plan.fingerprint[:16]}….")


def _cells(option: Option, recommendation: Recommendation) -> list[str]:
    assert option.axes is not None, "only weighed options have cells"
    return [">" if option.protocol == recommendation.protocol else "", *axes_cells(option.axes)]


def _shaded(option: Option, line: str, recommendation: Recommendation) -> str:
    if option.protocol == recommendation.protocol:
        return styled(line, "green", sys.stdout)
    return line if option.excluded is None else styled(line, "dim", sys.stdout)


def _need(arguments: argparse.Namespace, recommendation: Recommendation) -> str:
    """What the target error asks for."""
    found = recommendation.axes
    target = (
        f"A standard error of {percent_of_three_digits(float(parse_number(arguments.target_error, '--target-error')))}"
    )
    if arguments.users is None:
        return f"{target} needs {counted(found.users, 'user')} with {found.protocol}."
    return f"{target} with {counted(found.users, 'user')} needs epsilon {float(found.epsilon):g} with {found.protocol}."


def _records(recommendation: Recommendation) -> list[dict[str, Any]]:
    return [_record(option, recommendation) for option in recommendation.options]


def _document(arguments: argparse.Namespace, recommendation: Recommendation) -> dict[str, Any]:
    """For a program: every option, and what was chosen."""
    found = recommendation.axes
    return {
        "protocol": recommendation.protocol,
        "reason": recommendation.reason,
        "domain_size": found.domain_size,
        "epsilon": str(found.epsilon),
        "users": found.users,
        "fingerprint": recommendation.plan.fingerprint,
        "output": arguments.output,
        "options": _records(recommendation),
    }


def _record(option: Option, recommendation: Recommendation) -> dict[str, Any]:
    from sunzi.planning.comparison import AXES_COLUMNS

    figures = {} if option.axes is None else option.axes.to_json()
    return {
        "protocol": option.protocol,
        "chosen": option.protocol == recommendation.protocol,
        "excluded": option.excluded,
        **{name: figures.get(name) for name in AXES_COLUMNS},
    }
