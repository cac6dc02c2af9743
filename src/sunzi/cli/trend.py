"""``sunzi trend``: how values develop over epochs: a table, a data file, a picture or a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import (
    add_confidence,
    add_labels,
    check_order,
    check_paths,
    load_labelled_plan,
)
from sunzi.cli.queries import add_groups, add_weights, check_plan_file, estimated, estimated_file, regrouped
from sunzi.cli.results import ALL_SUFFIXES, Result, add_format, add_output, check_output, check_page, deliver
from sunzi.cli.sources import EpochChoice, add_source, check_source, read_epochs
from sunzi.cli.terminal import print_table, say, say_wrapped, shown_label
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.formatting import counted, decimals_for, percent, signed_percent

if TYPE_CHECKING:
    from sunzi.results.estimate import Estimate
    from sunzi.results.trends import Alarm, Moment, Trend

_SHOWN = 20
_DRAWN = 6
_ON_A_PAGE = 50
_LISTED_ALARMS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``trend``, and add its arguments."""
    parser.description = (
        "Follow values over epochs, or over tallies in chronological order: the clearest changes and when they "
        "happened, slopes, and alarms with a stated false alarm rate. Prints a table on a terminal, CSV with one row "
        "per value and epoch in a pipe. Epochs may differ in epsilon and protocol, but not in their values."
    )
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="plan file; omitted with --from")
    parser.add_argument("tallies", metavar="TALLY", nargs="*", help="tally files of the plan, oldest first")
    add_source(parser, default="all")
    parser.add_argument(
        "--dates", metavar="LIST", help="dates of the tally files, such as 2026-01-05,2026-01-12 (default: 1, 2, ...)"
    )
    add_output(parser, ALL_SUFFIXES)
    add_labels(parser)
    add_groups(parser)
    parser.add_argument(
        "--value", metavar="LABEL", action="append", default=[], help="only this value; may be repeated"
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        help=f"only the N first values (default: {_SHOWN} in a table, {_DRAWN} in a picture, {_ON_A_PAGE} on a page, "
        "otherwise all)",
    )
    parser.add_argument(
        "--sort",
        choices=("changed", "frequent"),
        default="changed",
        help="which values come first: those with the clearest changes, or the most frequent (default: %(default)s)",
    )
    parser.add_argument(
        "--one-in",
        metavar="N",
        type=float,
        help="values times epochs between two false alarms (default: 100 times the number of values)",
    )
    parser.add_argument("--title", metavar="TEXT", help="the heading of an .html page (default: how many changed)")
    add_confidence(parser)
    add_weights(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Follow the values, then write or print their development."""
    _check(arguments)
    collection, found = (_from_source if arguments.source else _from_files)(arguments)
    deliver(arguments, _result(arguments, collection, found))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    check_output(arguments, ALL_SUFFIXES)
    check_source(arguments)
    check_page(arguments)
    if arguments.source and (arguments.plan or arguments.dates):
        raise ParameterError("with --from, omit plan, tallies and --dates; choose epochs with --epoch")
    if not arguments.source and (arguments.plan is None or len(arguments.tallies) < 2):
        raise ParameterError("give a plan and at least two tallies, oldest first, or --from")


def _from_files(arguments: argparse.Namespace) -> tuple[None, Trend]:
    check_order("trend", arguments.plan, arguments.tallies)
    check_paths([arguments.plan, *arguments.tallies], force=arguments.force)
    plan = load_labelled_plan(check_plan_file(arguments.plan), arguments.labels)
    estimates = [estimated_file(plan, path, arguments.weights) for path in arguments.tallies]
    return None, _followed(arguments, estimates, _dates(arguments))


def _followed(arguments: argparse.Namespace, estimates: Sequence[Estimate], moments: Sequence[Moment] | None) -> Trend:
    from sunzi.results.trends import trend

    return trend([regrouped(estimate, arguments.groups) for estimate in estimates], moments)


def _dates(arguments: argparse.Namespace) -> list[date] | None:
    if arguments.dates is None:
        return None
    try:
        dates = [date.fromisoformat(text.strip()) for text in arguments.dates.split(",")]
    except ValueError:
        raise ParameterError(f"--dates must be dates such as 2026-01-05,2026-01-12, got {arguments.dates!r}") from None
    if len(dates) != len(arguments.tallies):
        tallies = counted(len(arguments.tallies), "tally file")
        raise ParameterError(f"--dates has {counted(len(dates), 'date')} for {tallies}")
    return dates


def _from_source(arguments: argparse.Namespace) -> tuple[str, Trend]:
    from sunzi.results.trends import opening_moments

    chosen = arguments.epoch or EpochChoice.parse("all")
    found = read_epochs(arguments.source, arguments.collection, chosen, arguments.labels, skip_small=True)
    epochs, estimates = [], []
    for epoch in found:
        try:
            estimates.append(estimated(epoch.plan, epoch.tally, arguments.weights))
            epochs.append(epoch)
        except EstimateError as error:
            say(f"sunzi: note: epoch {epoch.number} is skipped: {error}", sys.stderr)
    if len(epochs) < 2:
        raise ParameterError(f"a trend needs at least two epochs with enough reports, got {len(epochs)}; see --epoch")
    sizes = {epoch.plan.domain.size for epoch in epochs}
    if arguments.groups is None and any(epoch.plan.domain != epochs[0].plan.domain for epoch in epochs):
        other = next(epoch for epoch in epochs if epoch.plan.domain != epochs[0].plan.domain)
        raise ParameterError(
            f"epochs {epochs[0].number} and {other.number} have different values ({min(sizes):,} and {max(sizes):,}); "
            "choose epochs with the same values by --epoch, or put the values into the same groups with --groups"
        )
    opened_at, numbers = [epoch.opened_at for epoch in epochs], [epoch.number for epoch in epochs]
    moments = opening_moments(opened_at, numbers)
    still_open = frozenset(moment for moment, epoch in zip(moments, epochs, strict=True) if epoch.is_open)
    return epochs[0].collection, replace(_followed(arguments, estimates, moments), unfinished=still_open)


def _result(arguments: argparse.Namespace, collection: str | None, found: Trend) -> Result:
    from sunzi.results.queries import parse_value

    def chosen(number: int) -> list[int]:
        if arguments.value:
            return [found.domain.exact_index(parse_value(found.domain, text)) for text in arguments.value]
        number = arguments.top or number
        return found.most_frequent(number) if arguments.sort == "frequent" else [row.index for row in found.top(number)]

    def rows() -> list[dict[str, Any]]:
        from sunzi.tables.writers import records_of

        columns = found.columns(chosen(found.domain.size), arguments.confidence)
        columns["moment"] = [str(each.isoformat() if isinstance(each, date) else each) for each in columns["moment"]]
        return list(records_of(columns))

    def page() -> str:
        return found.to_html(
            arguments.title,
            collection=collection,
            indices=chosen(_ON_A_PAGE),
            confidence=arguments.confidence,
            one_in=arguments.one_in,
        )

    return Result(
        table=lambda: _print_table(arguments, found, chosen(_SHOWN)),
        document=lambda: found.to_dict(chosen(found.domain.size), arguments.confidence, arguments.one_in),
        rows=rows,
        picture=lambda: found.plot(indices=chosen(_DRAWN), confidence=arguments.confidence, one_in=arguments.one_in),
        page=page,
    )


def _print_table(arguments: argparse.Namespace, found: Trend, chosen: Sequence[int]) -> None:
    """Print the development of values; those that did not change are dimmed. Then the newest alarms."""
    from sunzi.display.trends_page import shown_moment, slope_text

    rows = found.rows(chosen)
    decimals = decimals_for(row.change_error for row in rows)
    cells = [
        [
            shown_label(row.label),
            percent(row.level, decimals),
            slope_text(row),
            shown_moment(row.change_at),
            signed_percent(row.change, decimals),
            "yes" if row.changed else "no",
        ]
        for row in rows
    ]
    span = f"{shown_moment(found.moments[0])} to {shown_moment(found.moments[-1])}"
    say(f"{counted(len(found.moments), 'epoch')}, {span}; {counted(sum(found.reports), 'report')}")
    say()
    header = ["value", "now", "slope (points)", "change at", "change", "changed"]
    print_table(header, cells, styles=[None if row.changed else "dim" for row in rows])
    say()
    total = counted(found.domain.size, "value" if arguments.groups is None else "group")
    say_wrapped(f"{len(rows):,} of {total}. Slopes are per {found.unit}. The false discovery rate of changes is 5 %.")
    if found.note:
        say_wrapped(found.note)
    _print_alarms(found.alarms(arguments.one_in), arguments.one_in or found.default_one_in)


def _print_alarms(alarms: Sequence[Alarm], one_in: float) -> None:
    from sunzi.display.trends_page import shown_moment

    newest = f", the newest {_LISTED_ALARMS}" if len(alarms) > _LISTED_ALARMS else ""
    listed = f"{newest}:" if alarms else "."
    say_wrapped(f"{counted(len(alarms), 'alarm')}, with one false alarm in {one_in:,.0f} values times epochs{listed}")
    for alarm in alarms[-_LISTED_ALARMS:]:
        label = shown_label(alarm.label)
        change = f"{alarm.direction} from {percent(alarm.before)} to {percent(alarm.after)}"
        say(f"  {shown_moment(alarm.moment)}: {label} {change}, since {shown_moment(alarm.since)}")
