"""``sunzi discover``: find the frequent texts of an open plan."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from sunzi.cli.files import TABLES, check_order, check_paths, input_name, read_tally
from sunzi.cli.open_plans import length_in_words, share_in_words
from sunzi.cli.queries import check_plan_file
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.sources import add_source, given_files, read_epoch
from sunzi.cli.terminal import EMPTY_TEXT, print_table, say, say_wrapped
from sunzi.errors import TallyError
from sunzi.formatting import counted, decimals_for, percent, percent_of_three_digits, printable, shortened

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.results.discovery import Discovery, Threshold
    from sunzi.tally import Tally

_LONGEST_LABEL = 60
_SHOWN = 50
_MOST_LENGTHS = 5  # of more thresholds, those of the shortest and the longest texts and of a list are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``discover``, and add its arguments."""
    parser.description = (
        "Find the frequent texts of a plan made by 'sunzi plan --open'. Some reports propose texts and others count "
        "them, so frequencies and intervals are valid whatever the search did. A text that was found may still be "
        "private, such as a name: review the texts before you publish."
    )
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="plan file")
    parser.add_argument("tally", metavar="TALLY", nargs="?", help="tally file, or - for standard input")
    add_source(parser)
    parser.add_argument(
        "--prior",
        metavar="FILE",
        help="public texts of the same kind, one per line, frequent ones repeated; they guide the search and cause "
        "no bias",
    )
    parser.add_argument("--candidates", metavar="FILE", help="look for these texts only, one per line")
    parser.add_argument(
        "--false-share",
        metavar="Q",
        type=float,
        default=0.05,
        help="maximum false discovery rate (default: %(default)s)",
    )
    add_output(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, then write or print the texts."""
    from sunzi.results.discovery import FoundText

    check_output(arguments, TABLES)
    plan, tally = _read(arguments)
    found = plan.discover(
        tally, prior=arguments.prior, candidates=arguments.candidates, false_share=arguments.false_share
    )
    thresholds = plan.thresholds(found.reports, false_share=found.false_share)
    result = Result(
        table=partial(_print, found, thresholds),
        document=lambda: {
            "plan": plan.fingerprint,
            **found.to_dict(),
            "thresholds": [asdict(each) for each in thresholds],
        },
        rows=found.records,
        columns=tuple(FoundText.__annotations__),
    )
    deliver(arguments, result)
    return 0


def _read(arguments: argparse.Namespace) -> tuple[Plan, Tally]:
    from sunzi.plan import load_plan

    given = given_files(arguments)
    if arguments.source:
        plan, tally, _ = read_epoch(arguments.source, arguments.collection, arguments.epoch, None, None)
        return plan, tally
    check_order("discover", given[0], given[1:])
    check_paths(given)
    plan, tally = load_plan(check_plan_file(arguments.plan)), read_tally(arguments.tally)
    if tally.fingerprint != plan.digest:
        raise TallyError(f"{input_name(arguments.tally)} is a tally of another plan than {arguments.plan}")
    return plan, tally


def _print(found: Discovery, thresholds: list[Threshold]) -> None:
    say(counted(found.reports, "report"))
    say()
    if found.rows:
        _print_rows(found)
    else:
        say("No text was found.")
    say()
    say_wrapped(
        f"{counted(found.candidates, 'text')} proposed and counted in other reports, {len(found):,} accepted: at most "
        f"{percent(found.false_share)} of them are expected to be false, and 5 % of the intervals to miss. Proposed "
        f"texts are accepted from a frequency of about {percent_of_three_digits(found.threshold)} on."
    )
    shown = thresholds if len(thresholds) <= _MOST_LENGTHS else [thresholds[0], *thresholds[-2:]]
    lengths = [f"{share_in_words(each.frequency)} ({length_in_words(each.tokens)})" for each in shown]
    say_wrapped(
        f"With {counted(found.reports, 'report')}, a text is found in four of five collections from this frequency on: "
        f"{', '.join(lengths)}."
    )


def _print_rows(found: Discovery) -> None:
    decimals = decimals_for((row.high - row.low) / 4 for row in found)
    cells = [
        [
            shortened(printable(row.label), _LONGEST_LABEL) or EMPTY_TEXT,
            percent(row.frequency, decimals),
            f"{percent(row.low, decimals)} to {percent(row.high, decimals)}",
            f"{row.frequency * found.reports:,.0f}",
        ]
        for row in found.rows[:_SHOWN]
    ]
    print_table(["text", "estimate", "interval", "users"], cells)
    if len(found) > _SHOWN:
        say(f"{_SHOWN} of {counted(len(found), 'text')}; -o FILE.csv writes all.")
