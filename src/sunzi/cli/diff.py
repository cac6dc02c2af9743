"""``sunzi diff``: what changed between two tallies: a table, a data file, a picture or a page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import add_labels, check_order, check_paths, load_labelled_plan, refuse_options
from sunzi.cli.queries import add_estimation, add_groups, check_plan_file, estimated, estimated_file, regrouped
from sunzi.cli.results import ALL_SUFFIXES, Result, add_format, add_output, check_output, check_page, deliver
from sunzi.cli.sources import CollectedEpoch, EpochChoice, add_collection, read_epochs, say_if_summed, summed
from sunzi.cli.terminal import print_table, say, say_wrapped, shown_label
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, decimals_for, percent, signed_percent

if TYPE_CHECKING:
    from sunzi.results.changes import Change, Difference
    from sunzi.results.estimate import Estimate

_SHOWN = 20
_ON_A_PAGE = 50
_CHANGED = {"clear": "yes", "alone": "alone", "unclear": "no"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``diff``, and add its arguments."""
    parser.description = (
        "Compare two tallies of one domain: how much more or less frequent each value became, with confidence "
        "intervals, the clearest changes first; which values changed; and a test of whether anything changed. Prints a "
        "table on a terminal, CSV of all values in a pipe."
    )
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="plan file; omitted with --from")
    parser.add_argument("before", metavar="BEFORE", help="tally file; with --from, epochs such as 1 or 1:7")
    parser.add_argument("after", metavar="AFTER", help="tally file, or - for standard input; with --from, epochs")
    parser.add_argument(
        "--plan-after", metavar="FILE", help="plan of AFTER, if that has another plan of the same domain"
    )
    add_collection(parser)
    parser.add_argument(
        "--group", metavar="NAME=VALUE", help="only the reports of this public group, such as country=DE, with --from"
    )
    parser.add_argument(
        "--group-after",
        metavar="NAME=VALUE",
        help="the group of AFTER, if different; two groups can be compared within the same epochs",
    )
    add_output(parser, ALL_SUFFIXES)
    add_labels(parser)
    add_groups(parser)
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        help=f"only the N clearest changes (default: {_SHOWN} on a terminal and in a picture, {_ON_A_PAGE} on a page, "
        "otherwise all)",
    )
    parser.add_argument("--title", metavar="TEXT", help="the heading of an .html page (default: how many changed)")
    parser.add_argument(
        "--verdict",
        choices=("any", "discoveries"),
        default="any",
        help="what the error rate limits: the probability of any false verdict, or the false discovery rate, which "
        "finds more changes (default: %(default)s)",
    )
    strictness = parser.add_mutually_exclusive_group()
    strictness.add_argument(
        "--confidence",
        metavar="C",
        type=float,
        default=0.95,
        help="confidence level of the intervals; 1 - C is the error rate of the verdicts (default: %(default)s)",
    )
    strictness.add_argument(
        "--error-rate", metavar="R", type=float, help="error rate of the verdicts; the same as --confidence 1-R"
    )
    add_estimation(parser, target="population")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare, then write or print the changes."""
    from sunzi.results.changes import difference

    _check(arguments)
    if arguments.error_rate is not None:
        if not 0 < arguments.error_rate < 1:
            raise ParameterError(f"--error-rate must lie between 0 and 1, got {arguments.error_rate:g}")
        arguments.confidence = 1 - arguments.error_rate
    names, before, after = (_from_source if arguments.source else _from_files)(arguments)
    found = difference(regrouped(before, arguments.groups), regrouped(after, arguments.groups), arguments.target)
    deliver(arguments, _result(arguments, names, found))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    check_output(arguments, ALL_SUFFIXES)
    check_page(arguments)
    if arguments.source and (arguments.plan or arguments.plan_after):
        raise ParameterError("with --from, give two epochs and no plan, such as: sunzi diff --from STORE 1 2")
    if not arguments.source:
        refuse_options(arguments, ("collection", "group", "group_after"), "needs --from")
        if arguments.plan is None:
            raise ParameterError("give a plan and two tallies, or --from and two epochs")


def _from_files(arguments: argparse.Namespace) -> tuple[tuple[str, str], Estimate, Estimate]:
    tallies = [arguments.before, arguments.after]
    check_order("diff", arguments.plan, tallies)
    check_paths([arguments.plan, *tallies], force=arguments.force)
    before = after = load_labelled_plan(check_plan_file(arguments.plan), arguments.labels)
    if arguments.plan_after is not None:
        after = load_labelled_plan(check_plan_file(arguments.plan_after), arguments.labels)
    estimates = [
        estimated_file(plan, path, arguments.weights) for plan, path in zip((before, after), tallies, strict=True)
    ]
    return ("before", "after"), estimates[0], estimates[1]


def _from_source(arguments: argparse.Namespace) -> tuple[tuple[str, str], Estimate, Estimate]:
    from sunzi.groups import are_disjoint

    groups = (arguments.group, arguments.group_after or arguments.group)
    sides = []
    for text, group in zip((arguments.before, arguments.after), groups, strict=True):
        try:
            chosen = EpochChoice.parse(text)
        except argparse.ArgumentTypeError as error:
            raise ParameterError(str(error)) from None
        sides.append(read_epochs(arguments.source, arguments.collection, chosen, arguments.labels, group=group))
    common = {epoch.number for epoch in sides[0]} & {epoch.number for epoch in sides[1]}
    if common and not are_disjoint(*groups):
        raise ParameterError(
            f"both sides contain reports of epoch {min(common)}; compare different epochs, or two groups of one "
            "attribute with --group and --group-after"
        )
    before, after = (estimated(side[0].plan, summed(side), arguments.weights) for side in sides)
    say_if_summed(max(map(len, sides)))
    return (_name(sides[0], groups[0]), _name(sides[1], groups[1])), before, after


def _name(epochs: Sequence[CollectedEpoch], group: str | None) -> str:
    first, last = epochs[0].number, epochs[-1].number
    which = f"epoch {first}" if first == last else f"epochs {first} to {last}"
    return which if group is None else f"{which}, {group}"


def _result(arguments: argparse.Namespace, names: tuple[str, str], found: Difference) -> Result:
    options = {"confidence": arguments.confidence, "verdict": arguments.verdict}

    def changes(number: int) -> list[Change]:
        return found.top(arguments.top or number, **options)

    def rows() -> list[dict[str, Any]]:
        return found.records(changes(found.domain.size))

    def document() -> dict[str, Any]:
        notes = {
            "before": names[0],
            "after": names[1],
            "reports_before": found.before.reports,
            "reports_after": found.after.reports,
            "domain_size": found.domain.size,
            "target": found.target,
            **options,
            "p_value": found.p_value(),
        }
        return {**notes, "changes": rows()}

    return Result(
        table=lambda: _print_table(arguments, names, found, changes(_SHOWN)),
        document=document,
        rows=rows,
        picture=partial(found.plot, top=arguments.top or _SHOWN, **options),
        page=partial(found.to_html, arguments.title, names=names, top=arguments.top or _ON_A_PAGE, **options),
    )


def _print_table(
    arguments: argparse.Namespace, names: tuple[str, str], found: Difference, changes: Sequence[Change]
) -> None:
    """Print the clearest changes; those that chance could explain are dimmed."""
    from sunzi.display.changes_page import certainty, meanings, p_value_text

    decimals = decimals_for(change.standard_error for change in changes)
    certainties = [certainty(change) for change in changes]
    cells = [
        [
            shown_label(change.label),
            percent(change.before, decimals),
            percent(change.after, decimals),
            signed_percent(change.change, decimals),
            f"{signed_percent(change.low, decimals)} to {signed_percent(change.high, decimals)}",
            _CHANGED[certain],
        ]
        for change, certain in zip(changes, certainties, strict=True)
    ]
    reports = [counted(estimate.reports, "report") for estimate in (found.before, found.after)]
    say(f"{names[0]}: {reports[0]}; {names[1]}: {reports[1]}")
    say()
    header = ["value", *names, "change", f"{100 * arguments.confidence:g} % interval", "changed"]
    print_table(header, cells, styles=["dim" if each == "unclear" else None for each in certainties])
    say()
    p_value = p_value_text(found.p_value())
    total = counted(found.domain.size, "value" if arguments.groups is None else "group")
    say_wrapped(f"{len(changes):,} of {total}, the clearest changes first. Test that nothing changed: {p_value}.")
    words = meanings(arguments.confidence, arguments.verdict)
    for each in ("clear", "alone"):
        if each in certainties:
            say_wrapped(f"{_CHANGED[each].capitalize()}: {words[each].removeprefix('changed').lstrip(': ')}.")
