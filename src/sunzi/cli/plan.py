"""``sunzi plan``: compare all protocols for a domain, ε and a number of users, choose one and write its plan."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.central_plans import add_central, check_central, run_central
from sunzi.cli.files import STANDARD, add_column, add_delta, add_force, add_histogram, check_paths, refuse_options
from sunzi.cli.group_lists import add_group_lists, read_group_lists
from sunzi.cli.open_plans import add_open, check_open_options, run_open
from sunzi.cli.record_plans import add_number_options, add_records, check_record_options, is_record_plan, run_records
from sunzi.cli.results import Result, add_format, deliver_plan, is_page
from sunzi.cli.terminal import ProgressBar, print_table, printed_warnings, say, say_wrapped
from sunzi.client.epsilon import parse_epsilon
from sunzi.client.errors import ParameterError
from sunzi.formatting import attacker_success, counted, percent_of_three_digits, privacy_bound

if TYPE_CHECKING:
    from sunzi.domains.labels import Domain
    from sunzi.planning.recommendation import Option, Recommendation

_OUTSIDE_PROFILE = ("ordered", "number", "tables", "open", "central", "separate_labels", "group")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``plan``, and add its arguments."""
    parser.description = (
        "Compare all protocols for a domain, an epsilon and a number of users by error, bits, work and attackability. "
        "Recommend one, explain why, and write its plan. To find the number of users or the epsilon that an error "
        "needs, give --target-error and omit --users or --epsilon. Prints a table on a terminal, CSV in a pipe."
    )
    parser.add_argument(
        "--domain",
        metavar="FILE",
        help="label file: UTF-8, one label per line, or with --column a table; text may be compressed (.gz)",
    )
    parser.add_argument("--size", metavar="K", type=int, help="number of values, which are then 0 to K-1")
    add_records(parser)
    add_number_options(parser)
    add_open(parser)
    add_column(parser, "the column of --domain that holds the labels, if that is a table")
    parser.add_argument("--epsilon", metavar="E", help="privacy of one report: 2, 0.5 or 1/2")
    parser.add_argument("--users", metavar="N", type=int, help="number of users who will report: 10000 or 1e6")
    parser.add_argument(
        "--target-error",
        metavar="E",
        type=float,
        help="standard error to reach for the frequency of a rare value, such as 0.001",
    )
    parser.add_argument("--protocol", metavar="NAME", help="use this protocol")
    parser.add_argument(
        "--objective",
        choices=("balanced", "error", "bits", "attack"),
        help="what to optimise among protocols with nearly the smallest error (default: balanced)",
    )
    parser.add_argument("--max-bits", metavar="B", type=float, help="maximum mean report size in bits")
    parser.add_argument(
        "--max-attack",
        metavar="P",
        type=float,
        help="maximum success rate of the best attacker with one report, from 0 to 1; to meet it, ss, ss-compact and "
        "pgr use larger blocks",
    )
    parser.add_argument(
        "--search",
        action="store_true",
        help="search for the best moduli of mss and mss-compact, which takes seconds to minutes; done automatically if "
        "the quick choice misses a limit",
    )
    parser.add_argument(
        "--profile",
        choices=("minimal",),
        help="minimal: recommend only plans that small clients understand (conformance/README.md): grr or ss-compact, "
        "with labels in the plan and without groups",
    )
    add_delta(parser)
    add_central(parser)
    add_histogram(parser)
    parser.add_argument(
        "--lifetime",
        metavar="E",
        help="state in the plan the lifetime budget that devices shall have, and say how many different answers it "
        "pays for; 4 times epsilon is a good start for values that change",
    )
    parser.add_argument("--other", metavar="LABEL", help="label under which unknown values are reported")
    parser.add_argument("--separate-labels", action="store_true", help="store only the hash of the labels in the plan")
    add_group_lists(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help="file to write the plan to; a name that ends in .html gets the comparison as a page. May be repeated "
        "(default: none)",
    )
    add_force(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Recommend a plan, write it, print the comparison."""
    _check_one_domain(arguments)
    if arguments.profile is not None:
        refuse_options(arguments, _OUTSIDE_PROFILE, "is outside the minimal profile; omit it or --profile")
    if arguments.lifetime is not None:
        parse_epsilon(arguments.lifetime)  # before any work
    check_central(arguments)
    check_record_options(arguments)
    check_open_options(arguments)
    if is_record_plan(arguments) or arguments.open is not None:
        _check_output(arguments)
        return run_records(arguments) if arguments.open is None else run_open(arguments)
    _check(arguments)
    domain = _domain(arguments)
    if arguments.central is not None:
        return run_central(arguments, domain)
    from sunzi.planning.pages import recommendation_page

    groups = read_group_lists(arguments.group)
    recommendation = _recommend(arguments, domain)
    if groups:
        recommendation = recommendation.with_groups(groups)
    recommendation = recommendation.with_lifetime(arguments.lifetime)
    deliver_plan(
        arguments,
        recommendation.plan,
        Result(
            table=partial(_print_table, arguments, recommendation),
            document=partial(_document, arguments, recommendation),
            rows=partial(_records, recommendation),
            page=partial(recommendation_page, recommendation),
        ),
    )
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Check combinations of arguments before any work."""
    if arguments.central is None:
        _check_terms(arguments)
    if arguments.size is not None and (arguments.other is not None or arguments.separate_labels):
        raise ParameterError("--other and --separate-labels need labels; give --domain instead of --size")
    if arguments.size is not None and (arguments.column or arguments.delimiter):
        raise ParameterError("--column and --delimiter need a table of labels; give --domain instead of --size")
    _check_output(arguments)


def _check_terms(arguments: argparse.Namespace) -> None:
    given = sum(value is not None for value in (arguments.users, arguments.epsilon, arguments.target_error))
    if given < 2:
        missing = [name for name in ("users", "epsilon") if getattr(arguments, name) is None]
        raise ParameterError(f"give --{' and --'.join(missing)}; --target-error can replace one of them")
    if given > 2:
        raise ParameterError("--target-error determines --users or --epsilon; leave one of them out")
    if arguments.protocol is not None and arguments.objective is not None:
        raise ParameterError("--objective has no effect with --protocol; leave one of them out")


def _check_one_domain(arguments: argparse.Namespace) -> None:
    """Argparse would print all the options in one line, which is too long."""
    known = ("domain", "size", "ordered", "number", "tables", "open")
    given = [f"--{name}" for name in known if getattr(arguments, name) is not None]
    if len(given) != 1:
        names = ", ".join(f"--{name}" for name in known)
        raise ParameterError(f"give exactly one of {names}; got {' and '.join(given) or 'none'}")


def _check_output(arguments: argparse.Namespace) -> None:
    if STANDARD in arguments.output:
        raise ParameterError("-o needs a file name for the plan; standard output is for the comparison")
    for path in arguments.output:
        check_paths([] if arguments.domain is None else [arguments.domain], path, force=arguments.force)


def _domain(arguments: argparse.Namespace) -> Domain:
    from sunzi.domains.labels import Domain

    if arguments.size is not None:
        return Domain(arguments.size)
    labels = _labels(arguments)
    return Domain(labels, other=arguments.other, separate_labels=arguments.separate_labels)


def _labels(arguments: argparse.Namespace) -> Sequence[str]:
    """Return the labels of a label file, or of a column of a table."""
    from sunzi.domains.labels import Domain
    from sunzi.tables.value_columns import has_columns, read_labels

    path = arguments.domain
    if has_columns(path):
        if arguments.column is None:
            raise ParameterError(
                f"{path} is a table; name the column of labels with --column, or rename the file to .txt if each line "
                "is a label"
            )
        try:
            return read_labels(path, arguments.column, arguments.delimiter)
        except ParameterError as error:
            raise ParameterError(f"{path}: {error}") from None
    if arguments.column is not None or arguments.delimiter is not None:
        raise ParameterError(f"{path} is not a table, so --column and --delimiter have no meaning; omit them")
    labels = Domain.from_file(path).labels
    assert labels is not None, "a label file has labels"
    return labels


def _recommend(arguments: argparse.Namespace, domain: Domain) -> Recommendation:
    from sunzi.planning import recommend
    from sunzi.planning.sample_size import recommend_epsilon, recommend_users

    users, target = arguments.users, arguments.target_error
    with printed_warnings(), ProgressBar() as bar:
        request: dict[str, Any] = {
            "objective": arguments.objective or "balanced",
            "max_bits": arguments.max_bits,
            "max_attack": arguments.max_attack,
            "protocols": None if arguments.protocol is None else [arguments.protocol],
            "profile": arguments.profile,
            "search": arguments.search,
            "histogram": arguments.histogram,
            "delta": arguments.delta,
            "progress": bar.show,
        }
        if target is None:
            return recommend(domain, arguments.epsilon, users or 0, **request)
        if users is None:
            return recommend_users(domain, arguments.epsilon, target, **request)
        return recommend_epsilon(domain, users, target, **request)


def _print_table(arguments: argparse.Namespace, recommendation: Recommendation) -> None:
    """Print the comparison, the recommendation with its reason, and what ε guarantees."""
    found, table = recommendation.axes, recommendation.table
    compared = [option for option in recommendation.options if option.axes is not None]
    say(f"{counted(found.domain_size, 'value')}, {counted(found.users, 'user')}, epsilon {float(found.epsilon):.4g}")
    say()
    print_table(
        [f"  {table.header[0]}", *table.header[1:]],
        [_cells(option, recommendation) for option in compared],
        styles=[_style(option, recommendation) for option in compared],
    )
    say()
    for option in recommendation.options:
        if option.excluded is not None:
            say_wrapped(f"not {option.protocol}: {option.excluded}", "dim")
    for note, names in _notes(recommendation).items():
        say_wrapped(f"{' and '.join(names)}: {note}", "dim")
    for line in table.legend:
        say_wrapped(line, "dim")
    say()
    say_wrapped(recommendation.reason)
    if arguments.target_error is not None:
        say_wrapped(_need(arguments, recommendation))
    success = attacker_success(found.attackability, found.domain_size)
    say_wrapped(f"{privacy_bound(found.epsilon)}.")
    say_wrapped(f"{success[0].upper()}{success[1:]}.")


def _notes(recommendation: Recommendation) -> dict[str, list[str]]:
    """The notes, each with the protocols that it is about."""
    found: dict[str, list[str]] = {}
    for option in recommendation.options:
        if option.note:
            found.setdefault(option.note, []).append(option.protocol)
    return found


def _cells(option: Option, recommendation: Recommendation) -> list[str]:
    name, *figures = recommendation.table.cells(option.protocol, option.axes)
    return [f"{'>' if option.protocol == recommendation.protocol else ' '} {name}", *figures]


def _style(option: Option, recommendation: Recommendation) -> str | None:
    if option.protocol == recommendation.protocol:
        return "green"
    return None if option.excluded is None else "dim"


def _need(arguments: argparse.Namespace, recommendation: Recommendation) -> str:
    """Return what the target error needs."""
    found = recommendation.axes
    target = percent_of_three_digits(arguments.target_error)
    users = counted(found.users, "user")
    if arguments.users is None:
        return f"A standard error of {target} needs {users} with {found.protocol}."
    epsilon = f"epsilon {float(found.epsilon):g}"
    return f"A standard error of {target} with {users} needs {epsilon} with {found.protocol}."


def _records(recommendation: Recommendation) -> list[dict[str, Any]]:
    return [_record(option, recommendation) for option in recommendation.options]


def _document(arguments: argparse.Namespace, recommendation: Recommendation) -> dict[str, Any]:
    found = recommendation.axes
    return {
        "protocol": recommendation.protocol,
        "reason": recommendation.reason,
        "domain_size": found.domain_size,
        "epsilon": str(found.epsilon),
        "users": found.users,
        "fingerprint": recommendation.plan.fingerprint,
        "output": next((path for path in arguments.output if not is_page(path)), None),
        "options": _records(recommendation),
    }


def _record(option: Option, recommendation: Recommendation) -> dict[str, Any]:
    from sunzi.planning.comparison import AXES_COLUMNS

    figures = {} if option.axes is None else option.axes.to_dict()
    return {
        "protocol": option.protocol,
        "chosen": option.protocol == recommendation.protocol,
        "excluded": option.excluded,
        **{name: figures.get(name) for name in AXES_COLUMNS},
        "note": option.note,
    }
