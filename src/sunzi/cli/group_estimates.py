"""``sunzi estimate`` of groups of users: one histogram per group, from a folder of tallies or from a collector."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import STANDARD, TABLES, add_by, columns_by, load_labelled_plan
from sunzi.cli.queries import estimate_options, regrouped, sums_result
from sunzi.cli.record_queries import (
    answers_result,
    ask_for_mean,
    has_record_queries,
    has_tables_only,
    is_mean,
    table_names,
)
from sunzi.cli.results import Result, check_output, deliver
from sunzi.cli.sources import groups_with_reports, is_url, read_epochs, say_if_summed, summed
from sunzi.cli.terminal import print_table, say, say_wrapped, shown_label, styled
from sunzi.client.errors import ParameterError
from sunzi.errors import TallyError
from sunzi.formatting import counted, decimals_for, lifetime_note, percent, printable, privacy_bound

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.results.estimate import Estimate
    from sunzi.tables import GroupEstimates
    from sunzi.tables.writers import HistogramTable, Note
    from sunzi.tally import Tally

_SUFFIXES = (*TABLES, ".png", ".svg", ".html")
_SHOWN = 10
_MINIMUM = 100


def add_group_options(parser: argparse.ArgumentParser) -> None:
    """Add the options about groups of users."""
    groups = parser.add_argument_group(
        "public groups of users", "TALLY is a folder of 'sunzi tally --by', or --from names a collector or store"
    )
    groups.add_argument(
        "--group", metavar="NAME=VALUE", help="only the reports of this group, such as country=DE, with --from"
    )
    add_by(
        groups,
        "one histogram per group: by this column, adding up the tallies over the others (default for a folder: all), "
        "or with --from by this attribute of the plan's groups",
    )
    groups.add_argument(
        "--min-reports",
        metavar="N",
        type=int,
        help=f"minimum number of reports of a group; smaller groups are merged or held back (default: {_MINIMUM})",
    )
    groups.add_argument(
        "--small",
        choices=("merge", "hold"),
        help="what to do with smaller groups: merge them into one named 'other', or hold them back and say how many "
        "there are; if all of them together are too small, they are held back (default: merge)",
    )


def is_grouped(arguments: argparse.Namespace) -> bool:
    """Whether to make one histogram per group; options about groups are refused where there are none."""
    if arguments.group is not None and (arguments.by or not arguments.source):
        raise ParameterError("--group chooses one group of a collector or store; give --from, and leave out --by")
    if arguments.by and arguments.source:
        return True
    if arguments.tally is not None and os.path.isdir(arguments.tally):
        return True
    options = {"--by": arguments.by, "--min-reports": arguments.min_reports, "--small": arguments.small}
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"{name} is for groups; give a folder of 'sunzi tally --by', or --from and --by")
    return False


def run_groups(arguments: argparse.Namespace) -> int:
    """Estimate every group, then write or print the histograms."""
    if arguments.postprocess:
        raise ParameterError("--postprocess is for one histogram; name a single file of the folder, or --group")
    if arguments.plan == STANDARD:
        raise ParameterError("the plan must be a file")
    is_question = bool(arguments.sums) or has_record_queries(arguments)
    check_output(arguments, TABLES if is_question else _SUFFIXES)
    plan, by, tallies = (_from_source if arguments.source else _from_folder)(arguments)
    groups = _estimated(arguments, plan, by, tallies)
    small = groups.small_groups()
    if small is not None:
        say(f"sunzi: note: {small}", sys.stderr)
    if has_tables_only(arguments) and not arguments.sums and all(map(is_mean, groups.estimates.values())):
        ask_for_mean(arguments)
    if arguments.sums:
        result = _answers(groups, partial(sums_result, arguments))
    elif has_record_queries(arguments):
        result = _answers(groups, partial(answers_result, arguments))
    else:
        result = _result(arguments, plan, groups)
    deliver(arguments, result)
    return 0


def _answers(groups: GroupEstimates, answer: Callable[[Estimate], Result]) -> Result:
    """The answers to the same questions for every group."""
    found = {name: answer(estimate) for name, estimate in groups.estimates.items()}

    def print_all() -> None:
        for number, (name, result) in enumerate(found.items()):
            say(f"{'' if not number else chr(10)}{styled(printable(name), 'bold')}")
            result.table()

    return Result(
        table=print_all,
        document=lambda: {"groups": {name: result.document() for name, result in found.items()}},
        rows=lambda: [{"group": name, **row} for name, result in found.items() for row in result.rows()],
    )


def _from_folder(arguments: argparse.Namespace) -> tuple[Plan, list[str], dict[tuple[str, ...], Tally]]:
    from sunzi.tables import load_groups

    plan = load_labelled_plan(arguments.plan, arguments.labels)
    return (plan, *load_groups(arguments.tally))


def _from_source(arguments: argparse.Namespace) -> tuple[Plan, list[str], dict[tuple[str, ...], Tally]]:
    """The tallies of all groups of one attribute; a collector keeps small ones to itself."""
    by = columns_by(arguments)
    if len(by) != 1:
        raise ParameterError(f"a collector counts groups by one attribute at a time; give one, got {', '.join(by)}")
    source, collection, epochs = arguments.source, arguments.collection, arguments.epoch
    names = [name for name in groups_with_reports(source, collection, epochs) if name.partition("=")[0] == by[0]]
    if not names:
        few = "with enough reports to publish " if is_url(source) else ""
        raise ParameterError(f"{source} has no group {few}of the attribute {by[0]}; the plan declares the attributes")
    tallies: dict[tuple[str, ...], Tally] = {}
    most = 0
    for name in names:
        found = read_epochs(source, collection, epochs, arguments.labels, skip_small=True, group=name)
        tallies[name.partition("=")[2],] = summed(found)
        most = max(most, len(found))
    say_if_summed(most)
    missing = len(found[0].plan.groups[by[0]]) - len(names)
    if missing and is_url(source):
        verb = "has" if missing == 1 else "have"
        few = f"{counted(missing, 'group')} of {by[0]} {verb} fewer reports than the collector publishes"
        say(f"sunzi: note: {few}, or none", sys.stderr)
    return found[0].plan, by, tallies


def _estimated(
    arguments: argparse.Namespace, plan: Plan, by: list[str], tallies: dict[tuple[str, ...], Tally]
) -> GroupEstimates:
    from sunzi.tables import estimate_groups

    options = estimate_options(plan, arguments.weights, table=table_names(arguments), texts=arguments.labels)
    try:
        groups = estimate_groups(
            plan,
            tallies,
            by,
            columns=columns_by(arguments) or None,
            min_reports=_MINIMUM if arguments.min_reports is None else arguments.min_reports,
            small=arguments.small or "merge",
            **options,
        )
        regrouping = {name: regrouped(each, arguments.groups) for name, each in groups.estimates.items()}
        return replace(groups, estimates=regrouping)
    except TallyError as error:
        raise TallyError(f"{arguments.tally or arguments.source}: {error}") from None


def _result(arguments: argparse.Namespace, plan: Plan, groups: GroupEstimates) -> Result:
    interval = {"confidence": arguments.confidence, "target": arguments.target}
    notes: dict[str, Note] = {
        "plan": plan.fingerprint,
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "domain_size": plan.domain.size,
    }

    def table() -> HistogramTable:
        return groups.table(**interval, top=arguments.top, notes=notes)

    def records() -> list[dict[str, Any]]:
        from sunzi.tables.writers import records_of

        return list(records_of(table().columns))

    return Result(
        table=lambda: _print_groups(arguments, plan, groups if arguments.top else groups.for_display(_SHOWN)),
        document=lambda: {**table().notes, "histogram": records()},
        rows=records,
        picture=lambda: groups.plot(top=arguments.top or _SHOWN, **interval),
        page=lambda: groups.to_html(arguments.title, top=arguments.top or _SHOWN, **interval),
    )


def _print_groups(arguments: argparse.Namespace, plan: Plan, groups: GroupEstimates) -> None:
    rows = groups.table(confidence=arguments.confidence, target=arguments.target, top=arguments.top or _SHOWN)
    columns, per_group = rows.columns, len(rows) // len(groups.estimates)
    reports = sum(estimate.reports for estimate in groups.estimates.values())
    values = counted(next(iter(groups.estimates.values())).domain.size, "bin" if groups.in_order else "value")
    number = counted(len(groups.estimates), "group")
    say(f"{counted(reports, 'report')} in {number}, {plan.protocol.name}, {values}")
    say_wrapped(privacy_bound(plan.epsilon))
    if plan.lifetime is not None:
        say_wrapped(lifetime_note(plan))
    say()
    decimals = decimals_for(columns["standard_error"])
    cells = [
        [
            "" if row % per_group else shown_label(columns["group"][row]),
            shown_label(columns["label"][row]),
            percent(columns["frequency"][row], decimals),
            f"{percent(columns['low'][row], decimals)} to {percent(columns['high'][row], decimals)}",
            f"{columns['count'][row]:,.0f}",
        ]
        for row in range(len(rows))
    ]
    interval = f"{100 * arguments.confidence:g} % interval"
    print_table(["group", "value", "estimate", interval, "users"], cells, left=2)
    say()
    chosen = "in their order" if groups.in_order else "those with the most users in all groups together"
    say(f"{per_group:,} of {values}, {chosen}.")
